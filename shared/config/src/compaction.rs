//! Section `compaction`: when passes run, and what they select and how they merge. The second part may also stand in a
//! dataset's own `compaction` block, which overrides it key by key.

use std::time::Duration;

use crate::duration::parse_duration;
use crate::scalar::Whole;
use crate::schedule::Schedule;
use crate::section::{Section, Unknown};

const fn whole(key: &'static str, unit: &'static str, default: u64, least: u64, most: u64) -> Whole {
    Whole { key, unit, default, least, most }
}

/// One mebibyte: what `Mb` means in every key.
const MB: u64 = 1 << 20;
/// Ten years, so that no sum of times overflows.
const MOST_HOURS: u64 = 87_600;
/// 64 GiB: far below what 50,000 blocks of the upload hold.
const MOST_MB: u64 = 65_536;

const BACKLOG_CHECK_INTERVAL: Whole = whole("backlogCheckIntervalMinutes", "minutes", 15, 1, 10_080);
const SCHEDULE_CATCH_UP: Whole = whole("scheduleCatchUpHours", "hours", 12, 0, 168);
const RUNTIME_DEADLINE: Whole = whole("runtimeDeadlineHours", "hours", 6, 1, MOST_HOURS);
const BACKLOG_FILES: Whole = whole("backlogFileThreshold", "files", 100, 1, 1_000_000);
const MIN_FILE: Whole = whole("minFileSizeMb", "megabytes", 32, 1, MOST_MB);
const TARGET: Whole = whole("targetSizeMb", "megabytes", 128, 1, MOST_MB);
/// Without a value it is off.
const MOST_TARGET: Whole = whole("maxTargetSizeMb", "megabytes", 1024, 1, MOST_MB);
const COMMIT_RETRIES: Whole = whole("commitRetryMax", "retries", 5, 0, 100);
const RETENTION: Whole = whole("snapshotRetentionHours", "hours", 24, 1, MOST_HOURS);
const MIN_FILES: Whole = whole("compactMinFiles", "files", 8, 2, 1_000_000);
const MEMORY: Whole = whole("memoryMb", "megabytes", 512, 64, 1 << 20);
const TEMP_DISK: Whole = whole("tempDiskMb", "megabytes", 400, 0, 1 << 30);
const GROUP_BUDGET: Whole = whole("groupBudgetMb", "megabytes", 1024, 1, 1 << 30);
/// Without a value it is off.
const MESSAGE_BUDGET: Whole = whole("messageBudgetMb", "megabytes", 4096, 1, 1 << 30);
const MAX_PARTITIONS: Whole = whole("maxPartitionsPerPass", "partitions", 500, 1, 1_000_000);
const ROW_GROUP: Whole = whole("rowGroupMb", "megabytes", 32, 1, 4096);
const READ_BATCH: Whole = whole("readBatchKb", "kilobytes", 1024, 16, MOST_MB);
const COOLDOWN: Whole = whole("cooldownHours", "hours", 6, 0, MOST_HOURS);

const SCHEDULE_KEY: &str = "schedule";
const DEFAULT_SCHEDULE: &str = "0 2 * * *";
const COLD_AFTER_KEY: &str = "compactColdAfter";
const DEFAULT_COLD_AFTER: Duration = Duration::from_secs(3600);
const VERIFY_KEY: &str = "verify";
const ENCODINGS_KEY: &str = "encodings";
const DEDUP_OPERATION_KEY: &str = "dedupOperation";

/// Keys that hold for all datasets at once.
pub(crate) const PASS_KEYS: [&str; 4] =
    [BACKLOG_CHECK_INTERVAL.key, SCHEDULE_KEY, SCHEDULE_CATCH_UP.key, RUNTIME_DEADLINE.key];

/// Keys that a dataset may override.
pub(crate) const SETTINGS_KEYS: [&str; 19] = [
    BACKLOG_FILES.key,
    MIN_FILE.key,
    TARGET.key,
    MOST_TARGET.key,
    COMMIT_RETRIES.key,
    RETENTION.key,
    MIN_FILES.key,
    COLD_AFTER_KEY,
    MEMORY.key,
    TEMP_DISK.key,
    GROUP_BUDGET.key,
    MESSAGE_BUDGET.key,
    MAX_PARTITIONS.key,
    ROW_GROUP.key,
    READ_BATCH.key,
    VERIFY_KEY,
    ENCODINGS_KEY,
    COOLDOWN.key,
    DEDUP_OPERATION_KEY,
];

