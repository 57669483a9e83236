//! The row proof against a naive oracle: two sums are equal exactly when the two multisets of rows are.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use arrow_select::take::take_record_batch;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::samples::{every_type, every_type_rows, field, required};

fn sum_of(batch: &RecordBatch) -> RowSum {
    let hasher = RowHasher::new(&batch.schema()).unwrap();
    let mut states = vec![0; batch.num_rows()];
    for (at, column) in batch.columns().iter().enumerate() {
        hasher.add_column(at, column.as_ref(), &mut states).unwrap();
    }
    finish(&states)
}

/// A float that tells what the proof tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Float {
    Nan,
    Minus,
    Zero,
    One,
}

impl Float {
    fn value(self) -> f64 {
        match self {
            Float::Nan => f64::NAN,
            Float::Minus => -0.0,
            Float::Zero => 0.0,
            Float::One => 1.0,
        }
    }
}

type Pair = (Option<i32>, Option<String>);

/// A row of two columns of one type, a text, a float, a struct and a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    a: Option<i32>,
    b: Option<i32>,
    text: Option<String>,
    float: Option<Float>,
    pair: Option<Pair>,
    list: Option<Vec<Option<i32>>>,
}

fn number() -> impl Strategy<Value = Option<i32>> {
    option::of(0..3)
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(prop_oneof![Just(""), Just("x"), Just("\u{0}")].prop_map(str::to_owned))
}

fn row() -> impl Strategy<Value = Row> {
    let float = option::of(prop_oneof![Just(Float::Nan), Just(Float::Minus), Just(Float::Zero), Just(Float::One)]);
    (number(), number(), text(), float, option::of((number(), text())), option::of(vec(number(), 0..3)))
        .prop_map(|(a, b, text, float, pair, list)| Row { a, b, text, float, pair, list })
}

