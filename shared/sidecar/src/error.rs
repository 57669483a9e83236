//! What can go wrong with a sidecar, by what the caller does next.

use std::io;

use firn_columnar::ColumnarError;
use firn_columnar::temp::used_up;
use firn_model::BlobId;
use firn_storage::StorageError;

/// A failure of a sidecar. None of them concerns the rows of the table.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// There is no such sidecar. Next: read the data file.
    #[error("{blob} does not exist: the data file is read instead")]
    Absent {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// What is there is no sidecar of this data file, is damaged or from a newer version. Next: read the data file; a person may delete
    /// the sidecar, and a later pass builds it again.
    #[error("{blob} cannot be used ({detail}): the data file is read instead")]
    Unusable {
        /// The blob.
        blob: Box<BlobId>,
        /// What is wrong with it.
        detail: String,
    },
    /// The store could not be read or written. Next: try again, or do without.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The sidecar would take more than it may, of memory or of temporary disk. Next: do without it; it does not fit the next time either.
    #[error("{what} needs {needed_bytes} bytes, {budget_bytes} are allowed: raise memoryMb or tempDiskMb")]
    OverBudget {
        /// What needs them.
        what: String,
        /// Bytes needed.
        needed_bytes: u64,
        /// Bytes allowed.
        budget_bytes: u64,
    },
    /// The disk itself is full or fails. Next: do without this sidecar; another time there may be room.
    #[error("temporary disk: {0}")]
    Disk(#[from] io::Error),
    /// A column cannot have this kind of sidecar. Next: correct the configuration.
    #[error("column `{column}` cannot be {what}: its type is {data_type}")]
    Unsupported {
        /// The column.
        column: String,
        /// What it was to be.
        what: &'static str,
        /// Its type.
        data_type: String,
    },
    /// Building or asking failed within a library. Next: do without this sidecar.
    #[error("{0}")]
    Failed(String),
}

impl SidecarError {
    /// A sidecar that cannot be used.
    pub(crate) fn unusable(blob: &BlobId, detail: impl Into<String>) -> SidecarError {
        SidecarError::Unusable { blob: Box::new(blob.clone()), detail: detail.into() }
    }

    /// What the store said of a sidecar.
    pub(crate) fn of_read(error: StorageError) -> SidecarError {
        match error {
            StorageError::NotFound { blob } => SidecarError::Absent { blob },
            StorageError::OutOfRange { blob, range, size } => SidecarError::Unusable {
                blob,
                detail: format!("it has {size} bytes, bytes {}..{} were to be read", range.start, range.end),
            },
            other => SidecarError::Storage(other),
        }
    }
}

impl From<tantivy::TantivyError> for SidecarError {
    fn from(error: tantivy::TantivyError) -> SidecarError {
        match error {
            tantivy::TantivyError::IoError(error) => match used_up(&error) {
                Some((needed_bytes, budget_bytes)) => SidecarError::OverBudget {
                    what: "the temporary files of a full-text index".into(),
                    needed_bytes,
                    budget_bytes,
                },
                None => SidecarError::Disk(io::Error::new(error.kind(), error.to_string())),
            },
            other => SidecarError::Failed(format!("full-text index: {other}")),
        }
    }
}

impl From<ColumnarError> for SidecarError {
    fn from(error: ColumnarError) -> SidecarError {
        match error {
            ColumnarError::Disk { path, source } => {
                SidecarError::Disk(io::Error::new(source.kind(), format!("{path}: {source}")))
            }
            other => SidecarError::Failed(other.to_string()),
        }
    }
}
