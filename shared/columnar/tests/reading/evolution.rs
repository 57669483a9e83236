//! Files written under an older schema, or by other writers, read as the table of today.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use firn_columnar::{BatchLimit, ColumnarError, InputFile, MemoryFile, NameMapping};

use crate::support::{field, list, map, open, plain, read, rest, schema};

fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn structs(fields: Vec<Field>, columns: Vec<ArrayRef>, valid: Option<Vec<bool>>) -> ArrayRef {
    Arc::new(StructArray::new(Fields::from(fields), columns, valid.map(NullBuffer::from)))
}

/// The error of opening, or of reading the first column.
fn refusal(bytes: bytes::Bytes, target: &arrow_schema::SchemaRef) -> ColumnarError {
    read(bytes, target, 0).expect_err("must be refused")
}

#[test]
fn renamed_dropped_readded_and_reordered_columns_go_by_id() {
    let written = schema(vec![
        field(1, "id", DataType::Int32, false),
        field(2, "a", DataType::Utf8, true),
        field(4, "A", DataType::Int32, true),
    ]);
    let bytes =
        plain(&written, vec![ints(&[Some(1), Some(2)]), texts(&[Some("old"), None]), ints(&[Some(7), Some(8)])]);
    // 2 was renamed to b, 4 to "a"; a new "A" came (3) and the order changed.
    let target = schema(vec![
        field(3, "A", DataType::Utf8, true),
        field(4, "a", DataType::Int32, true),
        field(2, "b", DataType::Utf8, true),
        field(1, "id", DataType::Int32, false),
    ]);
    let column = |index| read(bytes.clone(), &target, index).unwrap();
    assert_eq!(column(0).as_ref(), texts(&[None, None]).as_ref());
    assert_eq!(column(1).as_ref(), ints(&[Some(7), Some(8)]).as_ref());
    assert_eq!(column(2).as_ref(), texts(&[Some("old"), None]).as_ref());
    assert_eq!(column(3).as_ref(), ints(&[Some(1), Some(2)]).as_ref());
    let file = open(bytes, &target).unwrap();
    assert!(!file.has_column(0).unwrap());
    assert!(file.has_column(1).unwrap());
    assert!(matches!(file.cursor(4, BatchLimit::default()), Err(ColumnarError::Usage { .. })));
}

#[test]
fn a_missing_column_is_null_or_refused() {
    let written = schema(vec![field(1, "id", DataType::Int32, false)]);
    let bytes = plain(&written, vec![ints(&[Some(1), Some(2), Some(3)])]);
    for data_type in [
        DataType::Int64,
        DataType::LargeUtf8,
        list(field(6, "element", DataType::Int32, false)),
        DataType::Struct(Fields::from(vec![field(6, "x", DataType::Int32, false)])),
        map(field(6, "key", DataType::Utf8, false), field(7, "value", DataType::Int32, true)),
    ] {
        let target = schema(vec![field(5, "new", data_type.clone(), true)]);
        let column = read(bytes.clone(), &target, 0).unwrap();
        assert_eq!(column.data_type(), &data_type);
        assert_eq!((column.len(), column.null_count()), (3, 3));
    }
    let target = schema(vec![field(1, "id", DataType::Int32, false), field(5, "new", DataType::Int32, false)]);
    let error = open(bytes, &target).unwrap_err();
    assert!(matches!(&error, ColumnarError::MissingRequired { column, .. } if column == "new"), "{error}");
    assert_eq!(error.file(), Some("t.parquet"));
}

