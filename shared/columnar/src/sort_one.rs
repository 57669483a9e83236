//! Sorts one unsorted input into a temporary file (design section 5, "Streams").
//!
//! Only the keys are held together; then each column is decoded, put in order and written on its own. The temporary file has the
//! rows' original positions as a hidden column, so that ties are decided as if the input had never moved. What does not fit at once
//! is written in several row groups, each of which reads the input once more.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use firn_merge::order::argsort;

use crate::admit::BASE_BYTES;
use crate::engine::{
    Hidden, KeyReader, KeyReading, MergeError, MergeInput, POSITION_COLUMN, Space, Task, compressed_bytes, fast_path,
    key_order, lean,
};
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::proof::{RowHasher, finish};
use crate::sort_fast::{self, sort_columns};
use crate::source::LocalFile;
use crate::temp::{TempSpace, TempWriter, needed_bytes};
use crate::writer::{Codec, EncodedColumn, FileWriter, WriterSettings};

/// Fewer rows than this are not sorted into a row group of their own: the input would be read too often.
const LEAST_GROUP_ROWS: usize = 16_384;
/// What each row holds until the last column is written: its place, its turn in the row group (three lists for a moment), its hash
/// state.
const ROW_BYTES: u64 = 4 + 3 * 4 + 8;
/// What a key takes while keys are sorted: its place and start, and the sorted row numbers.
const KEY_BYTES: u64 = 8 + 8 + 4;

/// Settings of temporary files: quick to write, not kept.
pub(crate) fn temp_settings(settings: &WriterSettings) -> WriterSettings {
    WriterSettings { compression: Codec::Zstd(1), key_values: Vec::new(), ..settings.clone() }
}

/// What sorting an input takes, from its footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortDemand {
    /// Rows.
    pub(crate) rows: u64,
    /// Bytes of a row of keys, read and encoded.
    pub(crate) key_row_bytes: u64,
    /// Bytes of a row of the widest column, decoded.
    pub(crate) widest_row_bytes: u64,
    /// Bytes of a row, encoded.
    pub(crate) encoded_row_bytes: u64,
    /// Bytes that do not depend on the rows.
    pub(crate) fixed_bytes: u64,
}

impl SortDemand {
    /// Rows of a row group that fit `budget`; as the error what is needed at least.
    pub(crate) fn group_rows(&self, budget: u64) -> Result<usize, u64> {
        let keys = self.fixed_bytes + self.rows * (self.key_row_bytes + KEY_BYTES);
        let columns = |rows: u64| {
            self.fixed_bytes
                + self.rows * ROW_BYTES
                + rows * (self.widest_row_bytes * 5 / 4 + self.encoded_row_bytes * 3 / 2)
        };
        let least = columns(self.rows.min(LEAST_GROUP_ROWS as u64)).max(keys);
        if least > budget {
            return Err(least);
        }
        let per_row = columns(1) - columns(0);
        let rows = (budget - columns(0)) / per_row.max(1);
        Ok(usize::try_from(rows.min(self.rows).max(1)).unwrap_or(usize::MAX))
    }

    /// Bytes of the temporary file: rows in another order compress worse, and their positions come on top.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.rows * (self.encoded_row_bytes * 5 / 4 + 4)
    }
}

/// Sorts `input` by the task's order into a file of `temp`, and returns it as an input of the same place in commit order.
///
/// # Errors
/// [`MergeError::NeedsSpill`] when memory or disk do not suffice, before anything is written where the footer shows it.
pub(crate) fn sort_one(task: &Task<'_>, input: &MergeInput, temp: &TempSpace) -> Result<MergeInput, MergeError> {
    let demand = demand(task, input)?;
    let spill = |needed_bytes, budget_bytes, space| needs_spill(input, needed_bytes, budget_bytes, space);
    let group_rows =
        demand.group_rows(task.memory_bytes).map_err(|needed| spill(needed, task.memory_bytes, Space::Memory))?;
    if u32::try_from(demand.rows).is_err() {
        return Err(spill(demand.rows * KEY_BYTES, task.memory_bytes, Space::Memory));
    }
    if demand.disk_bytes() > temp.free_bytes() {
        return Err(spill(temp.used_bytes() + demand.disk_bytes(), temp.budget_bytes(), Space::Disk));
    }
    // What is left of the budget for the values of one column in order.
    let value_bytes = (task.memory_bytes - demand.fixed_bytes - demand.rows * ROW_BYTES) * 4 / 5;
    sort_into(task, input, temp, group_rows, value_bytes)
}

