//! Parquet in and out, in windows and under a memory budget.
//!
//! This crate knows no Iceberg: a target schema is an Arrow schema whose fields (nested ones too) carry their field id
//! under the metadata key `PARQUET:field_id`.
//!
//! Reading, from the outside in:
//! - [`source`] and [`blob`]: bytes by ranges, from a local file, memory or a blob;
//! - `footer`: the footer, checked before anything relies on it;
//! - `resolve`: which columns of the file fill which columns of the table, by field id;
//! - `pages`: the pages of a column chunk through a bounded window;
//! - `group`: one column of one row group, `adapt`: its values as the table's type;
//! - [`input`] and [`cursor`]: what callers see; [`side_by_side`]: several columns at once; [`chosen`]: chosen rows; [`deletes`]: what delete files say.
//!
//! Writing:
//! - [`writer`]: a file, its columns encoded one by one; [`roll`]: where it ends and the next begins;
//! - [`metrics`]: what the table's metadata says of the file; [`claims`]: what its own footer says of its rows;
//! - [`proof`]: that no row was lost, doubled or changed; [`tap`]: row groups as they were written, for sidecars.
//!
//! Merging:
//! - [`engine`]: the rows of sorted inputs into outputs, keys first, then columns; `copy`: row groups that are not decoded for it;
//! - [`levels`]: a whole group, with `sort_one` (whole columns: `sort_fast`) for inputs that are not sorted and parts on temporary disk ([`temp`]);
//! - [`admit`]: what a merge may take, before it starts; [`reread`](mod@reread): a written file read again.
//!
//! - [`error`]: what can go wrong, told by what the caller does next.

mod above;
mod adapt;
pub mod admit;
pub mod blob;
pub mod chosen;
mod claimed_range;
pub mod claims;
mod contain;
mod copy;
pub mod cost;
pub mod cursor;
pub mod deletes;
pub mod engine;
pub mod error;
mod fast;
mod fields;
mod footer;
mod group;
pub mod input;
pub mod levels;
pub mod limits;
pub mod metrics;
mod pages;
pub mod proof;
pub mod reread;
mod resolve;
pub mod roll;
#[cfg(test)]
mod samples;
pub mod side_by_side;
mod sort_fast;
mod sort_one;
pub mod source;
pub mod tap;
pub mod temp;
mod thrift;
pub mod writer;

pub use blob::{BlobRange, ReadGate};
pub use claimed_range::claimed_key_range;
pub use claims::FileClaims;
pub use cost::ColumnCost;
pub use cursor::ColumnCursor;
pub use engine::{
    EngineLimits, GroupProof, MergeError, MergeInput, MergeReport, MergeRequest, MergedFile, OutputFactory, OutputSink,
    Space, StopFlag, merge,
};
pub use error::ColumnarError;
pub use fields::field_id;
pub use input::InputFile;
pub use levels::{GroupReport, merge_group};
pub use limits::BatchLimit;
pub use metrics::{FileMetrics, MetricsMode, MetricsModes};
pub use proof::{RowHasher, RowSum};
pub use reread::{Reread, reread, verify_file};
pub use resolve::NameMapping;
pub use side_by_side::SideBySide;
pub use source::{CountedRange, LocalFile, MemoryFile, PendingRead, RangeRead};
pub use tap::{RowGroupTap, WrittenGroup};
pub use temp::{TempSpace, sweep_stale};
pub use writer::{ColumnEncoder, ColumnEncoders, EncodedColumn, FileWriter, FinishedFile, WriterSettings};
