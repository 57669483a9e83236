//! The books of a merge: rows and row sums in, out and dropped (design section 5, "Rows and proof").
//!
//! The input side hashes what the readers gave, by (input, row), before anything is copied; the output side hashes what the encoders
//! got, by output row. The two meet only here.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::ArrayRef;
use firn_merge::{RowRef, Window};

use super::error::MergeError;
use crate::error::ColumnarError;
use crate::fast::column::HashSink;
use crate::fast::hashes::RowHashes;
use crate::proof::{RowHasher, RowSum, finish};

/// Hash states of the rows of one window, filled column by column from any thread.
#[derive(Debug)]
pub(crate) struct WindowStates {
    inputs: Vec<Mutex<Vec<u64>>>,
    output: Mutex<Vec<u64>>,
    starts: Vec<u64>,
}

/// Memory of states that were entered.
#[derive(Debug, Default)]
pub(crate) struct SpareStates {
    inputs: Vec<Vec<u64>>,
    output: Vec<u64>,
}

impl WindowStates {
    /// `spare` is what [`Ledger::enter`] gave for the window before, to be used again.
    pub(crate) fn new(window: &Window, spare: SpareStates) -> WindowStates {
        let SpareStates { mut inputs, output } = spare;
        inputs.resize_with(window.ranges.len(), Vec::new);
        let states = |mut states: Vec<u64>, rows: u64| {
            states.clear();
            states.resize(rows as usize, 0);
            Mutex::new(states)
        };
        let inputs = inputs.into_iter().zip(&window.ranges);
        WindowStates {
            inputs: inputs.map(|(spare, range)| states(spare, range.end - range.start)).collect(),
            output: states(output, window.rows),
            starts: window.ranges.iter().map(|range| range.start).collect(),
        }
    }

    /// Rows of a column came in.
    pub(crate) fn came_in(
        &self,
        hasher: &RowHasher,
        column: usize,
        input: usize,
        first_row: u64,
        rows: &ArrayRef,
    ) -> Result<(), ColumnarError> {
        let from = first_row - self.starts[input];
        add(&self.inputs[input], hasher, column, from as usize, rows)
    }

    /// Rows of a column went out; `from` counts from the start of the window.
    pub(crate) fn went_out(
        &self,
        hasher: &RowHasher,
        column: usize,
        from: usize,
        rows: &ArrayRef,
    ) -> Result<(), ColumnarError> {
        add(&self.output, hasher, column, from, rows)
    }
}

/// The fast path hashes by itself: dictionaries' values once.
impl HashSink for WindowStates {
    fn came_in(&self, input: usize, first_row: u64, hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        let from = first_row - self.starts[input];
        add_hashes(&self.inputs[input], from as usize, hashes)
    }

    fn went_out(&self, from: usize, hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        add_hashes(&self.output, from, hashes)
    }
}

fn add_hashes(states: &Mutex<Vec<u64>>, from: usize, hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
    let mut states = lock(states);
    let length = states.len();
    match states.get_mut(from..from + hashes.len()) {
        Some(states) => {
            hashes.add_to(states);
            Ok(())
        }
        None => {
            let end = from + hashes.len();
            Err(ColumnarError::Usage { detail: format!("rows {from}..{end} are beyond the {length} of the window") })
        }
    }
}

fn add(
    states: &Mutex<Vec<u64>>,
    hasher: &RowHasher,
    column: usize,
    from: usize,
    rows: &ArrayRef,
) -> Result<(), ColumnarError> {
    let mut states = lock(states);
    let length = states.len();
    match states.get_mut(from..from + rows.len()) {
        Some(states) => hasher.add_column(column, rows.as_ref(), states),
        None => Err(ColumnarError::Usage {
            detail: format!(
                "rows {from}..{} of column {column} are beyond the {length} of the window",
                from + rows.len()
            ),
        }),
    }
}

