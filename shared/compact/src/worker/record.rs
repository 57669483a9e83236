//! The record of the partition in work: changed step by step under its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use firn_columnar::StopFlag;
use firn_state::{AbandonedOutputs, Address, InflightRecord, Read, StateError, StateStore, Version};
use firn_storage::{LeaseId, LeaseKeeper};
use tokio::sync::Mutex;

use super::kill::kill_point;
use crate::control::{Abandoned, Step, StepSink};

/// A record under the lease of this invocation, with the thread that keeps the lease.
#[derive(Debug)]
pub(crate) struct HeldRecord {
    pub(crate) steps: Arc<RecordSteps>,
    keeper: LeaseKeeper,
}

/// The part that the work itself sees.
#[derive(Debug)]
pub(crate) struct RecordSteps {
    state: Arc<StateStore>,
    address: Address<InflightRecord>,
    lease: LeaseId,
    lost: Arc<AtomicBool>,
    /// Ends this invocation's work, nobody else's.
    stop: StopFlag,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    record: InflightRecord,
    version: Version,
    /// Inputs as the planner saw them.
    planned: String,
}

/// How the record stands when the work is over.
#[derive(Debug, Clone)]
pub(crate) struct AtTheEnd {
    pub(crate) record: InflightRecord,
    pub(crate) same_inputs: bool,
}

/// Whether the lease was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// Another worker can take it at once.
    Free,
    /// It ends by itself within a minute.
    RunsOut,
}

impl HeldRecord {
    pub(crate) fn new(
        state: Arc<StateStore>,
        address: Address<InflightRecord>,
        lease: LeaseId,
        keeper: LeaseKeeper,
        read: Read<InflightRecord>,
        process_stop: &StopFlag,
    ) -> Self {
        let lost = keeper.lost_flag();
        let planned = read.value.inputs_hash.clone();
        let held = Held { record: read.value, version: read.version, planned };
        let stop = process_stop.child().also(lost.clone());
        let steps = RecordSteps { state, address, lease, lost, stop, held: Mutex::new(held) };
        Self { steps: Arc::new(steps), keeper }
    }

    /// Gives the lease back.
    pub(crate) async fn release(self) -> Release {
        match self.keeper.release().await {
            Ok(()) => Release::Free,
            Err(error) => {
                // A deleted record ends its lease itself, so this is the usual end.
                tracing::debug!(record = %self.steps.address.blob(), %error, "the lease ends by itself");
                Release::RunsOut
            }
        }
    }
}

impl RecordSteps {
    /// Set when the lease is lost or another worker changed the record.
    pub(crate) fn stop(&self) -> &StopFlag {
        &self.stop
    }

    /// Whether the lease is known to be lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The record as it stands.
    pub(crate) async fn at_the_end(&self) -> AtTheEnd {
        let held = self.held.lock().await;
        AtTheEnd { record: held.record.clone(), same_inputs: held.planned == held.record.inputs_hash }
    }

    /// Writes the record that `change` makes of the current one. After this the version is the one written.
    ///
    /// # Errors
    /// [`StateError::Changed`] or [`StateError::Leased`] when another worker has it.
    pub(crate) async fn write(&self, change: impl Fn(&InflightRecord) -> InflightRecord) -> Result<(), StateError> {
        let mut held = self.held.lock().await;
        let mut lease = (!self.is_lost()).then_some(&self.lease);
        let mut looked = false;
        loop {
            let next = change(&held.record);
            match self.state.replace(&self.address, &next, &held.version, lease).await {
                Ok(version) => {
                    held.record = next;
                    held.version = version;
                    return Ok(());
                }
                // A lease that ran out and that nobody took: the version alone decides.
                Err(StateError::Leased { .. }) if lease.is_some() => lease = None,
                // Nobody else writes under the lease: it may be a write of our own whose answer was lost.
                Err(error @ StateError::Changed { .. }) if !looked => {
                    looked = true;
                    held.version = self.own_version(&[&held.record, &next]).await?.ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The version of the record, if it is one of these: another worker's has another start.
    async fn own_version(&self, ours: &[&InflightRecord]) -> Result<Option<Version>, StateError> {
        let read = self.state.read(&self.address).await?;
        let is_ours = |found: &InflightRecord| {
            ours.iter().any(|own| found.generation == own.generation && found.started_at == own.started_at)
        };
        Ok(read.filter(|read| is_ours(&read.value)).map(|read| read.version))
    }

    /// Deletes the record; a record that another worker has by now stays.
    ///
    /// # Errors
    /// As [`RecordSteps::write`].
    pub(crate) async fn delete(&self) -> Result<(), StateError> {
        let mut held = self.held.lock().await;
        let mut lease = (!self.is_lost()).then_some(&self.lease);
        let mut looked = false;
        loop {
            match self.state.delete(&self.address, &held.version, lease).await {
                Ok(_) => return Ok(()),
                Err(StateError::Leased { .. }) if lease.is_some() => lease = None,
                Err(error @ StateError::Changed { .. }) if !looked => {
                    looked = true;
                    held.version = self.own_version(&[&held.record]).await?.ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl StepSink for RecordSteps {
    async fn step(&self, step: Step) -> Result<(), String> {
        if self.is_lost() {
            return Err(format!("the lease of the record was lost before step {step}"));
        }
        let text = step.to_string();
        let written = self.write(|record| match &step {
            Step::Loaded { inputs_hash } => record.with_inputs(inputs_hash).at_step(&text),
            _ => record.at_step(&text),
        });
        match written.await {
            Ok(()) => kill_point(step.number()),
            Err(error) if error.is_conflict() => {
                self.stop.stop();
                return Err(format!("another worker has the record at step {step}"));
            }
            // The lease still stands, and a step that is not noted harms nobody.
            Err(error) => tracing::warn!(%step, %error, "step not recorded"),
        }
        Ok(())
    }

    async fn abandoned(&self, outputs: Abandoned<'_>) {
        let note = async {
            let document = AbandonedOutputs {
                table: outputs.table.ident.to_string(),
                paths: outputs.paths.to_vec(),
                reason: outputs.reason.to_owned(),
                // The clock that sweeps count by.
                at: self.state.store_time().await?,
            };
            self.state.create(&self.state.root().abandoned(&outputs.table.uuid()), &document).await
        };
        if let Err(error) = note.await {
            tracing::info!(%error, "outputs without a commit were not noted: two sweeps will see them instead of one");
        }
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
