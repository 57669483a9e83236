//! Files written by arrow-rs, and cursors over them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat;
use bytes::Bytes;
use firn_columnar::{BatchLimit, ColumnCursor, ColumnarError, CountedRange, InputFile, MemoryFile};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::file::properties::WriterProperties;

/// A field with an id.
pub fn field(id: i32, name: &str, data_type: DataType, nullable: bool) -> Field {
    Field::new(name, data_type, nullable)
        .with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

pub fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

pub fn list(element: Field) -> DataType {
    DataType::List(Arc::new(element))
}

pub fn map(key: Field, value: Field) -> DataType {
    let entries = Field::new("key_value", DataType::Struct(Fields::from(vec![key, value])), false);
    DataType::Map(Arc::new(entries), false)
}

/// A Parquet file of these columns.
pub fn write(schema: &SchemaRef, columns: Vec<ArrayRef>, properties: WriterProperties) -> Bytes {
    let batch = RecordBatch::try_new(Arc::clone(schema), columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(schema), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

pub fn plain(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Bytes {
    write(schema, columns, WriterProperties::builder().build())
}

pub fn open(bytes: Bytes, target: &SchemaRef) -> Result<InputFile, ColumnarError> {
    InputFile::open(Arc::new(MemoryFile::new("t.parquet", bytes)), target, None)
}

/// A file whose requests are counted, and the counter.
pub fn open_counted(bytes: Bytes, target: &SchemaRef) -> (InputFile, Arc<CountedRange>) {
    let counted = Arc::new(CountedRange::new(Arc::new(MemoryFile::new("t.parquet", bytes))));
    let file = InputFile::open(Arc::clone(&counted) as _, target, None).unwrap();
    (file, counted)
}

/// All rows that are left.
pub fn rest(cursor: &mut ColumnCursor) -> Result<ArrayRef, ColumnarError> {
    let mut arrays = Vec::new();
    while let Some(array) = cursor.next(usize::MAX)? {
        arrays.push(array);
    }
    if arrays.is_empty() {
        return Ok(arrow_array::new_empty_array(cursor.data_type()));
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    Ok(concat(&arrays).unwrap())
}

/// One whole column of a file, as the target wants it.
pub fn read(bytes: Bytes, target: &SchemaRef, column: usize) -> Result<ArrayRef, ColumnarError> {
    rest(&mut open(bytes, target)?.cursor(column, BatchLimit::default())?)
}
