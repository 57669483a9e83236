//! What a pass says of itself while it runs and at its end.

use firn_model::{Outcome, PartitionKey, Rule};
use serde_json::{Value, json};
use thiserror::Error;

/// Takes what a pass finds and does, partition by partition, as it happens.
pub trait Report: Send {
    /// A partition was looked at. Called for every partition in a dry run, and for the selected ones otherwise.
    fn planned(&mut self, partition: &PlannedPartition);
    /// A partition came to its end: every partition of the pass, also those that were left. Not called in a dry run.
    fn finished(&mut self, partition: &FinishedPartition);
    /// A dataset could not be planned at all and was passed over.
    fn failed(&mut self, dataset: &FailedDataset);
    /// A pass that enqueues looked at a partition.
    fn enqueued(&mut self, _: &EnqueuedPartition) {}
}

/// Says nothing: for passes whose events and counts are enough.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReport;

impl Report for NoReport {
    fn planned(&mut self, _: &PlannedPartition) {}
    fn finished(&mut self, _: &FinishedPartition) {}
    fn failed(&mut self, _: &FailedDataset) {}
}

/// What a pass that enqueues did with a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueuedPartition {
    /// Name of the dataset.
    pub dataset: String,
    /// Spec id and tuple.
    pub partition: PartitionKey,
    /// The partition for people: months, years and hours as dates.
    pub label: String,
    /// `sent`, `sentAgain`, `raised` (the rule of a queued one), `running` (queued or being worked on already), `atRest` (parked or
    /// cooling), `left`, or `failed`.
    pub decision: &'static str,
    /// The rule that selected it, or the one it was looked at with.
    pub rule: Rule,
    /// Why.
    pub reason: String,
}

/// What the planner decided for a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPartition {
    /// Name of the dataset.
    pub dataset: String,
    /// Spec id and tuple.
    pub partition: PartitionKey,
    /// The partition for people: months, years and hours as dates.
    pub label: String,
    /// Whether it is merged.
    pub selected: bool,
    /// The rule it was looked at with.
    pub rule: Rule,
    /// Why it was selected or left.
    pub reason: String,
    /// The files that are (or would be) merged, as the table names them; none when it is left.
    pub files: Vec<String>,
    /// Bytes of these files.
    pub bytes: u64,
    /// Rows of these files.
    pub rows: u64,
}

impl PlannedPartition {
    /// The JSON form that dry runs answer with (design section 10).
    pub fn to_json(&self) -> Value {
        json!({
            "dataset": self.dataset,
            "partition": self.partition.to_json(),
            "specId": self.partition.spec_id,
            "decision": if self.selected { "selected" } else { "left" },
            "rule": self.rule.as_str(),
            "reason": self.reason,
            "files": self.files,
            "fileCount": self.files.len(),
            "bytes": self.bytes,
            "rows": self.rows,
        })
    }
}

/// How a partition ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPartition {
    /// Name of the dataset.
    pub dataset: String,
    /// Spec id and tuple.
    pub partition: PartitionKey,
    /// The partition for people: months, years and hours as dates.
    pub label: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// Live data files of the partition before.
    pub files_before: u64,
    /// Live data files of the partition after.
    pub files_after: u64,
    /// Rows read from files that were replaced.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
    /// The last snapshot that was committed for it.
    pub snapshot_id: Option<i64>,
}

/// A dataset that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDataset {
    /// Name of the dataset.
    pub dataset: String,
    /// What is wrong and what to do.
    pub error: PassError,
}

/// Why a pass, or a dataset of it, did not take place. The variants are the exit codes of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PassError {
    /// Wrong usage or configuration, also where only the loaded table shows it (unknown column or partition field): the
    /// caller must ask for something else. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A table, catalog, container or credential is not there or does not answer: a later run may succeed. Exit code 1.
    #[error("{0}")]
    Unavailable(String),
}

/// Counts of a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassSummary {
    /// Partitions looked at.
    pub partitions: u64,
    /// Partitions selected.
    pub selected: u64,
    /// Partitions left with a reason.
    pub left: u64,
    /// Partitions merged and committed.
    pub done: u64,
    /// Partitions that another run had merged.
    pub superseded: u64,
    /// Partitions that failed, or whose commit is to be tried again or not known.
    pub failed: u64,
    /// Selected partitions beyond `maxPartitionsPerPass`, which wait for the next pass.
    pub waiting: u64,
    /// Datasets passed over because of wrong usage or configuration.
    pub datasets_refused: u64,
    /// Datasets passed over because something was not there.
    pub datasets_failed: u64,
    /// Files of the selected partitions that are (or would be) merged.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Live data files of the finished partitions before.
    pub files_before: u64,
    /// Live data files of the finished partitions after.
    pub files_after: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
}

