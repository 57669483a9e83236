//! What can go wrong in a merge, by what the caller does next.

use arrow_schema::{ArrowError, DataType};

/// The key columns cannot be put in order: a fault of the configuration or of the reader, not of the data.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A type that has no order (nested types).
    #[error(
        "column `{column}` has type {found}, which has no order: choose a column of a primitive type for the row order"
    )]
    Unsortable {
        /// Name of the column.
        column: String,
        /// Its type.
        found: DataType,
    },
    /// The dedup key is empty or longer than the row order.
    #[error(
        "the dedup key has {asked} columns, the row order {has}: it must have at least one and no more than the order"
    )]
    DedupColumns {
        /// Leading columns asked for.
        asked: usize,
        /// Columns of the order.
        has: usize,
    },
    /// As many key fields as the row order has columns are needed.
    #[error("{given} key columns were given for a row order of {wanted}")]
    ColumnCount {
        /// Columns given.
        given: usize,
        /// Columns of the order.
        wanted: usize,
    },
    /// A batch has another type than the order was built for.
    #[error("key column `{column}` was read as {found}, expected {expected}")]
    TypeMismatch {
        /// Name of the column.
        column: String,
        /// Type of the batch.
        found: DataType,
        /// Type of the order.
        expected: DataType,
    },
    /// The columns of one batch differ in length, or a hidden column has nulls.
    #[error("key batch at row {first_row}: {detail}")]
    Malformed {
        /// First row of the batch.
        first_row: u64,
        /// What is wrong.
        detail: String,
    },
    /// Arrow refused the conversion.
    #[error("keys cannot be encoded: {0}")]
    Arrow(#[from] ArrowError),
}

/// Why a merge stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeFault {
    /// An input is not in row order: sort it and start the merge again.
    #[error("input {input} is not sorted: row {row} comes before row {} in the row order", row - 1)]
    Unsorted {
        /// Index of the input.
        input: usize,
        /// First row that is smaller than the one before it.
        row: u64,
    },
    /// The driver broke the protocol: a batch nobody asked for, with a gap, or inputs that cannot be told apart. A fault of the program.
    #[error("merge was driven wrongly: {0}")]
    Protocol(String),
    /// The merge was about to emit rows out of order. A fault of the program; nothing of this merge may be used.
    #[error("merge order broken: input {input} row {row} would follow a row that comes after it")]
    OrderBroken {
        /// Index of the input.
        input: usize,
        /// The row.
        row: u64,
    },
}
