//! The planner's side: whether a selected partition gets a message, and what becomes of records that nothing asks for.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::Rule;
use uuid::Uuid;

use crate::inflight::{ATTEMPT_LIMIT, InflightRecord, RecordOutcome, Selection};

/// A record whose message is not known to be sent waits this long for the empty queue to be believed.
pub const NOT_SENT_AFTER: TimeDelta = TimeDelta::minutes(5);
/// Silence after which a message counts as lost when the queue is empty.
pub const LOST_AFTER: TimeDelta = TimeDelta::hours(1);
/// Silence after which a message counts as lost whatever the queue says.
pub const LOST_FOR_CERTAIN_AFTER: TimeDelta = TimeDelta::hours(24);

/// What holds while the planner decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Whether the record's blob is under a lease. A planner that does not know says false: the write tells it
    /// ([`crate::StateError::Leased`]), and the partition is running.
    pub leased: bool,
    /// Whether the queue is empty, hidden messages included.
    pub queue_empty: bool,
    /// A fresh UUID for a message that may be sent.
    pub generation: Uuid,
    /// Now.
    pub now: DateTime<Utc>,
}

/// What the planner does for a selected partition. A write that finds the record changed or leased is no error: somebody
/// else took the partition further, and the next tick looks again.
#[derive(Debug, Clone, PartialEq)]
pub enum SendDecision {
    /// Write `record` (create it, or replace what was read), send its message, write [`InflightRecord::sent`].
    Send {
        /// Why.
        reason: SendReason,
        /// With a new `gen`.
        record: InflightRecord,
    },
    /// The message was never sent: write `record` if its rule was raised, send its message, write [`InflightRecord::sent`].
    Resend {
        /// With the `gen` it had.
        record: InflightRecord,
    },
    /// Replace the record; the worker takes the rule from there.
    RaiseRule {
        /// The weaker rule.
        from: Rule,
        /// With the stronger one.
        record: InflightRecord,
    },
    /// Nothing to do.
    Skip {
        /// Why.
        reason: SkipReason,
    },
}

/// Why a message is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendReason {
    /// There was no record.
    New,
    /// It was parked or cooling, and its inputs are others now. Its parked entry goes.
    InputsChanged,
    /// It was parked or cooling, and `notBefore` has passed. Its parked entry goes.
    CooledDown,
    /// It was cooling, and a stronger rule asks.
    StrongerRule,
    /// Its message is lost.
    Lost {
        /// The last sign of it.
        since: DateTime<Utc>,
    },
}

/// Why no message is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// A worker has it.
    Running,
    /// Its message waits or was being worked on a moment ago.
    Queued {
        /// The last sign of it.
        since: DateTime<Utc>,
    },
    /// It is tried again later.
    Waiting {
        /// When.
        until: DateTime<Utc>,
    },
    /// Parked.
    Parked {
        /// Why.
        why: String,
        /// Until then, unless its inputs change.
        until: Option<DateTime<Utc>>,
    },
    /// There was nothing to do the last time.
    Cooling {
        /// Why.
        why: String,
        /// Until then, unless its inputs change.
        until: Option<DateTime<Utc>>,
    },
}

/// Decides for a partition that the planner selected; `record` is what its blob holds.
pub fn decide_send(record: Option<&InflightRecord>, selection: &Selection, situation: &Situation) -> SendDecision {
    let Some(record) = record else {
        return send(SendReason::New, None, selection, situation);
    };
    if situation.leased {
        return SendDecision::Skip { reason: SkipReason::Running };
    }
    if record.is_at_rest() {
        return at_rest(record, selection, situation);
    }
    match silence(record, situation) {
        Silence::NotSent => {
            let rule = record.rule.max(selection.rule);
            SendDecision::Resend { record: InflightRecord { rule, ..record.clone() } }
        }
        Silence::Lost => send(SendReason::Lost { since: record.quiet_since() }, Some(record), selection, situation),
        Silence::Alive if selection.rule > record.rule => SendDecision::RaiseRule {
            from: record.rule,
            record: InflightRecord { rule: selection.rule, ..record.clone() },
        },
        Silence::Alive => {
            let since = record.quiet_since();
            let waiting = since > situation.now;
            let reason = if waiting { SkipReason::Waiting { until: since } } else { SkipReason::Queued { since } };
            SendDecision::Skip { reason }
        }
    }
}

