//! The worker's side after the work: what each outcome makes of the record. Done, and nothing to do for a message by hand,
//! delete the record; superseded leaves it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::inflight::{ATTEMPT_LIMIT, InflightRecord, RecordOutcome};

/// Longest time that a retry is hidden.
const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60);

/// How long a message is hidden after its `retries`th retry: min(2^retries, 60) minutes.
pub fn retry_delay(retries: u32) -> Duration {
    // 2^6 is above the limit already.
    Duration::from_secs(60 << retries.min(6)).min(LONGEST_DELAY)
}

impl InflightRecord {
    /// After a retry outcome: the record under a new `gen`, and how long its message is hidden. This start left an outcome,
    /// so it is not one of the attempts.
    #[must_use]
    pub fn retried(&self, reason: &str, generation: Uuid, now: DateTime<Utc>) -> (Self, Duration) {
        let retries = self.retries.saturating_add(1);
        let delay = retry_delay(retries);
        let record = Self {
            retries,
            attempts: self.attempts.saturating_sub(1),
            not_before: Some(now + TimeDelta::from_std(delay).unwrap_or(TimeDelta::hours(1))),
            outcome: Some(RecordOutcome::Retry),
            reason: Some(reason.to_owned()),
            ..self.under(generation, now)
        };
        (record, delay)
    }

    /// When the message's budget ended with work left: the record under a new `gen`, whose message goes out at once. A
    /// continuation after progress starts from zero; one without counts as an attempt, so it cannot go on for ever.
    #[must_use]
    pub fn continued(&self, progressed: bool, generation: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            attempts: if progressed { 0 } else { self.attempts },
            retries: if progressed { 0 } else { self.retries },
            not_before: None,
            outcome: Some(RecordOutcome::Continued),
            reason: (!progressed).then(|| self.out_of_time()),
            ..self.under(generation, now)
        }
    }

    /// After it was given up: left alone until its inputs change or the cool-down ends.
    #[must_use]
    pub fn parked(&self, reason: &str, cooldown: TimeDelta, now: DateTime<Utc>) -> Self {
        self.at_rest(RecordOutcome::Parked, reason, cooldown, now)
    }

    /// After there was nothing to do, or nothing that may be done, though the planner had selected it: without this the
    /// planner would select it at every tick.
    #[must_use]
    pub fn cooled(&self, reason: &str, cooldown: TimeDelta, now: DateTime<Utc>) -> Self {
        Self { attempts: 0, retries: 0, ..self.at_rest(RecordOutcome::Cooling, reason, cooldown, now) }
    }

    /// A person puts it back into the queue: nothing that was counted counts.
    #[must_use]
    pub fn requeued(&self, generation: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            attempts: 0,
            retries: 0,
            step: None,
            not_before: None,
            outcome: None,
            reason: None,
            ..self.under(generation, now)
        }
    }

    fn under(&self, generation: Uuid, now: DateTime<Utc>) -> Self {
        Self { generation, written_at: now, sent_at: None, started_at: None, ..self.clone() }
    }

    fn at_rest(&self, outcome: RecordOutcome, reason: &str, cooldown: TimeDelta, now: DateTime<Utc>) -> Self {
        Self {
            // A time beyond the calendar is never.
            not_before: now.checked_add_signed(cooldown),
            outcome: Some(outcome),
            reason: Some(reason.to_owned()),
            ..self.clone()
        }
    }

    fn out_of_time(&self) -> String {
        let step = self.step.as_deref().unwrap_or("the first");
        format!("the time of one message ended at step {step} before anything was committed")
    }
}

/// What the poison function makes of a message that the host gave up.
#[derive(Debug, Clone, PartialEq)]
pub enum PoisonDecision {
    /// Write the parked entry and `record`.
    Park {
        /// Parked.
        record: Box<InflightRecord>,
        /// The reason of the last attempt.
        reason: String,
    },
    /// Write the parked entry alone: the partition went on without this message, or is parked already.
    Note {
        /// Why the message is there.
        reason: String,
    },
}

/// Decides for a message in the poison queue that was read; `generation` is its `gen`, None by hand; `record` is what the
/// blob of its partition holds and `leased` whether a worker has it.
pub fn decide_poison(
    record: Option<&InflightRecord>,
    generation: Option<Uuid>,
    leased: bool,
    cooldown: TimeDelta,
    now: DateTime<Utc>,
) -> PoisonDecision {
    let note = |reason: &str| PoisonDecision::Note { reason: reason.to_owned() };
    let Some(record) = record else {
        return note("the host gave the message up; its partition has no record, so it is done or was never started");
    };
    if leased {
        return note("the host gave the message up while another worker had the partition");
    }
    if record.is_at_rest() {
        return PoisonDecision::Note { reason: record.last_words() };
    }
    let its_own = match generation {
        Some(generation) => generation == record.generation,
        // A message by hand does not name the record that its deliveries wrote; their number gives it away.
        None => record.started_at.is_some() && record.attempts + 1 >= ATTEMPT_LIMIT,
    };
    if !its_own {
        return note("the host gave the message up; a newer message counts for its partition");
    }
    let reason = format!("attempts at {}: {}", record.attempts, record.last_words());
    PoisonDecision::Park { record: Box::new(record.parked(&reason, cooldown, now)), reason }
}

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;
