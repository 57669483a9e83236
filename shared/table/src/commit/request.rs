//! What is asked of a commit and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_model::PartitionKey;

use crate::loaded::LoadedTable;
use crate::new_file::NewDataFile;

/// The snapshot's operation (design section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplaceOperation {
    /// The table's rows stay what they are.
    Replace,
    /// Rows were dropped (dedup, unless configured otherwise).
    Overwrite,
}

/// One group of a partition: these live files are swapped for these new ones.
#[derive(Debug, Clone)]
pub struct ReplaceRequest {
    /// The version of the table that the merge was planned on: delete files that came since then void the merge.
    pub base: LoadedTable,
    /// A newer version, when one is known, to try first: the groups of one partition are planned together and committed one by
    /// one. None: `base`.
    pub newest: Option<LoadedTable>,
    /// Branch to commit to.
    pub branch: String,
    /// Partition of every input and output.
    pub partition: Arc<PartitionKey>,
    /// Exact paths of the inputs, as the manifests have them.
    pub inputs: Vec<String>,
    /// New files; they are in the store already.
    pub outputs: Vec<NewDataFile>,
    /// Data sequence number of the newest input; the outputs carry it, so that later deletes still reach their rows.
    pub data_sequence_number: i64,
    /// Rows of the inputs that are in no output: duplicates dropped and rows deleted. Rows of inputs must equal rows of
    /// outputs plus these, else the commit is refused.
    pub rows_removed: u64,
    /// Operation of the snapshot.
    pub operation: ReplaceOperation,
    /// More entries for the snapshot's summary.
    pub summary: BTreeMap<String, String>,
    /// Hash of the group: start of the outputs' names and summary entry `firn.inputs`.
    pub inputs_hash: String,
}

/// How often and how patiently a commit is tried.
#[derive(Debug, Clone)]
pub struct CommitPolicy {
    /// Tries after the first (`commitRetryMax`).
    pub retry_max: u32,
    /// Wait before the first retry; doubled for each further one, then a random part of it is taken.
    pub base_wait: Duration,
    /// The same for a try that met a conflict. Short for who has the table's turn: then the other one is a writer who has just committed,
    /// and never is there more time until its next commit than now.
    pub conflict_wait: Duration,
    /// No wait is longer.
    pub max_wait: Duration,
    /// How often the table is loaded again to look for our snapshot when an answer was lost.
    pub unknown_reloads: u32,
    /// Counts every conflict as it happens, also those of commits that fail in the end.
    pub conflicts: ConflictCounter,
}

impl Default for CommitPolicy {
    fn default() -> Self {
        Self {
            retry_max: 5,
            base_wait: Duration::from_millis(200),
            conflict_wait: Duration::from_millis(200),
            max_wait: Duration::from_secs(10),
            unknown_reloads: 4,
            conflicts: ConflictCounter::default(),
        }
    }
}

impl CommitPolicy {
    /// The wait before try number `retry` (1 is the first retry): between half and all of the doubled base.
    pub fn wait(&self, retry: u64) -> Duration {
        self.doubled(self.base_wait, retry)
    }

    /// The wait before the next try after so many conflicts.
    pub fn wait_after_conflict(&self, conflicts: u32) -> Duration {
        self.doubled(self.conflict_wait, conflicts.into())
    }

    fn doubled(&self, base: Duration, retry: u64) -> Duration {
        let doublings = u32::try_from(retry.saturating_sub(1)).unwrap_or(u32::MAX);
        let full = base.saturating_mul(2_u32.saturating_pow(doublings)).min(self.max_wait);
        full.mul_f64(rand::random_range(0.5..=1.0))
    }
}

/// A shared counter of commit conflicts (`tracelake_catalog_commit_conflicts_total`).
#[derive(Debug, Clone, Default)]
pub struct ConflictCounter(Arc<AtomicU64>);

impl ConflictCounter {
    /// Conflicts so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A commit that is in the table.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Our snapshot.
    pub snapshot_id: i64,
    /// How often a swap was sent.
    pub tries: u32,
    /// How many of them met a conflict.
    pub conflicts: u32,
    /// A version of the table that has our snapshot.
    pub table: LoadedTable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_limit_and_are_jittered() {
        let policy = CommitPolicy {
            conflict_wait: Duration::from_millis(10),
            base_wait: Duration::from_millis(100),
            max_wait: Duration::from_millis(500),
            ..CommitPolicy::default()
        };
        for (retry, full) in [(1, 100), (2, 200), (3, 400), (4, 500), (40, 500)] {
            for _ in 0..20 {
                let wait = policy.wait(retry);
                assert!(wait >= Duration::from_millis(full / 2) && wait <= Duration::from_millis(full), "{wait:?}");
            }
        }
        for (conflicts, full) in [(1, 10), (3, 40), (40, 500)] {
            let wait = policy.wait_after_conflict(conflicts);
            assert!(wait >= Duration::from_millis(full / 2) && wait <= Duration::from_millis(full), "{wait:?}");
        }
        let none = CommitPolicy { base_wait: Duration::ZERO, ..CommitPolicy::default() };
        assert_eq!(none.wait(3), Duration::ZERO);
    }
}
