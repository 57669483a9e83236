//! Failures that other merge engines shipped, as fixed cases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field, FieldRef};
use firn_merge::order::{compare_keys, same_key};
use firn_merge::{Concat, KeyError, KeyOrder, Merge, MergeFault, Run, Step, Ties, WindowLimit};
use firn_model::{OrderColumn, RowOrder};

fn order(columns: &[(&str, bool, bool)], dedup_columns: Option<usize>) -> RowOrder {
    RowOrder {
        columns: columns
            .iter()
            .enumerate()
            .map(|(at, (name, descending, nulls_first))| OrderColumn {
                field_id: at as i32 + 1,
                name: (*name).to_owned(),
                descending: *descending,
                nulls_first: *nulls_first,
            })
            .collect(),
        dedup_columns,
        ..RowOrder::default()
    }
}

fn field(name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

/// Rows of Int64 keys; the result as (input, row) pairs.
fn merge_longs(
    order: &RowOrder,
    inputs: &[(i64, u32, Vec<Vec<i64>>)],
    batch: usize,
) -> Result<(Vec<(u32, u64)>, u64), MergeFault> {
    let fields: Vec<FieldRef> = order.columns.iter().map(|column| field(&column.name, DataType::Int64)).collect();
    let keys = KeyOrder::new(order, &fields).unwrap();
    let mut merge = Merge::new(keys.dedup(), inputs.len());
    let mut rows = Vec::new();
    let mut dropped = 0;
    loop {
        match merge.advance(&WindowLimit::rows(2))? {
            Step::Finished => return Ok((rows, dropped)),
            Step::Window(window) => {
                dropped += window.dropped;
                for run in window.runs {
                    rows.extend((0..u64::from(run.count)).map(|at| (run.input, run.first_row + at)));
                }
            }
            Step::Need(input) => {
                let from = merge.rows_read(input) as usize;
                let (sequence, source, all) = &inputs[input];
                let part = &all[from..all.len().min(from + batch)];
                if part.is_empty() {
                    merge.end(input)?;
                    continue;
                }
                let columns: Vec<ArrayRef> = (0..fields.len())
                    .map(|column| {
                        Arc::new(part.iter().map(|row| Some(row[column])).collect::<Int64Array>()) as ArrayRef
                    })
                    .collect();
                merge.push(input, keys.encode(&columns, Ties::of_file(*sequence, *source), from as u64).unwrap())?;
            }
        }
    }
}

fn longs(keys: &[i64]) -> Vec<Vec<i64>> {
    keys.iter().map(|key| vec![*key]).collect()
}

#[test]
fn the_survivor_does_not_depend_on_the_sequence_of_inputs() {
    // K35: one key in three files, two of them of one snapshot.
    let files = [(1, 0), (2, 1), (2, 2)];
    let order = order(&[("k", false, true)], Some(1));
    for permutation in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let inputs: Vec<_> = permutation.iter().map(|&at| (files[at].0, files[at].1, longs(&[1]))).collect();
        let (rows, dropped) = merge_longs(&order, &inputs, 1).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(permutation[rows[0].0 as usize], 2, "the file of the highest (sequence number, path) wins");
        assert_eq!(dropped, 2);
    }
}

#[test]
fn inputs_that_overlap_partly_lose_no_row_at_any_batch_size() {
    // K87.
    let order = order(&[("k", false, true)], Some(1));
    let inputs = [(1, 0, longs(&[1, 4, 5, 9])), (2, 1, longs(&[2, 4, 6])), (3, 2, longs(&[3, 9]))];
    for batch in 1..=8 {
        let (rows, dropped) = merge_longs(&order, &inputs, batch).unwrap();
        let keys: Vec<i64> = rows.iter().map(|(input, row)| inputs[*input as usize].2[*row as usize][0]).collect();
        assert_eq!(keys, [1, 2, 3, 4, 5, 6, 9]);
        assert_eq!(rows.len() as u64 + dropped, 9);
        assert!(rows.contains(&(1, 1)) && rows.contains(&(2, 1)), "key 4 from file 2, key 9 from file 3");
    }
}

#[test]
fn the_later_commit_wins_over_a_later_insertion_time() {
    // Insertion time sorts before the sequence number, yet the sequence number decides.
    let order = order(&[("k", false, true), ("inserted", false, true)], Some(1));
    let inputs = [(1, 0, vec![vec![7, 900]]), (2, 1, vec![vec![7, 100]])];
    assert_eq!(merge_longs(&order, &inputs, 1).unwrap(), (vec![(1, 0)], 1));
    // Within one commit the later insertion time decides, also where it is sorted descending.
    for descending in [false, true] {
        let order = self::order(&[("k", false, true), ("inserted", descending, true)], Some(1));
        let inputs = [(1, 0, vec![vec![7, 900]]), (1, 1, vec![vec![7, 100]])];
        assert_eq!(merge_longs(&order, &inputs, 1).unwrap(), (vec![(0, 0)], 1));
    }
}

#[test]
fn one_key_with_many_rows_is_carried_from_window_to_window() {
    let order = order(&[("k", false, true)], Some(1));
    let inputs = [(2, 1, longs(&[5; 40])), (1, 0, longs(&[5; 40]))];
    assert_eq!(merge_longs(&order, &inputs, 3).unwrap(), (vec![(0, 39)], 79));
}