#[test]
fn a_null_in_a_required_column_is_named_by_row() {
    let written = schema(vec![field(1, "id", DataType::Int32, true)]);
    let target = schema(vec![field(1, "id", DataType::Int32, false)]);
    let good = plain(&written, vec![ints(&[Some(1), Some(2)])]);
    assert_eq!(read(good, &target, 0).unwrap().as_ref(), ints(&[Some(1), Some(2)]).as_ref());
    let bytes = plain(&written, vec![ints(&[Some(1), Some(2), None])]);
    let error = refusal(bytes.clone(), &target);
    assert!(matches!(error, ColumnarError::NullInRequired { row: 2, .. }), "{error}");
    // Rows that are passed over are no reason, and the cursor can go on.
    let mut cursor = open(bytes, &target).unwrap().cursor(0, BatchLimit { rows: 2, ..BatchLimit::default() }).unwrap();
    assert_eq!(cursor.next(10).unwrap().unwrap().len(), 2);
    assert!(cursor.next(10).is_err());
    assert_eq!(cursor.row(), 2);
    cursor.skip(1).unwrap();
    assert!(cursor.next(10).unwrap().is_none());
}

#[test]
fn children_of_structs_go_by_id_too() {
    let inner = vec![field(10, "a", DataType::Int32, true), field(12, "c", DataType::Utf8, true)];
    let written = schema(vec![field(1, "s", DataType::Struct(Fields::from(inner.clone())), true)]);
    let column = structs(
        inner,
        vec![ints(&[Some(1), None, Some(3)]), texts(&[Some("x"), None, None])],
        Some(vec![true, false, true]),
    );
    let bytes = plain(&written, vec![column]);
    let wanted = vec![
        field(12, "renamed", DataType::Utf8, true),
        field(11, "b", DataType::Int64, true),
        field(10, "a", DataType::Int64, true),
    ];
    let target = schema(vec![field(1, "s", DataType::Struct(Fields::from(wanted.clone())), true)]);
    let expected = structs(
        wanted,
        vec![
            texts(&[Some("x"), None, None]),
            Arc::new(Int64Array::from(vec![None, None, None])),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
        ],
        Some(vec![true, false, true]),
    );
    assert_eq!(read(bytes.clone(), &target, 0).unwrap().as_ref(), expected.as_ref());

    // All of its children were dropped: what is left is where the struct is null.
    let wanted = vec![field(11, "b", DataType::Int64, true)];
    let target = schema(vec![field(1, "s", DataType::Struct(Fields::from(wanted.clone())), true)]);
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, None, None]));
    let expected = structs(wanted, vec![nulls], Some(vec![true, false, true]));
    assert_eq!(read(bytes.clone(), &target, 0).unwrap().as_ref(), expected.as_ref());

    let wanted = vec![field(10, "a", DataType::Int32, true), field(11, "b", DataType::Int64, false)];
    let target = schema(vec![field(1, "s", DataType::Struct(Fields::from(wanted)), true)]);
    let error = refusal(bytes, &target);
    assert!(matches!(&error, ColumnarError::MissingRequired { column, .. } if column == "s.b"), "{error}");
}

#[test]
fn a_struct_whose_children_were_all_dropped_keeps_its_nulls_through_a_list() {
    let element = field(20, "element", DataType::Int32, false);
    let inner = vec![field(10, "xs", list(element.clone()), true)];
    let lists = ListArray::new(
        Arc::new(element),
        OffsetBuffer::from_lengths([2, 0, 0]),
        ints(&[Some(1), Some(2)]),
        Some(NullBuffer::from(vec![true, false, false])),
    );
    let written = schema(vec![field(1, "s", DataType::Struct(Fields::from(inner.clone())), true)]);
    let bytes = plain(&written, vec![structs(inner, vec![Arc::new(lists)], Some(vec![true, false, true]))]);
    let wanted = vec![field(11, "b", DataType::Int64, true)];
    let target = schema(vec![field(1, "s", DataType::Struct(Fields::from(wanted)), true)]);
    let column = read(bytes, &target, 0).unwrap();
    assert_eq!((column.is_valid(0), column.is_valid(1), column.is_valid(2)), (true, false, true));
    assert_eq!(column.as_struct().column(0).null_count(), 3);
}

