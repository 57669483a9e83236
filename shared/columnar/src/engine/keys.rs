//! Reads the key columns of the inputs and gets windows from the merge.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::{FieldRef, SchemaRef};
use firn_merge::{
    Concat, KeyBatch, KeyOrder, Merge, MergeFault, Positions, SortCheck, Step, TieColumn, Ties, Window, WindowLimit,
};
use firn_model::RowOrder;

use super::demand::key_limit;
use super::error::MergeError;
use super::request::{Hidden, MergeInput, POSITION_COLUMN, SEQUENCE_COLUMN, SOURCE_COLUMN};
use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;
use crate::fields::field_id;
use crate::limits::BatchLimit;

/// The columns of the row order by their place in the schema, in the order's sequence.
///
/// # Errors
/// [`ColumnarError::Usage`] when the schema has no top-level column of that field id.
pub(crate) fn key_columns(order: &RowOrder, schema: &SchemaRef) -> Result<Vec<usize>, ColumnarError> {
    let find = |id: i32| schema.fields().iter().position(|field| field_id(field) == Some(id));
    order
        .columns
        .iter()
        .map(|column| {
            find(column.field_id).ok_or_else(|| ColumnarError::Usage {
                detail: format!(
                    "row order column `{}` (field id {}) is not in the schema",
                    column.name, column.field_id
                ),
            })
        })
        .collect()
}

/// The row order bound to the schema's columns.
pub(crate) fn key_order(order: &RowOrder, schema: &SchemaRef) -> Result<(KeyOrder, Vec<usize>), MergeError> {
    let columns = key_columns(order, schema)?;
    let fields: Vec<FieldRef> = columns.iter().map(|column| Arc::clone(&schema.fields()[*column])).collect();
    Ok((KeyOrder::new(order, &fields)?, columns))
}

/// Batches of keys are not made smaller than this.
const LEAST_KEY_BATCH_BYTES: usize = 32 << 10;

/// How keys are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyReading {
    pub(crate) limit: BatchLimit,
    /// Close the columns after every batch: less memory, more work.
    pub(crate) reopen: bool,
}

/// Where the windows of a merge come from.
pub(crate) enum Windows<'a> {
    /// In row order.
    Sorted(Box<SortedWindows<'a>>),
    /// In commit order.
    Concat(Concat),
}

impl<'a> Windows<'a> {
    pub(crate) fn new(
        inputs: &'a [MergeInput],
        order: &RowOrder,
        schema: &SchemaRef,
        reading: KeyReading,
        stretches: Vec<Vec<Range<u64>>>,
    ) -> Result<Windows<'a>, MergeError> {
        if order.is_unordered() {
            let places: Vec<_> =
                inputs.iter().map(|input| (input.sequence_number, input.source, input.file.rows())).collect();
            return Ok(Windows::Concat(Concat::new(&places).map_err(MergeError::Order)?.with_stretches(stretches)));
        }
        let (order, columns) = key_order(order, schema)?;
        let mut readers =
            inputs.iter().map(|input| KeyReader::open(input, &columns, reading)).collect::<Result<Vec<_>, _>>()?;
        // The merge asks for the first rows of one input after the other: all of them are under way then.
        for column in readers.iter_mut().flat_map(KeyReader::all) {
            column.cursor.prime(None)?;
        }
        let merge = Merge::new(order.dedup(), inputs.len()).with_stretches(stretches);
        Ok(Windows::Sorted(Box::new(SortedWindows { order, merge, readers, inputs })))
    }

    /// The next window; None at the end.
    pub(crate) fn next(&mut self, limit: &WindowLimit) -> Result<Option<Window>, MergeError> {
        match self {
            Windows::Sorted(sorted) => sorted.next(limit),
            Windows::Concat(concat) => match concat.advance(limit) {
                Step::Window(window) => Ok(Some(window)),
                _ => Ok(None),
            },
        }
    }

    /// The order's signature for claims; None without an order.
    pub(crate) fn key_signature(&self) -> Option<String> {
        match self {
            Windows::Sorted(sorted) => Some(sorted.order.key_signature()),
            Windows::Concat(_) => None,
        }
    }
}

