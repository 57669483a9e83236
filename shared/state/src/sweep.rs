//! What orphan cleanup remembers of a table between sweeps: `sweeps/<table uuid>/record`, and beside it one blob with the files that the
//! last sweep saw unreferenced.
//!
//! The files are kept as fingerprints, 20 bytes each, in a blob that is written whole under a new name before the record points to it: a
//! sweep that dies leaves the former state. Nothing that is deleted hangs on what stands here alone; it can only delay.

use bytes::{BufMut, Bytes, BytesMut};
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use firn_storage::{PutCondition, StorageError};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::address::{Address, StateRoot, segment};
use crate::error::StateError;
use crate::store::StateStore;
use crate::time;

/// First bytes of the blob, with the version of its form.
const MAGIC: &[u8; 8] = b"firnsee1";
/// Bytes of one file in it.
const ENTRY: usize = 20;
/// Files read or written at once.
const AT_ONCE: usize = 1 << 16;

/// The last sweep of a table that came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepRecord {
    /// The table, for people.
    pub table: String,
    /// When it counted ages to.
    #[serde(with = "time")]
    pub swept_at: DateTime<Utc>,
    /// The table's last sequence number then.
    pub last_sequence_number: i64,
    /// Its snapshots then.
    pub snapshots: Vec<i64>,
    /// Name of the blob with the files that were unreferenced then.
    pub seen: String,
    /// How many.
    pub count: u64,
    /// Its receipt.
    pub receipt: String,
}

/// A file that a sweep saw unreferenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenFile {
    /// Fingerprint of its identity, upper half.
    pub high: u64,
    /// Lower half.
    pub low: u64,
    /// Since when, in seconds since 1970.
    pub since: u32,
}

impl StateRoot {
    /// `sweeps/<table uuid>/record`.
    pub fn sweep(&self, table_uuid: &str) -> Address<SweepRecord> {
        Address::new(self.below(&format!("sweeps/{}/record", segment(table_uuid))))
    }

    /// A blob of seen files, by the name that the record has.
    fn seen(&self, table_uuid: &str, name: &str) -> BlobId {
        self.below(&format!("sweeps/{}/{}", segment(table_uuid), segment(name)))
    }

    /// `receipts/<dataset>/<id>.json`; `part` for one of its parts.
    pub fn receipt<T>(&self, dataset: &str, id: &str, part: Option<u32>) -> Address<T> {
        let (dataset, id) = (segment(dataset), segment(id));
        Address::new(self.below(&match part {
            None => format!("receipts/{dataset}/{id}.json"),
            Some(part) => format!("receipts/{dataset}/{id}/{part:06}.json"),
        }))
    }

    /// `trash/<name>`: a deleted file of a local folder.
    pub fn trash(&self, name: &str) -> BlobId {
        self.below(&format!("trash/{name}"))
    }
}

