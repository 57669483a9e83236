//! Fields and batches of every type a table can have, for tests.

mod random;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::types::Decimal128Type;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
pub(crate) use random::Random;

/// A nullable field with a field id.
pub(crate) fn field(id: i32, name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
        .with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

/// A required field with a field id.
pub(crate) fn required(id: i32, name: &str, data_type: DataType) -> Field {
    field(id, name, data_type).with_nullable(false)
}

/// A UUID field.
pub(crate) fn uuid_field(id: i32, name: &str) -> Field {
    let mut field = field(id, name, DataType::FixedSizeBinary(16));
    field.metadata_mut().insert("ARROW:extension:name".into(), "arrow.uuid".into());
    field
}

fn struct_fields() -> Fields {
    vec![field(31, "x", DataType::Int32), field(32, "y", DataType::Utf8), field(33, "z", DataType::Float64)].into()
}

fn map_type() -> DataType {
    let entries = Fields::from(vec![required(51, "k", DataType::Utf8), field(52, "v", DataType::Int32)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

/// One column of each type. List and map children have names that are not Iceberg's.
pub(crate) fn every_type() -> Schema {
    let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    Schema::new(vec![
        required(1, "id", DataType::Int64),
        field(2, "flag", DataType::Boolean),
        field(3, "int", DataType::Int32),
        field(4, "float", DataType::Float32),
        field(5, "double", DataType::Float64),
        field(6, "digit", DataType::Decimal128(1, 0)),
        field(7, "price", DataType::Decimal128(9, 2)),
        field(8, "amount", DataType::Decimal128(18, 4)),
        field(9, "huge", DataType::Decimal128(38, 10)),
        field(10, "day", DataType::Date32),
        field(11, "clock", DataType::Time64(TimeUnit::Microsecond)),
        field(12, "local", micros(None)),
        field(13, "instant", micros(Some("+00:00"))),
        field(14, "nanos", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        field(15, "text", DataType::Utf8),
        field(16, "big_text", DataType::LargeUtf8),
        field(17, "bytes", DataType::Binary),
        field(18, "big_bytes", DataType::LargeBinary),
        field(19, "fixed", DataType::FixedSizeBinary(3)),
        uuid_field(20, "uuid"),
        field(21, "nested", DataType::Struct(struct_fields())),
        field(22, "list", DataType::List(Arc::new(field(41, "item", DataType::Int32)))),
        field(23, "map", map_type()),
    ])
}

/// Rows of [`every_type`]: each column is null in every 7th row, in another row than its neighbour. Values repeat after
/// `distinct` rows.
pub(crate) fn every_type_rows(rows: usize, distinct: usize) -> RecordBatch {
    let schema = every_type();
    let columns =
        schema.fields().iter().enumerate().map(|(at, field)| column(field, at, rows, distinct.max(1))).collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn column(field: &Field, at: usize, rows: usize, distinct: usize) -> ArrayRef {
    let is_null = |row: usize| field.is_nullable() && (row + at).is_multiple_of(7);
    let number = |row: usize| ((row % distinct) as i64).wrapping_mul(2_654_435_761) % 1_000_003 - 500_000;
    let numbers = || (0..rows).map(|row| (!is_null(row)).then(|| number(row)));
    let texts =
        || (0..rows).map(|row| (!is_null(row)).then(|| format!("{}\u{00E9}-{}", number(row) % 97, number(row))));
    match field.data_type() {
        DataType::Int64 => Arc::new(numbers().collect::<Int64Array>()),
        DataType::Boolean => Arc::new(numbers().map(|n| n.map(|n| n % 2 == 0)).collect::<BooleanArray>()),
        DataType::Int32 => Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        DataType::Float32 => Arc::new(numbers().map(|n| n.map(|n| float(n) as f32)).collect::<Float32Array>()),
        DataType::Float64 => Arc::new(numbers().map(|n| n.map(float)).collect::<Float64Array>()),
        DataType::Decimal128(precision, scale) => {
            let limit = 10_i128.pow((*precision).into());
            let value = |n: i64| i128::from(n) * 97_003_123_457_321 % limit;
            let array: PrimitiveArray<Decimal128Type> = numbers().map(|n| n.map(value)).collect();
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Date32 => Arc::new(numbers().map(|n| n.map(|n| (n % 40_000) as i32)).collect::<Date32Array>()),
        DataType::Time64(_) => {
            Arc::new(numbers().map(|n| n.map(|n| n.unsigned_abs() as i64 * 86_399)).collect::<Time64MicrosecondArray>())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Arc::new(numbers().map(|n| n.map(|n| n * 1_234_567_891)).collect::<TimestampNanosecondArray>())
        }
        DataType::Timestamp(_, zone) => {
            let array: TimestampMicrosecondArray = numbers().map(|n| n.map(|n| n * 1_234_567_891)).collect();
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => Arc::new(texts().collect::<StringArray>()),
        DataType::LargeUtf8 => Arc::new(texts().collect::<LargeStringArray>()),
        DataType::Binary => Arc::new(numbers().map(|n| n.map(i64::to_be_bytes)).collect::<BinaryArray>()),
        DataType::LargeBinary => Arc::new(numbers().map(|n| n.map(i64::to_le_bytes)).collect::<LargeBinaryArray>()),
        DataType::FixedSizeBinary(width) => {
            let values = numbers().map(|n| n.map(|n| i128::from(n).to_le_bytes()[..*width as usize].to_vec()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *width).unwrap())
        }
        DataType::Struct(fields) => {
            let children =
                fields.iter().enumerate().map(|(n, child)| column(child, at + n + 1, rows, distinct)).collect();
            let nulls = NullBuffer::from_iter((0..rows).map(|row| !is_null(row)));
            Arc::new(StructArray::new(fields.clone(), children, Some(nulls)))
        }
        DataType::List(element) => {
            let mut list = ListBuilder::new(Int32Builder::new()).with_field(Arc::clone(element));
            for n in numbers() {
                if let Some(n) = n {
                    for i in 0..n.rem_euclid(4) {
                        list.values().append_option((i != 2).then_some((n + i) as i32));
                    }
                }
                list.append(n.is_some());
            }
            Arc::new(list.finish())
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(children) = entries.data_type() else { unreachable!() };
            let names = MapFieldNames { entry: "entries".into(), key: "k".into(), value: "v".into() };
            let mut map = MapBuilder::new(Some(names), StringBuilder::new(), Int32Builder::new())
                .with_keys_field(Arc::clone(&children[0]))
                .with_values_field(Arc::clone(&children[1]));
            for n in numbers() {
                for i in 0..n.unwrap_or(0).rem_euclid(3) {
                    map.keys().append_value(format!("k{i}"));
                    map.values().append_option((i != 1).then_some(i as i32));
                }
                map.append(n.is_some()).unwrap();
            }
            Arc::new(map.finish())
        }
        other => unreachable!("{other}"),
    }
}

fn float(number: i64) -> f64 {
    match number.rem_euclid(11) {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        _ => number as f64 / 7.0,
    }
}