/// A poisoned lock means that another thread panicked; the panic itself is passed on when the threads are joined.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was counted and summed up to now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) dropped: u64,
    pub(crate) sum_out: RowSum,
    pub(crate) sum_dropped: RowSum,
    pub(crate) input_rows: Vec<u64>,
    pub(crate) input_sums: Vec<RowSum>,
    /// Row groups that were copied, and rows of them that are in no sum.
    pub(crate) groups_copied: u64,
    pub(crate) rows_by_bytes: u64,
    /// State of the row that the last window carried out.
    carried: Option<u64>,
    windows: u64,
}

impl Ledger {
    pub(crate) fn new(inputs: usize) -> Ledger {
        Ledger { input_rows: vec![0; inputs], input_sums: vec![RowSum::ZERO; inputs], ..Ledger::default() }
    }

    pub(crate) fn sum_in(&self) -> RowSum {
        self.input_sums.iter().copied().sum()
    }

    /// Enters a window whose columns are all done, and returns the sum of its output rows with the memory of the states.
    ///
    /// # Errors
    /// [`MergeError::Proof`] when what came in is not what went out, was dropped or is carried on.
    pub(crate) fn enter(&mut self, window: &Window, states: WindowStates) -> Result<(RowSum, SpareStates), MergeError> {
        self.windows += 1;
        let inputs: Vec<Vec<u64>> = states
            .inputs
            .into_iter()
            .map(|states| states.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let output = states.output.into_inner().unwrap_or_else(PoisonError::into_inner);

        let mut sum_in = RowSum::ZERO;
        for (input, states) in inputs.iter().enumerate() {
            let sum = finish(states);
            sum_in += sum;
            self.input_sums[input] += sum;
            self.input_rows[input] += states.len() as u64;
        }
        let sum_out = finish(&output);
        let carried_in = self.carried.take();
        let (sum_dropped, dropped) = dropped(window, &inputs, carried_in);
        self.carried = match window.carried_out {
            None => None,
            Some(row) if window.carried_in == Some(row) => carried_in,
            Some(row) => state_of(window, &inputs, row),
        };
        let hash = |state: Option<u64>| state.map_or(RowSum::ZERO, |state| finish(&[state]));
        let count = |state: Option<u64>| u64::from(state.is_some());

        let rows_in = window.consumed() + count(carried_in);
        let rows_out = output.len() as u64 + dropped + count(self.carried);
        if rows_in != rows_out || dropped != window.dropped {
            return Err(self.broken(format!(
                "{rows_in} rows came in, {rows_out} are accounted for, {dropped} of them dropped where {} should be",
                window.dropped
            )));
        }
        let (left, right) = (sum_in + hash(carried_in), sum_out + sum_dropped + hash(self.carried));
        if left != right {
            return Err(self.broken(format!("row sum in {left}, out, dropped and carried {right}")));
        }
        self.rows_in += window.consumed();
        self.rows_out += output.len() as u64;
        self.dropped += dropped;
        self.sum_out += sum_out;
        self.sum_dropped += sum_dropped;
        Ok((sum_out, SpareStates { inputs, output }))
    }

    /// Enters a window that is copied: one input's rows, all of which go out. `sum` is theirs on both sides, where it is known.
    ///
    /// # Errors
    /// [`MergeError::Proof`] when the window is anything else.
    pub(crate) fn copy(&mut self, window: &Window, sum: Option<RowSum>) -> Result<(), MergeError> {
        self.windows += 1;
        let [run] = window.runs.as_slice() else {
            return Err(self.broken(format!("{} runs were to be copied", window.runs.len())));
        };
        let input = run.input as usize;
        let rows = run.first_row..run.first_row + u64::from(run.count);
        let alone = window.ranges.get(input) == Some(&rows) && window.consumed() == window.rows;
        if !alone || window.rows != rows.end - rows.start || window.dropped > 0 || self.carried.is_some() {
            return Err(
                self.broken(format!("rows {rows:?} of input {input} were to be copied, and are not all there is"))
            );
        }
        self.rows_in += window.rows;
        self.rows_out += window.rows;
        self.input_rows[input] += window.rows;
        self.groups_copied += 1;
        match sum {
            Some(sum) => {
                self.input_sums[input] += sum;
                self.sum_out += sum;
            }
            None => self.rows_by_bytes += window.rows,
        }
        Ok(())
    }

    /// Closes the books: nothing is carried any more, and the totals agree.
    pub(crate) fn close(&self) -> Result<(), MergeError> {
        let sum_in = self.sum_in();
        let in_balance = self.rows_in == self.rows_out + self.dropped && sum_in == self.sum_out + self.sum_dropped;
        if self.carried.is_some() || !in_balance {
            return Err(MergeError::Proof {
                place: "at the end".into(),
                detail: format!(
                    "rows in {}, out {}, dropped {}; row sum in {sum_in}, out {}, dropped {}",
                    self.rows_in, self.rows_out, self.dropped, self.sum_out, self.sum_dropped
                ),
            });
        }
        Ok(())
    }

    fn broken(&self, detail: String) -> MergeError {
        MergeError::Proof { place: format!("in window {}", self.windows), detail }
    }
}

/// Sum and number of the rows of a window that are neither in its runs nor carried out.
fn dropped(window: &Window, inputs: &[Vec<u64>], carried_in: Option<u64>) -> (RowSum, u64) {
    let mut sum = RowSum::ZERO;
    let mut count = 0;
    let mut next: Vec<u64> = window.ranges.iter().map(|range| range.start).collect();
    let mut drop_up_to = |input: usize, next: &mut u64, end: u64| {
        while *next < end {
            let mut stop = end;
            if let Some(row) = window.carried_out
                && row.input as usize == input
                && row.row >= *next
                && row.row < end
            {
                stop = row.row;
            }
            let start = window.ranges[input].start;
            let states = inputs[input].get((*next - start) as usize..(stop - start) as usize).unwrap_or_default();
            sum += finish(states);
            count += states.len() as u64;
            *next = if stop < end { stop + 1 } else { end };
        }
    };
    for run in &window.runs {
        let input = run.input as usize;
        // The carried row lies before the range: nothing is between.
        drop_up_to(input, &mut next[input], run.first_row);
        next[input] = next[input].max(run.first_row + u64::from(run.count));
    }
    for (input, range) in window.ranges.iter().enumerate() {
        drop_up_to(input, &mut next[input], range.end);
    }
    if let (Some(row), Some(state)) = (window.carried_in, carried_in) {
        let kept = window.carried_out == Some(row)
            || window.runs.first().is_some_and(|run| RowRef { input: run.input, row: run.first_row } == row);
        if !kept {
            sum += finish(&[state]);
            count += 1;
        }
    }
    (sum, count)
}

fn state_of(window: &Window, inputs: &[Vec<u64>], row: RowRef) -> Option<u64> {
    let range = window.ranges.get(row.input as usize)?;
    inputs.get(row.input as usize)?.get(row.row.checked_sub(range.start)? as usize).copied()
}

#[cfg(test)]
// One input has one range.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use firn_merge::Run;

