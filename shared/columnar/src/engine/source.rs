//! Where a column of an input comes from: its file, or, for the hidden columns of temporary files, thin air.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::limits::BatchLimit;

/// Rows of one column of one input, forward only.
pub(crate) trait RowSource: Send {
    /// The next row to be delivered.
    fn row(&self) -> u64;
    /// The next rows, at least one and at most `max_rows`; None at the end.
    fn next(&mut self, max_rows: usize) -> Result<Option<ArrayRef>, ColumnarError>;
    /// Gives up memory; reading goes on where it stopped.
    fn release(&mut self);
    /// The error for a column that ended before the other columns of its file.
    fn ended_early(&self, row: u64) -> ColumnarError;
}

/// Where the rows of a column of one input come from.
#[derive(Debug)]
pub(crate) enum ColumnSource<'a> {
    /// A column of a file.
    File(Box<FileColumn<'a>>),
    /// A hidden column of a file of the table.
    Computed(Computed),
}

/// A column of a file, and how to open it again.
#[derive(Debug)]
pub(crate) struct FileColumn<'a> {
    file: &'a InputFile,
    which: Which,
    limit: BatchLimit,
    cursor: ColumnCursor,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    /// By its place in the target schema.
    Column(usize),
    /// A hidden column.
    Named(&'static str),
}

impl<'a> FileColumn<'a> {
    fn new(file: &'a InputFile, which: Which, limit: BatchLimit) -> Result<Box<Self>, ColumnarError> {
        let cursor = match which {
            Which::Column(column) => file.cursor(column, limit)?,
            Which::Named(name) => file.cursor_by_name(name, limit)?,
        };
        Ok(Box::new(FileColumn { file, which, limit, cursor }))
    }
}

impl<'a> ColumnSource<'a> {
    /// A column of the target schema.
    pub(crate) fn of_column(file: &'a InputFile, column: usize, limit: BatchLimit) -> Result<Self, ColumnarError> {
        Ok(ColumnSource::File(FileColumn::new(file, Which::Column(column), limit)?))
    }

    /// A hidden column that the file has.
    pub(crate) fn of_name(file: &'a InputFile, name: &'static str, limit: BatchLimit) -> Result<Self, ColumnarError> {
        Ok(ColumnSource::File(FileColumn::new(file, Which::Named(name), limit)?))
    }

    /// Begins to read what the next rows need.
    pub(crate) fn prime(&mut self, rows: u64) -> Result<(), ColumnarError> {
        match self {
            ColumnSource::File(file) => file.cursor.prime(Some(rows)),
            ColumnSource::Computed(_) => Ok(()),
        }
    }

    /// A hidden column with one value for every row.
    pub(crate) fn constant(value: i64, rows: u64) -> Self {
        ColumnSource::Computed(Computed { constant: Some(value), row: 0, rows })
    }

    /// A hidden column of row numbers.
    pub(crate) fn row_numbers(rows: u64) -> Self {
        ColumnSource::Computed(Computed { constant: None, row: 0, rows })
    }

    /// Tells how many rows will be read before the next release.
    pub(crate) fn expect(&mut self, rows: u64) {
        if let ColumnSource::File(column) = self {
            column.cursor.expect(rows);
        }
    }

    /// Passes over the rows before `row`.
    pub(crate) fn skip_to(&mut self, row: u64) -> Result<(), ColumnarError> {
        match self {
            ColumnSource::File(column) => {
                let rows = row.checked_sub(column.cursor.row()).ok_or_else(|| ColumnarError::Usage {
                    detail: format!("row {row} is behind the reader of a column"),
                })?;
                column.cursor.release();
                column.cursor.skip(rows)
            }
            ColumnSource::Computed(computed) => {
                computed.row = row;
                Ok(())
            }
        }
    }

    /// Goes back to `row`, to read on from there once more.
    pub(crate) fn go_back(&mut self, row: u64) -> Result<(), ColumnarError> {
        match self {
            ColumnSource::File(column) if column.cursor.row() != row => {
                *column = FileColumn::new(column.file, column.which, column.limit)?;
                column.cursor.skip(row)
            }
            ColumnSource::File(_) => Ok(()),
            ColumnSource::Computed(computed) => {
                computed.row = row;
                Ok(())
            }
        }
    }
}

impl RowSource for ColumnSource<'_> {
    fn row(&self) -> u64 {
        match self {
            ColumnSource::File(column) => column.cursor.row(),
            ColumnSource::Computed(computed) => computed.row,
        }
    }

    fn next(&mut self, max_rows: usize) -> Result<Option<ArrayRef>, ColumnarError> {
        match self {
            ColumnSource::File(column) => column.cursor.next(max_rows),
            ColumnSource::Computed(computed) => Ok(computed.next(max_rows)),
        }
    }

    fn release(&mut self) {
        if let ColumnSource::File(column) = self {
            column.cursor.release();
        }
    }

    fn ended_early(&self, row: u64) -> ColumnarError {
        match self {
            ColumnSource::File(column) => {
                let file = column.file;
                ColumnarError::corrupt_file(file.name(), format!("a column ends at row {row} of {}", file.rows()))
            }
            ColumnSource::Computed(computed) => {
                ColumnarError::Usage { detail: format!("row {row} of {} was asked for", computed.rows) }
            }
        }
    }
}

/// A column that is computed: one value for every row, or the row's number.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    /// None: the row number.
    constant: Option<i64>,
    row: u64,
    rows: u64,
}

impl Computed {
    fn next(&mut self, max_rows: usize) -> Option<ArrayRef> {
        let end = self.rows.min(self.row.saturating_add(max_rows as u64));
        if end == self.row {
            return None;
        }
        let rows = self.row..end;
        self.row = end;
        let values: Int64Array = match self.constant {
            Some(value) => Int64Array::from_value(value, (rows.end - rows.start) as usize),
            None => rows.map(|row| row as i64).collect::<Vec<_>>().into(),
        };
        Some(Arc::new(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    #[test]
    fn computed_columns_give_constants_and_row_numbers() {
        let mut constant = ColumnSource::constant(7, 3);
        let mut numbers = ColumnSource::row_numbers(3);
        let values = |source: &mut ColumnSource<'_>| {
            source.next(2).unwrap().map(|array| array.as_primitive::<Int64Type>().values().to_vec())
        };
        assert_eq!(values(&mut constant), Some(vec![7, 7]));
        assert_eq!(values(&mut numbers), Some(vec![0, 1]));
        assert_eq!(values(&mut numbers), Some(vec![2]));
        assert_eq!(values(&mut numbers), None);
        assert_eq!((constant.row(), numbers.row()), (2, 3));
    }
}
