//! What decides between rows of equal keys (design section 5): data sequence number, source, row position.
//!
//! A data file has one sequence number and one source rank, and its positions are its row numbers. Firn's own temporary files
//! mix rows of several files or have them in another order than the table's files, and carry the true values as hidden columns,
//! so that ties and deduplication are those of one merge.

use std::cmp::Ordering;

use arrow_array::{Array, Int64Array};

use crate::fault::KeyError;

/// A tie value of every row of a batch.
#[derive(Debug, Clone)]
pub enum TieColumn {
    /// One value for the whole input.
    Constant(i64),
    /// One value a row, without nulls.
    Column(Int64Array),
}

impl TieColumn {
    fn value(&self, row: usize) -> i64 {
        match self {
            TieColumn::Constant(value) => *value,
            TieColumn::Column(values) => values.value(row),
        }
    }
}

/// Row positions in the source file.
#[derive(Debug, Clone)]
pub enum Positions {
    /// The row's number in the input.
    RowNumber,
    /// A hidden column.
    Column(Int64Array),
}

/// Tie values of a batch.
#[derive(Debug, Clone)]
pub struct Ties {
    /// Data sequence number of the file that the row comes from.
    pub sequence: TieColumn,
    /// Rank of that file among all files of the merge by (sequence number, path bytes).
    pub source: TieColumn,
    /// Position of the row in that file.
    pub position: Positions,
}

impl Ties {
    /// Ties of a data file: constants and row numbers.
    pub fn of_file(sequence_number: i64, source: u32) -> Ties {
        Ties {
            sequence: TieColumn::Constant(sequence_number),
            source: TieColumn::Constant(i64::from(source)),
            position: Positions::RowNumber,
        }
    }

    pub(crate) fn check(&self, first_row: u64, rows: usize) -> Result<(), KeyError> {
        let columns = [
            ("sequence number", as_column(&self.sequence)),
            ("source", as_column(&self.source)),
            ("position", if let Positions::Column(values) = &self.position { Some(values) } else { None }),
        ];
        for (name, column) in columns {
            let Some(column) = column else { continue };
            if column.len() != rows || column.null_count() != 0 {
                let detail = format!(
                    "hidden {name} column has {} rows and {} nulls, expected {rows} rows without nulls",
                    column.len(),
                    column.null_count()
                );
                return Err(KeyError::Malformed { first_row, detail });
            }
        }
        Ok(())
    }

    pub(crate) fn sequence(&self, row: usize) -> i64 {
        self.sequence.value(row)
    }

    /// Compares (source, position), the last resort of every comparison.
    pub(crate) fn compare_place(&self, first: u64, row: usize, other: &Ties, other_first: u64, at: usize) -> Ordering {
        let by_source = self.source.value(row).cmp(&other.source.value(at));
        by_source.then_with(|| self.position(first, row).cmp(&other.position(other_first, at)))
    }

    fn position(&self, first_row: u64, row: usize) -> i64 {
        match &self.position {
            // Row counts of Parquet files are i64, so a row number always fits.
            Positions::RowNumber => first_row as i64 + row as i64,
            Positions::Column(values) => values.value(row),
        }
    }

    pub(crate) fn memory_size(&self) -> usize {
        let position = if let Positions::Column(values) = &self.position { Some(values) } else { None };
        [as_column(&self.sequence), as_column(&self.source), position]
            .into_iter()
            .flatten()
            .map(Array::get_buffer_memory_size)
            .sum()
    }
}

fn as_column(column: &TieColumn) -> Option<&Int64Array> {
    match column {
        TieColumn::Constant(_) => None,
        TieColumn::Column(values) => Some(values),
    }
}
