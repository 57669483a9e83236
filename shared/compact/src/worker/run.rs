//! The work on a claimed partition, between its start and its end.

use std::time::Instant;

use firn_config::{Dataset, hours};
use firn_model::{Message, MessageKind, Outcome, Rule};
use firn_telemetry::{PartitionResult, PartitionRun, PartitionStart};

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::claim::Claim;
use super::conclude::{Circumstances, conclude};
use super::defer::{self, defer};
use super::finish::{Ending, Finished};
use super::park::{park_message, park_partition};
use super::record::HeldRecord;
use super::start::Named;
use crate::control::RunControl;
use crate::host::HostServices;
use crate::partition::{PartitionJob, run_partition_with};

/// One message on its partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartitionWork<'a> {
    pub(crate) services: &'a HostServices,
    pub(crate) delivered: &'a Delivered,
    pub(crate) message: &'a Message,
    pub(crate) dataset: &'a Dataset,
    pub(crate) named: &'a Named,
    pub(crate) pass: &'a str,
}

impl PartitionWork<'_> {
    fn run(&self, rule: Rule, pass: &str) -> PartitionRun {
        let start = PartitionStart::new(
            &self.dataset.name,
            self.dataset.table.to_string(),
            &self.named.key,
            pass,
            &self.delivered.invocation_id,
            rule,
        );
        PartitionRun::start(&self.services.emitter, start)
    }

    /// Another message or worker does the same work.
    pub(crate) fn superseded(&self, reason: String, rule: Rule) -> WorkAnswer {
        self.run(rule, self.pass).finish(PartitionResult::new(Outcome::Superseded, reason.clone()));
        WorkAnswer::new(WorkOutcome::Superseded, reason)
    }

    /// The claim could not be decided.
    pub(crate) async fn not_started(&self, claim: Claim) -> WorkAnswer {
        let message = Some(self.message);
        match claim {
            Claim::Broken(reason) => park_message(self.services, self.delivered, message, reason).await,
            Claim::Unavailable(reason) => defer(self.services, self.delivered, message, defer::NO_ANSWER, reason).await,
            Claim::SendAgain => {
                let reason = "another worker has the partition".to_owned();
                defer(self.services, self.delivered, message, defer::BEING_WORKED_ON, reason).await
            }
            Claim::Superseded(reason) => WorkAnswer::new(WorkOutcome::Superseded, reason),
            Claim::Started(held) | Claim::Park { held, .. } => {
                held.release().await;
                defer::fail(self.services, self.delivered, message, "the claim was not used".into())
            }
        }
    }

    /// Works, or says why not.
    pub(crate) async fn claimed(self, claim: Claim, rule: Rule, deadline: Option<Instant>) -> WorkAnswer {
        match claim {
            Claim::Started(held) => self.start(held, deadline).await,
            Claim::Superseded(reason) => self.superseded(reason, rule),
            Claim::Park { held, record } => {
                let parked =
                    park_partition(self.services, self.delivered, &self.named.fingerprint, &held, &record).await;
                held.release().await;
                match parked {
                    Ok(event) => {
                        let answer = WorkAnswer::new(WorkOutcome::Parked, event.reason.clone());
                        self.services.emitter.emit(&event.counted());
                        answer
                    }
                    Err(reason) => {
                        let run = self.run(rule, self.pass);
                        run.finish(PartitionResult::new(Outcome::Failed, reason.clone()));
                        WorkAnswer::fault(reason)
                    }
                }
            }
            other => self.not_started(other).await,
        }
    }

    async fn start(self, held: HeldRecord, deadline: Option<Instant>) -> WorkAnswer {
        let record = held.steps.at_the_end().await.record;
        let run = self.run(record.rule, &record.pass);
        let job = PartitionJob {
            dataset: self.dataset,
            partition: self.named.key.clone(),
            rule: record.rule,
            pass: record.pass,
        };
        let control = RunControl {
            stop: held.steps.stop().clone(),
            deadline,
            bytes: self.dataset.compaction.message_budget_bytes(),
            steps: held.steps.clone(),
            turns: self.services.turns.clone(),
        };
        let mut report = run_partition_with(&self.services.compact, &job, &control).await;
        if held.steps.is_lost() && report.outcome == Outcome::Retry {
            report.reason = format!("the lease of the record was lost: {}", report.reason);
        }
        let end = held.steps.at_the_end().await;
        let circumstances = Circumstances {
            selected: matches!(self.message.kind(), MessageKind::Worker { .. }),
            same_inputs: end.same_inputs,
        };
        let conclusion = conclude(&report, circumstances);
        let ending = Ending {
            services: self.services,
            delivered: self.delivered,
            fingerprint: &self.named.fingerprint,
            cooldown: hours(self.dataset.compaction.cooldown_hours),
            held,
            reason: report.reason.clone(),
        };
        let finished = ending.write(conclusion, report.outcome).await;
        let result = |outcome, reason: &str| PartitionResult {
            outcome,
            reason: reason.to_owned(),
            ..PartitionResult::from(&report)
        };
        match finished {
            Finished::Answer { outcome, event, reason } => {
                run.finish(result(event, &reason));
                WorkAnswer::new(outcome, reason).counting(&report)
            }
            Finished::Parked(event) => {
                let answer = WorkAnswer::new(WorkOutcome::Parked, event.reason.clone()).counting(&report);
                run.park(*event);
                answer
            }
        }
    }
}
