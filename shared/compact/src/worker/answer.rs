//! What comes in with a message and what goes back to the host.

use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::report::PartitionReport;

/// A message as the host delivers it.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// Its text, exactly as it lies in the queue.
    pub body: Vec<u8>,
    /// How often it was delivered, this time included.
    pub dequeue_count: u64,
    /// This run of the function.
    pub invocation_id: String,
    /// When the message expires; None: not known.
    pub expires: Option<DateTime<Utc>>,
}

/// How a message ended, for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkOutcome {
    /// Merged and committed; for a message by hand: planned and sent.
    Done,
    /// Nothing to do.
    Left,
    /// Another message or worker does, or did, the same work.
    Superseded,
    /// The worker sent a message for later.
    Retry,
    /// The time was up: the worker sent a message for the rest.
    Continued,
    /// Given up until the inputs change, the cool-down ends, or a person looks.
    Parked,
    /// Nothing to do though it had been selected: the planner leaves it alone for a while.
    Cooling,
    /// Sent again as it was, for later.
    Deferred,
    /// A fault: the host delivers the message again.
    Failed,
}

impl WorkOutcome {
    /// The word in the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkOutcome::Done => "done",
            WorkOutcome::Left => "left",
            WorkOutcome::Superseded => "superseded",
            WorkOutcome::Retry => "retry",
            WorkOutcome::Continued => "continued",
            WorkOutcome::Parked => "parked",
            WorkOutcome::Cooling => "cooling",
            WorkOutcome::Deferred => "deferred",
            WorkOutcome::Failed => "failed",
        }
    }
}

impl fmt::Display for WorkOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The answer for the host.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkAnswer {
    /// How it ended.
    pub outcome: WorkOutcome,
    /// Why, for a person.
    pub reason: String,
    /// Counts of the work.
    pub counts: Map<String, Value>,
    /// Answer with status 500: the host delivers the message again. Else 200, and the message is gone.
    pub fault: bool,
}

impl WorkAnswer {
    pub(crate) fn new(outcome: WorkOutcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: reason.into(), counts: Map::new(), fault: outcome == WorkOutcome::Failed }
    }

    pub(crate) fn fault(reason: impl Into<String>) -> Self {
        Self::new(WorkOutcome::Failed, reason)
    }

    pub(crate) fn counting(mut self, report: &PartitionReport) -> Self {
        let counts = json!({
            "filesBefore": report.files_before,
            "filesAfter": report.files_after,
            "rowsIn": report.rows_in,
            "rowsOut": report.rows_out,
            "duplicatesDropped": report.duplicates_dropped,
            "bytesIn": report.bytes_in,
            "bytesOut": report.bytes_out,
            "rowGroupsCopied": report.row_groups_copied,
            "bytesCopied": report.bytes_copied,
            "conflicts": report.conflicts,
            "tries": report.tries,
            "snapshotId": report.snapshot_id,
        });
        if let Value::Object(counts) = counts {
            self.counts.extend(counts);
        }
        self
    }

    /// The answer as JSON: `outcome`, `reason` and the counts.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("outcome".into(), self.outcome.as_str().into());
        object.insert("reason".into(), self.reason.as_str().into());
        object.extend(self.counts.clone());
        Value::Object(object)
    }
}
