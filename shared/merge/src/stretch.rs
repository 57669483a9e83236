//! Stretches: neighbouring rows of one input that whoever drives the merge would rather move as one piece.
//!
//! Whether nothing comes between the rows of a stretch is seen only when its last row went out. Until then the window goes on, and
//! remembers what it was when the stretch began.

use std::collections::VecDeque;
use std::ops::Range;

use crate::window::Window;

/// The stretches of all inputs that are still to come.
#[derive(Debug, Default)]
pub(crate) struct Stretches(Vec<VecDeque<Range<u64>>>);

impl Stretches {
    /// One list an input, ascending, without overlaps; empty ranges are left out.
    pub(crate) fn new(stretches: Vec<Vec<Range<u64>>>) -> Stretches {
        Stretches(stretches.into_iter().map(|all| all.into_iter().filter(|rows| !rows.is_empty()).collect()).collect())
    }

    /// The next stretch of `input` that begins at `row` or later.
    pub(crate) fn next(&mut self, input: usize, row: u64) -> Option<Range<u64>> {
        let waiting = self.0.get_mut(input)?;
        while waiting.front().is_some_and(|rows| rows.start < row) {
            waiting.pop_front();
        }
        waiting.front().cloned()
    }
}

/// A stretch whose first row has gone out and of which nothing is wrong yet.
#[derive(Debug)]
pub(crate) struct OpenStretch {
    pub(crate) input: usize,
    pub(crate) rows: Range<u64>,
    /// Key of its first row.
    pub(crate) first_key: Vec<u8>,
    /// What the window was before it.
    runs: usize,
    last_run_rows: u32,
    rows_before: u64,
    dropped: u64,
    ends: Vec<u64>,
    last_key_before: Vec<u8>,
}

impl OpenStretch {
    /// `window` is what went out before the stretch, `last_key` the key of its last row.
    pub(crate) fn begin(
        input: usize,
        rows: Range<u64>,
        first_key: Vec<u8>,
        window: &Window,
        last_key: Vec<u8>,
    ) -> OpenStretch {
        OpenStretch {
            input,
            rows,
            first_key,
            runs: window.runs.len(),
            last_run_rows: window.runs.last().map_or(0, |run| run.count),
            rows_before: window.rows,
            dropped: window.dropped,
            ends: window.ranges.iter().map(|range| range.end).collect(),
            last_key_before: last_key,
        }
    }

    /// All rows were consumed.
    pub(crate) fn is_consumed(&self, window: &Window) -> bool {
        window.ranges.get(self.input).is_some_and(|range| range.end == self.rows.end)
    }

    /// A row was dropped since it began.
    pub(crate) fn lost_rows(&self, window: &Window) -> bool {
        window.dropped != self.dropped
    }

    /// Splits `window` into what came before the stretch, if anything did, and the stretch. None when the rows since its beginning are not
    /// exactly its own; the window is as it was then.
    pub(crate) fn cut(
        self,
        window: &mut Window,
        first_key: Option<Vec<u8>>,
        last_key: Vec<u8>,
    ) -> Option<(Option<Window>, Window)> {
        let count = self.rows.end - self.rows.start;
        let alone = window.ranges.iter().zip(&self.ends).enumerate();
        let alone = alone.fold(true, |alone, (input, (range, end))| {
            alone && if input == self.input { range.end == self.rows.end } else { range.end == *end }
        });
        if !alone || window.rows != self.rows_before + count || self.lost_rows(window) {
            return None;
        }
        let mut whole = Window::starting_at(self.ends.iter().copied(), None);
        whole.push(self.input as u32, self.rows.start, count);
        whole.ranges[self.input].end = self.rows.end;
        (whole.first_key, whole.last_key, whole.whole) = (self.first_key, last_key, true);

        let next = Window::starting_at(whole.ranges.iter().map(|range| range.end), None);
        let mut before = std::mem::replace(window, next);
        // The first rows of the stretch may have been joined to the run before them.
        before.runs.truncate(self.runs);
        if let Some(run) = before.runs.last_mut() {
            run.count = self.last_run_rows;
        }
        before.rows = self.rows_before;
        for (range, end) in before.ranges.iter_mut().zip(self.ends) {
            range.end = end;
        }
        if before.rows > 0 {
            (before.first_key, before.last_key) = (first_key.unwrap_or_default(), self.last_key_before);
        }
        let empty = before.rows == 0 && before.consumed() == 0;
        Some(((!empty).then_some(before), whole))
    }
}
