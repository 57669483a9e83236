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
use crate::fast::Stop;
use crate::fast::column::FastColumn;
use crate::fast::page::Scratch;
use crate::proof::RowHasher;
use crate::writer::{ColumnEncoder, ColumnEncoders, EncodedColumn};

/// A column of the output and where its rows come from.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    way: Way<'a>,
    /// Part of the table's schema: hashed for the proof. Hidden columns are not.
    proved: bool,
    /// Bytes to be read from all inputs: heavy columns start first.
    weight: u64,
    /// The fast path found something that it does not know.
    unfit: bool,
}

/// How the rows of a column are moved.
#[derive(Debug)]
enum Way<'a> {
    Fast(Box<FastColumn>, Generic<'a>),
    Generic(Generic<'a>),
}

/// The generic way: arrays of arrow.
#[derive(Debug)]
struct Generic<'a> {
    /// One source an input.
    sources: Vec<ColumnSource<'a>>,
    /// This column's value of the row that the last window carried out.
    carried: Option<ArrayRef>,
    /// That of the window in work, until it is done in every column.
    carried_next: Option<ArrayRef>,
}

impl<'a> Column<'a> {
    /// `fast` wins where there is one; the sources are for what it does not know.
    pub(crate) fn new(
        sources: Vec<ColumnSource<'a>>,
        fast: Option<FastColumn>,
        proved: bool,
        weight: u64,
    ) -> Column<'a> {
        let generic = Generic { sources, carried: None, carried_next: None };
        let way = match fast {
            Some(fast) => Way::Fast(Box::new(fast), generic),
            None => Way::Generic(generic),
        };
        Column { way, proved, weight, unfit: false }
    }

    /// The window is done in every column.
    pub(crate) fn settle(&mut self) {
        match &mut self.way {
            Way::Fast(fast, _) => fast.settle(),
            Way::Generic(generic) => generic.carried = generic.carried_next.take(),
        }
    }

    /// Passes over the rows of a window that moves without this column.
    pub(crate) fn skip(&mut self, window: &Window) -> Result<(), ColumnarError> {
        match &mut self.way {
            Way::Fast(fast, _) => fast.skip(window),
            Way::Generic(generic) => {
                let moved = generic.sources.iter_mut().zip(&window.ranges).filter(|(_, range)| !range.is_empty());
                moved.into_iter().try_for_each(|(source, range)| source.skip_to(range.end))?;
            }
        }
        Ok(())
    }

    /// Begins to read what a window needs.
    fn prime(&mut self, window: &Window) -> Result<(), ColumnarError> {
        let generic = match &mut self.way {
            Way::Fast(fast, _) => return fast.prime(window),
            Way::Generic(generic) => generic,
        };
        for (source, range) in generic.sources.iter_mut().zip(&window.ranges).filter(|(_, range)| !range.is_empty()) {
            source.prime(range.end - range.start)?;
        }
        Ok(())
    }

    /// The window is given up: its rows will be read once more.
    fn go_back(&mut self, window: &Window) -> Result<(), ColumnarError> {
        if std::mem::take(&mut self.unfit)
            && let Way::Fast(fast, generic) = &mut self.way
            && !fast.give_up_numbers()
        {
            let carried = fast.carried_array()?;
            let mut generic =
                std::mem::replace(generic, Generic { sources: Vec::new(), carried: None, carried_next: None });
            generic.carried = carried;
            self.way = Way::Generic(generic);
        }
        match &mut self.way {
            Way::Fast(fast, _) => fast.go_back(window),
            Way::Generic(generic) => {
                generic.carried_next = None;
                let mut ranges = generic.sources.iter_mut().zip(&window.ranges);
                ranges.try_for_each(|(source, range)| source.go_back(range.start))?;
            }
        }
        Ok(())
    }
}