#[test]
fn an_unsorted_input_is_named_with_its_row() {
    let order = order(&[("k", false, true)], None);
    let inputs = [(1, 0, longs(&[1, 2, 3, 4])), (1, 1, longs(&[1, 3, 2]))];
    for batch in 1..4 {
        assert_eq!(merge_longs(&order, &inputs, batch), Err(MergeFault::Unsorted { input: 1, row: 2 }));
    }
}

#[test]
fn a_null_hidden_in_a_dictionary_is_a_null() {
    // K110: values [null, "a"], keys [0, 1, null].
    let keys = Int32Array::from(vec![Some(0), Some(1), None]);
    let values = Arc::new(StringArray::from(vec![None, Some("a")]));
    let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, values));
    for nulls_first in [true, false] {
        let order = order(&[("k", false, nulls_first)], Some(1));
        let key_order = KeyOrder::new(&order, &[field("k", column.data_type().clone())]).unwrap();
        let batch = key_order.encode(&[Arc::clone(&column)], Ties::of_file(1, 0), 0).unwrap();
        assert!(same_key(&batch, 0, &batch, 2));
        assert_eq!(compare_keys(&batch, 0, &batch, 1).is_lt(), nulls_first);
        assert_eq!(compare_keys(&batch, 2, &batch, 1).is_lt(), nulls_first);
    }
}

#[test]
fn without_an_order_files_follow_in_commit_order() {
    let mut concat = Concat::new(&[(2, 1, 3), (1, 0, 2), (2, 3, 0), (2, 2, 1)]).unwrap();
    let mut runs = Vec::new();
    let mut ends = vec![0; 4];
    loop {
        match concat.advance(&WindowLimit::rows(2)) {
            Step::Window(window) => {
                assert!(window.rows <= 2);
                for (end, range) in ends.iter_mut().zip(&window.ranges) {
                    assert_eq!(*end, range.start);
                    *end = range.end;
                }
                runs.extend(window.runs);
            }
            Step::Finished => break,
            Step::Need(input) => panic!("asked for keys of {input}"),
        }
    }
    let run = |input, first_row, count| Run { input, first_row, count };
    assert_eq!(runs, [run(1, 0, 2), run(0, 0, 2), run(0, 2, 1), run(3, 0, 1)]);
    assert_eq!(ends, [3, 2, 0, 1]);
    assert!(matches!(Concat::new(&[(1, 0, 1), (1, 0, 1)]), Err(MergeFault::Protocol(_))));
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let fields = [field("k", DataType::Int64)];
    let refused = |order: &RowOrder, fields: &[FieldRef]| KeyOrder::new(order, fields).unwrap_err();
    assert!(matches!(
        refused(&order(&[("k", false, true)], Some(0)), &fields),
        KeyError::DedupColumns { asked: 0, has: 1 }
    ));
    assert!(matches!(
        refused(&order(&[("k", false, true)], Some(2)), &fields),
        KeyError::DedupColumns { asked: 2, has: 1 }
    ));
    assert!(matches!(refused(&order(&[], None), &fields), KeyError::ColumnCount { given: 1, wanted: 0 }));
    let nested = [field("k", DataType::List(field("element", DataType::Int64)))];
    let message = refused(&order(&[("k", false, true)], None), &nested).to_string();
    assert!(message.contains("`k`") && message.contains("primitive"), "{message}");
    let key_order = KeyOrder::new(&order(&[("k", false, true)], None), &fields).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let error = key_order.encode(&[text], Ties::of_file(1, 0), 0).unwrap_err();
    assert_eq!(error.to_string(), "key column `k` was read as Utf8, expected Int64");
}

#[test]
fn the_bytes_of_a_composite_key_are_pinned() {
    // Key ranges are stored in footers: if these bytes change, KEY_ENCODING must change too.
    let order = order(&[("name", false, true), ("x", true, false)], None);
    let fields = [field("name", DataType::Utf8), field("x", DataType::Float64)];
    let key_order = KeyOrder::new(&order, &fields).unwrap();
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("ab"), None]));
    let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let batch = key_order.encode(&[names, values], Ties::of_file(1, 0), 0).unwrap();
    assert_eq!(
        batch.key_bytes(0),
        [2, b'a', b'b', 0, 0, 0, 0, 0, 0, 2, 1, 0x40, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]
    );
    assert_eq!(batch.key_bytes(1), [0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(key_order.key_signature(), "v1:1 asc nulls-first string,2 desc nulls-last float64");
}

#[test]
fn a_batch_nobody_asked_for_is_refused() {
    let order = order(&[("k", false, true)], None);
    let key_order = KeyOrder::new(&order, &[field("k", DataType::Int64)]).unwrap();
    let batch = |first_row| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        key_order.encode(&[column], Ties::of_file(1, 0), first_row).unwrap()
    };
    let mut merge = Merge::new(false, 2);
    assert_eq!(merge.advance(&WindowLimit::rows(1)), Ok(Step::Need(0)));
    merge.push(0, batch(0)).unwrap();
    assert!(matches!(merge.push(0, batch(1)), Err(MergeFault::Protocol(_))));
    assert!(matches!(merge.push(1, batch(5)), Err(MergeFault::Protocol(_))), "rows 0 to 4 are missing");
    assert!(matches!(merge.end(2), Err(MergeFault::Protocol(_))));
}
