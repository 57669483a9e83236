//! The columns of a window, each on its own, on as many threads as were admitted.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use arrow_array::{Array, ArrayRef};
use firn_merge::Window;

use super::gather::{ChunkLimit, ColumnEnds, move_column};
use super::ledger::{WindowStates, lock};
use super::source::ColumnSource;
use crate::error::ColumnarError;
use crate::proof::RowHasher;
use crate::writer::{ColumnEncoder, ColumnEncoders, EncodedColumn};

/// A column of the output and where its rows come from.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    /// One source an input.
    pub(crate) sources: Vec<ColumnSource<'a>>,
    /// This column's value of the row that the last window carried out.
    carried: Option<ArrayRef>,
    /// That of the window in work, until it is done in every column.
    carried_next: Option<ArrayRef>,
    /// Part of the table's schema: hashed for the proof. Hidden columns are not.
    pub(crate) proved: bool,
    /// Bytes to be read from all inputs: heavy columns start first.
    pub(crate) weight: u64,
}

impl<'a> Column<'a> {
    pub(crate) fn new(sources: Vec<ColumnSource<'a>>, proved: bool, weight: u64) -> Column<'a> {
        Column { sources, carried: None, carried_next: None, proved, weight }
    }

    /// The window is done in every column.
    pub(crate) fn settle(&mut self) {
        self.carried = self.carried_next.take();
    }

    /// The window is given up: its rows will be read once more.
    fn go_back(&mut self, window: &Window) -> Result<(), ColumnarError> {
        self.carried_next = None;
        self.sources.iter_mut().zip(&window.ranges).try_for_each(|(source, range)| source.go_back(range.start))
    }
}

/// The columns of a window, encoded, or why not.
#[derive(Debug)]
pub(crate) enum WorkDone {
    /// In the order of the schema; none without output rows.
    Encoded(Vec<EncodedColumn>),
    /// The rows are larger than those before: encoded they would take more than was admitted. Nothing was done.
    TooLarge,
}

/// How the columns of a window are worked.
pub(crate) struct WindowWork<'a> {
    pub(crate) window: &'a Window,
    pub(crate) limit: ChunkLimit,
    /// Close each reader when the window needs no more of it.
    pub(crate) release: bool,
    pub(crate) hasher: &'a RowHasher,
    pub(crate) states: &'a WindowStates,
    /// Encoders of the open output and its rows so far; None when the window has no output rows.
    pub(crate) output: Option<(&'a ColumnEncoders, u64)>,
    pub(crate) threads: usize,
    /// Bytes that the encoded window may take; a window of one row may take any.
    pub(crate) encoded_limit: u64,
    /// Bytes that it takes by now.
    pub(crate) encoded: AtomicU64,
    #[cfg(test)]
    pub(crate) tamper: Option<super::Tamper>,
}

impl WindowWork<'_> {
    /// Moves every column.
    pub(crate) fn run(&self, columns: &mut [Column<'_>]) -> Result<WorkDone, ColumnarError> {
        match self.encode(columns) {
            Ok(encoded) => Ok(WorkDone::Encoded(encoded)),
            Err(_) if self.is_too_large() => {
                columns.iter_mut().try_for_each(|column| column.go_back(self.window))?;
                Ok(WorkDone::TooLarge)
            }
            Err(error) => Err(error),
        }
    }

    fn is_too_large(&self) -> bool {
        self.window.rows > 1 && self.encoded.load(Ordering::Relaxed) > self.encoded_limit
    }

    fn encode(&self, columns: &mut [Column<'_>]) -> Result<Vec<EncodedColumn>, ColumnarError> {
        let count = columns.len();
        let mut by_weight: Vec<_> = columns.iter_mut().enumerate().collect();
        by_weight.sort_by_key(|(_, column)| std::cmp::Reverse(column.weight));
        let queue = Mutex::new(VecDeque::from(by_weight));
        let done = Mutex::new((0..count).map(|_| None).collect::<Vec<Option<EncodedColumn>>>());
        let failure = Mutex::new(None);
        let work = || {
            while lock(&failure).is_none() {
                let Some((index, column)) = lock(&queue).pop_front() else { return };
                match self.run_column(index, column) {
                    Ok(encoded) => lock(&done)[index] = encoded,
                    Err(error) => {
                        lock(&failure).get_or_insert(error);
                    }
                }
            }
        };
        // The calling thread works too. A panic of another thread comes out of the scope.
        thread::scope(|scope| {
            for _ in 1..self.threads.min(count) {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = lock(&failure).take() {
            return Err(error);
        }
        let done = std::mem::take(&mut *lock(&done));
        Ok(done.into_iter().flatten().collect())
    }

    fn run_column(&self, index: usize, column: &mut Column<'_>) -> Result<Option<EncodedColumn>, ColumnarError> {
        for (source, range) in column.sources.iter_mut().zip(&self.window.ranges) {
            source.expect(range.end - range.start);
        }
        let encoder = match self.output {
            Some((encoders, first_row)) => Some(encoders.encoder(index, first_row)?),
            None => None,
        };
        let mut ends = Ends { work: self, index, proved: column.proved, encoder, written: 0, encoded: 0 };
        let Column { sources, carried, .. } = column;
        column.carried_next = move_column(sources, self.window, self.limit, self.release, carried.as_ref(), &mut ends)?;
        let Some(encoder) = ends.encoder.take() else { return Ok(None) };
        let encoded = encoder.finish()?;
        ends.count(encoded.bytes())?;
        Ok(Some(encoded))
    }
}

/// Both ends of a column on its way: the proof's two sides, and the encoder.
struct Ends<'a> {
    work: &'a WindowWork<'a>,
    index: usize,
    proved: bool,
    encoder: Option<ColumnEncoder>,
    written: usize,
    /// Bytes of this column in the window's count.
    encoded: u64,
}

impl Ends<'_> {
    /// Counts this column with `bytes`, and stops when the window has become too large.
    fn count(&mut self, bytes: u64) -> Result<(), ColumnarError> {
        let count = &self.work.encoded;
        if bytes >= self.encoded {
            count.fetch_add(bytes - self.encoded, Ordering::Relaxed);
        } else {
            count.fetch_sub(self.encoded - bytes, Ordering::Relaxed);
        }
        self.encoded = bytes;
        if self.work.is_too_large() {
            return Err(ColumnarError::OverBudget {
                what: format!("a window of {} rows", self.work.window.rows),
                needed_bytes: count.load(Ordering::Relaxed),
                budget_bytes: self.work.encoded_limit,
            });
        }
        Ok(())
    }
}

impl ColumnEnds for Ends<'_> {
    fn read(&mut self, input: usize, first_row: u64, rows: &ArrayRef) -> Result<(), ColumnarError> {
        if self.proved {
            self.work.states.came_in(self.work.hasher, self.index, input, first_row, rows)?;
        }
        Ok(())
    }

    fn write(&mut self, rows: ArrayRef) -> Result<(), ColumnarError> {
        #[cfg(test)]
        let rows = match self.work.tamper {
            Some(tamper) => tamper(self.index, rows),
            None => rows,
        };
        if self.proved {
            self.work.states.went_out(self.work.hasher, self.index, self.written, &rows)?;
        }
        self.written += rows.len();
        match &mut self.encoder {
            Some(encoder) => {
                encoder.write(&rows)?;
                let bytes = encoder.size_hint() as u64;
                self.count(bytes)
            }
            None => Err(ColumnarError::Usage { detail: "rows were gathered for a window that has none".into() }),
        }
    }
}