/// The whole section.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// `backlogCheckIntervalMinutes` (15): minutes between ticks.
    pub backlog_check_interval_minutes: u64,
    /// `schedule` (`0 2 * * *`): when the rules of the schedule are due.
    pub schedule: Schedule,
    /// `scheduleCatchUpHours` (12): in Azure, how long after it was due a scheduled time is made up.
    pub schedule_catch_up_hours: u64,
    /// `runtimeDeadlineHours` (6): a pass that runs longer is counted for an alert; it is not stopped.
    pub runtime_deadline_hours: u64,
    /// What holds for every dataset that does not override it.
    pub settings: CompactionSettings,
}

/// How one dataset is compacted. `Mb` is 2^20 bytes, `Kb` 2^10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionSettings {
    /// `backlogFileThreshold` (100): a backlog tick selects partitions with more small files than this.
    pub backlog_file_threshold: u64,
    /// `minFileSizeMb` (32): a file below this is small.
    pub min_file_size_mb: u64,
    /// `targetSizeMb` (128): the size of files that are written.
    pub target_size_mb: u64,
    /// `maxTargetSizeMb` (off): up to what size `targetSizeMb` grows with a partition, so that a large one does not become very many files;
    /// None is `off`.
    pub max_target_size_mb: Option<u64>,
    /// `commitRetryMax` (5): how often a refused commit is sent again.
    pub commit_retry_max: u64,
    /// `snapshotRetentionHours` (24): older snapshots expire.
    pub snapshot_retention_hours: u64,
    /// `compactMinFiles` (8): how many neighbours of one size tier are merged; None is `off`.
    pub compact_min_files: Option<u64>,
    /// `compactColdAfter` (1h): how long after its end a partition is finished; None is `off`.
    pub compact_cold_after: Option<Duration>,
    /// `memoryMb` (512, at least 64): memory that a job may use. The leanest merge takes about 50 before its first input.
    pub memory_mb: u64,
    /// `tempDiskMb` (400): temporary disk that a job may use.
    pub temp_disk_mb: u64,
    /// `groupBudgetMb` (1024): input bytes that one commit may replace.
    pub group_budget_mb: u64,
    /// `messageBudgetMb` (off): input bytes that one message may replace before the rest goes on under another; None is `off`. Its first group
    /// is always worked on.
    pub message_budget_mb: Option<u64>,
    /// `maxPartitionsPerPass` (500): how many partitions of a table one pass takes.
    pub max_partitions_per_pass: u64,
    /// `rowGroupMb` (32): size of a row group that is written.
    pub row_group_mb: u64,
    /// `readBatchKb` (1024): size of a batch that is read.
    pub read_batch_kb: u64,
    /// `encodings` (compatible): which encodings of Parquet outputs may have.
    pub encodings: Encodings,
    /// `verify` (stream): how an output is proved before the commit.
    pub verify: Verify,
    /// `cooldownHours` (6): how long parked work rests.
    pub cooldown_hours: u64,
    /// `dedupOperation` (overwrite): what kind of snapshot a merge makes that dropped rows.
    pub dedup_operation: DedupOperation,
}

/// Which encodings outputs may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encodings {
    /// `compatible`: those that every reader of Parquet knows (PLAIN and dictionaries). Iceberg's vectorised reader for Spark refuses tables
    /// with others in releases that are in use everywhere.
    Compatible,
    /// `modern`: also DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT, where they are smaller.
    Modern,
}

/// How an output is proved before the commit (design section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Row sums over what the encoder got, and size and checksum of every block.
    Stream,
    /// The uploaded file is decoded again.
    Reread,
}

