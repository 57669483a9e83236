//! Puts whole columns of one unsorted input in order on the fast path, on as many threads as the task has.

use std::sync::{Mutex, PoisonError};
use std::thread;

use arrow_schema::Field;
use firn_merge::{Run, Window};

use crate::engine::{MergeInput, Task, lock};
use crate::error::ColumnarError;
use crate::fast::Stop;
use crate::fast::column::{FastColumn, Gathered, HashSink};
use crate::fast::hashes::RowHashes;
use crate::fast::page::Scratch;
use crate::limits::BatchLimit;
use crate::writer::{ColumnEncoders, EncodedColumn};

/// A row of a column: its value as read and in order, its hash, its index.
const ROW_BYTES: u64 = 8 + 8 + 8 + 4;
/// What finding distinct values takes besides.
const DICTIONARY_ROOM: u64 = 12 << 20;

fn threads(task: &Task<'_>) -> usize {
    task.threads.clamp(1, task.schema.fields().len().max(1))
}

/// What [`sort_columns`] takes for `rows` rows.
pub(crate) fn needed_bytes(task: &Task<'_>, rows: usize) -> u64 {
    threads(task) as u64 * (rows as u64 * ROW_BYTES + DICTIONARY_ROOM)
}

/// Encodes the columns of `input` with its rows in this order, and adds the hashes of the rows, as they were read, to `states`. A column that the
/// fast path does not know is None and in no state, as all are that were not begun when the task was stopped.
pub(crate) fn sort_columns(
    task: &Task<'_>,
    input: &MergeInput,
    order: &[u32],
    encoders: ColumnEncoders,
    limit: BatchLimit,
    states: &mut [u64],
) -> Result<Vec<Option<EncodedColumn>>, ColumnarError> {
    let count = task.schema.fields().len();
    let sorter = Sorter { input, order, encoders, limit };
    let states = Mutex::new(states);
    let queue = Mutex::new(0..count);
    let done = Mutex::new((0..count).map(|_| None).collect::<Vec<_>>());
    let failure = Mutex::new(None);
    let work = || {
        let mut scratch = Scratch::default();
        while lock(&failure).is_none() && !task.stop.is_set() {
            let Some(column) = lock(&queue).next() else { return };
            match sorter.sort(column, task.schema.field(column), &mut scratch) {
                Ok(None) => {}
                Ok(Some((encoded, hashes))) => {
                    // Only of columns that are done, so that no row is hashed twice.
                    for (state, hash) in lock(&states).iter_mut().zip(&hashes) {
                        *state = state.wrapping_add(*hash);
                    }
                    lock(&done)[column] = Some(encoded);
                }
                Err(error) => {
                    lock(&failure).get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads(task) {
            scope.spawn(work);
        }
        work();
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    Ok(std::mem::take(&mut *lock(&done)))
}

struct Sorter<'a> {
    input: &'a MergeInput,
    order: &'a [u32],
    encoders: ColumnEncoders,
    limit: BatchLimit,
}

impl Sorter<'_> {
    /// A column in order, encoded, and the hashes of its rows as they were read; None for one that the fast path does not know.
    fn sort(
        &self,
        column: usize,
        field: &Field,
        scratch: &mut Scratch,
    ) -> Result<Option<(EncodedColumn, Vec<u64>)>, ColumnarError> {
        let rows = self.order.len() as u64;
        let Some(mut fast) = FastColumn::new(field, column, std::iter::once(&self.input.file), self.limit)? else {
            return Ok(None);
        };
        let window = Window {
            runs: vec![Run { input: 0, first_row: 0, count: self.order.len() as u32 }],
            rows,
            ranges: std::iter::once(0..rows).collect(),
            ..Window::default()
        };
        loop {
            let hashes = Hashes(Mutex::new(vec![0; self.order.len()]));
            match fast.gather(&window, false, scratch, &hashes) {
                Ok(gathered) => {
                    let mut ordered = scratch.ordered.take(&gathered.rows.lane, self.order.len());
                    ordered.take_from(&gathered.rows, self.order);
                    scratch.gathered.give_back(gathered.rows);
                    let ordered = Gathered { kind: gathered.kind, rows: ordered };
                    let encoded = self.encoders.encode(column, &ordered, fast.pool(), &mut scratch.encoding)?;
                    scratch.ordered.give_back(ordered.rows);
                    return Ok(Some((encoded, hashes.0.into_inner().unwrap_or_else(PoisonError::into_inner))));
                }
                Err(Stop::Unfit(_)) if fast.give_up_numbers() => fast.go_back(&window),
                Err(Stop::Unfit(_)) => return Ok(None),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
    }
}

/// Hashes of an input's rows as they are read. What goes out is proved when the sorted file is read again.
struct Hashes(Mutex<Vec<u64>>);

impl HashSink for Hashes {
    fn came_in(&self, _input: usize, first_row: u64, hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        let from = first_row as usize;
        match lock(&self.0).get_mut(from..from + hashes.len()) {
            Some(rows) => hashes.add_to(rows),
            None => return Err(ColumnarError::Usage { detail: format!("row {from} is beyond the input") }),
        }
        Ok(())
    }

    fn went_out(&self, _from: usize, _hashes: RowHashes<'_>) -> Result<(), ColumnarError> {
        Ok(())
    }
}
