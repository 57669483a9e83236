//! What Firn's own footers say of each row group: what cannot be known of a copied one without decoding it.

use std::collections::BTreeMap;

use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use crate::claims::FileClaims;
use crate::proof::{ROW_SUM_VERSION, RowSum};

/// Sum of the row hashes of each row group: `<version>:` and, separated by commas, 32 hexadecimal digits or `-`.
pub(crate) const GROUP_SUMS: &str = "firn.group-row-sums";
/// NaN of each row group, separated by semicolons: `<field id>=<count>` of each column that has some, `?` for a count that is not known.
pub(crate) const GROUP_NANS: &str = "firn.group-nan-counts";

/// Whether Firn wrote the file. Other programs carry key-value entries over to files with other rows.
pub(crate) fn is_of_firn(metadata: &ParquetMetaData) -> bool {
    metadata.file_metadata().created_by().is_some_and(|name| name.starts_with("firn version "))
}

/// The claims of a file about its row groups; empty where there are none, or not one for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupClaims {
    sums: Vec<Option<RowSum>>,
    nans: Vec<GroupNans>,
}

/// NaN by field id, of columns that have some; None: not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupNans(BTreeMap<i32, Option<u64>>);

impl GroupNans {
    /// NaN of a leaf: 0 for types that have none, None where it is not known.
    pub(crate) fn of(nans: Option<&GroupNans>, descriptor: &ColumnDescriptor) -> Option<u64> {
        use parquet::basic::Type;
        if !matches!(descriptor.physical_type(), Type::FLOAT | Type::DOUBLE) {
            return Some(0);
        }
        let info = descriptor.self_type().get_basic_info();
        let id = info.has_id().then(|| info.id())?;
        nans?.0.get(&id).copied().unwrap_or(Some(0))
    }
}

impl GroupClaims {
    pub(crate) fn read(metadata: &ParquetMetaData) -> GroupClaims {
        if !is_of_firn(metadata) {
            return GroupClaims::default();
        }
        let groups = metadata.num_row_groups();
        let sums = FileClaims::entry(metadata, GROUP_SUMS).and_then(|text| parse_sums(text, groups));
        let nans = FileClaims::entry(metadata, GROUP_NANS).and_then(|text| parse_nans(text, groups));
        // A file of one row group says it of the whole.
        let whole = || (groups == 1).then(|| vec![FileClaims::read(metadata).row_sum]);
        GroupClaims { sums: sums.or_else(whole).unwrap_or_default(), nans: nans.unwrap_or_default() }
    }

    pub(crate) fn sum(&self, group: usize) -> Option<RowSum> {
        self.sums.get(group).copied().flatten()
    }

    pub(crate) fn nans(&self, group: usize) -> Option<&GroupNans> {
        self.nans.get(group)
    }
}

/// The entry for the sums of all row groups.
pub(crate) fn sums_entry(sums: impl Iterator<Item = Option<RowSum>>) -> (String, String) {
    let sums: Vec<String> = sums.map(|sum| sum.map_or_else(|| "-".to_owned(), |sum| sum.to_string())).collect();
    (GROUP_SUMS.to_owned(), format!("{ROW_SUM_VERSION}:{}", sums.join(",")))
}

/// The entry for the NaN of all row groups: of each the field ids of float columns with their counts.
pub(crate) fn nans_entry(groups: impl Iterator<Item = Vec<(i32, Option<u64>)>>) -> (String, String) {
    let groups: Vec<String> = groups
        .map(|counts| {
            let some = counts.into_iter().filter(|(_, count)| *count != Some(0));
            let texts = some.map(|(id, count)| match count {
                Some(count) => format!("{id}={count}"),
                None => format!("{id}=?"),
            });
            texts.collect::<Vec<_>>().join(",")
        })
        .collect();
    (GROUP_NANS.to_owned(), groups.join(";"))
}

fn parse_sums(text: &str, groups: usize) -> Option<Vec<Option<RowSum>>> {
    let (version, sums) = text.split_once(':')?;
    if version != ROW_SUM_VERSION.to_string() {
        return None;
    }
    let one = |text: &str| if text == "-" { Some(None) } else { text.parse().ok().map(Some) };
    let sums: Vec<Option<RowSum>> = sums.split(',').map(one).collect::<Option<_>>()?;
    (sums.len() == groups).then_some(sums)
}

fn parse_nans(text: &str, groups: usize) -> Option<Vec<GroupNans>> {
    let count = |text: &str| if text == "?" { Some(None) } else { text.parse().ok().map(Some) };
    let one = |text: &str| {
        let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
            let (id, found) = pair.split_once('=')?;
            Some((id.parse().ok()?, count(found)?))
        });
        pairs.collect::<Option<_>>().map(GroupNans)
    };
    let nans: Vec<GroupNans> = text.split(';').map(one).collect::<Option<_>>()?;
    (nans.len() == groups).then_some(nans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is_taken() {
        let sums = [Some(RowSum(7)), None, Some(RowSum(u128::MAX))];
        let (key, text) = sums_entry(sums.into_iter());
        assert_eq!(key, "firn.group-row-sums");
        assert_eq!(text, "1:00000000000000000000000000000007,-,ffffffffffffffffffffffffffffffff");
        assert_eq!(parse_sums(&text, 3), Some(sums.to_vec()));
        assert_eq!(parse_sums(&text, 2), None, "not one for each row group");
        assert_eq!(parse_sums(&text.replacen('1', "2", 1), 3), None, "another version");
        assert_eq!(parse_sums("1:7", 1), None);

        let nans = [vec![(3, Some(0)), (4, Some(2)), (5, None)], vec![(3, Some(0))]];
        let (key, text) = nans_entry(nans.into_iter());
        assert_eq!((key.as_str(), text.as_str()), ("firn.group-nan-counts", "4=2,5=?;"));
        let read = parse_nans(&text, 2).unwrap();
        assert_eq!(read, [GroupNans([(4, Some(2)), (5, None)].into()), GroupNans::default()]);
        assert_eq!(parse_nans(&text, 1), None);
        assert_eq!(parse_nans("4", 1), None);
        assert_eq!(parse_nans("4=x", 1), None);
    }
}