#[test]
fn a_required_child_may_be_absent_only_within_a_null_struct() {
    let inner = vec![field(10, "a", DataType::Int32, true)];
    let wanted = vec![field(10, "a", DataType::Int64, false)];
    let written = schema(vec![field(1, "s", DataType::Struct(Fields::from(inner.clone())), true)]);
    let target = schema(vec![field(1, "s", DataType::Struct(Fields::from(wanted)), true)]);
    let file = |values: &[Option<i32>]| {
        plain(&written, vec![structs(inner.clone(), vec![ints(values)], Some(vec![true, false, true]))])
    };
    let column = read(file(&[Some(1), None, Some(3)]), &target, 0).unwrap();
    let children = column.as_struct().column(0).as_primitive::<Int64Type>().clone();
    assert_eq!((children.value(0), children.value(2), children.null_count()), (1, 3, 0));
    assert!(column.is_null(1));
    let error = refusal(file(&[Some(1), None, None]), &target);
    assert!(matches!(&error, ColumnarError::NullInRequired { column, row: 2, .. } if column == "s.a"), "{error}");
}

#[test]
fn lists_and_maps_are_adapted_inside() {
    // Names as other writers give them; the types inside are promoted and a child is added.
    let element = field(20, "item", DataType::Struct(Fields::from(vec![field(21, "x", DataType::Int32, true)])), true);
    let xs = ListArray::new(
        Arc::new(element.clone()),
        OffsetBuffer::from_lengths([2, 0, 1]),
        structs(
            vec![field(21, "x", DataType::Int32, true)],
            vec![ints(&[Some(1), None, Some(3)])],
            Some(vec![true, true, false]),
        ),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let (key, value) = (field(30, "k", DataType::Utf8, false), field(31, "v", DataType::Float32, true));
    let entries = Field::new("entries", DataType::Struct(Fields::from(vec![key.clone(), value.clone()])), false);
    let m = MapArray::new(
        Arc::new(entries.clone()),
        OffsetBuffer::from_lengths([1, 1, 0]),
        StructArray::new(
            Fields::from(vec![key, value]),
            vec![texts(&[Some("a"), Some("b")]), Arc::new(Float32Array::from(vec![Some(1.5), None]))],
            None,
        ),
        Some(NullBuffer::from(vec![true, true, false])),
        false,
    );
    let written = schema(vec![
        field(1, "xs", DataType::List(Arc::new(element)), true),
        field(2, "m", DataType::Map(Arc::new(entries), false), true),
    ]);
    let bytes = plain(&written, vec![Arc::new(xs), Arc::new(m)]);

    let inner = vec![field(22, "y", DataType::Utf8, true), field(21, "x", DataType::Int64, true)];
    let element = field(20, "element", DataType::Struct(Fields::from(inner.clone())), true);
    let map_type = map(field(30, "key", DataType::LargeUtf8, false), field(31, "value", DataType::Float64, true));
    let target = schema(vec![field(1, "xs", list(element.clone()), true), field(2, "m", map_type.clone(), true)]);
    let expected = ListArray::new(
        Arc::new(element),
        OffsetBuffer::from_lengths([2, 0, 1]),
        structs(
            inner,
            vec![texts(&[None, None, None]), Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))],
            Some(vec![true, true, false]),
        ),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let xs = read(bytes.clone(), &target, 0).unwrap();
    // The child of a null struct is null itself, whatever was written.
    assert_eq!(xs.as_list::<i32>().value(0).as_ref(), expected.value(0).as_ref());
    assert_eq!(xs.nulls(), expected.nulls());
    assert!(xs.as_list::<i32>().value(2).is_null(0));
    let m = read(bytes, &target, 1).unwrap();
    assert_eq!(m.data_type(), &map_type);
    let m = m.as_map();
    assert_eq!(m.value(1).column(0).as_string::<i64>().value(0), "b");
    assert_eq!(m.value(0).column(1).as_primitive::<Float64Type>().value(0), 1.5);
    assert!(m.value(1).column(1).is_null(0) && m.is_null(2));
}

#[test]
fn an_element_of_another_id_is_another_field() {
    let written = schema(vec![field(1, "xs", list(field(2, "element", DataType::Int32, true)), true)]);
    let values = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    let (_, offsets, values, nulls) = values.into_parts();
    let element = Arc::new(field(2, "element", DataType::Int32, true));
    let bytes = plain(&written, vec![Arc::new(ListArray::new(element, offsets, values, nulls))]);
    let target = schema(vec![field(1, "xs", list(field(3, "element", DataType::Int32, true)), true)]);
    let error = refusal(bytes, &target).to_string();
    assert!(error.contains("field id 2") && error.contains("field id 3"), "{error}");
}

