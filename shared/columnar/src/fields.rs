//! Reading what an Arrow field says about itself: its field id and whether it is a UUID.

use arrow_schema::{DataType, Field, FieldRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::ColumnarError;

/// Metadata key under which Arrow names an extension type.
const EXTENSION_NAME: &str = "ARROW:extension:name";
/// Arrow's canonical name of UUID: Iceberg's `uuid`, to tell it from `fixed[16]`.
const UUID_EXTENSION: &str = "arrow.uuid";

/// The Iceberg field id of a field, if it has one.
pub fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// True for a 16-byte field that is marked as Arrow's canonical UUID extension type.
pub(crate) fn is_uuid(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == UUID_EXTENSION)
}

/// The key and value fields of a map's entries.
pub(crate) fn map_fields<'a>(path: &str, entries: &'a FieldRef) -> Result<(&'a FieldRef, &'a FieldRef), ColumnarError> {
    match entries.data_type() {
        DataType::Struct(fields) if fields.len() == 2 => Ok((&fields[0], &fields[1])),
        other => {
            Err(ColumnarError::Usage { detail: format!("the entries of map `{path}` are {other}, not (key, value)") })
        }
    }
}

/// The dotted path of a child.
pub(crate) fn child_path(parent: &str, child: &str) -> String {
    if parent.is_empty() { child.to_owned() } else { format!("{parent}.{child}") }
}

/// True when arrays of the two types are the same but for metadata and the names of list and map children. Children of
/// structs must have the same names in the same order: types alone would not tell two that were swapped.
pub(crate) fn same_shape(left: &DataType, right: &DataType) -> bool {
    let same_field =
        |a: &FieldRef, b: &FieldRef| a.is_nullable() == b.is_nullable() && same_shape(a.data_type(), b.data_type());
    match (left, right) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name() && same_field(a, b))
        }
        (DataType::List(a), DataType::List(b)) | (DataType::LargeList(a), DataType::LargeList(b)) => same_field(a, b),
        (DataType::Map(a, _), DataType::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (DataType::Struct(a), DataType::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_field(a, b))
            }
            _ => false,
        },
        _ => left == right,
    }
}
