//! The merge against a naive oracle: collect all rows, sort them, keep one row a key by the rule of design section 5.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use firn_merge::{KeyOrder, Merge, MergeFault, Positions, RowRef, Step, TieColumn, Ties, Window, WindowLimit};
use firn_model::{OrderColumn, RowOrder};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

/// A key value, written so that the naive order needs no clever code.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

/// Place of a float in -NaN < -Inf < … < -0.0 < 0.0 < … < NaN, spelled out.
fn float_class(value: f64) -> (i32, f64, i32) {
    match (value.is_nan(), value.is_sign_negative()) {
        (true, true) => (-1, 0.0, 0),
        (true, false) => (1, 0.0, 0),
        (false, negative) => (0, value, if value == 0.0 && negative { -1 } else { 0 }),
    }
}

fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Float(a), Value::Float(b)) => float_class(*a).partial_cmp(&float_class(*b)).unwrap(),
        _ => panic!("mixed types"),
    }
}

fn compare_in_order(column: &OrderColumn, left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) if column.nulls_first => Ordering::Less,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => compare_in_order(column, right, left).reverse(),
        _ if column.descending => compare_values(right, left),
        _ => compare_values(left, right),
    }
}

#[derive(Debug, Clone)]
struct Row {
    key: Vec<Value>,
    sequence: i64,
    source: u32,
    position: i64,
}

impl Row {
    fn identity(&self) -> (i64, u32, i64) {
        (self.sequence, self.source, self.position)
    }
}

fn compare_keys(order: &RowOrder, columns: usize, left: &Row, right: &Row) -> Ordering {
    for (at, column) in order.columns.iter().enumerate().take(columns) {
        let by_column = compare_in_order(column, &left.key[at], &right.key[at]);
        if by_column != Ordering::Equal {
            return by_column;
        }
    }
    Ordering::Equal
}

fn compare_rows(order: &RowOrder, left: &Row, right: &Row) -> Ordering {
    compare_keys(order, order.columns.len(), left, right).then(left.identity().cmp(&right.identity()))
}

/// Later of two rows of one dedup key, by (sequence number, insertion time, source, position).
fn compare_age(order: &RowOrder, left: &Row, right: &Row) -> Ordering {
    let mut age = left.sequence.cmp(&right.sequence);
    for at in order.dedup_columns.unwrap()..order.columns.len() {
        age = age.then(compare_values(&left.key[at], &right.key[at]));
    }
    age.then((left.source, left.position).cmp(&(right.source, right.position)))
}

fn oracle(order: &RowOrder, rows: &[Row]) -> Vec<(i64, u32, i64)> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| compare_rows(order, a, b));
    let Some(columns) = order.dedup_columns else { return sorted.iter().map(Row::identity).collect() };
    let mut kept: Vec<Row> = Vec::new();
    for row in sorted {
        match kept.last_mut() {
            Some(last) if compare_keys(order, columns, last, &row) == Ordering::Equal => {
                if compare_age(order, last, &row) == Ordering::Less {
                    *last = row;
                }
            }
            _ => kept.push(row),
        }
    }
    kept.iter().map(Row::identity).collect()
}