/// Sorts `input` into row groups of `group_rows` rows, or fewer where the values of a column take more than `value_bytes`.
fn sort_into(
    task: &Task<'_>,
    input: &MergeInput,
    temp: &TempSpace,
    group_rows: usize,
    value_bytes: u64,
) -> Result<MergeInput, MergeError> {
    let spill = |needed_bytes, budget_bytes, space| needs_spill(input, needed_bytes, budget_bytes, space);
    let order = sorted_rows(task, input)?;
    let writer = temp.create_file("sorted")?;
    let file = writer.file();
    let mut sort = Sort {
        task,
        input,
        hasher: RowHasher::new(task.schema)?,
        states: vec![0; order.len()],
        hashed: vec![false; task.schema.fields().len()],
        value_bytes,
    };
    match sort.write(&order, group_rows, writer) {
        Ok(()) => {}
        Err(SortFailure::TooLarge(needed)) => return Err(spill(needed, task.memory_bytes, Space::Memory)),
        Err(SortFailure::Merge(error)) => {
            return Err(disk_or(error, |needed| spill(needed, temp.budget_bytes(), Space::Disk)));
        }
    }
    let row_sum = finish(&sort.states);
    let source = LocalFile::open(file.path())?;
    Ok(MergeInput {
        file: InputFile::open(Arc::new(source), task.schema, None)?,
        sequence_number: input.sequence_number,
        source: input.source,
        expected_rows: input.expected_rows,
        hidden: Hidden::Position,
        expected_sum: Some(row_sum),
        temp: Some(file),
    })
}

fn needs_spill(input: &MergeInput, needed_bytes: u64, budget_bytes: u64, space: Space) -> MergeError {
    MergeError::NeedsSpill { what: format!("sorting `{}`", input.file.name()), needed_bytes, budget_bytes, space }
}

/// The budget of the temporary disk used up (not: the disk itself full) is a matter of smaller groups.
pub(crate) fn disk_or(error: MergeError, spill: impl Fn(u64) -> MergeError) -> MergeError {
    match &error {
        MergeError::Columnar(ColumnarError::Disk { source, .. }) => needed_bytes(source).map_or(error, spill),
        _ => error,
    }
}

fn demand(task: &Task<'_>, input: &MergeInput) -> Result<SortDemand, MergeError> {
    let (_, keys) = key_order(task.order, task.schema)?;
    let limit = read_limit(task);
    let mut widest_row_bytes = 8;
    let mut open = 0;
    for column in 0..task.schema.fields().len() {
        let cost = input.file.column_cost(column, &limit)?;
        widest_row_bytes = widest_row_bytes.max(cost.bytes_per_row_decoded);
        open = open.max(cost.open_bytes);
    }
    let mut key_row_bytes = 0;
    let mut keys_open = 0;
    for key in keys {
        let cost = input.file.column_cost(key, &limit)?;
        key_row_bytes += cost.bytes_per_row_decoded * 5 / 4;
        keys_open += cost.open_bytes;
    }
    let rows = input.file.rows();
    let encoder_bytes = 2 * (task.settings.dictionary_bytes + task.settings.page_bytes) as u64;
    Ok(SortDemand {
        rows,
        key_row_bytes,
        widest_row_bytes,
        encoded_row_bytes: compressed_bytes(input).div_ceil(rows.max(1)),
        fixed_bytes: BASE_BYTES
            + input.file.held_bytes()
            + open.max(keys_open)
            + encoder_bytes
            + 2 * task.limits.chunk_bytes as u64,
    })
}

fn read_limit(task: &Task<'_>) -> BatchLimit {
    let limit =
        BatchLimit { rows: task.limits.read_rows.max(1), bytes: task.limits.read_bytes, ..BatchLimit::default() };
    lean(limit)
}

/// The rows of the input in row order; rows of equal keys stay in theirs.
fn sorted_rows(task: &Task<'_>, input: &MergeInput) -> Result<Vec<u32>, MergeError> {
    let (order, columns) = key_order(task.order, task.schema)?;
    let mut reader = KeyReader::open(input, &columns, KeyReading { limit: read_limit(task), reopen: false })?;
    let mut batches = Vec::new();
    let mut rows = 0;
    while let Some(batch) = reader.next(&order)? {
        if task.stop.is_set() {
            return Err(MergeError::Stopped);
        }
        rows += batch.rows() as u64;
        batches.push(batch);
    }
    if rows != input.expected_rows {
        return Err(MergeError::RowCount {
            file: input.file.name().to_owned(),
            expected: input.expected_rows,
            found: rows,
        });
    }
    Ok(argsort(&batches))
}