/// The columns of a window, encoded, or why not.
#[derive(Debug)]
pub(crate) enum WorkDone {
    /// In the order of the schema; none without output rows.
    Encoded(Vec<EncodedColumn>),
    /// The rows are larger than those before: encoded they would take more than was admitted. Nothing was done.
    TooLarge,
    /// A column takes another way from now on. Nothing was done.
    Again,
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
    /// Memory of the threads, used again from window to window.
    pub(crate) scratches: &'a Mutex<Vec<Scratch>>,
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
        let give_up = match self.encode(columns) {
            Ok(encoded) => return Ok(WorkDone::Encoded(encoded)),
            Err(Stop::Unfit(_)) => WorkDone::Again,
            Err(Stop::Error(_)) if self.is_too_large() => WorkDone::TooLarge,
            Err(Stop::Error(error)) => return Err(error),
        };
        columns.iter_mut().try_for_each(|column| column.go_back(self.window))?;
        Ok(give_up)
    }

    fn is_too_large(&self) -> bool {
        self.window.rows > 1 && self.encoded.load(Ordering::Relaxed) > self.encoded_limit
    }

    fn encode(&self, columns: &mut [Column<'_>]) -> Result<Vec<EncodedColumn>, Stop> {
        let count = columns.len();
        let mut by_weight: Vec<_> = columns.iter_mut().enumerate().collect();
        by_weight.sort_by_key(|(_, column)| std::cmp::Reverse(column.weight));
        let queue = Mutex::new(Queue { waiting: VecDeque::from(by_weight), primed: 0 });
        let done = Mutex::new((0..count).map(|_| None).collect::<Vec<Option<EncodedColumn>>>());
        let failure: Mutex<Option<Stop>> = Mutex::new(None);
        let work = || {
            let mut scratch = lock(self.scratches).pop().unwrap_or_default();
            // Columns that are unfit do not stop the others: those may be unfit, too, and one more try is enough for all.
            while !matches!(&*lock(&failure), Some(Stop::Error(_))) {
                let next = lock(&queue).next(self);
                let (index, column) = match next {
                    Ok(Some(next)) => next,
                    Ok(None) => break,
                    Err(error) => {
                        *lock(&failure) = Some(Stop::Error(error));
                        break;
                    }
                };
                match self.run_column(index, column, &mut scratch) {
                    Ok(encoded) => lock(&done)[index] = encoded,
                    Err(Stop::Unfit(reason)) => {
                        tracing::debug!(column = index, reason, "the fast path gives a column up");
                        column.unfit = true;
                        lock(&failure).get_or_insert(Stop::Unfit(reason));
                    }
                    Err(error) => *lock(&failure) = Some(error),
                }
            }
            lock(self.scratches).push(scratch);
        };
        // The calling thread works too. A panic of another thread comes out of the scope.
        thread::scope(|scope| {
            for _ in 1..self.threads.min(count) {
                scope.spawn(work);
            }
            work();
        });
        if let Some(stop) = lock(&failure).take() {
            return Err(stop);
        }
        let done = std::mem::take(&mut *lock(&done));
        Ok(done.into_iter().flatten().collect())
    }

    fn run_column(
        &self,
        index: usize,
        column: &mut Column<'_>,
        scratch: &mut Scratch,
    ) -> Result<Option<EncodedColumn>, Stop> {
        match &mut column.way {
            Way::Fast(fast, _) => self.run_fast(index, fast, scratch),
            Way::Generic(generic) => Ok(self.run_generic(index, generic, column.proved)?),
        }
    }

    fn run_fast(
        &self,
        index: usize,
        column: &mut FastColumn,
        scratch: &mut Scratch,
    ) -> Result<Option<EncodedColumn>, Stop> {
        let gathered = column.gather(self.window, self.release, scratch, self.states)?;
        let encoded = match self.output {
            Some((encoders, _)) => Some(encoders.encode(index, &gathered, column.pool(), &mut scratch.encoding)?),
            None => None,
        };
        scratch.gathered.give_back(gathered.rows);
        column.tidy(self.release);
        if let Some(encoded) = &encoded {
            let mut counted = 0;
            self.count(&mut counted, encoded.bytes())?;
        }
        Ok(encoded)
    }

    fn run_generic(
        &self,
        index: usize,
        column: &mut Generic<'_>,
        proved: bool,
    ) -> Result<Option<EncodedColumn>, ColumnarError> {
        // Readers that stay open read on into the next window: it will be wanted.
        if self.release {
            for (source, range) in column.sources.iter_mut().zip(&self.window.ranges) {
                source.expect(range.end - range.start);
            }
        }
        let encoder = match self.output {
            Some((encoders, first_row)) => Some(encoders.encoder(index, first_row)?),
            None => None,
        };
        let mut ends = Ends { work: self, index, proved, encoder, written: 0, encoded: 0 };
        let Generic { sources, carried, .. } = column;
        column.carried_next = move_column(sources, self.window, self.limit, self.release, carried.as_ref(), &mut ends)?;
        let Some(encoder) = ends.encoder.take() else { return Ok(None) };
        let encoded = encoder.finish()?;
        self.count(&mut ends.encoded, encoded.bytes())?;
        Ok(Some(encoded))
    }

    /// Counts a column with `bytes` instead of `counted`, and stops when the window has become too large.
    fn count(&self, counted: &mut u64, bytes: u64) -> Result<(), ColumnarError> {
        if bytes >= *counted {
            self.encoded.fetch_add(bytes - *counted, Ordering::Relaxed);
        } else {
            self.encoded.fetch_sub(*counted - bytes, Ordering::Relaxed);
        }
        *counted = bytes;
        if self.is_too_large() {
            return Err(ColumnarError::OverBudget {
                what: format!("a window of {} rows", self.window.rows),
                needed_bytes: self.encoded.load(Ordering::Relaxed),
                budget_bytes: self.encoded_limit,
            });
        }
        Ok(())
    }
}

/// The columns that no thread has taken yet.
struct Queue<'q, 'a> {
    waiting: VecDeque<(usize, &'q mut Column<'a>)>,
    /// How many of them, from the front, have begun to read.
    primed: usize,
}

impl<'q, 'a> Queue<'q, 'a> {
    /// Takes a column. It and as many of the next ones as there are threads have begun to read: what they need is on its way while the
    /// threads work on others.
    fn next(&mut self, work: &WindowWork<'_>) -> Result<Option<(usize, &'q mut Column<'a>)>, ColumnarError> {
        for (_, column) in self.waiting.iter_mut().take(1 + work.threads).skip(self.primed) {
            column.prime(work.window)?;
            self.primed += 1;
        }
        self.primed = self.primed.saturating_sub(1);
        Ok(self.waiting.pop_front())
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
                self.work.count(&mut self.encoded, bytes)
            }
            None => Err(ColumnarError::Usage { detail: "rows were gathered for a window that has none".into() }),
        }
    }
}