#[test]
fn numbers_are_widened_and_never_narrowed() {
    let written = schema(vec![
        field(1, "i", DataType::Int32, true),
        field(2, "f", DataType::Float32, true),
        field(3, "d", DataType::Decimal128(9, 2), true),
        field(4, "l", DataType::Int64, true),
        field(5, "u", DataType::UInt32, true),
        field(6, "n", DataType::Int8, true),
    ]);
    let decimals = Decimal128Array::from(vec![Some(-123), None]).with_precision_and_scale(9, 2).unwrap();
    let bytes = plain(
        &written,
        vec![
            ints(&[Some(i32::MIN), Some(i32::MAX)]),
            Arc::new(Float32Array::from(vec![-0.0_f32, f32::INFINITY])),
            Arc::new(decimals),
            Arc::new(Int64Array::from(vec![1, 2])),
            Arc::new(UInt32Array::from(vec![u32::MAX, 0])),
            Arc::new(Int8Array::from(vec![-1, 127])),
        ],
    );
    let target = schema(vec![
        field(1, "i", DataType::Int64, true),
        field(2, "f", DataType::Float64, true),
        field(3, "d", DataType::Decimal128(18, 2), true),
        field(5, "u", DataType::Int64, true),
        field(6, "n", DataType::Int32, true),
    ]);
    let column = |index| read(bytes.clone(), &target, index).unwrap();
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![i64::from(i32::MIN), i64::from(i32::MAX)]));
    assert_eq!(column(0).as_ref(), expected.as_ref());
    assert_eq!(column(1).as_primitive::<Float64Type>().value(0).to_bits(), (-0.0_f64).to_bits());
    let expected = Decimal128Array::from(vec![Some(-123), None]).with_precision_and_scale(18, 2).unwrap();
    assert_eq!(column(2).as_ref(), &expected as &dyn Array);
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![i64::from(u32::MAX), 0]));
    assert_eq!(column(3).as_ref(), expected.as_ref());
    assert_eq!(column(4).as_ref(), ints(&[Some(-1), Some(127)]).as_ref());

    for (id, to, from) in [
        (1, DataType::Int64, None),
        (4, DataType::Int32, Some("Int64")),
        (5, DataType::Int32, Some("UInt32")),
        (1, DataType::Utf8, Some("Int32")),
        (3, DataType::Decimal128(18, 3), Some("Decimal128(9, 2)")),
        (3, DataType::Decimal128(8, 2), Some("Decimal128(9, 2)")),
        (1, list(field(9, "element", DataType::Int32, true)), Some("Int32")),
        (2, DataType::Struct(Fields::from(vec![field(9, "x", DataType::Int32, true)])), Some("Float32")),
    ] {
        let target = schema(vec![field(id, "c", to.clone(), true)]);
        match (open(bytes.clone(), &target), from) {
            (Ok(_), None) => {}
            (Err(error), Some(from)) => {
                let text = error.to_string();
                assert!(matches!(error, ColumnarError::Incompatible { .. }), "{text}");
                for word in ["t.parquet", "`c`", from, &to.to_string()] {
                    assert!(text.contains(word), "{text} lacks {word}");
                }
            }
            (other, _) => panic!("{id} as {to}: {other:?}"),
        }
    }
}