/// The operation of a snapshot in which dedup dropped rows (design section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupOperation {
    /// Rows were dropped, so the table changed.
    Overwrite,
    /// Readers only ever see the deduplicated view, so it did not.
    Replace,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            backlog_file_threshold: BACKLOG_FILES.default,
            min_file_size_mb: MIN_FILE.default,
            target_size_mb: TARGET.default,
            max_target_size_mb: None,
            commit_retry_max: COMMIT_RETRIES.default,
            snapshot_retention_hours: RETENTION.default,
            compact_min_files: Some(MIN_FILES.default),
            compact_cold_after: Some(DEFAULT_COLD_AFTER),
            memory_mb: MEMORY.default,
            temp_disk_mb: TEMP_DISK.default,
            group_budget_mb: GROUP_BUDGET.default,
            message_budget_mb: None,
            max_partitions_per_pass: MAX_PARTITIONS.default,
            row_group_mb: ROW_GROUP.default,
            read_batch_kb: READ_BATCH.default,
            encodings: Encodings::Compatible,
            verify: Verify::Stream,
            cooldown_hours: COOLDOWN.default,
            dedup_operation: DedupOperation::Overwrite,
        }
    }
}

impl CompactionSettings {
    /// `minFileSizeMb` in bytes: a file of fewer is small, one of exactly as many is not.
    pub fn min_file_bytes(&self) -> u64 {
        self.min_file_size_mb * MB
    }

    /// `targetSizeMb` in bytes.
    pub fn target_bytes(&self) -> u64 {
        self.target_size_mb * MB
    }

    /// `memoryMb` in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mb * MB
    }

    /// `tempDiskMb` in bytes.
    pub fn temp_disk_bytes(&self) -> u64 {
        self.temp_disk_mb * MB
    }

    /// `groupBudgetMb` in bytes.
    pub fn group_budget_bytes(&self) -> u64 {
        self.group_budget_mb * MB
    }

    /// `messageBudgetMb` in bytes.
    pub fn message_budget_bytes(&self) -> Option<u64> {
        self.message_budget_mb.map(|budget| budget * MB)
    }

    /// `rowGroupMb` in bytes.
    pub fn row_group_bytes(&self) -> u64 {
        self.row_group_mb * MB
    }

    /// `readBatchKb` in bytes.
    pub fn read_batch_bytes(&self) -> u64 {
        self.read_batch_kb * 1024
    }

    /// These settings with what stands in `section` put over them.
    fn overridden(&self, section: &Section<'_>) -> Self {
        let number = |spec: &Whole, base: u64| section.whole_if_set(spec).unwrap_or(base);
        let settings = Self {
            backlog_file_threshold: number(&BACKLOG_FILES, self.backlog_file_threshold),
            min_file_size_mb: number(&MIN_FILE, self.min_file_size_mb),
            target_size_mb: number(&TARGET, self.target_size_mb),
            max_target_size_mb: section.whole_or_off(&MOST_TARGET).unwrap_or(self.max_target_size_mb),
            commit_retry_max: number(&COMMIT_RETRIES, self.commit_retry_max),
            snapshot_retention_hours: number(&RETENTION, self.snapshot_retention_hours),
            compact_min_files: section.whole_or_off(&MIN_FILES).unwrap_or(self.compact_min_files),
            compact_cold_after: section.parsed(COLD_AFTER_KEY, cold_after).unwrap_or(self.compact_cold_after),
            memory_mb: number(&MEMORY, self.memory_mb),
            temp_disk_mb: number(&TEMP_DISK, self.temp_disk_mb),
            group_budget_mb: number(&GROUP_BUDGET, self.group_budget_mb),
            message_budget_mb: section.whole_or_off(&MESSAGE_BUDGET).unwrap_or(self.message_budget_mb),
            max_partitions_per_pass: number(&MAX_PARTITIONS, self.max_partitions_per_pass),
            row_group_mb: number(&ROW_GROUP, self.row_group_mb),
            read_batch_kb: number(&READ_BATCH, self.read_batch_kb),
            encodings: section
                .word(ENCODINGS_KEY, &[("compatible", Encodings::Compatible), ("modern", Encodings::Modern)])
                .unwrap_or(self.encodings),
            verify: section
                .word(VERIFY_KEY, &[("stream", Verify::Stream), ("reread", Verify::Reread)])
                .unwrap_or(self.verify),
            cooldown_hours: number(&COOLDOWN, self.cooldown_hours),
            dedup_operation: section
                .word(
                    DEDUP_OPERATION_KEY,
                    &[("overwrite", DedupOperation::Overwrite), ("replace", DedupOperation::Replace)],
                )
                .unwrap_or(self.dedup_operation),
        };
        settings.check(section);
        settings
    }

    /// Combinations of sizes that would never come to an end or never fit.
    fn check(&self, section: &Section<'_>) {
        let most_target = self.max_target_size_mb.unwrap_or(self.target_size_mb);
        let rules = [
            (
                most_target >= self.target_size_mb,
                (&MOST_TARGET, most_target),
                (&TARGET, self.target_size_mb),
                "must be at least",
                "because files only grow with a partition",
            ),
            (
                self.group_budget_mb >= most_target || self.group_budget_mb < self.target_size_mb,
                (&GROUP_BUDGET, self.group_budget_mb),
                (&MOST_TARGET, most_target),
                "must be at least",
                "else no file reaches its size",
            ),
            (
                self.target_size_mb > self.min_file_size_mb,
                (&TARGET, self.target_size_mb),
                (&MIN_FILE, self.min_file_size_mb),
                "must be more than",
                "else every merged file is small and is merged again",
            ),
            (
                self.group_budget_mb >= self.target_size_mb,
                (&GROUP_BUDGET, self.group_budget_mb),
                (&TARGET, self.target_size_mb),
                "must be at least",
                "else no file reaches its size",
            ),
            (
                self.memory_mb >= 2 * self.row_group_mb,
                (&MEMORY, self.memory_mb),
                (&ROW_GROUP, self.row_group_mb),
                "must be at least twice",
                "else a row group does not fit beside its inputs",
            ),
        ];
        for (holds, (large, large_value), (small, small_value), must, why) in rules {
            let written = [large.key, small.key].into_iter().find(|key| section.has(key));
            let sound = section.reader().sound(&[&section.path_of(large.key), &section.path_of(small.key)]);
            // A block that names neither repeats what was said of the section above it.
            if let Some(key) = written
                && !holds
                && sound
            {
                let message = format!("{} {large_value} {must} {} {small_value}, {why}", large.key, small.key);
                section.fault(key, message);
            }
        }
    }
}

