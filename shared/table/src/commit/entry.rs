//! Entries of rewritten manifests: what an existing data file becomes when it is written again.

use std::collections::HashMap;

use iceberg::spec::{DataFile, DataFileBuilder, Datum, PrimitiveType, Schema, Struct};

/// How an entry of a read manifest is written again; all its own numbers stay (Iceberg spec, "Manifest Entry Fields").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carry {
    /// Still live: EXISTING with the snapshot that added it.
    Existing {
        /// Snapshot that added the file.
        snapshot_id: i64,
    },
    /// Replaced by this commit: DELETED with our snapshot id.
    Deleted,
}

/// An entry that is written again.
#[derive(Debug, Clone)]
pub(crate) struct CarriedEntry {
    pub(crate) file: DataFile,
    pub(crate) carry: Carry,
    pub(crate) sequence_number: i64,
    pub(crate) file_sequence_number: i64,
}

/// The same data file with `tuple` as its partition and bounds in the types of `schema`. Bounds of columns that the schema
/// lacks are left out: such a column was dropped, nobody can read it again.
pub(crate) fn copied(file: &DataFile, schema: &Schema, spec_id: i32, tuple: Struct) -> Result<DataFile, String> {
    let mut builder = DataFileBuilder::default();
    builder
        .content(file.content_type())
        .file_path(file.file_path().to_owned())
        .file_format(file.file_format())
        .partition(tuple)
        .partition_spec_id(spec_id)
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(bounds_in(file.lower_bounds(), schema))
        .upper_bounds(bounds_in(file.upper_bounds(), schema))
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(file.first_row_id())
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    builder.build().map_err(|error| format!("`{}`: {error}", file.file_path()))
}

fn bounds_in(bounds: &HashMap<i32, Datum>, schema: &Schema) -> HashMap<i32, Datum> {
    bounds
        .iter()
        .filter_map(|(id, bound)| {
            let kind = schema.field_by_id(*id)?.field_type.as_primitive_type()?;
            Some((*id, in_type(bound, kind)?))
        })
        .collect()
}

/// The bound in a promoted type; None (no bound at all) when it has no form there.
fn in_type(bound: &Datum, kind: &PrimitiveType) -> Option<Datum> {
    if bound.data_type() == kind {
        return Some(bound.clone());
    }
    Datum::try_from_bytes(&bound.to_bytes().ok()?, kind.clone()).ok()
}

/// Bytes that the entry takes in a manifest, roughly: manifests are cut by this figure.
pub(crate) fn entry_bytes(file: &DataFile) -> u64 {
    const FIXED: usize = 64;
    const COUNT: usize = 6;
    let counts = file.column_sizes().len()
        + file.value_counts().len()
        + file.null_value_counts().len()
        + file.nan_value_counts().len();
    let bound = |datum: &Datum| match datum.data_type() {
        PrimitiveType::String | PrimitiveType::Binary => {
            datum.to_bytes().map_or(0, |bytes| bytes.len()).saturating_add(4)
        }
        _ => 12,
    };
    let bounds: usize = file.lower_bounds().values().chain(file.upper_bounds().values()).map(bound).sum();
    let offsets = file.split_offsets().map_or(0, |offsets| offsets.len() * 5);
    (FIXED + file.file_path().len() + counts * COUNT + bounds + offsets + file.partition().fields().len() * 8) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{DataContentType, DataFileFormat, Literal, NestedField, Type};

    use super::*;

    fn schema(fields: &[(i32, PrimitiveType)]) -> Schema {
        let fields = fields
            .iter()
            .map(|(id, kind)| Arc::new(NestedField::optional(*id, format!("c{id}"), Type::Primitive(kind.clone()))));
        Schema::builder().with_fields(fields).build().unwrap()
    }

    fn file() -> DataFile {
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path("f".into())
            .file_format(DataFileFormat::Parquet)
            .partition([Some(Literal::int(5))].into_iter().collect())
            .partition_spec_id(4)
            .record_count(9)
            .file_size_in_bytes(99)
            .column_sizes(HashMap::from([(1, 10)]))
            .value_counts(HashMap::from([(1, 9)]))
            .null_value_counts(HashMap::from([(1, 1)]))
            .nan_value_counts(HashMap::from([(2, 2)]))
            .lower_bounds(HashMap::from([(1, Datum::int(-3)), (2, Datum::string("a"))]))
            .upper_bounds(HashMap::from([(1, Datum::int(7)), (2, Datum::string("z"))]))
            .key_metadata(Some(vec![1]))
            .split_offsets(Some(vec![4, 50]))
            .sort_order_id(3);
        builder.build().unwrap()
    }

    #[test]
    fn everything_is_copied_and_nothing_else() {
        let same = schema(&[(1, PrimitiveType::Int), (2, PrimitiveType::String)]);
        assert_eq!(copied(&file(), &same, 4, file().partition().clone()).unwrap(), file());
    }

    #[test]
    fn bounds_follow_a_promotion_and_go_with_a_dropped_column() {
        let evolved = schema(&[(1, PrimitiveType::Long)]);
        let tuple: Struct = [Some(Literal::long(5))].into_iter().collect();
        let copy = copied(&file(), &evolved, 4, tuple.clone()).unwrap();
        assert_eq!(copy.lower_bounds(), &HashMap::from([(1, Datum::long(-3))]));
        assert_eq!(copy.upper_bounds(), &HashMap::from([(1, Datum::long(7))]));
        assert_eq!(copy.partition(), &tuple);
        assert_eq!(copy.nan_value_counts(), file().nan_value_counts());
    }

    #[test]
    fn long_bounds_count() {
        let with = |bound: &str| {
            let schema = schema(&[(2, PrimitiveType::String)]);
            let mut file = copied(&file(), &schema, 4, Struct::empty()).unwrap();
            let mut builder = DataFileBuilder::default();
            builder
                .content(DataContentType::Data)
                .file_path(file.file_path().to_owned())
                .file_format(DataFileFormat::Parquet)
                .record_count(1)
                .file_size_in_bytes(1)
                .upper_bounds(HashMap::from([(2, Datum::string(bound))]));
            file = builder.build().unwrap();
            entry_bytes(&file)
        };
        assert_eq!(with(&"x".repeat(1000)) - with("x"), 999);
    }
}