enum SortFailure {
    /// Values are larger than the footer said: so many bytes are needed.
    TooLarge(u64),
    Merge(MergeError),
}

impl<E: Into<MergeError>> From<E> for SortFailure {
    fn from(error: E) -> SortFailure {
        SortFailure::Merge(error.into())
    }
}

struct Sort<'a> {
    task: &'a Task<'a>,
    input: &'a MergeInput,
    hasher: RowHasher,
    /// Hash states of the input's rows, and which columns are in them: the first pass over a column counts.
    states: Vec<u64>,
    hashed: Vec<bool>,
    value_bytes: u64,
}

impl Sort<'_> {
    fn write(&mut self, order: &[u32], group_rows: usize, sink: TempWriter) -> Result<(), SortFailure> {
        let position = Arc::new(Field::new(POSITION_COLUMN, DataType::Int64, false));
        let fields: Vec<_> = self.task.schema.fields().iter().cloned().chain([position]).collect();
        let schema = Arc::new(Schema::new(fields));
        let name = sink.file().path().display().to_string();
        let mut writer = FileWriter::new(&name, &schema, &temp_settings(self.task.settings), sink)?;
        let mut group_rows = group_rows.max(1);
        let mut start = 0;
        while start < order.len() {
            if self.task.stop.is_set() {
                return Err(MergeError::Stopped.into());
            }
            let end = order.len().min(start + group_rows);
            match self.encode_group(&order[start..end], &writer) {
                Ok(columns) => {
                    writer.append_row_group(columns)?;
                    start = end;
                }
                // The footer promised smaller values: the row group is made again with fewer rows.
                Err(SortFailure::TooLarge(_)) if group_rows > LEAST_GROUP_ROWS => {
                    group_rows = (group_rows / 2).max(LEAST_GROUP_ROWS);
                }
                Err(failure) => return Err(failure),
            }
        }
        writer.finish(&[])?;
        Ok(())
    }

    /// Encodes all columns of the rows of `order`, one column after the other.
    fn encode_group(
        &mut self,
        order: &[u32],
        writer: &FileWriter<TempWriter>,
    ) -> Result<Vec<EncodedColumn>, SortFailure> {
        let mut done = self.encode_fast(order, writer)?;
        // Only what went the generic way needs them.
        let turns = if done.iter().all(Option::is_some) { Turns::default() } else { Turns::of(order) };
        let mut columns = Vec::new();
        let mut encoded_bytes = done.iter().flatten().map(EncodedColumn::bytes).sum();
        for (column, done) in done.iter_mut().enumerate() {
            if let Some(encoded) = done.take() {
                columns.push(encoded);
                continue;
            }
            let values = self.values(column, &turns.rows, encoded_bytes)?;
            let mut encoder = writer.column_encoder(column)?;
            let chunk_rows = values.chunk_rows(self.task.limits.chunk_rows, self.task.limits.chunk_bytes);
            for turn in turns.turn.chunks(chunk_rows) {
                encoder.write(&values.in_turn(turn)?)?;
            }
            let encoded = encoder.finish()?;
            encoded_bytes += encoded.bytes();
            columns.push(encoded);
        }
        let mut encoder = writer.column_encoder(columns.len())?;
        for rows in order.chunks(self.task.limits.chunk_rows.max(1)) {
            let positions: Int64Array = rows.iter().map(|row| i64::from(*row)).collect::<Vec<_>>().into();
            encoder.write(&(Arc::new(positions) as ArrayRef))?;
        }
        columns.push(encoder.finish()?);
        Ok(columns)
    }

    /// Encodes the columns that the fast path knows, when the input fits in one row group: whole columns do in memory. The others are None.
    fn encode_fast(
        &mut self,
        order: &[u32],
        writer: &FileWriter<TempWriter>,
    ) -> Result<Vec<Option<EncodedColumn>>, SortFailure> {
        let whole = order.len() as u64 == self.input.file.rows();
        if !whole || sort_fast::needed_bytes(self.task, order.len()) > self.value_bytes || !fast_path(self.task) {
            return Ok(self.task.schema.fields().iter().map(|_| None).collect());
        }
        let limit = read_limit(self.task);
        let done = sort_columns(self.task, self.input, order, writer.encoders(), limit, &mut self.states)?;
        for (hashed, done) in self.hashed.iter_mut().zip(&done) {
            *hashed |= done.is_some();
        }
        Ok(done)
    }

    /// The values of `column` in the given rows, which ascend.
    fn values(&mut self, column: usize, rows: &[u32], encoded_bytes: u64) -> Result<Values, SortFailure> {
        let mut cursor = self.input.file.cursor(column, read_limit(self.task))?;
        let mut values = Values::default();
        let mut next = 0;
        let mut too_large = None;
        let hash = !self.hashed[column];
        loop {
            let first_row = cursor.row();
            let Some(batch) = cursor.next(usize::MAX)? else { break };
            let end = first_row + batch.len() as u64;
            if hash {
                let states = &mut self.states[first_row as usize..end as usize];
                self.hasher.add_column(column, batch.as_ref(), states)?;
            }
            if too_large.is_some() {
                continue;
            }
            let until = next + rows[next..].partition_point(|row| u64::from(*row) < end);
            if until - next == batch.len() {
                values.add(batch);
            } else if until > next {
                let picked: UInt32Array =
                    rows[next..until].iter().map(|row| row - first_row as u32).collect::<Vec<_>>().into();
                let picked = take(batch.as_ref(), &picked, None)
                    .map_err(|error| ColumnarError::Usage { detail: error.to_string() })?;
                values.add(picked);
            }
            next = until;
            if values.bytes + encoded_bytes > self.value_bytes {
                // What is allowed plus what goes beyond it, with the rows still to come like those so far.
                let all = values.bytes * rows.len() as u64 / next.max(1) as u64 + encoded_bytes;
                too_large = Some(self.task.memory_bytes + all.saturating_sub(self.value_bytes));
                values = Values::default();
                // A column that is being hashed is read to its end, so that no row is hashed twice when it is read again.
                if !hash {
                    break;
                }
            }
        }
        self.hashed[column] = true;
        if let Some(needed) = too_large {
            return Err(SortFailure::TooLarge(needed));
        }
        if next != rows.len() {
            let file = self.input.file.name();
            return Err(
                ColumnarError::corrupt_file(file, format!("column {column} ends before row {}", rows[next])).into()
            );
        }
        Ok(values)
    }
}

