//! The port to leases: at most one holder of a blob at a time, for as long as it keeps saying so.
//!
//! Safety never rests on a lease alone: a holder that was stopped for a minute may still believe in it. Records are changed
//! by If-Match and commits by the catalog's requirements; the lease saves the work of the one who would lose.

mod keeper;

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firn_model::BlobId;

pub use keeper::LeaseKeeper;

/// The proof that one holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseId(String);

impl LeaseId {
    /// The id as a store gave it.
    pub fn new(id: impl Into<String>) -> Self {
        LeaseId(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn random() -> Self {
        LeaseId(azure_core::Uuid::new_v4().to_string())
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Shortest time that a lease can be taken for.
pub const MIN_LEASE: Duration = Duration::from_secs(15);

/// Longest time that a lease can be taken for; it is renewed for more.
pub const MAX_LEASE: Duration = Duration::from_secs(60);

/// Why there is no lease, by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// Another holds it. Next: leave the blob alone, or ask again later.
    #[error("{blob} is leased by another: leave it, or ask again later")]
    Held {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// No such blob. Next: create it first, or leave it.
    #[error("{blob} does not exist, so it cannot be leased")]
    NotFound {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// The lease ran out and is another's now, or its blob was changed or deleted since. Final. Next: stop the work that it
    /// protects.
    #[error("the lease of {blob} is lost: stop what it protects")]
    Lost {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// The credentials do not allow it. Next: stop; a person corrects key or role.
    #[error("{blob}: lease denied ({detail}): check the credentials of this account and their roles")]
    Denied {
        /// The blob.
        blob: Box<BlobId>,
        /// What the store said.
        detail: String,
    },
    /// The store is busy or cannot be reached, after all retries. Next: try later. An acquire may have happened: then the
    /// lease runs out by itself.
    #[error("{blob}: no answer about its lease ({detail}): try again")]
    Transient {
        /// The blob.
        blob: Box<BlobId>,
        /// What happened.
        detail: String,
    },
    /// Anything else. Next: stop and show it.
    #[error("{blob}: cannot lease it: {detail}")]
    Other {
        /// The blob.
        blob: Box<BlobId>,
        /// What happened.
        detail: String,
    },
}

impl LeaseError {
    /// Whether the same call may succeed later although nothing else changes.
    pub fn is_transient(&self) -> bool {
        matches!(self, LeaseError::Transient { .. })
    }

    pub(crate) fn held(id: &BlobId) -> Self {
        LeaseError::Held { blob: Box::new(id.clone()) }
    }

    pub(crate) fn not_found(id: &BlobId) -> Self {
        LeaseError::NotFound { blob: Box::new(id.clone()) }
    }

    pub(crate) fn lost(id: &BlobId) -> Self {
        LeaseError::Lost { blob: Box::new(id.clone()) }
    }

    pub(crate) fn other(id: &BlobId, detail: impl Into<String>) -> Self {
        LeaseError::Other { blob: Box::new(id.clone()), detail: detail.into() }
    }
}

/// Leases of blobs, as the Blob service has them: a blob under lease takes writes and deletes only with its lease id
/// ([`crate::BlobStore::put_leased`]), and reads from everybody.
#[async_trait]
pub trait Lease: Send + Sync + Debug {
    /// Takes the lease of a blob that exists, for [`MIN_LEASE`] to [`MAX_LEASE`].
    ///
    /// # Errors
    /// [`LeaseError::Held`] when another has it.
    async fn acquire(&self, id: &BlobId, duration: Duration) -> Result<LeaseId, LeaseError>;

    /// Makes the lease last its whole duration again, from now on. A lease that has run out may be renewed while nobody took
    /// it or changed the blob.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] is final.
    async fn renew(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError>;

    /// Gives the lease back, so that another can take it at once.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] when there was none to give back.
    async fn release(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError>;

    /// The same leases over connections of their own, for another runtime: a connection lives on the runtime that opened it.
    /// None when this port has no connections.
    fn separate(&self) -> Option<Arc<dyn Lease>> {
        None
    }
}

/// Refuses a duration that no store would take.
pub(crate) fn check_duration(id: &BlobId, duration: Duration) -> Result<(), LeaseError> {
    if (MIN_LEASE..=MAX_LEASE).contains(&duration) {
        return Ok(());
    }
    Err(LeaseError::other(id, format!("a lease lasts 15 s to 60 s, not {:.1} s", duration.as_secs_f64())))
}