fn array(data_type: &DataType, values: &[&Value]) -> ArrayRef {
    let ints = || values.iter().map(|value| if let Value::Int(v) = value { Some(*v) } else { None });
    match data_type {
        DataType::Int64 => Arc::new(ints().collect::<Int64Array>()),
        DataType::Int32 => Arc::new(ints().map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
        DataType::Boolean => Arc::new(ints().map(|v| v.map(|v| v > 0)).collect::<BooleanArray>()),
        DataType::Timestamp(_, zone) => {
            Arc::new(ints().collect::<TimestampMicrosecondArray>().with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => Arc::new(
            ints()
                .map(|v| v.map(i128::from))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(*precision, *scale)
                .unwrap(),
        ),
        DataType::Float64 => Arc::new(
            values.iter().map(|v| if let Value::Float(v) = v { Some(*v) } else { None }).collect::<Float64Array>(),
        ),
        DataType::Utf8 => Arc::new(
            values.iter().map(|v| if let Value::Text(v) = v { Some(v) } else { None }).collect::<StringArray>(),
        ),
        other => panic!("no such key type: {other}"),
    }
}

/// An input: rows in row order; with `hidden` its ties come as columns and positions are not row numbers.
#[derive(Debug, Clone)]
struct Input {
    rows: Vec<Row>,
    hidden: bool,
}

impl Input {
    fn ties(&self, from: usize, to: usize) -> Ties {
        let rows = &self.rows[from..to];
        if !self.hidden {
            return Ties::of_file(self.rows[0].sequence, self.rows[0].source);
        }
        Ties {
            sequence: TieColumn::Column(rows.iter().map(|row| row.sequence).collect::<Vec<_>>().into()),
            source: TieColumn::Column(rows.iter().map(|row| i64::from(row.source)).collect::<Vec<_>>().into()),
            position: Positions::Column(rows.iter().map(|row| row.position).collect::<Vec<_>>().into()),
        }
    }
}

fn drive(
    order: &RowOrder,
    fields: &[FieldRef],
    inputs: &[Input],
    batch: usize,
    limit: WindowLimit,
) -> Result<Vec<Window>, MergeFault> {
    drive_with(order, fields, inputs, batch, limit, Vec::new())
}

fn drive_with(
    order: &RowOrder,
    fields: &[FieldRef],
    inputs: &[Input],
    batch: usize,
    limit: WindowLimit,
    stretches: Vec<Vec<Range<u64>>>,
) -> Result<Vec<Window>, MergeFault> {
    let keys = KeyOrder::new(order, fields).unwrap();
    let mut merge = Merge::new(keys.dedup(), inputs.len()).with_stretches(stretches);
    let mut windows = Vec::new();
    loop {
        match merge.advance(&limit)? {
            Step::Finished => return Ok(windows),
            Step::Window(window) => windows.push(window),
            Step::Need(input) => {
                let rows = &inputs[input].rows;
                let from = merge.rows_read(input) as usize;
                let to = rows.len().min(from + batch);
                if from == to {
                    merge.end(input)?;
                    continue;
                }
                let columns: Vec<ArrayRef> = fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| {
                        let values: Vec<&Value> = rows[from..to].iter().map(|row| &row.key[at]).collect();
                        array(field.data_type(), &values)
                    })
                    .collect();
                merge.push(input, keys.encode(&columns, inputs[input].ties(from, to), from as u64).unwrap())?;
            }
        }
    }
}

/// Output rows of the windows, after checking that each row of each input has exactly one fate.
fn collect(inputs: &[Input], windows: &[Window], limit: WindowLimit) -> Vec<(i64, u32, i64)> {
    let mut next = vec![0u64; inputs.len()];
    let mut carried: Option<RowRef> = None;
    let mut output = Vec::new();
    for window in windows {
        assert_eq!(window.carried_in, carried);
        assert!(window.rows <= limit.rows, "{} rows, limit {}", window.rows, limit.rows);
        assert!(window.consumed() <= limit.consumed);
        assert!(window.consumed() > 0 || window.rows > 0);
        let mut open: Vec<RowRef> = window.carried_in.into_iter().collect();
        for (input, range) in window.ranges.iter().enumerate() {
            assert_eq!(range.start, next[input]);
            next[input] = range.end;
            open.extend(range.clone().map(|row| RowRef { input: input as u32, row }));
        }
        let mut emitted = Vec::new();
        for run in &window.runs {
            assert!(run.count > 0);
            emitted.extend((0..u64::from(run.count)).map(|at| RowRef { input: run.input, row: run.first_row + at }));
        }
        assert_eq!(emitted.len() as u64, window.rows);
        for (at, row) in emitted.iter().enumerate() {
            assert_eq!(at == 0 && window.carried_in == Some(*row), row.row < window.ranges[row.input as usize].start);
            let place =
                open.iter().position(|other| other == row).expect("an emitted row was consumed and not emitted before");
            open.swap_remove(place);
            output.push(inputs[row.input as usize].rows[row.row as usize].identity());
        }
        if let Some(row) = window.carried_out {
            let place =
                open.iter().position(|other| *other == row).expect("a carried row was consumed and not emitted");
            open.swap_remove(place);
        }
        assert_eq!(window.dropped, open.len() as u64, "rows in = rows out + dropped + carried");
        carried = window.carried_out;
    }
    assert_eq!(carried, None);
    let totals: Vec<u64> = inputs.iter().map(|input| input.rows.len() as u64).collect();
    assert_eq!(next, totals);
    output
}

fn key_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Int64),
        Just(DataType::Int32),
        Just(DataType::Boolean),
        Just(DataType::Float64),
        Just(DataType::Utf8),
        Just(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        Just(DataType::Decimal128(20, 3)),
    ]
}