#[test]
fn times_are_read_at_the_unit_of_the_table() {
    let year_9999 = 253_402_300_799_999;
    let written = schema(vec![
        field(1, "ms", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), true),
        field(2, "ns", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
        field(3, "t", DataType::Time32(TimeUnit::Millisecond), true),
    ]);
    let file = |ms: i64, ns: i64| {
        plain(
            &written,
            vec![
                Arc::new(TimestampMillisecondArray::from(vec![Some(ms), None]).with_timezone("UTC")),
                Arc::new(TimestampNanosecondArray::from(vec![Some(ns), Some(0)])),
                Arc::new(Time32MillisecondArray::from(vec![86_399_999, 0])),
            ],
        )
    };
    let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let target = schema(vec![
        field(1, "ms", micros(Some("+00:00")), true),
        field(2, "ns", micros(None), true),
        field(3, "t", DataType::Time64(TimeUnit::Microsecond), true),
    ]);
    let column = |index| read(file(year_9999, -5_000), &target, index).unwrap();
    let expected = TimestampMicrosecondArray::from(vec![Some(year_9999 * 1000), None]).with_timezone("+00:00");
    assert_eq!(column(0).as_ref(), &expected as &dyn Array);
    assert_eq!(column(1).as_ref(), &TimestampMicrosecondArray::from(vec![-5, 0]) as &dyn Array);
    assert_eq!(column(2).as_ref(), &Time64MicrosecondArray::from(vec![86_399_999_000, 0]) as &dyn Array);

    let error = read(file(0, 5_001), &target, 1).unwrap_err();
    assert!(matches!(&error, ColumnarError::Inexact { value, row: 0, .. } if value.contains("5001")), "{error}");
    // Nanoseconds do not reach the year 9999.
    let target = schema(vec![field(1, "ms", DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())), true)]);
    assert!(matches!(read(file(year_9999, 0), &target, 0), Err(ColumnarError::Inexact { .. })));
    assert!(read(file(1, 0), &target, 0).is_ok());
}

#[test]
fn text_and_bytes() {
    let written = schema(vec![field(1, "b", DataType::Binary, true), field(2, "s", DataType::Utf8, true)]);
    let file = |bytes: &[u8]| {
        plain(&written, vec![Arc::new(BinaryArray::from(vec![Some(bytes), None])), texts(&[Some("ü"), None])])
    };
    for data_type in [DataType::Utf8, DataType::LargeUtf8] {
        let target = schema(vec![field(1, "b", data_type.clone(), true)]);
        let column = read(file("ä".as_bytes()), &target, 0).unwrap();
        assert_eq!(column.data_type(), &data_type);
        assert!(column.is_null(1));
        let error = refusal(file(&[0xff, 0xfe]), &target);
        assert!(matches!(&error, ColumnarError::Corrupt { column: Some(_), .. }), "{error}");
    }
    let target = schema(vec![field(1, "b", DataType::LargeBinary, true), field(2, "s", DataType::LargeBinary, true)]);
    assert_eq!(read(file(&[0xff]), &target, 0).unwrap().as_binary::<i64>().value(0), [0xff]);
    assert_eq!(read(file(&[0xff]), &target, 1).unwrap().as_binary::<i64>().value(0), "ü".as_bytes());
}

fn unidentified() -> bytes::Bytes {
    let inner = Fields::from(vec![Field::new("y", DataType::Int32, true)]);
    let element = Arc::new(Field::new("item", DataType::Int32, true));
    let written = schema(vec![
        Field::new("b", DataType::Int32, true),
        Field::new("old_a", DataType::Utf8, true),
        Field::new("s", DataType::Struct(inner.clone()), true),
        Field::new("xs", DataType::List(Arc::clone(&element)), true),
    ]);
    let xs = ListArray::new(element, OffsetBuffer::from_lengths([1]), ints(&[Some(4)]), None);
    plain(
        &written,
        vec![
            ints(&[Some(1)]),
            texts(&[Some("x")]),
            Arc::new(StructArray::new(inner, vec![ints(&[Some(3)])], None)),
            Arc::new(xs),
        ],
    )
}

