//! What the planner is told beside the facts of a partition.

use firn_model::{DeleteFacts, FileFacts, RowOrder};

use crate::age::{Coldness, PartitionTime};

/// Bytes in the megabytes of the configuration.
const MEGABYTE: u64 = 1 << 20;

/// Sizes and thresholds of a dataset (compactor specification, "When a pass runs"; design section 3). Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSettings {
    /// `targetSizeMb`: the size of files that a merge writes.
    pub target_bytes: u64,
    /// `maxTargetSizeMb`: up to what the target grows with a partition ([`PlanSettings::target_for`]); None is `off`.
    pub max_target_bytes: Option<u64>,
    /// `minFileSizeMb`: a file below it is small; one of exactly this size is not.
    pub min_file_bytes: u64,
    /// `backlogFileThreshold`: a partition with more small files is a backlog; one with exactly this many is not.
    pub backlog_file_threshold: usize,
    /// `groupBudgetMb`: input bytes that one commit may replace.
    pub group_budget_bytes: u64,
    /// `compactMinFiles`: how many neighbours of one size tier are merged. None is `off`, also for a dataset without `timeColumn`.
    pub compact_min_files: Option<usize>,
    /// `compactColdAfter` in microseconds; None is `off`.
    pub cold_after: Option<i64>,
}

/// How many files a partition should have at most, as long as `maxTargetSizeMb` allows.
const FILES_OF_A_PARTITION: u64 = 64;

impl PlanSettings {
    /// The settings from megabytes (2^20 bytes), as the configuration has them; without tiers and cold partitions, which are
    /// for datasets with `timeColumn`.
    pub fn from_megabytes(target: u64, min_file: u64, backlog_file_threshold: usize, group_budget: u64) -> Self {
        Self {
            target_bytes: target.saturating_mul(MEGABYTE),
            max_target_bytes: None,
            min_file_bytes: min_file.saturating_mul(MEGABYTE),
            backlog_file_threshold,
            group_budget_bytes: group_budget.saturating_mul(MEGABYTE),
            compact_min_files: None,
            cold_after: None,
        }
    }

    /// The same with `compactMinFiles` and `compactColdAfter` (microseconds); None is `off`.
    pub fn with_times(self, compact_min_files: Option<usize>, cold_after: Option<i64>) -> Self {
        Self { compact_min_files, cold_after, ..self }
    }

    /// The same with `maxTargetSizeMb` in megabytes; None is `off`.
    pub fn with_max_target(self, megabytes: Option<u64>) -> Self {
        Self { max_target_bytes: megabytes.map(|most| most.saturating_mul(MEGABYTE)), ..self }
    }

    /// The size of files that are written into a partition of so many bytes (specification, issue #70): the target, doubled while the partition
    /// would be more than [`FILES_OF_A_PARTITION`] files of it, up to `maxTargetSizeMb`. Which files are selected does not depend on it, so
    /// a target that grew makes nobody write again what was finished before.
    pub fn target_for(&self, partition_bytes: u64) -> u64 {
        let most = self.max_target_bytes.unwrap_or(self.target_bytes);
        let mut target = self.target_bytes.max(1);
        while target < most && partition_bytes > target.saturating_mul(FILES_OF_A_PARTITION) {
            target = target.saturating_mul(2).min(most);
        }
        target
    }

    /// Whether a file is small.
    pub fn is_small(&self, file: &FileFacts) -> bool {
        file.size < self.min_file_bytes
    }

    /// Whether a partition is cold.
    pub fn coldness(&self, time: PartitionTime) -> Coldness {
        Coldness::of(time, self.cold_after)
    }

    /// Whether a file is large enough to be part of one sorted run, and so in no tier.
    pub fn is_large(&self, file: &FileFacts) -> bool {
        file.size >= self.nearly_target_bytes()
    }

    /// 75 % of the target: from here on a file is large enough to be part of one sorted run (design section 3).
    pub fn nearly_target_bytes(&self) -> u64 {
        self.target_bytes - self.target_bytes / 4
    }

    /// A group below this could leave a small file behind, so a cut that makes one is avoided. A quarter above the small
    /// limit, because files shrink a little when they are written anew.
    pub(crate) fn group_floor_bytes(&self) -> u64 {
        self.min_file_bytes.saturating_add(self.min_file_bytes / 4)
    }
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self::from_megabytes(128, 32, 100, 1024)
    }
}

/// What holds for every partition of a table.
#[derive(Debug, Clone)]
pub struct TableRules<'a> {
    /// Format version of the table.
    pub format_version: u8,
    /// False when the table property `firn.enabled` is `false`.
    pub enabled: bool,
    /// The dataset's row order on this table.
    pub order: &'a RowOrder,
}

/// What is live in one partition (one spec, one tuple). Files and deletes may come in any order.
#[derive(Debug, Clone, Copy)]
pub struct PartitionFiles<'a> {
    /// Live data files.
    pub files: &'a [FileFacts],
    /// Live delete files that may concern them: those of the partition and those of unpartitioned specs.
    pub deletes: &'a [DeleteFacts],
    /// When it ends, and how far the table is.
    pub time: PartitionTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_grows_with_the_partition_as_far_as_it_may() {
        let settings = PlanSettings::default().with_max_target(Some(600));
        let target = |gigabytes: u64| settings.target_for(gigabytes << 30) >> 20;
        assert_eq!([1, 8, 9, 16, 17, 32, 33, 10_000].map(target), [128, 128, 256, 256, 512, 512, 600, 600]);
        assert_eq!(PlanSettings::default().target_for(u64::MAX), 128 << 20, "off by default");
    }
}