impl PassSummary {
    /// Counts a planned partition. In a dry run this is all that is counted of it.
    pub fn add_planned(&mut self, planned: &PlannedPartition, dry_run: bool) {
        if dry_run {
            self.partitions += 1;
            self.left += u64::from(!planned.selected);
        }
        if planned.selected {
            self.selected += 1;
            self.files += planned.files.len() as u64;
            self.bytes += planned.bytes;
            self.rows += planned.rows;
        }
    }

    /// Counts a finished partition.
    pub fn add_finished(&mut self, finished: &FinishedPartition) {
        self.partitions += 1;
        match finished.outcome {
            Outcome::Done => self.done += 1,
            Outcome::Left => self.left += 1,
            Outcome::Superseded => self.superseded += 1,
            Outcome::Unknown | Outcome::Retry | Outcome::Failed => self.failed += 1,
        }
        self.files_before += finished.files_before;
        self.files_after += finished.files_after;
        self.rows_in += finished.rows_in;
        self.rows_out += finished.rows_out;
        self.duplicates_dropped += finished.duplicates_dropped;
    }

    /// Counts a dataset that was passed over.
    pub fn add_failed(&mut self, failed: &FailedDataset) {
        match failed.error {
            PassError::Usage(_) => self.datasets_refused += 1,
            PassError::Unavailable(_) => self.datasets_failed += 1,
        }
    }

    /// Whether nothing failed. A partition that was left with a reason is no failure.
    pub fn ok(&self) -> bool {
        self.failed == 0 && self.datasets_refused == 0 && self.datasets_failed == 0
    }
}

/// One check of `firn verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyCheck {
    /// Name of the check.
    pub check: String,
    /// Whether it held.
    pub ok: bool,
    /// What was found, with dataset and place.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(outcome: Outcome) -> FinishedPartition {
        FinishedPartition {
            dataset: "readings".into(),
            partition: PartitionKey::unpartitioned(0),
            label: String::new(),
            outcome,
            reason: String::new(),
            files_before: 10,
            files_after: 1,
            rows_in: 100,
            rows_out: 90,
            duplicates_dropped: 10,
            snapshot_id: None,
        }
    }

    #[test]
    fn every_outcome_is_counted_once() {
        for outcome in
            [Outcome::Done, Outcome::Left, Outcome::Superseded, Outcome::Unknown, Outcome::Retry, Outcome::Failed]
        {
            let mut summary = PassSummary::default();
            summary.add_finished(&finished(outcome));
            let counted = summary.done + summary.left + summary.superseded + summary.failed;
            assert_eq!((summary.partitions, counted), (1, 1), "{outcome}");
            assert_eq!(summary.ok(), !outcome.is_failure(), "{outcome}");
            assert_eq!((summary.files_before, summary.files_after, summary.rows_in), (10, 1, 100));
        }
    }

    #[test]
    fn a_dry_run_counts_what_would_be_merged() {
        let planned = |selected: bool| PlannedPartition {
            dataset: "readings".into(),
            partition: PartitionKey::unpartitioned(0),
            label: String::new(),
            selected,
            rule: Rule::Manual,
            reason: String::new(),
            files: if selected { vec!["a".into(), "b".into()] } else { Vec::new() },
            bytes: if selected { 7 } else { 0 },
            rows: if selected { 3 } else { 0 },
        };
        let mut summary = PassSummary::default();
        summary.add_planned(&planned(true), true);
        summary.add_planned(&planned(false), true);
        let expected =
            PassSummary { partitions: 2, selected: 1, left: 1, files: 2, bytes: 7, rows: 3, ..PassSummary::default() };
        assert_eq!(summary, expected);
        assert!(summary.ok());
        let mut real = PassSummary::default();
        real.add_planned(&planned(true), false);
        real.add_finished(&finished(Outcome::Done));
        assert_eq!((real.partitions, real.selected, real.done), (1, 1, 1));
    }

    #[test]
    fn a_dataset_that_was_passed_over_is_a_failure() {
        let failed = |error| FailedDataset { dataset: "readings".into(), error };
        let mut summary = PassSummary::default();
        summary.add_failed(&failed(PassError::Unavailable("gone".into())));
        assert!(!summary.ok());
        assert_eq!((summary.datasets_failed, summary.datasets_refused), (1, 0));
        summary.add_failed(&failed(PassError::Usage("no column".into())));
        assert_eq!((summary.datasets_failed, summary.datasets_refused), (1, 1));
    }
}
