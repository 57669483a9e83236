//! Schemas, specs and entries of files that need not exist.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::*;

/// `id` long, `p` string.
pub fn schema() -> Schema {
    let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    Schema::builder()
        .with_fields([field(1, "id", PrimitiveType::Long), field(2, "p", PrimitiveType::String)])
        .build()
        .unwrap()
}

pub fn by(source_id: i32, name: &str, transform: Transform) -> UnboundPartitionSpec {
    UnboundPartitionSpec::builder().add_partition_field(source_id, name, transform).unwrap().build()
}

/// A data file of `rows` rows and `10 * rows` bytes in partition `p`.
pub fn file(path: &str, p: &str, rows: u64) -> DataFile {
    file_in(path, [Some(Literal::string(p))].into_iter().collect(), rows)
}

pub fn file_in(path: &str, tuple: Struct, rows: u64) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(tuple)
        .record_count(rows)
        .file_size_in_bytes(rows * 10)
        .value_counts(HashMap::from([(1, rows)]))
        .lower_bounds(HashMap::from([(1, Datum::long(1))]))
        .upper_bounds(HashMap::from([(1, Datum::long(i64::try_from(rows).unwrap()))]))
        .split_offsets(Some(vec![4]))
        .build()
        .unwrap()
}

pub fn equality_delete(path: &str, p: &str) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::EqualityDeletes)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition([Some(Literal::string(p))].into_iter().collect())
        .record_count(1)
        .file_size_in_bytes(5)
        .equality_ids(Some(vec![1]))
        .build()
        .unwrap()
}

pub fn position_delete(path: &str, p: &str, referenced: Option<&str>, bounds: Option<(&str, &str)>) -> DataFile {
    const FILE_PATH: i32 = 2_147_483_546;
    let bound = |pick: fn((&str, &str)) -> String| bounds.map(|b| (FILE_PATH, Datum::string(pick(b)))).into_iter();
    DataFileBuilder::default()
        .content(DataContentType::PositionDeletes)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition([Some(Literal::string(p))].into_iter().collect())
        .record_count(1)
        .file_size_in_bytes(5)
        .referenced_data_file(referenced.map(str::to_owned))
        .lower_bounds(bound(|(lower, _)| lower.to_owned()).collect())
        .upper_bounds(bound(|(_, upper)| upper.to_owned()).collect())
        .build()
        .unwrap()
}
