//! A store in the memory of the process, for tests of everything above and for small jobs.

mod lease;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::clock::Clock;
use crate::crc::crc64;
use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::store::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition, checked_range,
};
use lease::Held;

/// A blob store in memory, with leases. Clones share the blobs. Every container exists.
#[derive(Clone, Default)]
pub struct MemoryStore {
    blobs: Arc<Mutex<Blobs>>,
    clock: Clock,
}

#[derive(Default)]
struct Blobs {
    by_id: BTreeMap<BlobId, Blob>,
    writes: u64,
}

#[derive(Clone)]
struct Blob {
    data: Bytes,
    version: u64,
    written: DateTime<Utc>,
    /// The lease that was taken last, also when it has run out.
    lease: Option<Held>,
}

impl Blob {
    fn etag(&self) -> String {
        format!("{:x}", self.version)
    }

    fn properties(&self) -> BlobProperties {
        BlobProperties {
            size: self.data.len() as u64,
            etag: self.etag(),
            last_modified: self.written,
            crc64: Some(crc64(&self.data)),
            md5: None,
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose times and leases go by `clock`.
    pub fn with_clock(clock: Clock) -> Self {
        MemoryStore { clock, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Blobs> {
        // No code panics while it holds the lock, and the map is whole between two statements.
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: &BlobId) -> Result<Blob, StorageError> {
        self.lock().by_id.get(id).cloned().ok_or_else(|| StorageError::not_found(id))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} blobs)", self.lock().by_id.len())
    }
}

#[async_trait]
impl BlobStore for MemoryStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        if range.start == range.end {
            return Ok(Bytes::new());
        }
        let blob = self.get(id)?;
        Ok(blob.data.slice(checked_range(id, &range, blob.data.len() as u64)?))
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        Ok(self.get(id)?.data)
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        Ok(self.get(id)?.properties())
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        let now = self.clock.now();
        let mut blobs = self.lock();
        let existing = blobs.by_id.get(id);
        match (&condition, existing) {
            (PutCondition::IfAbsent, Some(_)) => return Err(StorageError::already_exists(id)),
            (PutCondition::IfMatch(_), None) => return Err(StorageError::precondition(id, "it is gone")),
            (PutCondition::IfMatch(etag), Some(blob)) => check_etag(id, blob, etag)?,
            _ => {}
        }
        let lease = lease::check_write(id, existing.and_then(|blob| blob.lease.as_ref()), lease, now)?;
        blobs.writes += 1;
        let blob = Blob { data, version: blobs.writes, written: now, lease };
        let properties = blob.properties();
        blobs.by_id.insert(id.clone(), blob);
        Ok(properties)
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        Ok(Box::new(MemoryUpload { store: self.clone(), id: id.clone(), data: BytesMut::new() }))
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        let blobs = self.lock();
        let same_place = |id: &BlobId| {
            id.account == prefix.account && id.container == prefix.container && id.key.starts_with(&prefix.key)
        };
        // Ids are ordered by account, container, key, so a prefix is one range of the map.
        let listed: Vec<_> = blobs
            .by_id
            .range(prefix.clone()..)
            .take_while(|(id, _)| same_place(id))
            .map(|(id, blob)| {
                let BlobProperties { size, etag, last_modified, .. } = blob.properties();
                Ok(ListedBlob { id: id.clone(), size, etag, last_modified })
            })
            .collect();
        stream::iter(listed).boxed()
    }

    async fn time(&self, _id: &BlobId) -> Result<Option<DateTime<Utc>>, StorageError> {
        Ok(Some(self.clock.now()))
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        let now = self.clock.now();
        let mut blobs = self.lock();
        let Some(blob) = blobs.by_id.get(id) else { return Ok(Deleted::Absent) };
        if let DeleteCondition::IfMatch(etag) = &condition {
            check_etag(id, blob, etag)?;
        }
        lease::check_write(id, blob.lease.as_ref(), lease, now)?;
        blobs.by_id.remove(id);
        Ok(Deleted::Deleted)
    }
}

fn check_etag(id: &BlobId, blob: &Blob, wanted: &str) -> Result<(), StorageError> {
    let found = blob.etag();
    match found == wanted {
        true => Ok(()),
        false => Err(StorageError::precondition(id, format!("ETag {found} instead of {wanted}"))),
    }
}

struct MemoryUpload {
    store: MemoryStore,
    id: BlobId,
    data: BytesMut,
}

#[async_trait]
impl BlobUpload for MemoryUpload {
    async fn write(&mut self, block: Bytes) -> Result<(), StorageError> {
        self.data.extend_from_slice(&block);
        Ok(())
    }

    async fn complete(self: Box<Self>) -> Result<BlobProperties, StorageError> {
        self.store.put(&self.id, self.data.freeze(), PutCondition::IfAbsent).await
    }

    async fn abort(self: Box<Self>) {}
}