/// Few distinct values, so that ties and duplicates are common, and all the awkward ones.
fn value(data_type: &DataType) -> BoxedStrategy<Value> {
    let some = match data_type {
        DataType::Boolean => (0..2i64).prop_map(Value::Int).boxed(),
        DataType::Float64 => prop_oneof![
            Just(f64::NAN),
            Just(-f64::NAN),
            Just(f64::from_bits(0x7ff8_0000_0000_0001)),
            Just(0.0),
            Just(-0.0),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(1.5),
            Just(-1.5),
        ]
        .prop_map(Value::Float)
        .boxed(),
        DataType::Utf8 => prop_oneof![
            Just(""),
            Just("a"),
            Just("ab"),
            Just("b"),
            Just("b\0"),
            Just("é"),
            Just("a long text of more than 32 bytes, in two blocks")
        ]
        .prop_map(|text| Value::Text(text.into()))
        .boxed(),
        _ => (-3..4i64).prop_map(Value::Int).boxed(),
    };
    prop_oneof![1 => Just(Value::Null), 6 => some].boxed()
}

#[derive(Debug, Clone)]
struct Case {
    order: RowOrder,
    fields: Vec<FieldRef>,
    inputs: Vec<Input>,
    shuffled: Vec<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    (vec((key_type(), any::<bool>(), any::<bool>()), 1..4), any::<u8>(), 1..6usize).prop_flat_map(
        |(columns, dedup, inputs)| {
            let types: Vec<DataType> = columns.iter().map(|column| column.0.clone()).collect();
            let row = types.iter().map(value).collect::<Vec<_>>();
            let input = (vec(row, 0..24), 1..4i64, any::<bool>());
            (Just(columns), Just(dedup), vec(input, inputs), Just((0..inputs).collect::<Vec<_>>()).prop_shuffle())
                .prop_map(|(columns, dedup, inputs, shuffled)| build(&columns, dedup, inputs, shuffled))
        },
    )
}