/// Windows in row order, and the readers of the keys that give them.
pub(crate) struct SortedWindows<'a> {
    order: KeyOrder,
    merge: Merge,
    readers: Vec<KeyReader>,
    inputs: &'a [MergeInput],
}

impl SortedWindows<'_> {
    fn next(&mut self, limit: &WindowLimit) -> Result<Option<Window>, MergeError> {
        loop {
            let input = match self.merge.advance(limit) {
                Ok(Step::Need(input)) => input,
                Ok(Step::Window(window)) => return Ok(Some(window)),
                Ok(Step::Finished) => return Ok(None),
                Err(fault) => return Err(MergeError::Order(fault)),
            };
            match self.readers[input].next(&self.order)? {
                None => self.end(input)?,
                Some(batch) => match self.merge.push(input, batch) {
                    Ok(()) => {}
                    Err(MergeFault::Unsorted { input, .. }) => return Err(self.all_unsorted(input)?),
                    Err(fault) => return Err(MergeError::Order(fault)),
                },
            }
        }
    }

    /// Every row of an input was seen by the merge: as many as its footer and the table say.
    fn end(&mut self, input: usize) -> Result<(), MergeError> {
        let found = self.merge.rows_read(input);
        let expected = self.inputs[input].expected_rows;
        if found != expected {
            return Err(MergeError::RowCount { file: self.inputs[input].file.name().to_owned(), expected, found });
        }
        self.merge.end(input).map_err(MergeError::Order)
    }

    /// One input is out of order: the keys of the others are read to their ends too, so that one restart is enough.
    fn all_unsorted(&mut self, first: usize) -> Result<MergeError, MergeError> {
        let merge = std::mem::replace(&mut self.merge, Merge::new(false, 0));
        let mut unsorted = vec![first];
        for (input, (mut check, reader)) in merge.into_checks().into_iter().zip(&mut self.readers).enumerate() {
            if input != first && !is_sorted(&self.order, &mut check, reader)? {
                unsorted.push(input);
            }
            reader.close();
        }
        unsorted.sort_unstable();
        Ok(MergeError::Unsorted { inputs: unsorted })
    }
}

/// Reads on from where `check` stands.
fn is_sorted(order: &KeyOrder, check: &mut SortCheck, reader: &mut KeyReader) -> Result<bool, MergeError> {
    while let Some(batch) = reader.next(order)? {
        match check.take(&Arc::new(batch)) {
            Ok(_) => {}
            Err(MergeFault::Unsorted { .. }) => return Ok(false),
            Err(fault) => return Err(MergeError::Order(fault)),
        }
    }
    Ok(true)
}

/// The key columns of one input, row by row together.
pub(crate) struct KeyReader {
    columns: Vec<Aligned>,
    /// With hidden columns: sequence number, source (both or none), position.
    sequence: Option<Aligned>,
    source: Option<Aligned>,
    position: Option<Aligned>,
    constants: (i64, u32),
    row: u64,
    reading: KeyReading,
}

impl KeyReader {
    pub(crate) fn open(input: &MergeInput, columns: &[usize], reading: KeyReading) -> Result<KeyReader, ColumnarError> {
        let reading = KeyReading { limit: key_limit(&input.file, reading.limit), ..reading };
        let hidden = |name: &str, wanted: bool| -> Result<Option<Aligned>, ColumnarError> {
            if !wanted {
                return Ok(None);
            }
            Ok(Some(Aligned::new(input.file.cursor_by_name(name, reading.limit)?)))
        };
        let open = |column: &usize| -> Result<Aligned, ColumnarError> {
            // Texts may be longer than the footer shows: then fewer of them are read at once, so that what was admitted is kept to.
            let row_bytes = input.file.column_cost(*column, &reading.limit)?.bytes_per_row_decoded as usize;
            let bytes = reading.limit.rows.saturating_mul(row_bytes).max(LEAST_KEY_BATCH_BYTES);
            let limit = BatchLimit { bytes: bytes.min(reading.limit.bytes), ..reading.limit };
            Ok(Aligned::new(input.file.cursor(*column, limit)?))
        };
        Ok(KeyReader {
            columns: columns.iter().map(open).collect::<Result<_, _>>()?,
            sequence: hidden(SEQUENCE_COLUMN, input.hidden == Hidden::All)?,
            source: hidden(SOURCE_COLUMN, input.hidden == Hidden::All)?,
            position: hidden(POSITION_COLUMN, input.hidden != Hidden::None)?,
            constants: (input.sequence_number, input.source),
            row: 0,
            reading,
        })
    }

