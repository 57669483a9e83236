// One input has one range.
#![allow(clippy::single_range_in_vec_init)]

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, StringArray};
use arrow_select::concat::concat;
use firn_merge::Run;
use proptest::prelude::*;

/// A column in memory.
struct Memory {
    array: ArrayRef,
    row: u64,
    released: usize,
}

impl Memory {
    fn new(array: ArrayRef) -> Memory {
        Memory { array, row: 0, released: 0 }
    }
}

impl RowSource for Memory {
    fn row(&self) -> u64 {
        self.row
    }

    fn next(&mut self, max_rows: usize) -> Result<Option<ArrayRef>, ColumnarError> {
        let count = max_rows.min(self.array.len() - self.row as usize);
        let rows = self.array.slice(self.row as usize, count);
        self.row += count as u64;
        Ok((count > 0).then_some(rows))
    }

    fn release(&mut self) {
        self.released += 1;
    }

    fn ended_early(&self, row: u64) -> ColumnarError {
        ColumnarError::corrupt_file("memory", format!("ended at row {row}"))
    }
}

#[derive(Default)]
struct Collected {
    read: Vec<(usize, u64, usize)>,
    written: Vec<ArrayRef>,
}

impl ColumnEnds for Collected {
    fn read(&mut self, input: usize, first_row: u64, rows: &ArrayRef) -> Result<(), ColumnarError> {
        self.read.push((input, first_row, rows.len()));
        Ok(())
    }

    fn write(&mut self, rows: ArrayRef) -> Result<(), ColumnarError> {
        self.written.push(rows);
        Ok(())
    }
}

fn run(input: u32, first_row: u64, count: u32) -> Run {
    Run { input, first_row, count }
}

fn limit(rows: usize, read_rows: usize) -> ChunkLimit {
    ChunkLimit { rows, bytes: 1 << 20, read_rows }
}

fn longs(values: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn written(collected: &Collected) -> Vec<i64> {
    collected.written.iter().flat_map(|array| array.as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn runs_gaps_and_tails_are_read_once_and_runs_are_written() {
    let window = Window {
        runs: vec![run(1, 0, 2), run(0, 1, 3), run(1, 3, 1)],
        rows: 6,
        ranges: vec![0..6, 0..5],
        dropped: 5,
        ..Window::default()
    };
    for (rows, read_rows) in [(100, 100), (2, 3), (1, 1)] {
        let mut sources = vec![Memory::new(longs(0..9)), Memory::new(longs(100..105))];
        let mut collected = Collected::default();
        move_column(&mut sources, &window, limit(rows, read_rows), true, None, &mut collected).unwrap();
        assert_eq!(written(&collected), [100, 101, 1, 2, 3, 103]);
        assert!(collected.written.iter().all(|array| array.len() <= rows));
        for (input, rows) in [(0, 6), (1, 5)] {
            let mut next = 0;
            for (_, first_row, count) in collected.read.iter().filter(|read| read.0 == input) {
                assert_eq!(*first_row, next);
                next += *count as u64;
            }
            assert_eq!(next, rows);
            assert_eq!(sources[input].released, 1);
        }
    }
}

#[test]
fn a_carried_row_keeps_its_value_over_windows() {
    let mut sources = vec![Memory::new(longs(0..6)), Memory::new(longs(100..103))];
    let mut carried = None;
    let mut collected = Collected::default();
    let row = RowRef { input: 0, row: 3 };
    let first = Window {
        runs: vec![run(0, 0, 1)],
        rows: 1,
        ranges: vec![0..5, 0..0],
        carried_out: Some(row),
        dropped: 3,
        ..Window::default()
    };
    let through = Window {
        ranges: vec![5..5, 0..2],
        carried_in: Some(row),
        carried_out: Some(row),
        dropped: 2,
        ..Window::default()
    };
    // The carried row joins the row after it when that has not been consumed yet; here it stands alone.
    let last = Window {
        runs: vec![run(0, 3, 1), run(1, 2, 1), run(0, 5, 1)],
        rows: 3,
        ranges: vec![5..6, 2..3],
        carried_in: Some(row),
        ..Window::default()
    };
    for window in [first, through, last] {
        carried = move_column(&mut sources, &window, limit(10, 2), false, carried.as_ref(), &mut collected).unwrap();
    }
    assert_eq!(written(&collected), [0, 3, 102, 5]);
    assert!(carried.is_none());
}

#[test]
fn a_carried_row_that_joins_the_next_rows_is_one_run() {
    let mut sources = vec![Memory::new(longs(0..6))];
    let mut carried = None;
    let mut collected = Collected::default();
    let row = RowRef { input: 0, row: 2 };
    let first =
        Window { runs: vec![run(0, 0, 2)], rows: 2, ranges: vec![0..3], carried_out: Some(row), ..Window::default() };
    let last =
        Window { runs: vec![run(0, 2, 4)], rows: 4, ranges: vec![3..6], carried_in: Some(row), ..Window::default() };
    for window in [first, last] {
        carried = move_column(&mut sources, &window, limit(10, 2), false, carried.as_ref(), &mut collected).unwrap();
    }
    assert_eq!(written(&collected), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn chunks_are_bounded_by_bytes_too() {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|_| "x".repeat(1000))));
    let window = Window { runs: vec![run(0, 0, 100)], rows: 100, ranges: vec![0..100], ..Window::default() };
    let mut collected = Collected::default();
    let bounds = ChunkLimit { rows: 1000, bytes: 10_000, read_rows: 64 };
    move_column(&mut [Memory::new(texts)], &window, bounds, false, None, &mut collected).unwrap();
    assert_eq!(collected.written.iter().map(|array| array.len()).sum::<usize>(), 100);
    assert!(collected.written.iter().all(|array| array.len() <= 9));
}

#[test]
fn a_column_shorter_than_its_keys_is_damage() {
    let window = Window { runs: vec![run(0, 0, 4)], rows: 4, ranges: vec![0..4], ..Window::default() };
    let error =
        move_column(&mut [Memory::new(longs(0..3))], &window, limit(10, 10), false, None, &mut Collected::default());
    assert!(matches!(error.unwrap_err(), ColumnarError::Corrupt { .. }));
}

proptest! {
    #[test]
    fn both_ways_of_copying_agree(texts in prop::collection::vec(prop::collection::vec(prop::option::of("[a-c]{0,3}"), 1..20), 1..4), picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..5usize), 1..30)) {
        let arrays: Vec<ArrayRef> = texts.into_iter().map(|texts| Arc::new(StringArray::from(texts)) as ArrayRef).collect();
        let mut chunk = Chunk::default();
        let mut expected = Vec::new();
        for (array, from, count) in picks {
            let at = array.index(arrays.len());
            let from = from.index(arrays[at].len());
            let count = count.min(arrays[at].len() - from);
            let batch = Batch { array: Arc::clone(&arrays[at]), first_row: 0, row_bytes: 1 };
            chunk.add(at, &batch, from, count);
            expected.push(arrays[at].slice(from, count));
        }
        let expected = concat(&expected.iter().map(|array| array.as_ref()).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(&chunk.build(Copying::Ranges).unwrap().unwrap(), &expected);
        prop_assert_eq!(&chunk.build(Copying::Rows).unwrap().unwrap(), &expected);
    }
}
