//! The Parquet schema of a file, built from the target Arrow schema.
//!
//! Field ids are kept at every level, list and map children have Iceberg's names (Iceberg spec, Appendix A "Parquet":
//! `list.element`, `key_value.key` and `key_value.value`), whatever the Arrow schema calls them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use crate::ColumnarError;
use crate::fields::{child_path, field_id, is_uuid, map_fields};

/// Name of the root group, as Iceberg's own writers have it.
const ROOT: &str = "table";

/// The Parquet schema of `schema`.
///
/// # Errors
/// [`ColumnarError::Unsupported`] for a type that Iceberg does not have, naming the column.
pub(crate) fn parquet_schema(file: &str, schema: &Schema) -> Result<TypePtr, ColumnarError> {
    let fields = schema
        .fields()
        .iter()
        .map(|field| parquet_type(file, field, field.name(), field.name()).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    root(file, fields)
}

/// A schema of top-level `fields`.
pub(crate) fn root(file: &str, fields: Vec<TypePtr>) -> Result<TypePtr, ColumnarError> {
    let root = Type::group_type_builder(ROOT).with_fields(fields).build();
    root.map(Arc::new).map_err(|error| unsupported(file, ROOT, error.to_string()))
}

/// The type of `field`, called `name` in the file.
fn parquet_type(file: &str, field: &Field, name: &str, path: &str) -> Result<Type, ColumnarError> {
    let child = |field: &Field, name: &str| parquet_type(file, field, name, &child_path(path, name)).map(Arc::new);
    let group = |children: Vec<TypePtr>, logical_type: Option<LogicalType>| {
        Type::group_type_builder(name)
            .with_fields(children)
            .with_repetition(repetition(field))
            .with_logical_type(logical_type)
            .with_id(field_id(field))
            .build()
    };
    let repeated = |name: &str, children: Vec<TypePtr>| {
        let group = Type::group_type_builder(name).with_fields(children).with_repetition(Repetition::REPEATED).build();
        group.map(Arc::new).map_err(|error| unsupported(file, path, error.to_string()))
    };
    let built = match field.data_type() {
        DataType::Struct(fields) if fields.is_empty() => {
            return Err(unsupported(file, path, "a struct without fields cannot be written to Parquet"));
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|field| child(field, field.name())).collect::<Result<_, _>>()?;
            group(children, None)
        }
        DataType::List(element) | DataType::LargeList(element) => {
            let list = repeated("list", vec![child(element, "element")?])?;
            group(vec![list], Some(LogicalType::List))
        }
        DataType::Map(entries, _) => {
            let (key, value) = map_fields(path, entries)?;
            let entries = repeated("key_value", vec![child(key, "key")?, child(value, "value")?])?;
            group(vec![entries], Some(LogicalType::Map))
        }
        _ => leaf(field, name),
    };
    built.map_err(|error| unsupported(file, path, error.to_string()))
}

fn leaf(field: &Field, name: &str) -> Result<Type, ParquetError> {
    match field.data_type() {
        DataType::FixedSizeBinary(16) if is_uuid(field) => {
            Type::primitive_type_builder(name, PhysicalType::FIXED_LEN_BYTE_ARRAY)
                .with_length(16)
                .with_logical_type(Some(LogicalType::Uuid))
                .with_repetition(repetition(field))
                .with_id(field_id(field))
                .build()
        }
        // The converter below takes INT64 for a precision of 1; Iceberg says INT32 up to 9 digits.
        DataType::Decimal128(precision @ 1, scale) => Type::primitive_type_builder(name, PhysicalType::INT32)
            .with_logical_type(Some(LogicalType::Decimal { scale: (*scale).into(), precision: (*precision).into() }))
            .with_precision((*precision).into())
            .with_scale((*scale).into())
            .with_repetition(repetition(field))
            .with_id(field_id(field))
            .build(),
        DataType::Boolean
        | DataType::Int32
        | DataType::Int64
        // Hidden columns of temporary files only: Iceberg has no unsigned types.
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..)
        | DataType::Date32
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let schema = Schema::new(vec![field.clone().with_name(name)]);
            let converted = ArrowSchemaConverter::new().convert(&schema)?;
            let fields = converted.root_schema().get_fields();
            fields.first().map(|leaf| leaf.as_ref().clone()).ok_or_else(|| ParquetError::General("no leaf".into()))
        }
        other => Err(ParquetError::NYI(format!("type {other} is none of Iceberg's and is not written"))),
    }
}

fn repetition(field: &Field) -> Repetition {
    if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED }
}

fn unsupported(file: &str, path: &str, detail: impl Into<String>) -> ColumnarError {
    ColumnarError::Unsupported { file: file.to_owned(), column: Some(path.to_owned()), detail: detail.into() }
}
