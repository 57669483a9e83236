//! Snapshot expiry and orphan cleanup (design section 7). Nothing in here ever deletes a file that a table refers to; where it is not certain, the
//! file stays and the receipt says why.
//!
//! Expiry removes snapshots from the metadata and touches no file: [`expiry`]. Orphan cleanup deletes files that nothing refers to: [`sweep`].
//!
//! - [`jobs`]: which tables, and which of them are left alone;
//! - [`identity`]: one identity for a file, whatever text names it; [`file_state`]: the life of a file; [`clock`]: the time that counts;
//! - [`trash`]: deleted files of a local folder; [`restore`]: the undo of a sweep.

pub mod clock;
pub mod expiry;
pub mod file_state;
pub mod identity;
pub mod jobs;
pub mod restore;
pub mod sweep;
pub mod trash;

pub use expiry::{ExpiryOutcome, ExpiryTools, SnapshotDecision, TableExpiry, expire_table};
pub use file_state::{FileState, StateCounts};
pub use jobs::{SkipReason, TableJob, table_jobs};
pub use sweep::{
    FileLine, Neighbours, Receipt, SweepOutcome, SweepReport, SweepTools, TableSweep, Unheard, Verdict, sweep_table,
};
