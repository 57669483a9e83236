//! Table statistics that were written: the sketches of a snapshot, read again.

use firn_model::BlobId;
use firn_storage::BlobStore;

use super::puffin::{self, OfSnapshot, OfWholeSnapshot};
use super::{decode, whole};
use crate::error::SidecarError;

/// The sketches of a snapshot as they stand in a statistics file of Firn's.
#[derive(Debug)]
pub struct StatisticsSketches {
    read: OfWholeSnapshot,
    id: BlobId,
    bytes: u64,
}

impl StatisticsSketches {
    /// Reads the statistics file `id` and checks what was written of it.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`] for what is no statistics file of Firn's or is damaged, or what the store says.
    pub async fn open(store: &dyn BlobStore, id: &BlobId) -> Result<StatisticsSketches, SidecarError> {
        let bytes = whole(store, id).await?;
        let read = puffin::read_of_snapshot(id, &bytes)?;
        Ok(StatisticsSketches { read, id: id.clone(), bytes: bytes.len() as u64 })
    }

    /// The snapshot.
    pub fn of(&self) -> OfSnapshot {
        self.read.of
    }

    /// Data files of the snapshot.
    pub fn files(&self) -> u64 {
        self.read.files
    }

    /// Rows of the snapshot.
    pub fn rows(&self) -> u64 {
        self.read.rows
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// By field id: about how many different values a column has, nulls not counted.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] for bytes that are no sketch.
    pub fn distinct(&self) -> Result<Vec<(i32, f64)>, SidecarError> {
        let mut found = Vec::with_capacity(self.read.blobs.len());
        for blob in &self.read.blobs {
            let estimate = decode(&self.id, blob)?.estimate();
            found.extend(blob.fields.iter().map(|field_id| (*field_id, estimate)));
        }
        Ok(found)
    }
}
