//! Moves one column of one window: reads the consumed rows of every input and puts those of the runs one after the other.
//!
//! The run list comes from the key columns; no value of this column is ever compared. Rows that deduplication dropped are read
//! too, because the proof counts every row that came in.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_select::interleave::interleave;
use firn_merge::{RowRef, Window};

use super::source::RowSource;
use crate::error::ColumnarError;

/// Bounds of what is handed to the encoder at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkLimit {
    /// Rows.
    pub(crate) rows: usize,
    /// Bytes, by the average size of the rows of each batch.
    pub(crate) bytes: usize,
    /// Rows of one read.
    pub(crate) read_rows: usize,
}

/// Where the rows of a column go.
pub(crate) trait ColumnEnds {
    /// Rows came in: `rows` begin at row `first_row` of `input`. Every consumed row is seen here exactly once.
    fn read(&mut self, input: usize, first_row: u64, rows: &ArrayRef) -> Result<(), ColumnarError>;
    /// Rows go out, in output order.
    fn write(&mut self, rows: ArrayRef) -> Result<(), ColumnarError>;
}

/// Moves one column of `window`. `carried` holds this column's value of the row that the window before carried out; returned is that
/// of this one. With `release`, an input's reader is closed as soon as the window needs no more of it.
pub(crate) fn move_column<S: RowSource>(
    sources: &mut [S],
    window: &Window,
    limit: ChunkLimit,
    release: bool,
    carried: Option<&ArrayRef>,
    ends: &mut dyn ColumnEnds,
) -> Result<Option<ArrayRef>, ColumnarError> {
    let mut mover = Mover {
        current: (0..sources.len()).map(|_| None).collect(),
        sources,
        window,
        limit,
        release,
        carried_out: None,
        chunk: Chunk::default(),
        ends,
    };
    mover.run(carried)?;
    // A row that is carried through a window keeps the value it came with.
    let carried_out = if window.carried_out == window.carried_in { carried.cloned() } else { mover.carried_out };
    if window.carried_out.is_some() != carried_out.is_some() {
        return Err(usage(format!("the carried row {:?} was not among the rows read", window.carried_out)));
    }
    Ok(carried_out)
}

struct Mover<'a, S> {
    sources: &'a mut [S],
    /// Per input the batch that was read last.
    current: Vec<Option<Batch>>,
    window: &'a Window,
    limit: ChunkLimit,
    release: bool,
    carried_out: Option<ArrayRef>,
    chunk: Chunk,
    ends: &'a mut dyn ColumnEnds,
}

#[derive(Clone)]
struct Batch {
    array: ArrayRef,
    first_row: u64,
    row_bytes: usize,
}

