//! Windows: what a merge hands out.

use std::ops::Range;

/// Neighbouring rows of one input that follow each other in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// Index of the input.
    pub input: u32,
    /// First row, counted from the start of the input.
    pub first_row: u64,
    /// Number of rows, at least 1.
    pub count: u32,
}

/// One row of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowRef {
    /// Index of the input.
    pub input: u32,
    /// Row, counted from the start of the input.
    pub row: u64,
}

/// A stretch of the output.
///
/// Every row of [`Window::ranges`] is either in [`Window::runs`], or it is [`Window::carried_out`], or it was dropped as a duplicate.
/// `carried_in` is the one row from before the ranges that a window may also contain, always as its first run, or drop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Output rows in order. Runs of one input ascend and do not overlap.
    pub runs: Vec<Run>,
    /// Output rows: the sum of the runs' counts.
    pub rows: u64,
    /// Per input the rows that were consumed to make this window. The ranges of all windows together cover each input exactly once.
    pub ranges: Vec<Range<u64>>,
    /// Carried out by the window before: consumed there, its fate open until now.
    pub carried_in: Option<RowRef>,
    /// With dedup: the best row so far of a key that may go on; the next window keeps it, drops it or carries it on.
    pub carried_out: Option<RowRef>,
    /// Rows dropped as duplicates in this window.
    pub dropped: u64,
    /// Composite key of the first output row ([`crate::order::KeyBatch::key_bytes`]); empty without an order or without rows.
    pub first_key: Vec<u8>,
    /// Composite key of the last output row.
    pub last_key: Vec<u8>,
    /// The rows are one stretch ([`crate::Merge::with_stretches`]) from its first row to its last: one input's, in their order, none of
    /// them dropped, nothing carried in or out, and no row of another input between them.
    pub whole: bool,
}

impl Window {
    pub(crate) fn starting_at(positions: impl Iterator<Item = u64>, carried_in: Option<RowRef>) -> Window {
        Window { ranges: positions.map(|row| row..row).collect(), carried_in, ..Window::default() }
    }

    /// Rows consumed from all inputs.
    pub fn consumed(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Splits off what comes after the first `rows` output rows. Both windows belong to one file: the keys between them are not known,
    /// each has those of the whole. None when one of them would have no output rows.
    pub fn split(self, rows: u64) -> Option<(Window, Window)> {
        if rows == 0 || rows >= self.rows {
            return None;
        }
        let starts = self.ranges.iter().map(|range| range.start);
        let mut first = Window::starting_at(starts, self.carried_in);
        let mut runs = self.runs.iter();
        let mut rest = Vec::new();
        for run in runs.by_ref() {
            let taken = u64::from(run.count).min(rows - first.rows);
            first.push(run.input, run.first_row, taken);
            // Rows dropped before this one go with it; the carried row lies before the range and moves nothing.
            let end = &mut first.ranges[run.input as usize].end;
            *end = (*end).max(run.first_row + taken);
            if taken < u64::from(run.count) {
                let left = run.count - taken as u32;
                rest.push(Run { input: run.input, first_row: run.first_row + taken, count: left });
            }
            if first.rows == rows {
                break;
            }
        }
        rest.extend(runs);
        if self.carried_in.is_some() && self.carried_in == self.carried_out {
            first.carried_out = self.carried_in;
        }
        let carried = |row: Option<RowRef>| u64::from(row.is_some());
        first.dropped = first.consumed() + carried(first.carried_in) - first.rows - carried(first.carried_out);
        first.first_key.clone_from(&self.first_key);
        first.last_key.clone_from(&self.last_key);
        let second = Window {
            runs: rest,
            rows: self.rows - rows,
            ranges: first.ranges.iter().zip(&self.ranges).map(|(done, all)| done.end..all.end).collect(),
            carried_in: first.carried_out,
            dropped: self.dropped - first.dropped,
            whole: false,
            ..self
        };
        Some((first, second))
    }

    /// Appends rows, joining them to the last run where they continue it.
    pub(crate) fn push(&mut self, input: u32, first_row: u64, count: u64) {
        let mut first_row = first_row;
        let mut count = count;
        self.rows += count;
        if let Some(last) = self.runs.last_mut()
            && last.input == input
            && last.first_row + u64::from(last.count) == first_row
        {
            let joined = count.min(u64::from(u32::MAX - last.count));
            last.count += joined as u32;
            first_row += joined;
            count -= joined;
        }
        while count > 0 {
            let part = count.min(u64::from(u32::MAX));
            self.runs.push(Run { input, first_row, count: part as u32 });
            first_row += part;
            count -= part;
        }
    }
}

/// Where a window ends at the latest. Each is at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    /// Output rows.
    pub rows: u64,
    /// Rows consumed from all inputs, dropped ones included: bounds what is kept per input row.
    pub consumed: u64,
    /// Runs: bounds the run list when inputs alternate row by row.
    pub runs: usize,
}

impl WindowLimit {
    /// At most `rows` output rows and as many runs, and twice as many rows consumed.
    pub fn rows(rows: u64) -> WindowLimit {
        let rows = rows.max(1);
        WindowLimit { rows, consumed: rows.saturating_mul(2), runs: usize::try_from(rows).unwrap_or(usize::MAX) }
    }
}

/// What a merge wants or gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Give the next batch of this input, or say that it has ended.
    Need(usize),
    /// A full window, or the last one. A window may be empty of output rows when all it consumed was dropped or carried.
    Window(Window),
    /// Every row was handed out or dropped.
    Finished,
}