fn at_rest(record: &InflightRecord, selection: &Selection, situation: &Situation) -> SendDecision {
    let cooling = record.outcome == Some(RecordOutcome::Cooling);
    let reason = if record.inputs_hash != selection.inputs_hash {
        SendReason::InputsChanged
    } else if record.not_before.is_some_and(|until| until <= situation.now) {
        SendReason::CooledDown
    } else if cooling && selection.rule > record.rule {
        SendReason::StrongerRule
    } else {
        let (why, until) = (record.last_words(), record.not_before);
        let reason = if cooling { SkipReason::Cooling { why, until } } else { SkipReason::Parked { why, until } };
        return SendDecision::Skip { reason };
    };
    send(reason, Some(record), selection, situation)
}

/// A record with a new `gen`. Attempts and retries survive while the inputs are the same.
fn send(
    reason: SendReason,
    before: Option<&InflightRecord>,
    selection: &Selection,
    situation: &Situation,
) -> SendDecision {
    let mut record = InflightRecord::new(selection, situation.generation, situation.now);
    if let Some(before) = before.filter(|before| before.inputs_hash == selection.inputs_hash) {
        // After the cool-down one more start shows whether it still fails; at the limit it would be parked unseen.
        let at_most = if before.is_at_rest() { ATTEMPT_LIMIT - 1 } else { u32::MAX };
        record.attempts = before.attempts.min(at_most);
        record.retries = before.retries;
        record.step = before.step.clone();
    }
    if let Some(before) = before.filter(|before| !before.is_at_rest()) {
        record.rule = record.rule.max(before.rule);
    }
    SendDecision::Send { reason, record }
}

/// What becomes of a record whose partition the planner does not select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverDecision {
    /// Delete it if it is unchanged.
    Forget {
        /// Why.
        reason: &'static str,
    },
    /// Leave it.
    Keep,
}

/// Decides for a record whose partition was not selected: its message or its waiting time may still be running.
pub fn decide_leftover(record: &InflightRecord, situation: &Situation) -> LeftoverDecision {
    if situation.leased {
        return LeftoverDecision::Keep;
    }
    if record.is_at_rest() {
        return match record.not_before.is_some_and(|until| until <= situation.now) {
            true => LeftoverDecision::Forget { reason: "its cool-down is over and no rule selects the partition" },
            false => LeftoverDecision::Keep,
        };
    }
    match silence(record, situation) {
        Silence::Alive => LeftoverDecision::Keep,
        Silence::NotSent => LeftoverDecision::Forget { reason: "it was never sent and no rule selects the partition" },
        Silence::Lost => LeftoverDecision::Forget { reason: "its message is lost and no rule selects the partition" },
    }
}

enum Silence {
    Alive,
    NotSent,
    Lost,
}

/// What the silence of a record that is not at rest and not leased means.
fn silence(record: &InflightRecord, situation: &Situation) -> Silence {
    let quiet = situation.now - record.quiet_since();
    let unsent = record.sent_at.is_none() && record.started_at.is_none();
    if quiet >= LOST_FOR_CERTAIN_AFTER || (quiet >= LOST_AFTER && situation.queue_empty) {
        // A message that was never sent has no `gen` to supersede, but a new one does no harm either.
        if unsent && situation.queue_empty { Silence::NotSent } else { Silence::Lost }
    } else if unsent && quiet >= NOT_SENT_AFTER && situation.queue_empty {
        Silence::NotSent
    } else {
        Silence::Alive
    }
}

impl fmt::Display for SendReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendReason::New => f.write_str("selected"),
            SendReason::InputsChanged => f.write_str("its inputs have changed since it was parked or found done"),
            SendReason::CooledDown => f.write_str("its cool-down is over"),
            SendReason::StrongerRule => f.write_str("a stronger rule asks for it"),
            SendReason::Lost { since } => write!(f, "its message is lost: nothing was heard of it since {since}"),
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = |f: &mut fmt::Formatter<'_>, until: &Option<DateTime<Utc>>| match until {
            Some(until) => write!(f, " (until {until} or until its inputs change)"),
            None => f.write_str(" (until its inputs change)"),
        };
        match self {
            SkipReason::Running => f.write_str("a worker has it"),
            SkipReason::Queued { since } => write!(f, "queued since {since}"),
            SkipReason::Waiting { until } => write!(f, "tried again at {until}"),
            SkipReason::Parked { why, until: time } => {
                write!(f, "parked: {why}")?;
                until(f, time)
            }
            SkipReason::Cooling { why, until: time } => {
                write!(f, "nothing to do the last time: {why}")?;
                until(f, time)
            }
        }
    }
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