    fn states(window: &Window, inputs: &[&[u64]], output: &[u64]) -> WindowStates {
        let states = WindowStates::new(window, SpareStates::default());
        for (mutex, values) in states.inputs.iter().zip(inputs) {
            *lock(mutex) = values.to_vec();
        }
        *lock(&states.output) = output.to_vec();
        states
    }

    fn run(input: u32, first_row: u64, count: u32) -> Run {
        Run { input, first_row, count }
    }

    fn window(runs: Vec<Run>, ranges: Vec<std::ops::Range<u64>>, dropped: u64) -> Window {
        let rows = runs.iter().map(|run| u64::from(run.count)).sum();
        Window { runs, rows, ranges, dropped, ..Window::default() }
    }

    #[test]
    fn kept_dropped_and_carried_rows_add_up() {
        let mut ledger = Ledger::new(2);
        let mut first = window(vec![run(0, 0, 1), run(1, 1, 1)], vec![0..4, 0..2], 3);
        first.carried_out = Some(RowRef { input: 0, row: 2 });
        let (sum, spare) = ledger.enter(&first, states(&first, &[&[10, 11, 12, 13], &[20, 21]], &[10, 21])).unwrap();
        let again = WindowStates::new(&first, spare);
        assert!(again.inputs.iter().chain([&again.output]).all(|states| lock(states).iter().all(|state| *state == 0)));
        assert_eq!(sum, finish(&[10, 21]));
        assert_eq!(ledger.sum_dropped, finish(&[20, 11, 13]));
        assert!(matches!(ledger.close(), Err(MergeError::Proof { .. })), "a row is still carried");
        let mut second = window(vec![run(1, 2, 1)], vec![4..4, 2..3], 1);
        second.carried_in = first.carried_out;
        ledger.enter(&second, states(&second, &[&[], &[22]], &[22])).unwrap();
        assert_eq!(ledger.sum_dropped, finish(&[20, 11, 13, 12]));
        ledger.close().unwrap();
        assert_eq!((ledger.rows_in, ledger.rows_out, ledger.dropped), (7, 3, 4));
        assert_eq!(ledger.input_sums, [finish(&[10, 11, 12, 13]), finish(&[20, 21, 22])]);
    }

