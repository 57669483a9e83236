//! The fast path for flat columns of common types: pages are decoded into lanes of words or of numbers of distinct values, rows are moved by
//! copying ranges of those, and a row group's column is encoded once all of it is known. A column that it does not know (nested, decimals,
//! rare types) and a chunk that it does not know (texts that are in no dictionary) take the generic way over arrow-rs; both give the
//! same values.
//!
//! - [`kind`]: which columns; [`lane`]: rows in memory; [`pool`]: distinct values of a column, numbered;
//! - [`dictionary`], [`page`], [`source`]: from the pages of one input to lanes, with the hashes of its rows;
//! - [`hashes`]: of rows, for the proof;
//! - [`column`]: the rows of a window, gathered by its runs; [`carried`]: the value that crosses its end;
//! - [`write`]: from lanes to the pages of a chunk.

mod carried;
pub(crate) mod column;
mod dictionary;
pub(crate) mod hashes;
pub(crate) mod kind;
pub(crate) mod lane;
pub(crate) mod page;
pub(crate) mod pool;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use crate::error::ColumnarError;

/// Why the fast path stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The merge fails, whatever the path.
    Error(ColumnarError),
    /// This column must go the generic way; what was read of the window is void.
    Unfit(&'static str),
}

impl From<ColumnarError> for Stop {
    fn from(error: ColumnarError) -> Self {
        Self::Error(error)
    }
}
