//! The terminal events of snapshot expiry, table statistics and orphan cleanup, one for each table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Event;

/// Counts tables whose expiry, statistics or cleanup failed or was stopped, for an alert.
pub const MAINTENANCE_FAILURES_COUNTER: &str = "firn_maintenance_failures_total";
/// Counts files that orphan cleanup deleted.
pub const ORPHANS_COUNTER: &str = "firn_orphans_deleted_total";

/// Snapshot expiry of a table came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpiryFinished {
    /// Name of the dataset.
    pub dataset: String,
    /// Table with its namespace.
    pub table: String,
    /// This run of the program or function.
    pub invocation: String,
    /// Why it was left, or what failed; null when it is done.
    pub reason: Option<String>,
    /// Snapshots before.
    pub snapshots: u64,
    /// Snapshots that were removed.
    pub expired: u64,
    /// Branches and tags that were removed.
    pub refs_removed: u64,
    /// Snapshots that a tag or the head of another branch keeps; the bytes of their files are in [`SweepFinished::pinned_bytes`].
    pub pinned: u64,
    /// Commits that were sent.
    pub tries: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
    /// The word for `outcome`.
    #[serde(skip)]
    pub ended: &'static str,
}

impl ExpiryFinished {
    /// Fills the counters.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters.insert(MAINTENANCE_FAILURES_COUNTER, u64::from(self.ended == "failed"));
        self
    }
}

impl Event for ExpiryFinished {
    const NAME: &'static str = "expiryFinished";

    fn outcome(&self) -> &'static str {
        self.ended
    }
}

/// Statistics of a table came to their end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsFinished {
    /// Name of the dataset.
    pub dataset: String,
    /// Table with its namespace.
    pub table: String,
    /// This run of the program or function.
    pub invocation: String,
    /// Why there are none, or what failed, and which columns cannot have any; null when all is done.
    pub reason: Option<String>,
    /// The snapshot.
    pub snapshot_id: Option<i64>,
    /// The statistics file, when it is registered.
    pub path: Option<String>,
    /// Its columns.
    pub columns: u64,
    /// Data files counted.
    pub files: u64,
    /// Those of them that were read because they had no sketches.
    pub scanned: u64,
    /// Commits that were sent.
    pub tries: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// Highest resident set of the process so far.
    pub peak_rss_bytes: Option<u64>,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
    /// The word for `outcome`.
    #[serde(skip)]
    pub ended: &'static str,
}

impl StatisticsFinished {
    /// Fills the counters.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters.insert(MAINTENANCE_FAILURES_COUNTER, u64::from(self.ended == "failed"));
        self
    }
}

impl Event for StatisticsFinished {
    const NAME: &'static str = "statisticsFinished";

    fn outcome(&self) -> &'static str {
        self.ended
    }
}

/// Orphan cleanup of a table came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepFinished {
    /// Name of the dataset.
    pub dataset: String,
    /// Table with its namespace.
    pub table: String,
    /// This run of the program or function.
    pub invocation: String,
    /// Its receipt.
    pub receipt: String,
    /// Whether it only looked.
    pub dry_run: bool,
    /// Why it was left, or what stopped it; null when it is done.
    pub reason: Option<String>,
    /// Files listed.
    pub listed: u64,
    /// Files that the head of a branch or a tag refers to.
    pub live: u64,
    /// Bytes of live files that only tags and branches other than `main` need.
    pub pinned_bytes: u64,
    /// Files that only older snapshots refer to.
    pub replaced: u64,
    /// Bytes of those.
    pub replaced_bytes: u64,
    /// Files that nothing refers to, and that stayed.
    pub unreferenced: u64,
    /// Files deleted; of a dry run those that would be.
    pub deleted: u64,
    /// Bytes of those.
    pub deleted_bytes: u64,
    /// Files that stayed, by reason.
    pub kept: BTreeMap<String, u64>,
    /// How long it took.
    pub duration_ms: u64,
    /// Highest resident set of the process so far.
    pub peak_rss_bytes: Option<u64>,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
    /// The word for `outcome`.
    #[serde(skip)]
    pub ended: &'static str,
}

impl SweepFinished {
    /// Fills the counters.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters.insert(MAINTENANCE_FAILURES_COUNTER, u64::from(self.ended == "failed"));
        self.counters.insert(ORPHANS_COUNTER, if self.dry_run { 0 } else { self.deleted });
        self
    }
}

impl Event for SweepFinished {
    const NAME: &'static str = "sweepFinished";

    fn outcome(&self) -> &'static str {
        self.ended
    }
}
