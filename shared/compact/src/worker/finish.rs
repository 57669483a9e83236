//! Writes how the work ended, sends what has to be sent, and gives the lease back.
//!
//! The order: the record first, then the lease, then the message. A message that is sent under the lease could be delivered at once
//! and would find the lease held.

use std::time::Duration;

use chrono::TimeDelta;
use firn_model::Outcome;
use firn_state::{InflightRecord, StateError};
use firn_storage::SendOptions;
use firn_telemetry::Parked;
use uuid::Uuid;

use super::answer::{Delivered, WorkOutcome};
use super::conclude::Conclusion;
use super::kill::kill_point;
use super::park::park_partition;
use super::record::{HeldRecord, Release};
use crate::control::Step;
use crate::host::HostServices;

/// A lease that could not be given back ends within this.
const LEASE_RUNS_OUT: Duration = Duration::from_secs(65);

/// The end of one invocation's work.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) services: &'a HostServices,
    pub(crate) delivered: &'a Delivered,
    pub(crate) fingerprint: &'a str,
    pub(crate) cooldown: TimeDelta,
    pub(crate) held: HeldRecord,
    pub(crate) reason: String,
}

/// What the host is told and what the event says.
#[derive(Debug)]
pub(crate) enum Finished {
    /// The terminal event is that of the partition.
    Answer {
        /// For the host.
        outcome: WorkOutcome,
        /// For the event.
        event: Outcome,
        /// For both.
        reason: String,
    },
    /// The terminal event is this one.
    Parked(Box<Parked>),
}

impl Ending<'_> {
    /// Writes the conclusion; `outcome` is that of the work.
    pub(crate) async fn write(self, conclusion: Conclusion, outcome: Outcome) -> Finished {
        match conclusion {
            Conclusion::Finished => self.finished(outcome).await,
            Conclusion::Cool => self.cooled().await,
            Conclusion::Park => self.parked().await,
            Conclusion::Fault => self.fault().await,
            Conclusion::Retry => {
                let (generation, now) = (Uuid::new_v4(), self.services.clock.now());
                let reason = self.reason.clone();
                let delay = self.held.steps.at_the_end().await.record.retried(&reason, generation, now).1;
                self.again(WorkOutcome::Retry, outcome, delay, |record| record.retried(&reason, generation, now).0)
                    .await
            }
            Conclusion::Continue { progressed } => {
                let (generation, now) = (Uuid::new_v4(), self.services.clock.now());
                let event = if progressed { Outcome::Done } else { Outcome::Retry };
                self.again(WorkOutcome::Continued, event, Duration::ZERO, |record| {
                    record.continued(progressed, generation, now)
                })
                .await
            }
        }
    }

    async fn finished(self, outcome: Outcome) -> Finished {
        match self.held.steps.delete().await {
            Ok(()) => {}
            // Whoever has it by now finds nothing to do.
            Err(error) if error.is_conflict() => tracing::info!(%error, "the record is another worker's by now"),
            // The work is done; the planner takes the record for lost in an hour.
            Err(error) => tracing::warn!(%error, "the record of finished work was not deleted"),
        }
        kill_point(Step::OutcomeWritten.number());
        self.held.release().await;
        let word = match outcome {
            Outcome::Done => WorkOutcome::Done,
            Outcome::Superseded => WorkOutcome::Superseded,
            _ => WorkOutcome::Left,
        };
        Finished::Answer { outcome: word, event: outcome, reason: self.reason }
    }

    async fn cooled(self) -> Finished {
        let now = self.services.clock.now();
        let written = self.held.steps.write(|record| record.cooled(&self.reason, self.cooldown, now)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "the rest of a partition was not recorded; the planner may ask again");
        }
        kill_point(Step::OutcomeWritten.number());
        self.held.release().await;
        Finished::Answer { outcome: WorkOutcome::Cooling, event: Outcome::Left, reason: self.reason }
    }

    async fn parked(self) -> Finished {
        let now = self.services.clock.now();
        let record = self.held.steps.at_the_end().await.record.parked(&self.reason, self.cooldown, now);
        let parked = park_partition(self.services, self.delivered, self.fingerprint, &self.held, &record).await;
        kill_point(Step::OutcomeWritten.number());
        self.held.release().await;
        match parked {
            Ok(event) => Finished::Parked(Box::new(event)),
            Err(reason) => fault(reason),
        }
    }

    /// The start stays counted; the reason is what the parked entry will say after the last one.
    async fn fault(self) -> Finished {
        let reason = self.reason.clone();
        let written = self.held.steps.write(|record| InflightRecord { reason: Some(reason.clone()), ..record.clone() });
        if let Err(error) = written.await {
            tracing::warn!(%error, "the reason of a fault was not recorded");
        }
        self.held.release().await;
        fault(self.reason)
    }

    /// Under a new `gen`: record, lease, message.
    async fn again(
        self,
        word: WorkOutcome,
        event: Outcome,
        delay: Duration,
        change: impl Fn(&InflightRecord) -> InflightRecord,
    ) -> Finished {
        let before = self.held.steps.at_the_end().await.record;
        match self.held.steps.write(change).await {
            Ok(()) => {}
            Err(StateError::Changed { .. } | StateError::Leased { .. }) => {
                // Its worker has the same message: nothing is to be sent.
                let reason = format!("{}; another worker has the partition by now", self.reason);
                return Finished::Answer { outcome: WorkOutcome::Superseded, event, reason };
            }
            Err(error) => {
                let reason = format!("{}; the record was not written: {error}", self.reason);
                self.held.release().await;
                return fault(reason);
            }
        }
        kill_point(Step::OutcomeWritten.number());
        let steps = self.held.steps.clone();
        let record = steps.at_the_end().await.record;
        let hidden_for = match self.held.release().await {
            Release::Free => delay,
            Release::RunsOut => delay.max(LEASE_RUNS_OUT),
        };
        let sent = match record.message().to_json() {
            Ok(text) => {
                let options = SendOptions { hidden_for, time_to_live: None };
                self.services.queue.send(&text, &options).await.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            // The host delivers the old message again, so its `gen` must count.
            if let Err(error) = steps.write(|_| before.clone()).await {
                tracing::warn!(%error, "the record names a message that was not sent; the planner sends it");
            }
            return fault(format!("{}; the message for it was not sent: {error}", self.reason));
        }
        kill_point(Step::MessageSent.number());
        let now = self.services.clock.now();
        if let Err(error) = steps.write(|record| record.sent(now)).await {
            tracing::debug!(%error, "the sending was not noted: the next worker was faster");
        }
        Finished::Answer { outcome: word, event, reason: self.reason }
    }
}

fn fault(reason: String) -> Finished {
    Finished::Answer { outcome: WorkOutcome::Failed, event: Outcome::Failed, reason }
}