impl<S: RowSource> Mover<'_, S> {
    fn run(&mut self, carried_in: Option<&ArrayRef>) -> Result<(), ColumnarError> {
        let window = self.window;
        for run in &window.runs {
            let input = run.input as usize;
            let mut row = run.first_row;
            let end = run.first_row + u64::from(run.count);
            if window.carried_in == Some(RowRef { input: run.input, row }) {
                let value = carried_in.ok_or_else(|| usage(format!("no value was carried for row {row}")))?;
                let batch = Batch { array: Arc::clone(value), first_row: row, row_bytes: slice_bytes(value) };
                // As if of an input of its own: its batch is long gone.
                self.put(self.sources.len(), &batch, 0, 1)?;
                row += 1;
            }
            while row < end {
                let batch = self.batch_with(input, row)?;
                let from = (row - batch.first_row) as usize;
                let count = (batch.array.len() - from).min((end - row) as usize);
                self.put(input, &batch, from, count)?;
                row += count as u64;
            }
        }
        self.flush()?;
        // What follows the last run of an input was dropped or carried.
        for input in 0..self.sources.len() {
            while self.sources[input].row() < window.ranges[input].end {
                self.read(input)?;
            }
        }
        Ok(())
    }

    fn batch_with(&mut self, input: usize, row: u64) -> Result<Batch, ColumnarError> {
        loop {
            if let Some(batch) = &self.current[input]
                && row < batch.first_row + batch.array.len() as u64
            {
                if row < batch.first_row {
                    return Err(usage(format!("row {row} of input {input} is behind its reader")));
                }
                return Ok(batch.clone());
            }
            self.read(input)?;
        }
    }

    /// Reads the next rows of an input, never beyond the window.
    fn read(&mut self, input: usize) -> Result<(), ColumnarError> {
        let range = &self.window.ranges[input];
        let source = &mut self.sources[input];
        let first_row = source.row();
        if first_row < range.start || first_row >= range.end {
            return Err(usage(format!("input {input} is at row {first_row}, the window reads rows {range:?}")));
        }
        let max_rows = usize::try_from(range.end - first_row).unwrap_or(usize::MAX).min(self.limit.read_rows);
        let Some(array) = source.next(max_rows)? else {
            return Err(source.ended_early(first_row));
        };
        self.ends.read(input, first_row, &array)?;
        if let Some(carried) = self.window.carried_out
            && carried.input as usize == input
            && carried.row >= first_row
            && carried.row < first_row + array.len() as u64
        {
            self.carried_out = Some(copy_row(&array, (carried.row - first_row) as usize));
        }
        if source.row() == range.end && self.release {
            source.release();
        }
        let row_bytes = slice_bytes(&array) / array.len().max(1) + 1;
        self.current[input] = Some(Batch { array, first_row, row_bytes });
        Ok(())
    }

    fn put(&mut self, input: usize, batch: &Batch, from: usize, count: usize) -> Result<(), ColumnarError> {
        let mut from = from;
        let mut count = count;
        while count > 0 {
            let rows_left = self.limit.rows.saturating_sub(self.chunk.rows);
            let bytes_left = self.limit.bytes.saturating_sub(self.chunk.bytes);
            let fits = rows_left.min(bytes_left / batch.row_bytes.max(1));
            if fits == 0 && self.chunk.rows > 0 {
                self.flush()?;
                continue;
            }
            let part = count.min(fits.max(1));
            self.chunk.add(input, batch, from, part);
            from += part;
            count -= part;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ColumnarError> {
        let chunk = std::mem::take(&mut self.chunk);
        match chunk.build(Copying::of(&chunk))? {
            Some(array) => self.ends.write(array),
            None => Ok(()),
        }
    }
}

/// Pieces of batches that become one array.
#[derive(Default)]
struct Chunk {
    arrays: Vec<ArrayRef>,
    /// Per input the array added last and its first row: batches of an input come one after the other.
    known: Vec<Option<(usize, u64)>>,
    /// (array, first row, rows).
    pieces: Vec<(usize, usize, usize)>,
    rows: usize,
    bytes: usize,
}

/// How pieces are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// Range by range: best for long pieces, and the only way for nested types.
    Ranges,
    /// Row by row: best where inputs alternate.
    Rows,
}

impl Copying {
    fn of(chunk: &Chunk) -> Copying {
        let short = chunk.rows < chunk.pieces.len() * 8;
        if short && chunk.arrays.first().is_some_and(|array| !array.data_type().is_nested()) {
            Copying::Rows
        } else {
            Copying::Ranges
        }
    }
}

impl Chunk {
    fn add(&mut self, input: usize, batch: &Batch, from: usize, count: usize) {
        if self.known.len() <= input {
            self.known.resize(input + 1, None);
        }
        let array = match self.known[input] {
            Some((array, first_row)) if first_row == batch.first_row => array,
            _ => {
                self.arrays.push(Arc::clone(&batch.array));
                self.arrays.len() - 1
            }
        };
        self.known[input] = Some((array, batch.first_row));
        self.rows += count;
        self.bytes += count * batch.row_bytes;
        match self.pieces.last_mut() {
            Some((last, start, length)) if *last == array && *start + *length == from => *length += count,
            _ => self.pieces.push((array, from, count)),
        }
    }

    fn build(&self, copying: Copying) -> Result<Option<ArrayRef>, ColumnarError> {
        match (self.pieces.as_slice(), copying) {
            ([], _) => Ok(None),
            ([(array, from, count)], _) => Ok(Some(self.arrays[*array].slice(*from, *count))),
            (pieces, Copying::Rows) => {
                let mut indices = Vec::with_capacity(self.rows);
                for (array, from, count) in pieces {
                    indices.extend((*from..from + count).map(|row| (*array, row)));
                }
                let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
                let merged = interleave(&arrays, &indices)
                    .map_err(|error| usage(format!("rows cannot be gathered: {error}")))?;
                Ok(Some(merged))
            }
            (pieces, Copying::Ranges) => {
                let data: Vec<ArrayData> = self.arrays.iter().map(|array| array.to_data()).collect();
                let mut output = MutableArrayData::new(data.iter().collect(), false, self.rows);
                for (array, from, count) in pieces {
                    output.extend(*array, *from, from + count);
                }
                Ok(Some(make_array(output.freeze())))
            }
        }
    }
}

/// One row with buffers of its own, so that it does not hold its batch.
fn copy_row(array: &ArrayRef, row: usize) -> ArrayRef {
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, 1);
    copy.extend(0, row, row + 1);
    make_array(copy.freeze())
}

fn slice_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

fn usage(detail: String) -> ColumnarError {
    ColumnarError::Usage { detail }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
