//! Shapes that arrow-rs does not write: INT96, lists of two levels, row groups without rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Fields, TimeUnit};
use bytes::Bytes;
use firn_columnar::{BatchLimit, ColumnarError};
use parquet::data_type::{ByteArray, ByteArrayType, DataType as ParquetType, Int32Type as PInt32, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::support::{field, list, map, open, read, rest, schema};

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A file of one row group per closure.
fn file(message: &str, groups: &[&dyn Fn(&mut Group<'_>)]) -> Bytes {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for fill in groups {
        let mut group = writer.next_row_group().unwrap();
        fill(&mut group);
        group.close().unwrap();
    }
    writer.into_inner().unwrap().into()
}

fn column<T: ParquetType>(group: &mut Group<'_>, values: &[T::T], levels: Option<(&[i16], Option<&[i16]>)>) {
    let mut column = group.next_column().unwrap().unwrap();
    let (definition, repetition) =
        levels.map_or((None, None), |(definition, repetition)| (Some(definition), repetition));
    column.typed::<T>().write_batch(values, definition, repetition).unwrap();
    column.close().unwrap();
}

fn int96(day: u32, nanos: u64) -> Int96 {
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, day);
    value
}

#[test]
fn int96_is_exact_or_refused() {
    let timestamp = |unit| schema(vec![field(1, "t", DataType::Timestamp(unit, None), true)]);
    let write = |values: &[Int96]| {
        file(
            "message m { optional int96 t = 1; }",
            &[&|group| {
                column::<Int96Type>(group, values, Some((&[1, 0, 1], None)));
            }],
        )
    };
    let far = write(&[int96(2_086_303, 0), int96(5_373_484, 86_399_999_999_000)]);
    let expected =
        TimestampMicrosecondArray::from(vec![Some(-30_610_224_000_000_000), None, Some(253_402_300_799_999_999)]);
    let column = read(far.clone(), &timestamp(TimeUnit::Microsecond), 0).unwrap();
    assert_eq!(column.as_ref(), &expected as &dyn Array);
    let error = read(far, &timestamp(TimeUnit::Nanosecond), 0).unwrap_err();
    assert!(matches!(error, ColumnarError::Inexact { .. }), "{error}");

    let odd = write(&[int96(2_440_588, 1), int96(2_440_589, 0)]);
    let expected = TimestampNanosecondArray::from(vec![Some(1), None, Some(86_400_000_000_000)]);
    let column = read(odd.clone(), &timestamp(TimeUnit::Nanosecond), 0).unwrap();
    assert_eq!(column.as_ref(), &expected as &dyn Array);
    let error = read(odd.clone(), &timestamp(TimeUnit::Microsecond), 0).unwrap_err();
    assert!(matches!(error, ColumnarError::Inexact { .. }), "{error}");
    let error = read(odd, &schema(vec![field(1, "t", DataType::Int64, true)]), 0).unwrap_err();
    assert!(matches!(error, ColumnarError::Incompatible { .. }), "{error}");
}

#[test]
fn int96_required_within_a_null_struct() {
    let bytes = file(
        "message m { optional group s = 1 { required int96 t = 2; } }",
        &[&|group| {
            column::<Int96Type>(group, &[int96(2_440_588, 7)], Some((&[0, 1], None)));
        }],
    );
    let inner = Fields::from(vec![field(2, "t", DataType::Timestamp(TimeUnit::Nanosecond, None), false)]);
    let column = read(bytes, &schema(vec![field(1, "s", DataType::Struct(inner), true)]), 0).unwrap();
    assert!(column.is_null(0) && column.is_valid(1));
    assert_eq!(column.as_struct().column(0).as_primitive::<TimestampNanosecondType>().value(1), 7);
}

#[test]
fn lists_of_every_known_form() {
    let target = schema(vec![field(1, "xs", list(field(2, "element", DataType::Int64, true)), true)]);
    let three_levels = [0, 2, 3, 1, 3];
    let two_levels = [0, 2, 2, 1, 2];
    let repetition = [0, 0, 1, 0, 0];
    for (message, definition, null_element) in [
        ("optional group xs (LIST) = 1 { repeated group list { optional int32 element = 2; } }", three_levels, true),
        ("optional group xs (LIST) = 1 { repeated group list { optional int32 item = 2; } }", three_levels, true),
        ("optional group xs (LIST) = 1 { repeated group bag { optional int32 array = 2; } }", three_levels, true),
        ("optional group xs (LIST) = 1 { repeated int32 array = 2; }", two_levels, false),
        ("optional group xs (LIST) = 1 { repeated int32 element; }", two_levels, false),
    ] {
        let values: &[i32] = if null_element { &[7, 9] } else { &[5, 7, 9] };
        let bytes = file(
            &format!("message m {{ {message} }}"),
            &[&|group| {
                column::<PInt32>(group, values, Some((&definition, Some(&repetition))));
            }],
        );
        let column = read(bytes, &target, 0).unwrap();
        let lists: Vec<_> = column
            .as_list::<i32>()
            .iter()
            .map(|list| list.map(|list| list.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()))
            .collect();
        let first = if null_element { None } else { Some(5) };
        let expected = vec![None, Some(vec![first, Some(7)]), Some(vec![]), Some(vec![Some(9)])];
        assert_eq!(lists, expected, "{message}");
    }
}

#[test]
fn elements_of_two_level_lists_are_cut_down_to_what_is_wanted() {
    let bytes = file(
        "message m { optional group xs (LIST) = 1 { repeated group bag { optional int32 a = 3; required int32 b = 4; } } }",
        &[&|group| {
            column::<PInt32>(group, &[1], Some((&[2, 3, 1], Some(&[0, 1, 0]))));
            column::<PInt32>(group, &[10, 20], Some((&[2, 2, 1], Some(&[0, 1, 0]))));
        }],
    );
    let inner = Fields::from(vec![field(4, "b", DataType::Int32, false)]);
    let target = schema(vec![field(1, "xs", list(field(2, "element", DataType::Struct(inner), true)), true)]);
    let column = read(bytes, &target, 0).unwrap();
    let first = column.as_list::<i32>().value(0);
    assert_eq!(first.as_struct().column(0).as_primitive::<Int32Type>().values(), &[10, 20]);
    assert_eq!(column.as_list::<i32>().value(1).len(), 0);
}

#[test]
fn maps_of_older_writers() {
    let target = schema(vec![field(
        1,
        "m",
        map(field(2, "key", DataType::Utf8, false), field(3, "value", DataType::Int32, true)),
        true,
    )]);
    for annotation in ["MAP", "MAP_KEY_VALUE"] {
        let message = format!(
            "message m {{ optional group m ({annotation}) = 1 {{ repeated group map {{ required binary key (UTF8) = 2; optional int32 value = 3; }} }} }}"
        );
        let bytes = file(
            &message,
            &[&|group| {
                column::<ByteArrayType>(
                    group,
                    &[ByteArray::from("a"), ByteArray::from("b")],
                    Some((&[2, 2, 0], Some(&[0, 1, 0]))),
                );
                column::<PInt32>(group, &[1], Some((&[3, 2, 0], Some(&[0, 1, 0]))));
            }],
        );
        let column = read(bytes, &target, 0).unwrap();
        let entries = column.as_map().value(0);
        assert_eq!(entries.column(0).as_string::<i32>().value(1), "b", "{annotation}");
        assert!(entries.column(1).is_null(1) && column.is_null(1));
    }
}

#[test]
fn row_groups_without_rows_are_passed() {
    let fill = |values: &'static [i32]| move |group: &mut Group<'_>| column::<PInt32>(group, values, None);
    let bytes = file(
        "message m { required int32 x = 1; }",
        &[&fill(&[]), &fill(&[1, 2]), &fill(&[]), &fill(&[]), &fill(&[3]), &fill(&[])],
    );
    let target = schema(vec![field(1, "x", DataType::Int32, false)]);
    let file = open(bytes, &target).unwrap();
    assert_eq!(file.metadata().num_row_groups(), 6);
    let mut cursor = file.cursor(0, BatchLimit::default()).unwrap();
    assert_eq!(rest(&mut cursor).unwrap().as_primitive::<Int32Type>().values(), &[1, 2, 3]);
    let mut cursor = file.cursor(0, BatchLimit::default()).unwrap();
    cursor.skip(2).unwrap();
    assert_eq!(rest(&mut cursor).unwrap().as_primitive::<Int32Type>().values(), &[3]);
}

#[test]
fn a_file_without_rows_or_row_groups() {
    let target = schema(vec![field(1, "x", DataType::Int32, false)]);
    let fill = |group: &mut Group<'_>| column::<PInt32>(group, &[], None);
    for groups in [&[][..], &[&fill as &dyn Fn(&mut Group<'_>)]] {
        let file = open(file("message m { required int32 x = 1; }", groups), &target).unwrap();
        assert_eq!(file.rows(), 0);
        assert!(file.cursor(0, BatchLimit::default()).unwrap().next(1).unwrap().is_none());
    }
}

#[test]
fn what_no_iceberg_writer_writes_is_refused_by_name() {
    let xs = schema(vec![field(1, "xs", list(field(2, "element", DataType::Int32, true)), true)]);
    for message in [
        "repeated int32 xs = 1;",
        "optional group xs (LIST) = 1 { repeated group list { repeated int32 element = 2; } }",
        "optional group xs = 1 { optional int32 element = 2; }",
    ] {
        let bytes = file(&format!("message m {{ {message} }}"), &[]);
        let error = open(bytes, &xs).unwrap_err();
        assert!(
            matches!(&error, ColumnarError::Incompatible { .. } | ColumnarError::Unsupported { .. }),
            "{message}: {error}"
        );
        assert!(error.to_string().contains("`xs"), "{error}");
    }
}