impl StateStore {
    /// The files of a record, in the order in which they were written. None when the blob is gone: then nothing was seen.
    ///
    /// # Errors
    /// [`StateError::Unreadable`] for a blob of another form, or what the store says.
    pub async fn read_seen(&self, table_uuid: &str, name: &str) -> Result<Option<Vec<SeenFile>>, StateError> {
        let id = self.root().seen(table_uuid, name);
        let size = match self.blobs().properties(&id).await {
            Ok(properties) => properties.size,
            Err(StorageError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let unreadable = |detail: String| StateError::Unreadable { blob: Box::new(id.clone()), detail };
        let body = size.checked_sub(MAGIC.len() as u64).filter(|body| body % ENTRY as u64 == 0);
        let body = body.ok_or_else(|| unreadable(format!("{size} bytes are no whole number of files")))?;
        let magic = self.blobs().read(&id, 0..MAGIC.len() as u64).await?;
        if magic.as_ref() != MAGIC {
            return Err(unreadable("it is of another form".into()));
        }
        let mut files = Vec::with_capacity(usize::try_from(body).unwrap_or(0) / ENTRY);
        let mut at = MAGIC.len() as u64;
        while at < size {
            let end = size.min(at + (AT_ONCE * ENTRY) as u64);
            let bytes = self.blobs().read(&id, at..end).await?;
            files.extend(bytes.chunks_exact(ENTRY).filter_map(decode));
            at = end;
        }
        Ok(Some(files))
    }

    /// Writes files under a new name, which it gives.
    ///
    /// # Errors
    /// What the store says.
    pub async fn write_seen(
        &self,
        table_uuid: &str,
        files: impl Iterator<Item = SeenFile> + Send,
    ) -> Result<String, StateError> {
        let name = format!("seen-{}", Uuid::new_v4().simple());
        let mut upload = self.blobs().upload(&self.root().seen(table_uuid, &name)).await?;
        let mut block = BytesMut::from(&MAGIC[..]);
        for file in files {
            block.put_u64_le(file.high);
            block.put_u64_le(file.low);
            block.put_u32_le(file.since);
            if block.len() >= AT_ONCE * ENTRY {
                upload.write(block.split().freeze()).await?;
            }
        }
        if !block.is_empty() {
            upload.write(block.freeze()).await?;
        }
        upload.complete().await?;
        Ok(name)
    }

    /// Removes the files of a record that was replaced.
    ///
    /// # Errors
    /// What the store says.
    pub async fn discard_seen(&self, table_uuid: &str, name: &str) -> Result<(), StateError> {
        self.blobs().delete(&self.root().seen(table_uuid, name)).await?;
        Ok(())
    }

    /// Removes what sweeps wrote that were killed before it counted: blobs of seen files other than `keep` that are older than `before`.
    ///
    /// # Errors
    /// What the store says.
    pub async fn discard_left_seen(
        &self,
        table_uuid: &str,
        keep: &str,
        before: DateTime<Utc>,
    ) -> Result<(), StateError> {
        let keep = self.root().seen(table_uuid, keep);
        let mut listed = self.blobs().list(&self.root().seen(table_uuid, "seen-"));
        let mut left = Vec::new();
        while let Some(blob) = listed.next().await {
            let blob = blob?;
            if blob.id != keep && blob.last_modified < before {
                left.push(blob.id);
            }
        }
        for id in left {
            self.blobs().delete(&id).await?;
        }
        Ok(())
    }

    /// The time by the store's own clock, told by a small write (`clock`).
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_time(&self) -> Result<DateTime<Utc>, StateError> {
        let clock = self.root().below("clock");
        // A folder's files never go back in time, so that versions differ: one that was written by a clock ahead would say so ever after.
        self.blobs().delete(&clock).await?;
        Ok(self.blobs().put(&clock, Bytes::from_static(b"firn"), PutCondition::Any).await?.last_modified)
    }
}

fn decode(bytes: &[u8]) -> Option<SeenFile> {
    Some(SeenFile {
        high: u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?),
        low: u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?),
        since: u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_storage::MemoryStore;

    use super::*;

    fn state() -> StateStore {
        let store = Arc::new(MemoryStore::new());
        StateStore::new(store.clone(), store, StateRoot::new(BlobId::local("/state")))
    }

    #[tokio::test]
    async fn files_come_back_as_they_were_written_however_many() {
        let state = state();
        for count in [0, 1, AT_ONCE as u64 - 1, AT_ONCE as u64 * 2 + 7] {
            let files = || (0..count).map(|n| SeenFile { high: n, low: u64::MAX - n, since: n as u32 });
            let name = state.write_seen("t", files()).await.unwrap();
            assert_eq!(state.read_seen("t", &name).await.unwrap(), Some(files().collect::<Vec<_>>()), "{count}");
            state.discard_seen("t", &name).await.unwrap();
            assert_eq!(state.read_seen("t", &name).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn what_is_of_another_form_is_refused() {
        let state = state();
        for bytes in [&b"firnsee2"[..], b"firnsee1x", b""] {
            let id = state.root().seen("t", "x");
            state.blobs().put(&id, Bytes::copy_from_slice(bytes), PutCondition::Any).await.unwrap();
            let error = state.read_seen("t", "x").await.unwrap_err();
            assert!(matches!(error, StateError::Unreadable { .. }), "{error}");
        }
    }
}
