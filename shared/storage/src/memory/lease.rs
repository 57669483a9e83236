//! Leases of blobs in memory, by the rules of the Blob service.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use firn_model::BlobId;

use super::MemoryStore;
use crate::clock::later;
use crate::error::StorageError;
use crate::lease::{Lease, LeaseError, LeaseId, check_duration};

/// A lease that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    id: LeaseId,
    duration: Duration,
    runs_out: DateTime<Utc>,
}

/// The lease that stays on a blob after a write or delete with `given`, if that is allowed.
pub(super) fn check_write(
    blob: &BlobId,
    held: Option<&Held>,
    given: Option<&LeaseId>,
    now: DateTime<Utc>,
) -> Result<Option<Held>, StorageError> {
    let active = held.filter(|held| held.runs_out > now);
    match (active, given) {
        // A write ends what is left of a lease that has run out: it cannot be renewed any more.
        (None, None) => Ok(None),
        (Some(held), Some(given)) if held.id == *given => Ok(Some(held.clone())),
        _ => Err(StorageError::leased(blob)),
    }
}

#[async_trait]
impl Lease for MemoryStore {
    async fn acquire(&self, id: &BlobId, duration: Duration) -> Result<LeaseId, LeaseError> {
        check_duration(id, duration)?;
        let now = self.clock.now();
        let mut blobs = self.lock();
        let blob = blobs.by_id.get_mut(id).ok_or_else(|| LeaseError::not_found(id))?;
        if blob.lease.as_ref().is_some_and(|held| held.runs_out > now) {
            return Err(LeaseError::held(id));
        }
        let lease = LeaseId::random();
        blob.lease = Some(Held { id: lease.clone(), duration, runs_out: later(now, duration) });
        Ok(lease)
    }

    async fn renew(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let now = self.clock.now();
        let mut blobs = self.lock();
        let held = blobs.by_id.get_mut(id).and_then(|blob| blob.lease.as_mut()).filter(|held| held.id == *lease);
        let held = held.ok_or_else(|| LeaseError::lost(id))?;
        held.runs_out = later(now, held.duration);
        Ok(())
    }

    async fn release(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let mut blobs = self.lock();
        let blob = blobs.by_id.get_mut(id).ok_or_else(|| LeaseError::lost(id))?;
        if blob.lease.as_ref().is_none_or(|held| held.id != *lease) {
            return Err(LeaseError::lost(id));
        }
        blob.lease = None;
        Ok(())
    }
}
