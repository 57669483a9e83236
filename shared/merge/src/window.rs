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
}

impl Window {
    pub(crate) fn starting_at(positions: impl Iterator<Item = u64>, carried_in: Option<RowRef>) -> Window {
        Window { ranges: positions.map(|row| row..row).collect(), carried_in, ..Window::default() }
    }

    /// Rows consumed from all inputs.
    pub fn consumed(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
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
