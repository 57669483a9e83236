//! Turns as leases: one blob per table in the state store (design section 6).

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use firn_state::StateStore;
use firn_storage::{LeaseError, LeaseId, LeaseKeeper, PutCondition, StorageError};
use tokio::time::{Instant, sleep};

use crate::turns::{CommitTurns, Turn};

/// A turn is renewed while its commit is being made; a holder that died gives it up after this.
const TURN: Duration = Duration::from_secs(15);
/// Nobody waits longer.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);
/// Time between two tries: a random part of this, at least half.
const BETWEEN_TRIES: Duration = Duration::from_millis(300);

/// Turns by leases in the state store.
#[derive(Debug, Clone)]
pub struct LeaseTurns {
    state: StateStore,
    wait_at_most: Duration,
}

impl LeaseTurns {
    /// Turns of the tables whose state is in `state`.
    pub fn new(state: StateStore) -> Self {
        Self { state, wait_at_most: WAIT_AT_MOST }
    }

    /// As [`LeaseTurns::new`], but a turn is waited for only so long.
    pub fn waiting_at_most(state: StateStore, wait_at_most: Duration) -> Self {
        Self { state, wait_at_most }
    }

    async fn acquire(&self, blob: &BlobId) -> Option<LeaseId> {
        let give_up = Instant::now() + self.wait_at_most;
        loop {
            match self.state.lease().acquire(blob, TURN).await {
                Ok(lease) => return Some(lease),
                Err(LeaseError::NotFound { .. }) => {
                    match self.state.blobs().put(blob, Bytes::new(), PutCondition::IfAbsent).await {
                        Ok(_) => continue,
                        // Somebody else created it.
                        Err(StorageError::AlreadyExists { .. }) => {}
                        Err(error) => {
                            tracing::warn!(%blob, %error, "no turns: their blob cannot be written");
                            return None;
                        }
                    }
                }
                Err(LeaseError::Held { .. }) => {}
                Err(error) if error.is_transient() => tracing::info!(%blob, %error, "waiting for a turn"),
                Err(error) => {
                    tracing::warn!(%blob, %error, "committing without a turn");
                    return None;
                }
            }
            let pause = BETWEEN_TRIES.mul_f64(rand::random_range(0.5..=1.0));
            if Instant::now() + pause >= give_up {
                tracing::info!(%blob, "the turn did not come in time, committing without");
                return None;
            }
            sleep(pause).await;
        }
    }
}

#[async_trait]
impl CommitTurns for LeaseTurns {
    async fn take(&self, table_uuid: &str) -> Option<Box<dyn Turn>> {
        let blob = self.state.root().turn(table_uuid);
        let lease = self.acquire(&blob).await?;
        match LeaseKeeper::hold(self.state.lease().clone(), blob.clone(), lease, TURN) {
            Ok(keeper) => Some(Box::new(LeaseTurn { keeper })),
            Err(error) => {
                tracing::warn!(%blob, %error, "the turn cannot be kept, committing without");
                None
            }
        }
    }
}

#[derive(Debug)]
struct LeaseTurn {
    keeper: LeaseKeeper,
}

#[async_trait]
impl Turn for LeaseTurn {
    async fn give_back(self: Box<Self>) {
        if let Err(error) = self.keeper.release().await {
            tracing::info!(%error, "a turn was not given back, it ends by itself");
        }
    }
}