fn build(
    columns: &[(DataType, bool, bool)],
    dedup: u8,
    inputs: Vec<(Vec<Vec<Value>>, i64, bool)>,
    shuffled: Vec<usize>,
) -> Case {
    let fields: Vec<FieldRef> = columns
        .iter()
        .enumerate()
        .map(|(at, (data_type, _, _))| Arc::new(Field::new(format!("c{at}"), data_type.clone(), true)))
        .collect();
    let order = RowOrder {
        columns: columns
            .iter()
            .enumerate()
            .map(|(at, (_, descending, nulls_first))| OrderColumn {
                field_id: at as i32 + 1,
                name: format!("c{at}"),
                descending: *descending,
                nulls_first: *nulls_first,
            })
            .collect(),
        dedup_columns: if dedup.is_multiple_of(3) { None } else { Some(1 + dedup as usize % columns.len()) },
        ..RowOrder::default()
    };
    let inputs = inputs
        .into_iter()
        .enumerate()
        .map(|(input, (keys, sequence, hidden))| {
            let mut rows: Vec<Row> = keys
                .into_iter()
                .enumerate()
                .map(|(at, key)| Row {
                    key,
                    // A hidden-column input mixes two files of different sequence numbers and its positions are not its row numbers.
                    sequence: if hidden { sequence + (at % 2) as i64 } else { sequence },
                    source: input as u32 * 2 + if hidden { at as u32 % 2 } else { 0 },
                    position: at as i64,
                })
                .collect();
            rows.sort_by(|a, b| compare_rows(&order, a, b));
            if !hidden {
                for (at, row) in rows.iter_mut().enumerate() {
                    row.position = at as i64;
                }
            }
            Input { rows, hidden }
        })
        .collect();
    Case { order, fields, inputs, shuffled }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn merge_is_sort_and_keep_the_newest(case in case(), batch in 1..9usize, rows in 1..9u64, consumed in 1..20u64) {
        let limit = WindowLimit { rows, consumed, runs: 5 };
        let all: Vec<Row> = case.inputs.iter().flat_map(|input| input.rows.clone()).collect();
        let expected = oracle(&case.order, &all);
        let windows = drive(&case.order, &case.fields, &case.inputs, batch, limit).unwrap();
        prop_assert_eq!(collect(&case.inputs, &windows, limit), expected.clone());
        let keys: Vec<&[u8]> = windows.iter().filter(|w| w.rows > 0).flat_map(|w| [&w.first_key[..], &w.last_key[..]]).collect();
        prop_assert!(keys.windows(2).all(|pair| pair[0] <= pair[1]));

        // A window may be split anywhere: every row still has one fate.
        let halves: Vec<Window> = windows
            .into_iter()
            .flat_map(|window| {
                let at = 1 + batch as u64 % window.rows.max(1);
                match window.clone().split(at) {
                    Some((first, second)) => vec![first, second],
                    None => vec![window],
                }
            })
            .collect();
        prop_assert_eq!(collect(&case.inputs, &halves, limit), expected.clone());

        // Any sequence of the inputs, any batch size, one big window: the same rows.
        let inputs: Vec<Input> = case.shuffled.iter().map(|&at| case.inputs[at].clone()).collect();
        let limit = WindowLimit::rows(1 << 20);
        let windows = drive(&case.order, &case.fields, &inputs, 9 - batch, limit).unwrap();
        prop_assert_eq!(collect(&inputs, &windows, limit), expected);
    }

    #[test]
    fn an_unsorted_input_is_always_found(case in case(), swap in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(), batch in 1..9usize) {
        let mut inputs = case.inputs.clone();
        let input = which.index(inputs.len());
        prop_assume!(inputs[input].rows.len() > 1);
        let at = swap.index(inputs[input].rows.len() - 1);
        let rows = &mut inputs[input].rows;
        prop_assume!(compare_keys(&case.order, case.order.columns.len(), &rows[at], &rows[at + 1]) == Ordering::Less);
        let keys = (rows[at].key.clone(), rows[at + 1].key.clone());
        (rows[at].key, rows[at + 1].key) = (keys.1, keys.0);
        match drive(&case.order, &case.fields, &inputs, batch, WindowLimit::rows(3)) {
            Err(MergeFault::Unsorted { input: found, row }) => {
                prop_assert_eq!(found, input);
                // The swap leaves up to three neighbours out of order; the first of them is reported.
                prop_assert!(row >= at as u64 && row <= at as u64 + 1, "row {} for a swap at {}", row, at);
            }
            other => prop_assert!(false, "not found: {:?}", other),
        }
    }

    #[test]
    fn a_subset_merged_first_gives_the_same_result(case in case(), part in subsequence((0..5usize).collect::<Vec<_>>(), 0..5), batch in 1..9usize) {
        // Two levels: some inputs merged to a part that carries hidden columns, then the part with the rest.
        let (first, rest): (Vec<_>, Vec<_>) = (0..case.inputs.len()).partition(|at| part.contains(at));
        let taken: Vec<Input> = first.iter().map(|&at| case.inputs[at].clone()).collect();
        let limit = WindowLimit::rows(4);
        let windows = drive(&case.order, &case.fields, &taken, batch, limit).unwrap();
        let identities = collect(&taken, &windows, limit);
        let all: Vec<Row> = case.inputs.iter().flat_map(|input| input.rows.clone()).collect();
        let rows: Vec<Row> = identities.iter().map(|id| all.iter().find(|row| row.identity() == *id).unwrap().clone()).collect();
        let mut inputs: Vec<Input> = rest.iter().map(|&at| case.inputs[at].clone()).collect();
        inputs.insert(0, Input { rows, hidden: true });
        let windows = drive(&case.order, &case.fields, &inputs, batch, limit).unwrap();
        prop_assert_eq!(collect(&inputs, &windows, limit), oracle(&case.order, &all));
    }

    #[test]
    fn a_stretch_is_whole_exactly_where_nothing_comes_between_its_rows(
        case in case(), batch in 1..9usize, rows in 1..9u64, sizes in vec(1..7u64, 1..4), gap in 0..2u64,
    ) {
        let limit = WindowLimit { rows, consumed: rows * 2, runs: 5 };
        let stretches: Vec<Vec<Range<u64>>> = case.inputs.iter().map(|input| {
            let mut start = 0;
            let mut sizes = sizes.iter().cycle();
            std::iter::from_fn(|| {
                let begin = start + gap;
                start = begin + sizes.next()?;
                (start <= input.rows.len() as u64).then_some(begin..start)
            }).collect()
        }).collect();
        let all: Vec<Row> = case.inputs.iter().flat_map(|input| input.rows.clone()).collect();
        let expected = oracle(&case.order, &all);
        let windows = drive_with(&case.order, &case.fields, &case.inputs, batch, limit, stretches.clone()).unwrap();
        let longest = 2 * rows + 7;
        prop_assert_eq!(collect(&case.inputs, &windows, WindowLimit { rows: longest, consumed: longest + 9, runs: 99 }), expected.clone());
        let keys: Vec<&[u8]> = windows.iter().filter(|w| w.rows > 0).flat_map(|w| [&w.first_key[..], &w.last_key[..]]).collect();
        prop_assert!(keys.windows(2).all(|pair| pair[0] <= pair[1]));

        let mut found = Vec::new();
        for window in windows.iter().filter(|window| window.whole) {
            prop_assert_eq!((window.runs.len(), window.dropped, window.carried_in, window.carried_out), (1, 0, None, None));
            let run = window.runs[0];
            prop_assert_eq!(window.consumed(), u64::from(run.count));
            found.push((run.input as usize, run.first_row..run.first_row + u64::from(run.count)));
        }
        found.sort_by_key(|(input, rows)| (*input, rows.start));
        let dedup = case.order.dedup_columns;
        let mut wanted = Vec::new();
        for (input, ranges) in stretches.iter().enumerate() {
            for range in ranges {
                let part = &case.inputs[input].rows[range.start as usize..range.end as usize];
                let place = expected.iter().position(|row| *row == part[0].identity());
                let together = place.is_some_and(|at| {
                    expected[at..].iter().take(part.len()).eq(part.iter().map(Row::identity).collect::<Vec<_>>().iter())
                });
                let rival = |row: &Row| dedup.is_some_and(|columns| {
                    all.iter().any(|other| other.identity() != row.identity() && compare_keys(&case.order, columns, other, row) == Ordering::Equal)
                });
                if together && !part.iter().any(rival) {
                    wanted.push((input, range.clone()));
                }
            }
        }
        prop_assert_eq!(found, wanted);
    }
}