fn batch(rows: &[Row]) -> RecordBatch {
    let pair = Fields::from(vec![field(6, "x", DataType::Int32), field(7, "y", DataType::Utf8)]);
    let element = Arc::new(field(9, "element", DataType::Int32));
    let schema = Schema::new(vec![
        field(1, "a", DataType::Int32),
        field(2, "b", DataType::Int32),
        field(3, "text", DataType::Utf8),
        field(4, "float", DataType::Float64),
        field(5, "pair", DataType::Struct(pair.clone())),
        field(8, "list", DataType::List(Arc::clone(&element))),
    ]);
    let children: Vec<ArrayRef> = vec![
        // Below a null struct lies something, as it may.
        Arc::new(rows.iter().map(|row| row.pair.as_ref().map_or(Some(1), |pair| pair.0)).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.pair.as_ref().and_then(|pair| pair.1.clone())).collect::<StringArray>()),
    ];
    let nulls = NullBuffer::from_iter(rows.iter().map(|row| row.pair.is_some()));
    let mut list = ListBuilder::new(Int32Builder::new()).with_field(element);
    for row in rows {
        list.append_option(row.list.clone());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.a).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.b).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.text.clone()).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.float.map(Float::value)).collect::<Float64Array>()),
        Arc::new(StructArray::new(pair, children, Some(nulls))),
        Arc::new(list.finish()),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn sorted(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

/// What could go wrong on the way.
fn damage(rows: &[Row], kind: u8, i: usize, j: usize, other: &Row) -> Vec<Row> {
    let mut rows = rows.to_vec();
    let (i, j) = (i % rows.len(), j % rows.len());
    let (at_i, at_j) = (rows[i].clone(), rows[j].clone());
    match kind {
        0 => rows.swap(i, j),
        1 => (rows[i].a, rows[j].a) = (at_j.a, at_i.a),
        2 => (rows[i].text, rows[j].text) = (at_j.text, at_i.text),
        3 => (rows[i].float, rows[j].float) = (at_j.float, at_i.float),
        4 => (rows[i].pair, rows[j].pair) = (at_j.pair, at_i.pair),
        5 => (rows[i].list, rows[j].list) = (at_j.list, at_i.list),
        6 => (rows[i].a, rows[i].b) = (at_i.b, at_i.a),
        7 => rows[i] = other.clone(),
        8 => rows[i] = at_j,
        9 => drop(rows.remove(i)),
        10 => rows.push(at_i),
        11 => rows[i].list.iter_mut().for_each(|list| list.reverse()),
        12 => rows[i].text = Some(at_i.text.unwrap_or_default()),
        _ => rows.reverse(),
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn sums_are_equal_exactly_when_the_rows_are(
        rows in vec(row(), 1..8), kind in 0_u8..14, i in 0_usize..8, j in 0_usize..8, other in row(),
    ) {
        let damaged = damage(&rows, kind, i, j, &other);
        let equal = sorted(&rows) == sorted(&damaged);
        prop_assert_eq!(sum_of(&batch(&rows)) == sum_of(&batch(&damaged)), equal);
    }

    #[test]
    fn slices_batches_and_the_order_of_columns_do_not_matter(rows in vec(row(), 1..12), cuts in vec(1_usize..4, 12)) {
        let whole = batch(&rows);
        let mut sum = RowSum::ZERO;
        let mut start = 0;
        for cut in cuts {
            let length = cut.min(rows.len() - start);
            let slice = whole.slice(start, length);
            prop_assert_eq!(sum_of(&slice), sum_of(&batch(&rows[start..start + length])));
            sum += sum_of(&slice);
            start += length;
        }
        sum += sum_of(&whole.slice(start, rows.len() - start));
        prop_assert_eq!(sum, sum_of(&whole));

        let backwards: Vec<usize> = (0..whole.num_columns()).rev().collect();
        prop_assert_eq!(sum_of(&whole.project(&backwards).unwrap()), sum_of(&whole));
    }
}

#[test]
fn every_type_keeps_its_sum_when_rows_are_permuted_or_sliced() {
    let rows = every_type_rows(500, 500);
    let sum = sum_of(&rows);
    let permuted = UInt32Array::from_iter_values((0..500).map(|row| row * 7 % 500));
    assert_eq!(sum_of(&take_record_batch(&rows, &permuted).unwrap()), sum);
    let parts = [(0, 13), (13, 1), (14, 250), (264, 236)].map(|(start, length)| sum_of(&rows.slice(start, length)));
    assert_eq!(parts.into_iter().sum::<RowSum>(), sum);
}

#[test]
fn every_type_counts() {
    let rows = every_type_rows(40, 40);
    let sum = sum_of(&rows);
    // Rows 11 and 25 differ in every column and are null in other columns.
    let mut swapped: Vec<u32> = (0..40).collect();
    swapped.swap(11, 25);
    let swapped = UInt32Array::from(swapped);
    for (at, column) in rows.columns().iter().enumerate() {
        let mut columns = rows.columns().to_vec();
        columns[at] = arrow_select::take::take(column.as_ref(), &swapped, None).unwrap();
        let damaged = RecordBatch::try_new(rows.schema(), columns).unwrap();
        let equal = column.slice(11, 1).to_data() == column.slice(25, 1).to_data();
        assert_eq!(sum_of(&damaged) == sum, equal, "{}", rows.schema().field(at).name());
    }
}

/// The sum of one column of one value.
fn sum_of_one(field: Field, array: ArrayRef) -> RowSum {
    sum_of(&RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap())
}

#[test]
fn a_value_read_at_a_promoted_type_is_the_same_value() {
    let ints = [i32::MIN, -1, 0, 7, i32::MAX];
    assert_eq!(
        sum_of_one(field(1, "n", DataType::Int32), Arc::new(Int32Array::from_iter_values(ints))),
        sum_of_one(field(1, "n", DataType::Int64), Arc::new(Int64Array::from_iter_values(ints.map(i64::from)))),
    );
    let floats = [f32::MIN, -0.0, 0.0, 0.1, f32::NAN, f32::INFINITY];
    assert_eq!(
        sum_of_one(field(1, "n", DataType::Float32), Arc::new(Float32Array::from_iter_values(floats))),
        sum_of_one(field(1, "n", DataType::Float64), Arc::new(Float64Array::from_iter_values(floats.map(f64::from)))),
    );
    let decimals = |precision| {
        let array = Decimal128Array::from_iter_values([-5, 0, 99_999]).with_precision_and_scale(precision, 2).unwrap();
        sum_of_one(field(1, "n", DataType::Decimal128(precision, 2)), Arc::new(array))
    };
    assert_eq!(decimals(5), decimals(38));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", ""]));
    let large: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", ""]));
    let view: ArrayRef = Arc::new(StringViewArray::from(vec!["a", ""]));
    let sums = [(DataType::Utf8, text), (DataType::LargeUtf8, large), (DataType::Utf8View, view)]
        .map(|(data_type, array)| sum_of_one(field(1, "n", data_type), array));
    assert!(sums.iter().all(|sum| *sum == sums[0]));
}

#[test]
fn a_column_added_later_changes_no_row() {
    let old = every_type_rows(20, 20);
    let mut fields: Vec<_> = old.schema().fields().iter().cloned().collect();
    let mut columns = old.columns().to_vec();
    for (id, data_type) in [(90, DataType::Utf8), (91, every_type().field(20).data_type().clone())] {
        columns.push(arrow_array::new_null_array(&data_type, 20));
        fields.push(Arc::new(field(id, &format!("new{id}"), data_type)));
    }
    let new = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    assert_eq!(sum_of(&new), sum_of(&old));
}

#[test]
fn the_children_of_a_struct_have_no_order() {
    let children = |swap: bool| {
        let mut children: Vec<(Arc<Field>, ArrayRef)> = vec![
            (Arc::new(field(2, "x", DataType::Int32)), Arc::new(Int32Array::from(vec![1]))),
            (Arc::new(field(3, "y", DataType::Int32)), Arc::new(Int32Array::from(vec![2]))),
        ];
        if swap {
            children.reverse();
        }
        let array = StructArray::from(children);
        sum_of_one(field(1, "s", array.data_type().clone()), Arc::new(array))
    };
    assert_eq!(children(false), children(true));
}

#[test]
fn the_entries_of_a_map_count_as_stored() {
    let entries = Fields::from(vec![required(2, "key", DataType::Utf8), field(3, "value", DataType::Utf8)]);
    let entry = Arc::new(Field::new("entries", DataType::Struct(entries.clone()), false));
    let map = |keys: [&str; 2], values: [&str; 2], first: i32| {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(keys.to_vec())), Arc::new(StringArray::from(values.to_vec()))];
        let offsets = OffsetBuffer::new(vec![0, first, 2].into());
        let entries = StructArray::new(entries.clone(), columns, None);
        let array = MapArray::new(Arc::clone(&entry), offsets, entries, None, false);
        sum_of_one(field(1, "m", array.data_type().clone()), Arc::new(array))
    };
    let sum = map(["a", "b"], ["1", "2"], 2);
    assert_eq!(map(["a", "b"], ["1", "2"], 2), sum);
    assert_ne!(map(["b", "a"], ["2", "1"], 2), sum, "order");
    assert_ne!(map(["a", "b"], ["2", "1"], 2), sum, "values swapped");
    assert_ne!(map(["1", "b"], ["a", "2"], 2), sum, "key and value swapped");
    assert_ne!(map(["a", "b"], ["1", "2"], 1), sum, "an entry in the next row");
}