/// The rows of a row group in ascending order, and for each output row which of them comes.
#[derive(Default)]
struct Turns {
    rows: Vec<u32>,
    turn: Vec<u32>,
}

impl Turns {
    fn of(order: &[u32]) -> Turns {
        let mut by_row: Vec<u32> = (0..order.len() as u32).collect();
        by_row.sort_unstable_by_key(|at| order[*at as usize]);
        let rows = by_row.iter().map(|at| order[*at as usize]).collect();
        let mut turn = vec![0; order.len()];
        for (place, at) in by_row.iter().enumerate() {
            turn[*at as usize] = place as u32;
        }
        Turns { rows, turn }
    }
}

/// Values of one column, in row order, as they were read.
#[derive(Default)]
struct Values {
    arrays: Vec<ArrayRef>,
    /// First place of each array.
    starts: Vec<u32>,
    rows: usize,
    bytes: u64,
}

impl Values {
    fn add(&mut self, array: ArrayRef) {
        self.starts.push(self.rows as u32);
        self.rows += array.len();
        self.bytes += array.get_array_memory_size() as u64;
        self.arrays.push(array);
    }

    fn chunk_rows(&self, rows: usize, bytes: usize) -> usize {
        let row_bytes = self.bytes as usize / self.rows.max(1) + 1;
        (bytes / row_bytes).clamp(1, rows.max(1))
    }

    /// The values at the given places.
    fn in_turn(&self, places: &[u32]) -> Result<ArrayRef, ColumnarError> {
        let indices: Vec<(usize, usize)> = places
            .iter()
            .map(|place| {
                let array = self.starts.partition_point(|start| start <= place) - 1;
                (array, (place - self.starts[array]) as usize)
            })
            .collect();
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        interleave(&arrays, &indices).map_err(|error| ColumnarError::Usage { detail: error.to_string() })
    }
}

#[cfg(test)]
#[path = "sort_one_tests.rs"]
mod tests;
