//! The worker's side before the work: whether a delivered message is worked on.
//!
//! Order matters. A message that no longer counts is superseded before anything is counted or parked, so a losing
//! duplicate never parks a healthy partition.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::MessageKind;
use uuid::Uuid;

use crate::inflight::{ATTEMPT_LIMIT, InflightRecord, RecordOutcome, Selection};

/// How long a by-hand message that meets a running partition is hidden before it is tried again.
pub const BY_HAND_AGAIN_AFTER: TimeDelta = TimeDelta::minutes(5);

/// A delivered message for one partition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeliveredPartition<'a> {
    /// From the planner, or by hand.
    pub kind: MessageKind,
    /// What the message asks for. `inputs_hash` may be empty: the record's is kept.
    pub selection: &'a Selection,
    /// How often the queue has delivered this message, this time included.
    pub dequeue_count: u64,
    /// A fresh UUID: by hand the worker writes the record itself.
    pub generation: Uuid,
    /// `compaction.cooldownHours`: how long a parked partition is left alone.
    pub cooldown: TimeDelta,
    /// Now.
    pub now: DateTime<Utc>,
}

/// What the worker does. The record was read under its lease, or there was none.
#[derive(Debug, Clone, PartialEq)]
pub enum StartDecision {
    /// Write `record` under the lease, then work. By hand without a record: create it, take its lease, and work only if
    /// both succeed.
    Start {
        /// With this start counted.
        record: InflightRecord,
    },
    /// Answer; the record stays as it is.
    Superseded {
        /// Why.
        reason: SupersededReason,
    },
    /// Write the parked entry and `record`, then answer.
    Park {
        /// Parked.
        record: InflightRecord,
        /// For the person who reads the parked entry.
        reason: String,
    },
}

/// Why a message no longer counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupersededReason {
    /// Another worker holds the lease.
    LeaseHeld,
    /// The partition is done, or was never asked for.
    NoRecord,
    /// A newer message counts.
    OtherGeneration {
        /// Its `gen`.
        generation: Uuid,
    },
    /// It is parked or cooling.
    AtRest {
        /// Why.
        why: String,
    },
}

/// Decides for a message whose record's lease is free and taken now.
pub fn decide_start(record: Option<&InflightRecord>, delivered: &DeliveredPartition<'_>) -> StartDecision {
    let superseded = |reason| StartDecision::Superseded { reason };
    let current = match (delivered.kind, record) {
        (MessageKind::Worker { .. }, None) => return superseded(SupersededReason::NoRecord),
        (MessageKind::Worker { generation }, Some(record)) if generation != record.generation => {
            return superseded(SupersededReason::OtherGeneration { generation: record.generation });
        }
        (MessageKind::Worker { .. }, Some(record)) if record.is_at_rest() => {
            return superseded(SupersededReason::AtRest { why: record.last_words() });
        }
        (MessageKind::Worker { .. }, Some(record)) => record.clone(),
        (MessageKind::ByHandPartition | MessageKind::ByHandDataset, record) => by_hand(record, delivered),
    };
    let rule = current.rule.max(delivered.selection.rule);
    let current = InflightRecord { rule, ..current };
    match too_often(&current, delivered.dequeue_count) {
        Some(reason) => {
            // Deliveries that came to nothing before a start could be counted are attempts too.
            let deliveries = u32::try_from(delivered.dequeue_count).unwrap_or(u32::MAX).min(ATTEMPT_LIMIT);
            let counted = InflightRecord { attempts: current.attempts.max(deliveries), ..current };
            StartDecision::Park { record: counted.parked(&reason, delivered.cooldown, delivered.now), reason }
        }
        None => StartDecision::Start { record: started(&current, delivered.now) },
    }
}

/// What a message does whose record is under another worker's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldDecision {
    /// Answer: the other worker does the same work.
    Superseded,
    /// By hand: send the same text again, hidden for [`BY_HAND_AGAIN_AFTER`], and answer.
    SendAgain,
}

/// Decides for a message that finds the lease held.
pub fn decide_held(kind: MessageKind) -> HeldDecision {
    match kind {
        MessageKind::Worker { .. } => HeldDecision::Superseded,
        MessageKind::ByHandPartition | MessageKind::ByHandDataset => HeldDecision::SendAgain,
    }
}

/// A person's word weighs more than a record at rest: it starts afresh. A redelivery finds what its first delivery wrote.
fn by_hand(record: Option<&InflightRecord>, delivered: &DeliveredPartition<'_>) -> InflightRecord {
    let fresh = InflightRecord::new(delivered.selection, delivered.generation, delivered.now);
    match record {
        Some(record) if !record.is_at_rest() => InflightRecord {
            generation: delivered.generation,
            pass: delivered.selection.pass.clone(),
            written_at: delivered.now,
            ..record.clone()
        },
        _ => fresh,
    }
}

/// The reason to park, where the message or its record was tried too often.
fn too_often(record: &InflightRecord, dequeue_count: u64) -> Option<String> {
    let words = record.last_words();
    if record.attempts >= ATTEMPT_LIMIT {
        Some(format!("attempts at {}: {words}", record.attempts))
    } else if dequeue_count >= u64::from(ATTEMPT_LIMIT) {
        Some(format!("DequeueCount at {dequeue_count}, attempts at {}: {words}", record.attempts))
    } else {
        None
    }
}

/// The start is counted before the work, and taken back only by an outcome.
fn started(record: &InflightRecord, now: DateTime<Utc>) -> InflightRecord {
    InflightRecord {
        started_at: Some(now),
        sent_at: record.sent_at.or(Some(now)),
        attempts: record.attempts + 1,
        step: None,
        not_before: None,
        outcome: None,
        reason: None,
        ..record.clone()
    }
}

impl fmt::Display for SupersededReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SupersededReason::LeaseHeld => f.write_str("another worker has the partition"),
            SupersededReason::NoRecord => f.write_str("the partition is done: it has no record"),
            SupersededReason::OtherGeneration { generation } => write!(f, "a newer message counts: gen {generation}"),
            SupersededReason::AtRest { why } => write!(f, "the partition is parked or cooling: {why}"),
        }
    }
}

impl fmt::Display for RecordOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordOutcome::Retry => "retry",
            RecordOutcome::Continued => "continued",
            RecordOutcome::Parked => "parked",
            RecordOutcome::Cooling => "cooling",
        })
    }
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;
