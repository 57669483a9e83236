//! Why a state blob could not be read or changed, by what the caller does next.

use firn_model::BlobId;
use firn_storage::StorageError;

use crate::document::DOCUMENT_VERSION;

/// A failure of the state store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Another writer changed, created or deleted it first. Next: read it again and decide again.
    #[error("{blob} was changed by another writer: read it again")]
    Changed {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// A worker has it. Next: leave it.
    #[error("{blob} is leased by a worker: leave it")]
    Leased {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// A newer Firn wrote it. Next: stop; a person deploys the newer version everywhere.
    #[error(
        "{blob} has version {version}, this Firn reads up to {DOCUMENT_VERSION}: deploy the newer Firn that wrote it"
    )]
    Newer {
        /// The blob.
        blob: Box<BlobId>,
        /// Its version.
        version: u64,
    },
    /// It is no document of Firn. Next: pass it over; a person deletes it, and the planner writes it anew.
    #[error("{blob} cannot be read as a document of Firn: {detail}; delete it to begin anew")]
    Unreadable {
        /// The blob.
        blob: Box<BlobId>,
        /// What is wrong with it.
        detail: String,
    },
    /// The configuration names no place for state.
    #[error("{0}")]
    Configuration(String),
    /// The store failed. Next: as it says.
    #[error(transparent)]
    Storage(StorageError),
}

impl StateError {
    /// Whether the same call may succeed later although nothing else changes.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StateError::Storage(error) if error.is_retryable())
    }

    /// Whether somebody else was faster: no failure, the caller looks again or leaves it.
    pub fn is_conflict(&self) -> bool {
        matches!(self, StateError::Changed { .. } | StateError::Leased { .. })
    }
}

impl From<StorageError> for StateError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Precondition { blob, .. } | StorageError::AlreadyExists { blob } => {
                StateError::Changed { blob }
            }
            StorageError::Leased { blob } => StateError::Leased { blob },
            other => StateError::Storage(other),
        }
    }
}
