//! The terminal events of a pass.

use std::time::Instant;

use firn_compact::PartitionReport;
use firn_config::{Config, Dataset};
use firn_model::{PartitionKey, Rule};
use firn_telemetry::{DatasetFailed, Emitter, PartitionResult, PartitionStart, PassFinished};

use crate::queue::summary::EnqueueSummary;
use crate::report::{PassError, PassSummary};

/// What all events of one pass share.
#[derive(Debug, Clone)]
pub(crate) struct PassEvents {
    /// Id of the pass.
    pub(crate) pass: String,
    /// This run of the program or function.
    pub(crate) invocation: String,
    /// Word of the strongest rule it asks by.
    pub(crate) rule: Rule,
    emitter: Emitter,
    started: Instant,
}

impl PassEvents {
    /// A pass of a process, or of one invocation of a function.
    pub(crate) fn new(emitter: &Emitter, pass: String, invocation: String, rule: Rule) -> Self {
        Self { pass, invocation, rule, emitter: emitter.clone(), started: Instant::now() }
    }

    /// Where the events go.
    pub(crate) fn emitter(&self) -> &Emitter {
        &self.emitter
    }

    /// The start of the work on a partition.
    pub(crate) fn start(&self, dataset: &Dataset, key: &PartitionKey, rule: Rule) -> PartitionStart {
        PartitionStart::new(&dataset.name, dataset.table.to_string(), key, &self.pass, &self.invocation, rule)
    }

    /// Says that a dataset is passed over, in the log and as an event.
    pub(crate) fn dataset_failed(&self, dataset: &Dataset, error: &PassError) {
        tracing::error!(dataset = dataset.name, %error, "dataset passed over");
        self.emitter.emit(&DatasetFailed {
            dataset: dataset.name.clone(),
            table: dataset.table.to_string(),
            pass: self.pass.clone(),
            invocation: self.invocation.clone(),
            reason: error.to_string(),
        });
    }

    /// Says that the pass came to its end, with the counter of passes over `runtimeDeadlineHours`: they are counted, never
    /// stopped (compactor specification, "When a pass fails").
    pub(crate) fn finished(&self, config: &Config, dry_run: bool, datasets: usize, summary: &PassSummary) {
        self.ended(config, dry_run, datasets as u64, summary, 0);
    }

    /// The same for a pass that enqueues, after its last message.
    pub(crate) fn sent(&self, config: &Config, dry_run: bool, summary: &EnqueueSummary) {
        self.ended(config, dry_run, summary.datasets, &summary.as_pass(), summary.counts.sent);
    }

    fn ended(&self, config: &Config, dry_run: bool, datasets: u64, summary: &PassSummary, sent: u64) {
        let deadline_ms = config.compaction.runtime_deadline_hours.saturating_mul(3_600_000);
        let event = PassFinished {
            pass: self.pass.clone(),
            invocation: self.invocation.clone(),
            rule: self.rule.as_str(),
            dry_run,
            datasets,
            datasets_failed: summary.datasets_failed + summary.datasets_refused,
            partitions: summary.partitions,
            selected: summary.selected,
            left: summary.left,
            done: summary.done,
            superseded: summary.superseded,
            failed: summary.failed,
            waiting: summary.waiting,
            sent,
            files_before: summary.files_before,
            files_after: summary.files_after,
            rows_in: summary.rows_in,
            rows_out: summary.rows_out,
            duplicates_dropped: summary.duplicates_dropped,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            peak_rss_bytes: firn_telemetry::peak_rss_bytes(),
            counters: Default::default(),
        };
        self.emitter.emit(&event.counted(deadline_ms));
    }
}

/// The counts of a partition's end, for its event.
pub(crate) fn partition_result(done: &PartitionReport) -> PartitionResult {
    PartitionResult {
        files_before: done.files_before,
        files_after: done.files_after,
        rows_in: done.rows_in,
        rows_out: done.rows_out,
        duplicates_dropped: done.duplicates_dropped,
        bytes_in: done.bytes_in,
        bytes_out: done.bytes_out,
        row_groups_copied: done.row_groups_copied,
        bytes_copied: done.bytes_copied,
        conflicts: u64::from(done.conflicts),
        tries: u64::from(done.tries),
        snapshot_id: done.snapshot_id,
        sidecars: done.sidecars.clone(),
        ..PartitionResult::new(done.outcome, done.reason.clone())
    }
}