#[test]
fn files_without_ids_go_by_the_name_mapping() {
    let mapping = NameMapping::parse(
        r#"[{"field-id": 1, "names": ["a", "old_a"]}, {"field-id": 2, "names": ["b"]},
            {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x", "y"]}]},
            {"field-id": 5, "names": ["xs"], "fields": [{"field-id": 6, "names": ["element"]}]}]"#,
    )
    .unwrap();
    let inner = Fields::from(vec![field(4, "x", DataType::Int32, true)]);
    let target = schema(vec![
        field(1, "a", DataType::Utf8, true),
        field(2, "b", DataType::Int64, true),
        field(3, "s", DataType::Struct(inner), true),
        field(5, "xs", list(field(6, "element", DataType::Int32, true)), true),
        field(7, "B", DataType::Int64, true),
    ]);
    let source = || Arc::new(MemoryFile::new("t.parquet", unidentified()));
    let error = InputFile::open(source(), &target, None).unwrap_err();
    assert!(matches!(error, ColumnarError::NoFieldIds { .. }), "{error}");
    let file = InputFile::open(source(), &target, Some(&mapping)).unwrap();
    let column = |index| rest(&mut file.cursor(index, BatchLimit::default()).unwrap()).unwrap();
    assert_eq!(column(0).as_ref(), texts(&[Some("x")]).as_ref());
    assert_eq!(column(1).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(column(2).as_struct().column(0).as_primitive::<Int32Type>().value(0), 3);
    assert_eq!(column(3).as_list::<i32>().value(0).as_primitive::<Int32Type>().value(0), 4);
    assert!(column(4).is_null(0));
}

#[test]
fn with_one_id_in_the_file_no_mapping_is_used() {
    let written = schema(vec![Field::new("a", DataType::Int32, true), field(2, "b", DataType::Int32, true)]);
    let bytes = plain(&written, vec![ints(&[Some(1)]), ints(&[Some(2)])]);
    let mapping = NameMapping::parse(r#"[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}]"#).unwrap();
    let target = schema(vec![field(1, "a", DataType::Int32, true), field(2, "b", DataType::Int32, true)]);
    let file = InputFile::open(Arc::new(MemoryFile::new("t", bytes)), &target, Some(&mapping)).unwrap();
    let column = |index| rest(&mut file.cursor(index, BatchLimit::default()).unwrap()).unwrap();
    assert!(column(0).is_null(0));
    assert_eq!(column(1).as_ref(), ints(&[Some(2)]).as_ref());
}

#[test]
fn a_field_id_twice_is_refused() {
    let written = schema(vec![field(1, "a", DataType::Int32, true), field(1, "b", DataType::Int32, true)]);
    let bytes = plain(&written, vec![ints(&[Some(1)]), ints(&[Some(2)])]);
    let target = schema(vec![field(1, "a", DataType::Int32, true)]);
    assert!(matches!(refusal(bytes, &target), ColumnarError::Unsupported { .. }));
}

#[test]
fn hidden_columns_are_found_by_name() {
    let sequence: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
    let source: ArrayRef = Arc::new(UInt32Array::from(vec![u32::MAX, 1]));
    let written = schema(vec![
        field(1, "id", DataType::Int32, true),
        Field::new("_firn_seq", DataType::Int64, false),
        Field::new("_firn_source", DataType::UInt32, false),
    ]);
    let bytes = plain(&written, vec![ints(&[None, None]), Arc::clone(&sequence), Arc::clone(&source)]);
    let file = open(bytes, &schema(vec![field(1, "id", DataType::Int32, true)])).unwrap();
    let column = |name: &str| rest(&mut file.cursor_by_name(name, BatchLimit::default()).unwrap()).unwrap();
    assert_eq!(column("_firn_seq").as_ref(), sequence.as_ref());
    assert_eq!(column("_firn_source").as_ref(), source.as_ref());
    let error = file.cursor_by_name("_FIRN_SEQ", BatchLimit::default()).unwrap_err();
    assert!(matches!(error, ColumnarError::MissingRequired { .. }), "{error}");
}

#[test]
fn a_target_without_ids_is_a_bug_of_the_caller() {
    let written = schema(vec![field(1, "a", DataType::Int32, true)]);
    let bytes = plain(&written, vec![ints(&[Some(1)])]);
    let target = schema(vec![Field::new("a", DataType::Int32, true)]);
    assert!(matches!(refusal(bytes, &target), ColumnarError::Usage { .. }));
}
