//! The row proof (design section 5, "Rows and proof"): that no row was lost, doubled or changed on its way.
//!
//! A row's hash is a non-linear finish over the sum of f(field id, value) of its columns, and a set of rows is the sum of
//! their hashes mod 2^128. So rows may come in any order and in any batches, and columns one by one on any thread, while a
//! value that moved to another row or another column changes the sum.
//!
//! While columns are added, a row is 8 bytes: what is in flight counts in the memory formula, and within a column f is a
//! bijection for every fixed-width type, so a single changed value always changes the row's state. Two rows whose states
//! agree by chance (2^-64) are the only weakness. The finish widens a state to 128 bits, because a sum over many rows must
//! not lose what each of them proves.
//!
//! What is equal: a value and the same value read at a promoted type (int and long, float and double, a decimal of more
//! digits); all NaN. What differs: -0.0 and 0.0; null, empty and zero; a null struct or list and one of nulls. A null adds
//! nothing to its row, so a row read with a column that was added later (all null) keeps its hash.

mod hasher;
mod mix;
mod row_sum;
#[cfg(test)]
mod tests;

pub use hasher::{ColumnHasher, RowHasher};
pub use row_sum::{RowSum, RowSumParseError, finish};

/// Version of the row hash. A sum says nothing about one of another version. A test pins the values of this version.
pub const ROW_SUM_VERSION: u32 = 1;
