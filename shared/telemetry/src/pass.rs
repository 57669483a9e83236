//! The terminal events of a pass and of a dataset that was passed over.

use std::collections::BTreeMap;

use firn_model::Outcome;
use serde::Serialize;

use crate::event::Event;

/// Counts passes with a failure, for an alert.
pub const FAILURES_COUNTER: &str = "firn_pass_failures_total";
/// Counts passes that ran longer than `compaction.runtimeDeadlineHours`, for an alert; they are not stopped.
pub const DEADLINE_COUNTER: &str = "firn_pass_deadline_exceeded_total";

/// A pass came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassFinished {
    /// Id of the pass.
    pub pass: String,
    /// This run of the program or function.
    pub invocation: String,
    /// What it looked for: the word of its rule.
    pub rule: &'static str,
    /// Whether it only planned.
    pub dry_run: bool,
    /// Datasets it looked at.
    pub datasets: u64,
    /// Datasets that could not be planned.
    pub datasets_failed: u64,
    /// Partitions it looked at.
    pub partitions: u64,
    /// Partitions that were selected.
    pub selected: u64,
    /// Partitions that were left with a reason.
    pub left: u64,
    /// Partitions that were merged and committed.
    pub done: u64,
    /// Partitions that another run had merged.
    pub superseded: u64,
    /// Partitions that failed or are to be tried again.
    pub failed: u64,
    /// Selected partitions that wait for the next pass.
    pub waiting: u64,
    /// Messages that it sent.
    pub sent: u64,
    /// Live data files of its partitions before.
    pub files_before: u64,
    /// Live data files of its partitions after.
    pub files_after: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
    /// How long it ran.
    pub duration_ms: u64,
    /// Highest resident set of the process so far.
    pub peak_rss_bytes: Option<u64>,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
}

impl PassFinished {
    /// Fills the counters from the other fields and the deadline.
    #[must_use]
    pub fn counted(mut self, deadline_ms: u64) -> Self {
        self.counters.insert(FAILURES_COUNTER, u64::from(self.outcome() == Outcome::Failed.as_str()));
        self.counters.insert(DEADLINE_COUNTER, u64::from(self.duration_ms > deadline_ms));
        self
    }
}

impl Event for PassFinished {
    const NAME: &'static str = "passFinished";

    fn outcome(&self) -> &'static str {
        let failed = self.failed > 0 || self.datasets_failed > 0;
        if failed { Outcome::Failed.as_str() } else { Outcome::Done.as_str() }
    }
}

/// A pass whose partitions are on the queue runs longer than `compaction.runtimeDeadlineHours`. Emitted once for a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassOverDeadline {
    /// Id of the pass.
    pub pass: String,
    /// This run of the program or function.
    pub invocation: String,
    /// Word of its rule.
    pub rule: &'static str,
    /// Its partitions that are queued or being worked on.
    pub partitions: u64,
    /// How long it has run.
    pub duration_ms: u64,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
}

impl PassOverDeadline {
    /// Fills the counter.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters.insert(DEADLINE_COUNTER, 1);
        self
    }
}

impl Event for PassOverDeadline {
    const NAME: &'static str = "passOverDeadline";

    fn outcome(&self) -> &'static str {
        // It is counted and never stopped.
        "running"
    }
}

/// A dataset could not be planned and was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatasetFailed {
    /// Name of the dataset.
    pub dataset: String,
    /// Table with its namespace.
    pub table: String,
    /// The pass it belongs to.
    pub pass: String,
    /// This run of the program or function.
    pub invocation: String,
    /// What is wrong and what to do.
    pub reason: String,
}

impl Event for DatasetFailed {
    const NAME: &'static str = "datasetFailed";

    fn outcome(&self) -> &'static str {
        Outcome::Failed.as_str()
    }
}
