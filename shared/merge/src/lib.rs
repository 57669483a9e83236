//! The k-way merge of sorted inputs, without I/O: key columns in, runs of rows out.
//!
//! The merge looks at key columns alone ("keys first, then columns", design section 5). It says which input it needs the next batch
//! of, takes batches as they come, and hands out windows: lists of [`Run`]s (input, first row, count) that say which rows follow
//! each other in the output. Rows that deduplication drops are gaps between the runs, and counted. Whoever drives the merge moves the
//! other columns by those runs, one column at a time.
//!
//! - [`order`]: the one place of the total order: encoding, comparer, galloping search, composite key bytes;
//! - [`ties`]: what decides between rows of equal keys: data sequence number, source, row position;
//! - [`check`]: whether the rows of one input are in order, batch by batch;
//! - [`machine`]: the merge itself; [`concat`](mod@concat): its counterpart for tables without a row order;
//! - [`window`]: what both hand out; `stretch`: rows of one input that are handed out on their own where nothing comes between them.
//!
//! This crate knows no file format, no thread and no runtime: files have rows, runs have row numbers.

pub mod check;
pub mod concat;
mod fault;
mod heap;
pub mod machine;
pub mod order;
mod stretch;
pub mod ties;
pub mod window;

pub use check::SortCheck;
pub use concat::Concat;
pub use fault::{KeyError, MergeFault};
pub use machine::Merge;
pub use order::{KeyBatch, KeyOrder};
pub use ties::{Positions, TieColumn, Ties};
pub use window::{RowRef, Run, Step, Window, WindowLimit};
