//! What a file's own footer claims of its rows, as key-value entries (design section 5, "Row order" and "Rows and proof").
//!
//! `timelake.sort` and `timelake.unique` are shared with an ingestor; the entries that begin with `firn.` are Firn's own.
//! Whoever writes a claim has verified it over the whole file. A claim that cannot be read counts as absent: absent claims cost
//! a check, false ones cost rows.

use firn_model::{KeyRange, RowOrder};
use parquet::file::metadata::ParquetMetaData;

use crate::proof::{ROW_SUM_VERSION, RowSum};

/// Names of the columns that the rows are sorted by, separated by commas.
pub const SORT: &str = "timelake.sort";
/// `true`: no two rows share series columns and time.
pub const UNIQUE: &str = "timelake.unique";
/// The row order of the file, as [`RowOrder::canonical`] has it: field ids, directions and null orders.
pub const ORDER: &str = "firn.order";
/// What the keys are made of, as `KeyOrder::key_signature` of firn-merge has it: encoding, columns, directions, types.
pub const KEY: &str = "firn.key";
/// First key of that form, memcmp-encoded, hexadecimal.
pub const FIRST_KEY: &str = "firn.first-key";
/// Last key of that form, memcmp-encoded, hexadecimal.
pub const LAST_KEY: &str = "firn.last-key";
/// Sum of the row hashes, 32 hexadecimal digits.
pub const ROW_SUM: &str = "firn.row-sum";
/// Version of the row hash.
pub const ROW_SUM_VERSION_KEY: &str = "firn.row-sum-version";

/// A key longer than this is not written: readers of many footers hold them all.
const MAX_KEY_BYTES: usize = 4096;

/// The claims of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileClaims {
    /// Columns that the rows are sorted by, most significant first.
    pub sort: Option<Vec<String>>,
    /// No two rows share the dedup key.
    pub unique: bool,
    /// The row order, as [`RowOrder::canonical`] has it.
    pub order: Option<String>,
    /// What the keys of [`key_range`](Self::key_range) are made of.
    pub key_signature: Option<String>,
    /// First and last key.
    pub key_range: Option<KeyRange>,
    /// Sum of the row hashes, of this build's version.
    pub row_sum: Option<RowSum>,
}

impl FileClaims {
    /// The key-value entries to write. Left out is what the footer cannot hold: a sort column whose name has a comma, keys
    /// that are very long, and keys without their signature.
    pub fn to_key_values(&self) -> Vec<(String, String)> {
        let mut entries = Vec::new();
        let mut push = |key: &str, value: String| entries.push((key.to_owned(), value));
        if let Some(sort) = &self.sort
            && !sort.is_empty()
            && sort.iter().all(|name| !name.is_empty() && !name.contains(','))
        {
            push(SORT, sort.join(","));
        }
        if self.unique {
            push(UNIQUE, "true".into());
        }
        if let Some(order) = &self.order {
            push(ORDER, order.clone());
        }
        if let (Some(signature), Some(KeyRange { first, last })) = (&self.key_signature, &self.key_range)
            && first.len().max(last.len()) <= MAX_KEY_BYTES
        {
            push(KEY, signature.clone());
            push(FIRST_KEY, hex(first));
            push(LAST_KEY, hex(last));
        }
        if let Some(row_sum) = self.row_sum {
            push(ROW_SUM, row_sum.to_string());
            push(ROW_SUM_VERSION_KEY, ROW_SUM_VERSION.to_string());
        }
        entries
    }

    /// The claims in a footer. An entry that is there twice with two values claims nothing.
    pub fn read(metadata: &ParquetMetaData) -> Self {
        Self::from_lookup(|key| Self::entry(metadata, key))
    }