    /// The next rows of all key columns, encoded; None at the end.
    pub(crate) fn next(&mut self, order: &KeyOrder) -> Result<Option<KeyBatch>, MergeError> {
        let reopen = self.reading.reopen;
        let mut rows = self.reading.limit.rows;
        for column in self.all() {
            rows = rows.min(column.ready(rows.max(1), reopen)?);
        }
        if rows == 0 {
            self.check_ends()?;
            return Ok(None);
        }
        let take = |column: &mut Option<Aligned>| column.as_mut().map(|column| column.take(rows)).transpose();
        let sequence = take(&mut self.sequence)?;
        let source = take(&mut self.source)?;
        let position = take(&mut self.position)?;
        let keys = self.columns.iter_mut().map(|column| column.take(rows)).collect::<Result<Vec<_>, _>>()?;
        let ties = Ties {
            sequence: hidden_values(sequence)?.map_or(TieColumn::Constant(self.constants.0), TieColumn::Column),
            source: hidden_values(source)?.map_or(TieColumn::Constant(self.constants.1.into()), TieColumn::Column),
            position: hidden_values(position)?.map_or(Positions::RowNumber, Positions::Column),
        };
        let batch = order.encode(&keys, ties, self.row)?;
        self.row += rows as u64;
        Ok(Some(batch))
    }

    fn close(&mut self) {
        for column in self.all() {
            column.cursor.release();
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Aligned> {
        let hidden = [&mut self.sequence, &mut self.source, &mut self.position];
        self.columns.iter_mut().chain(hidden.into_iter().flatten())
    }

    /// All columns end at one row.
    fn check_ends(&mut self) -> Result<(), ColumnarError> {
        let row = self.row;
        match self.all().map(|column| column.cursor.row()).find(|end| *end != row) {
            None => Ok(()),
            Some(end) => Err(ColumnarError::Usage { detail: format!("key columns end at rows {row} and {end}") }),
        }
    }
}

fn hidden_values(array: Option<ArrayRef>) -> Result<Option<Int64Array>, ColumnarError> {
    let Some(array) = array else { return Ok(None) };
    match array.as_primitive_opt::<Int64Type>() {
        Some(values) => Ok(Some(values.clone())),
        None => Err(ColumnarError::Usage { detail: format!("a hidden column has type {}", array.data_type()) }),
    }
}

/// A cursor whose batches are handed out in parts: batches of different columns end at different rows.
struct Aligned {
    cursor: ColumnCursor,
    /// What is left of the last batch.
    held: Option<ArrayRef>,
}

impl Aligned {
    fn new(cursor: ColumnCursor) -> Aligned {
        Aligned { cursor, held: None }
    }

    /// Rows that can be taken, at most `wanted`; reads on only when there are none. 0 at the end.
    fn ready(&mut self, wanted: usize, reopen: bool) -> Result<usize, ColumnarError> {
        if self.held.is_none() {
            self.held = self.cursor.next(wanted)?;
            if reopen {
                self.cursor.release();
            }
        }
        Ok(self.held.as_ref().map_or(0, |array| array.len().min(wanted)))
    }

    /// Takes `rows` rows, no more than are ready.
    fn take(&mut self, rows: usize) -> Result<ArrayRef, ColumnarError> {
        match self.held.take() {
            Some(array) if array.len() == rows => Ok(array),
            Some(array) if array.len() > rows => {
                self.held = Some(array.slice(rows, array.len() - rows));
                Ok(array.slice(0, rows))
            }
            _ => Err(ColumnarError::Usage { detail: format!("{rows} rows of keys were taken that are not there") }),
        }
    }
}
