//! Takes the record of a partition under lease and counts the start, or says why not.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use firn_columnar::StopFlag;
use firn_state::{
    Address, DeliveredPartition, HeldDecision, InflightRecord, Read, StartDecision, StateError, StateStore,
    decide_held, decide_start,
};
use firn_storage::{LeaseError, LeaseId, LeaseKeeper};

use super::kill::kill_point;
use super::record::HeldRecord;
use crate::control::Step;

/// How long the record's lease lasts without renewal; it is renewed every third of it.
const LEASE: Duration = Duration::from_secs(60);
/// How often a record that changes under our eyes is looked at again.
const LOOKS: usize = 4;

/// What became of a claim.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The start is counted: work.
    Started(HeldRecord),
    /// Nothing to work on; the record stays as it is.
    Superseded(String),
    /// By hand, and another worker has the partition: the message is sent again.
    SendAgain,
    /// Tried too often: `record` is to be written and an entry parked.
    Park {
        /// As it was claimed.
        held: HeldRecord,
        /// Parked.
        record: Box<InflightRecord>,
    },
    /// The state store does not answer, or refuses.
    Unavailable(String),
    /// A person must look at the record itself.
    Broken(String),
}

/// The record of one partition.
#[derive(Debug)]
pub(crate) struct Claiming<'a> {
    pub(crate) state: &'a Arc<StateStore>,
    pub(crate) address: Address<InflightRecord>,
    pub(crate) delivered: DeliveredPartition<'a>,
    pub(crate) stop: &'a StopFlag,
}

impl Claiming<'_> {
    /// Whether the message is void already, without touching anything: stale messages are cheap.
    pub(crate) async fn is_void(&self) -> Result<Option<String>, Claim> {
        let read = self.state.read(&self.address).await.map_err(not_read)?;
        Ok(match decide_start(read.as_ref().map(|read| &read.value), &self.delivered) {
            StartDecision::Superseded { reason } => Some(reason.to_string()),
            StartDecision::Start { .. } | StartDecision::Park { .. } => None,
        })
    }

    /// Takes the lease, decides and counts the start.
    pub(crate) async fn claim(&self) -> Claim {
        for _ in 0..LOOKS {
            if self.by_hand()
                && let Err(claim) = self.create_if_absent().await
            {
                return claim;
            }
            let lease = match self.state.lease().acquire(self.address.blob(), LEASE).await {
                Ok(lease) => lease,
                Err(LeaseError::Held { .. }) => return self.held_by_another(),
                Err(LeaseError::NotFound { .. }) if self.by_hand() => continue,
                Err(LeaseError::NotFound { .. }) => {
                    return Claim::Superseded("the partition is done: it has no record".into());
                }
                // Nothing is wrong with the partition when the store refuses (a missing role, a container on its way): a parked one
                // would wait for a person after that is mended.
                Err(error) => return Claim::Unavailable(error.to_string()),
            };
            match self.under_lease(lease).await {
                Ok(Some(claim)) => return claim,
                // It went away between the look and the lease.
                Ok(None) => {}
                Err(claim) => return claim,
            }
        }
        Claim::Unavailable(format!("{} keeps changing", self.address.blob()))
    }

    fn by_hand(&self) -> bool {
        !matches!(self.delivered.kind, firn_model::MessageKind::Worker { .. })
    }

    fn held_by_another(&self) -> Claim {
        match decide_held(self.delivered.kind) {
            HeldDecision::Superseded => Claim::Superseded("another worker has the partition".into()),
            HeldDecision::SendAgain => Claim::SendAgain,
        }
    }

    /// By hand the worker writes the record itself.
    async fn create_if_absent(&self) -> Result<(), Claim> {
        let record = InflightRecord::new(self.delivered.selection, self.delivered.generation, self.delivered.now);
        match self.state.read(&self.address).await.map_err(not_read)? {
            Some(_) => Ok(()),
            None => match self.state.create(&self.address, &record).await {
                Ok(_) => Ok(()),
                // Somebody else was faster: theirs is as good.
                Err(error) if error.is_conflict() => Ok(()),
                Err(error) => Err(not_read(error)),
            },
        }
    }

    async fn under_lease(&self, lease: LeaseId) -> Result<Option<Claim>, Claim> {
        let blob = self.address.blob().clone();
        let keeper = LeaseKeeper::hold(self.state.lease().clone(), blob, lease.clone(), LEASE)
            .map_err(|error| Claim::Unavailable(error.to_string()))?;
        let read = match self.state.read(&self.address).await {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            Err(error) => {
                let _ = keeper.release().await;
                return Err(not_read(error));
            }
        };
        let decision = decide_start(Some(&read.value), &self.delivered);
        let held = self.hold(lease, keeper, read);
        match decision {
            StartDecision::Superseded { reason } => {
                held.release().await;
                Ok(Some(Claim::Superseded(reason.to_string())))
            }
            StartDecision::Park { record, .. } => Ok(Some(Claim::Park { held, record: Box::new(record) })),
            StartDecision::Start { record } => {
                let started = record.at_step(&Step::Leased.to_string());
                match held.steps.write(|_| started.clone()).await {
                    Ok(()) => {
                        kill_point(Step::Leased.number());
                        Ok(Some(Claim::Started(held)))
                    }
                    // Without the count a worker that always dies would never be parked.
                    Err(error) => {
                        held.release().await;
                        match error.is_conflict() {
                            true => Ok(Some(self.held_by_another())),
                            false => Err(not_read(error)),
                        }
                    }
                }
            }
        }
    }

    fn hold(&self, lease: LeaseId, keeper: LeaseKeeper, read: Read<InflightRecord>) -> HeldRecord {
        HeldRecord::new(self.state.clone(), self.address.clone(), lease, keeper, read, self.stop)
    }
}

/// What an error of the state store means for a message.
fn not_read(error: StateError) -> Claim {
    match &error {
        StateError::Storage(_) | StateError::Changed { .. } | StateError::Leased { .. } => {
            Claim::Unavailable(error.to_string())
        }
        StateError::Newer { .. } | StateError::Unreadable { .. } | StateError::Configuration(_) => {
            Claim::Broken(error.to_string())
        }
    }
}

/// Seconds from `now` until `then`; None when it has passed.
pub(crate) fn time_left(then: DateTime<Utc>, now: DateTime<Utc>) -> Option<Duration> {
    (then - now).to_std().ok().filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use firn_model::BlobId;
    use firn_storage::StorageError;

    use super::*;

    #[test]
    fn a_store_that_refuses_is_no_reason_to_give_a_partition_up() {
        let blob = || Box::new(BlobId::local("/state/inflight/a"));
        let refused = StorageError::Denied { blob: blob(), detail: "HTTP 403".into() };
        let odd = StorageError::Other { blob: blob(), detail: "HTTP 409 ContainerBeingDeleted".into() };
        for error in [refused, odd] {
            let claim = not_read(StateError::Storage(error));
            assert!(matches!(claim, Claim::Unavailable(_)), "{claim:?}");
        }
        let unreadable = StateError::Unreadable { blob: blob(), detail: "no JSON".into() };
        assert!(matches!(not_read(unreadable), Claim::Broken(_)));
    }
}