    /// The value of an entry that is there once, or always with the same value.
    pub(crate) fn entry<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
        let entries = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let mut values = entries.iter().filter(|entry| entry.key == key).map(|entry| entry.value.as_deref());
        let first = values.next()??;
        values.all(|other| other == Some(first)).then_some(first)
    }

    fn from_lookup<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Self {
        let order = value(ORDER).map(str::to_owned);
        let key_signature = value(KEY).map(str::to_owned);
        let key_range = (value(FIRST_KEY).and_then(unhex).zip(value(LAST_KEY).and_then(unhex)))
            .filter(|(first, last)| key_signature.is_some() && first <= last)
            .map(|(first, last)| KeyRange { first, last });
        let current = value(ROW_SUM_VERSION_KEY) == Some(ROW_SUM_VERSION.to_string().as_str());
        Self {
            sort: value(SORT).filter(|text| !text.is_empty()).map(|text| text.split(',').map(str::to_owned).collect()),
            unique: value(UNIQUE) == Some("true"),
            order,
            key_signature,
            key_range,
            row_sum: value(ROW_SUM).filter(|_| current).and_then(|text| text.parse().ok()),
        }
    }

    /// The key range, when its keys have the given signature: others cannot be compared.
    pub fn key_range_of(&self, signature: &str) -> Option<&KeyRange> {
        self.key_range.as_ref().filter(|_| self.key_signature.as_deref() == Some(signature))
    }

    /// Whether the rows are claimed to follow `order`, by field ids. No order is claimed to follow nothing.
    pub fn is_sorted_by(&self, order: &RowOrder) -> bool {
        !order.is_unordered() && self.order.as_deref() == Some(order.canonical().as_str())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use bytes::Bytes;
    use firn_model::OrderColumn;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::samples::every_type_rows;
    use crate::writer::{FileWriter, WriterSettings};

    fn order() -> RowOrder {
        let column =
            |field_id, name: &str| OrderColumn { field_id, name: name.into(), descending: false, nulls_first: true };
        RowOrder { columns: vec![column(15, "text"), column(13, "instant")], ..RowOrder::default() }
    }

    fn claims() -> FileClaims {
        FileClaims {
            sort: Some(vec!["text".into(), "instant".into()]),
            unique: true,
            order: Some(order().canonical()),
            key_signature: Some("v1:15 asc nulls-first string".into()),
            key_range: Some(KeyRange { first: vec![0, 1, 0xAB], last: vec![2] }),
            row_sum: Some(RowSum(77)),
        }
    }

    fn read(entries: &[(String, String)]) -> FileClaims {
        let map: HashMap<_, _> = entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        FileClaims::from_lookup(|key| map.get(key).copied())
    }

    #[test]
    fn claims_are_read_back_from_a_file() {
        let batch = every_type_rows(3, 3);
        for claims in [claims(), FileClaims::default()] {
            let mut writer =
                FileWriter::new("test.parquet", &batch.schema(), &WriterSettings::default(), Vec::new()).unwrap();
            writer.write_row_group(&batch).unwrap();
            let (_, sink) = writer.finish(&claims.to_key_values()).unwrap();
            let reader = SerializedFileReader::new(Bytes::from(sink)).unwrap();
            assert_eq!(FileClaims::read(reader.metadata()), claims);
        }
    }

    #[test]
    fn entries_have_the_documented_names_and_forms() {
        let expected = [
            ("timelake.sort", "text,instant"),
            ("timelake.unique", "true"),
            ("firn.order", "15 asc nulls-first,13 asc nulls-first"),
            ("firn.key", "v1:15 asc nulls-first string"),
            ("firn.first-key", "0001ab"),
            ("firn.last-key", "02"),
            ("firn.row-sum", "0000000000000000000000000000004d"),
            ("firn.row-sum-version", "1"),
        ];
        assert_eq!(claims().to_key_values(), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_cannot_be_read_is_not_claimed() {
        let with = |key: &str, value: &str| {
            let mut entries = claims().to_key_values();
            entries.iter_mut().filter(|entry| entry.0 == key).for_each(|entry| entry.1 = value.into());
            read(&entries)
        };
        assert_eq!(read(&claims().to_key_values()), claims());
        assert!(!with(UNIQUE, "True").unique);
        assert_eq!(with(FIRST_KEY, "0").key_range, None);
        assert_eq!(with(FIRST_KEY, "zz").key_range, None);
        assert_eq!(with(LAST_KEY, "+1").key_range, None);
        // The last key before the first: one of them is wrong.
        assert_eq!(with(LAST_KEY, "00").key_range, None);
        assert_eq!(with(ROW_SUM_VERSION_KEY, "2").row_sum, None);
        assert_eq!(with(ROW_SUM, "4d").row_sum, None);
        assert_eq!(with(SORT, "").sort, None);
    }

    #[test]
    fn keys_of_another_order_are_not_compared() {
        assert_eq!(claims().key_range_of("v1:15 asc nulls-first string"), claims().key_range.as_ref());
        assert_eq!(claims().key_range_of("v2:15 asc nulls-first string"), None);
        assert_eq!(FileClaims { key_signature: None, ..claims() }.key_range_of(""), None);
        assert!(claims().is_sorted_by(&order()));
        let mut other = order();
        other.columns[0].descending = true;
        assert!(!claims().is_sorted_by(&other));
        assert!(!FileClaims { order: Some(String::new()), ..claims() }.is_sorted_by(&RowOrder::default()));
    }

    #[test]
    fn what_the_footer_cannot_hold_is_left_out() {
        let has = |claims: FileClaims, key: &str| claims.to_key_values().iter().any(|entry| entry.0 == key);
        assert!(!has(FileClaims { sort: Some(vec!["a,b".into()]), ..claims() }, SORT));
        let long = KeyRange { first: vec![0; MAX_KEY_BYTES + 1], last: vec![1] };
        assert!(!has(FileClaims { key_range: Some(long), ..claims() }, FIRST_KEY));
        assert!(!has(FileClaims { key_signature: None, ..claims() }, FIRST_KEY));
    }
}
