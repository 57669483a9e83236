//! A note instead of an index: why a data file has none, so that no later pass reads it again to find that out.
//!
//! `<uuid>.none` beside the sidecars, JSON: `{"createdBy", "data": {"path", "size", "rows"}, "reason"}`.

use firn_model::BlobId;
use firn_storage::{BlobStore, PutCondition};
use serde::{Deserialize, Serialize};

use crate::bundle::created_by;
use crate::error::SidecarError;
use crate::identity::DataFile;

/// Ending of the names of notes.
pub const NOTE_ENDING: &str = "none";

/// Why a data file has no text index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoIndex {
    /// Who found that out.
    pub created_by: String,
    /// The data file.
    pub data: DataFile,
    /// Why, for a person.
    pub reason: String,
}

impl NoIndex {
    /// A note of this program.
    pub fn new(data: DataFile, reason: impl Into<String>) -> NoIndex {
        NoIndex { created_by: created_by(), data, reason: reason.into() }
    }

    /// Writes the note.
    ///
    /// # Errors
    /// What the store says ([`firn_storage::StorageError::AlreadyExists`] when there is one).
    pub async fn write(&self, store: &dyn BlobStore, id: &BlobId) -> Result<(), SidecarError> {
        let bytes = serde_json::to_vec(self).map_err(|error| SidecarError::Failed(error.to_string()))?;
        store.put(id, bytes.into(), PutCondition::IfAbsent).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use firn_storage::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_note_is_json_that_says_which_file_and_why() {
        let data = DataFile { path: "/t/data/a.parquet".into(), size: 7, rows: 2 };
        let (store, id) = (MemoryStore::default(), BlobId::local("/t/_firn/a.none"));
        let note = NoIndex::new(data, "written by `x`");
        note.write(&store, &id).await.unwrap();
        let read: NoIndex = serde_json::from_slice(&store.read_all(&id).await.unwrap()).unwrap();
        assert_eq!(read, note);
        assert!(note.write(&store, &id).await.is_err(), "it is written once");
    }
}