    #[test]
    fn a_copied_window_is_one_run_with_its_sum_on_both_sides_or_on_none() {
        let mut ledger = Ledger::new(2);
        ledger.copy(&window(vec![run(1, 0, 3)], vec![0..0, 0..3], 0), Some(RowSum(9))).unwrap();
        ledger.copy(&window(vec![run(0, 0, 2)], vec![0..2, 3..3], 0), None).unwrap();
        ledger.close().unwrap();
        assert_eq!((ledger.rows_in, ledger.rows_out, ledger.rows_by_bytes, ledger.groups_copied), (5, 5, 2, 2));
        assert_eq!((ledger.sum_out, ledger.sum_in()), (RowSum(9), RowSum(9)));
        assert_eq!(ledger.input_rows, [2, 3]);
        for other in [
            window(vec![run(0, 2, 1), run(1, 3, 1)], vec![2..3, 3..4], 0),
            window(vec![run(0, 2, 1)], vec![2..3, 3..4], 0),
            window(vec![run(0, 3, 1)], vec![2..4, 3..3], 0),
            window(vec![run(0, 2, 1)], vec![2..3, 3..3], 1),
        ] {
            assert!(matches!(ledger.copy(&other, None), Err(MergeError::Proof { .. })), "{other:?}");
        }
        ledger.carried = Some(1);
        let whole = window(vec![run(0, 2, 1)], vec![2..3, 3..3], 0);
        assert!(ledger.copy(&whole, None).is_err(), "a row is carried past it");
    }

    #[test]
    fn a_carried_row_may_go_out_or_on() {
        let mut ledger = Ledger::new(1);
        let row = RowRef { input: 0, row: 0 };
        let mut one = window(vec![], vec![0..1], 0);
        one.carried_out = Some(row);
        ledger.enter(&one, states(&one, &[&[5]], &[])).unwrap();
        let mut two = window(vec![], vec![1..3], 2);
        (two.carried_in, two.carried_out) = (Some(row), Some(row));
        ledger.enter(&two, states(&two, &[&[6, 7]], &[])).unwrap();
        let mut three = window(vec![run(0, 0, 1), run(0, 3, 1)], vec![3..4], 0);
        three.carried_in = Some(row);
        ledger.enter(&three, states(&three, &[&[8]], &[5, 8])).unwrap();
        ledger.close().unwrap();
        assert_eq!(ledger.sum_out, finish(&[5, 8]));
    }

    #[test]
    fn a_swapped_value_a_lost_row_and_a_doubled_row_are_found() {
        let one = window(vec![run(0, 0, 3)], vec![0..3], 0);
        for output in [&[1, 2, 4][..], &[1, 2][..], &[1, 2, 2][..], &[1, 2, 3, 3][..]] {
            let error = Ledger::new(1).enter(&one, states(&one, &[&[1, 2, 3]], output)).unwrap_err();
            assert!(matches!(error, MergeError::Proof { .. }), "{output:?}");
        }
        let dropped_wrong = window(vec![run(0, 0, 2)], vec![0..3], 0);
        let error = Ledger::new(1).enter(&dropped_wrong, states(&dropped_wrong, &[&[1, 2, 3]], &[1, 2])).unwrap_err();
        assert!(error.to_string().contains("in window 1: 3 rows came in"), "{error}");
    }
}