fn cold_after(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" {
        return Ok(None);
    }
    let wrong = || "is not a duration; write for example 1h, 30m or 1h30m, or off".to_owned();
    parse_duration(text).map(Some).ok_or_else(wrong)
}

/// Reads the top-level section.
pub(crate) fn read(section: &Section<'_>) -> Compaction {
    let schedule = section.parsed(SCHEDULE_KEY, |text| {
        Schedule::parse(text)
            .map_err(|problem| format!("is not a schedule: {problem}; write for example {DEFAULT_SCHEDULE}"))
    });
    let compaction = Compaction {
        backlog_check_interval_minutes: section.whole(&BACKLOG_CHECK_INTERVAL),
        schedule: schedule.unwrap_or_else(default_schedule),
        schedule_catch_up_hours: section.whole(&SCHEDULE_CATCH_UP),
        runtime_deadline_hours: section.whole(&RUNTIME_DEADLINE),
        settings: CompactionSettings::default().overridden(section),
    };
    section.finish(&[PASS_KEYS.as_slice(), SETTINGS_KEYS.as_slice()].concat(), Unknown::Refuse);
    compaction
}

#[allow(clippy::expect_used, reason = "the default is a constant, and a test reads it")]
fn default_schedule() -> Schedule {
    Schedule::parse(DEFAULT_SCHEDULE).expect("the default schedule is valid")
}

/// Reads the `compaction` block of a dataset over the settings of all datasets.
pub(crate) fn read_override(section: &Section<'_>, base: &CompactionSettings) -> CompactionSettings {
    for key in PASS_KEYS {
        if section.has(key) {
            refuse_pass_key(section, key);
        }
    }
    let settings = base.overridden(section);
    for (spec, own, all) in
        [(&MEMORY, settings.memory_mb, base.memory_mb), (&TEMP_DISK, settings.temp_disk_mb, base.temp_disk_mb)]
    {
        if own > all {
            let message =
                format!("\"{own}\" is more than compaction.{} {all}, which is what the process has", spec.key);
            section.fault(spec.key, message);
        }
    }
    section.finish(&[PASS_KEYS.as_slice(), SETTINGS_KEYS.as_slice()].concat(), Unknown::Refuse);
    settings
}

/// A key that holds for all datasets stands in one.
pub(crate) fn refuse_pass_key(section: &Section<'_>, key: &str) {
    section.get(key);
    section.fault(key, format!("holds for all datasets; write it as compaction.{key} at the top level"));
}