#[test]
fn a_batch_of_another_type_or_length_is_refused() {
    let hasher = RowHasher::new(&Schema::new(vec![field(1, "n", DataType::Int64)])).unwrap();
    let ints = Int32Array::from(vec![1]);
    let longs = Int64Array::from(vec![1]);
    assert!(hasher.add_column(0, &ints, &mut [0]).is_err());
    assert!(hasher.add_column(0, &longs, &mut [0, 0]).is_err());
    assert!(hasher.add_column(1, &longs, &mut [0]).is_err());
    assert!(hasher.add_column(0, &longs, &mut [0]).is_ok());
    let unnumbered = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
    let error = RowHasher::new(&unnumbered).unwrap_err();
    assert!(error.to_string().contains("`n` has no field id"), "{error}");
}

#[test]
fn the_values_of_this_version_never_change() {
    // A change here needs a new ROW_SUM_VERSION: sums are kept in footers and snapshot summaries.
    assert_eq!(ROW_SUM_VERSION, 1);
    assert_eq!(sum_of(&every_type_rows(100, 100)).to_string(), "4aa060184586a84f8e40f978899b1255");
    let one = |array: ArrayRef| sum_of_one(field(7, "v", array.data_type().clone()), array).to_string();
    assert_eq!(one(Arc::new(Int64Array::from(vec![42]))), "07e827d9551dafdaae6d1e9d5467493a");
    assert_eq!(one(Arc::new(StringArray::from(vec!["firn"]))), "afb38c0e51e84023aa7e366ece9e4f3f");
    assert_eq!(one(Arc::new(Int64Array::from(vec![None::<i64>]))), "7de53de772ea694c9a63c6065bd325c1");
}
