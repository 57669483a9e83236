//! Counts of a pass that enqueues.

use chrono::{DateTime, SecondsFormat, Utc};
use firn_model::Rule;
use serde::{Serialize, Serializer};

use crate::report::PassSummary;

/// What became of the partitions that a pass looked at. `partitions` = `left` + `waiting` + `selected`; `selected` = `sent` + `raised` +
/// `running` + `atRest` + `failed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendCounts {
    /// Partitions looked at.
    pub partitions: u64,
    /// Partitions that no rule selects.
    pub left: u64,
    /// Partitions that a rule selects.
    pub selected: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages among them that were sent again: written but not sent, or lost.
    pub resent: u64,
    /// Queued partitions whose rule was raised.
    pub raised: u64,
    /// Partitions that are queued or being worked on already.
    pub running: u64,
    /// Partitions that are parked or cooling.
    pub at_rest: u64,
    /// Partitions that could not be sent because of what is in them.
    pub failed: u64,
    /// Partitions beyond `maxPartitionsPerPass`, which wait for the next pass.
    pub waiting: u64,
    /// Records that were deleted because nothing asks for their partitions any more.
    pub forgotten: u64,
}

impl SendCounts {
    /// Adds those of another dataset.
    pub fn add(&mut self, other: SendCounts) {
        let SendCounts {
            partitions,
            left,
            selected,
            sent,
            resent,
            raised,
            running,
            at_rest,
            failed,
            waiting,
            forgotten,
        } = other;
        self.partitions += partitions;
        self.left += left;
        self.selected += selected;
        self.sent += sent;
        self.resent += resent;
        self.raised += raised;
        self.running += running;
        self.at_rest += at_rest;
        self.failed += failed;
        self.waiting += waiting;
        self.forgotten += forgotten;
    }
}

/// What a pass that enqueues came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnqueueSummary {
    /// Id of the pass.
    pub pass: String,
    /// Datasets looked at.
    pub datasets: u64,
    /// Datasets passed over because of wrong usage or configuration.
    pub datasets_refused: u64,
    /// Datasets passed over because something was not there.
    pub datasets_failed: u64,
    /// Counts of all datasets.
    #[serde(flatten)]
    pub counts: SendCounts,
}

impl EnqueueSummary {
    /// Whether nothing failed.
    pub fn ok(&self) -> bool {
        self.counts.failed == 0 && self.datasets_refused == 0 && self.datasets_failed == 0
    }

    /// The counts that its event shares with passes that merge.
    pub(crate) fn as_pass(&self) -> PassSummary {
        PassSummary {
            partitions: self.counts.partitions,
            selected: self.counts.selected,
            left: self.counts.left,
            failed: self.counts.failed,
            waiting: self.counts.waiting,
            datasets_refused: self.datasets_refused,
            datasets_failed: self.datasets_failed,
            ..PassSummary::default()
        }
    }
}

/// What a tick came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TickSummary {
    /// Whether it worked. It does not before the interval has passed since the recorded tick; then nothing is counted.
    pub due: bool,
    /// The strongest rule that it asked by.
    pub rule: Rule,
    /// The latest scheduled time that it made up.
    #[serde(serialize_with = "as_text")]
    pub scheduled: Option<DateTime<Utc>>,
    /// When the next tick is due; None when this one worked.
    #[serde(serialize_with = "as_text")]
    pub next_tick: Option<DateTime<Utc>>,
    /// What it sent.
    #[serde(flatten)]
    pub enqueued: EnqueueSummary,
}

fn as_text<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true)).serialize(serializer)
}

impl TickSummary {
    /// A tick that came before its time.
    pub(crate) fn not_due(next_tick: Option<DateTime<Utc>>) -> Self {
        Self { due: false, rule: Rule::Backlog, scheduled: None, next_tick, enqueued: EnqueueSummary::default() }
    }
}
