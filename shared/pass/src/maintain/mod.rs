//! Snapshot expiry, table statistics and orphan cleanup over all datasets: by hand ([`by_hand`]) and by the timers ([`tick`]). The work on one table is
//! `firn-maintain`'s; what it came to is told here.

pub(crate) mod by_hand;
pub(crate) mod receipts;
pub(crate) mod restore;
mod statistics;
mod tables;
pub(crate) mod tick;

use firn_compact::ColumnDistinct;
use firn_maintain::{FileLine, SweepReport};
use serde::Serialize;

/// One decision of an expiry, as answers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiryLine {
    /// The dataset.
    pub dataset: String,
    /// The snapshot; None for a branch or tag.
    pub snapshot_id: Option<i64>,
    /// The branch or tag that went.
    pub reference: Option<String>,
    /// `expired` or `keep`; `expire` when it did not go through.
    pub decision: &'static str,
    /// Why.
    pub reason: String,
}

/// A table that was left alone or could not be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLine {
    /// The dataset.
    pub dataset: String,
    /// `left`, `unfinished` or `failed`.
    pub outcome: &'static str,
    /// Why.
    pub reason: String,
}

/// Statistics that a table got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsLine {
    /// The dataset.
    pub dataset: String,
    /// The snapshot.
    pub snapshot_id: i64,
    /// The statistics file.
    pub path: String,
    /// Its columns.
    pub columns: Vec<ColumnDistinct>,
    /// Data files counted.
    pub files: u64,
    /// Those of them that were read because they had no sketches.
    pub scanned: u64,
}

/// Who hears of each step.
pub trait MaintainReport: SweepReport {
    /// One snapshot, branch or tag.
    fn snapshot(&mut self, line: &ExpiryLine);

    /// The statistics of a table.
    fn statistics(&mut self, line: &StatisticsLine);

    /// A table that was not worked on to the end.
    fn table(&mut self, line: &TableLine);
}

impl MaintainReport for firn_maintain::Unheard {
    fn snapshot(&mut self, _: &ExpiryLine) {}

    fn statistics(&mut self, _: &StatisticsLine) {}

    fn table(&mut self, _: &TableLine) {}
}

/// What maintenance came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintainSummary {
    /// Tables looked at.
    pub tables: u64,
    /// Tables left alone because their owners want it so.
    pub left: u64,
    /// Tables that failed or were stopped; the others were worked on all the same.
    pub failed: u64,
    /// Tables that wait for the next run, because the time was used up.
    pub waiting: u64,
    /// Snapshots removed.
    pub expired: u64,
    /// Branches and tags removed.
    pub refs_removed: u64,
    /// Statistics files registered.
    pub statistics: u64,
    /// Files listed.
    pub listed: u64,
    /// Files deleted; of a dry run those that would be.
    pub deleted: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that nothing refers to and that stayed.
    pub unreferenced: u64,
}

impl MaintainSummary {
    /// Whether nothing failed.
    pub fn ok(&self) -> bool {
        self.failed == 0
    }
}

/// What maintenance is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Expire snapshots.
    Expire,
    /// Delete orphans.
    Orphans {
        /// Only look.
        dry_run: bool,
    },
}

/// A line for the log of a run that nobody watches.
pub(crate) fn file_line(line: &FileLine) -> String {
    format!("{} {}: {}", line.verdict.as_str(), line.path, line.reason)
}
