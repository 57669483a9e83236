//! A store that counts what is read and written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, LeaseId, ListedBlob, PutCondition, StorageError,
};
use futures::stream::BoxStream;

/// Counts whole reads and writes by key.
#[derive(Debug)]
pub struct CountingStore {
    behind: Arc<dyn BlobStore>,
    reads: Mutex<BTreeMap<String, usize>>,
    writes: Mutex<Vec<String>>,
}

fn name(id: &BlobId) -> String {
    id.key.rsplit('/').next().unwrap().to_owned()
}

impl CountingStore {
    pub fn new(behind: Arc<dyn BlobStore>) -> Self {
        Self { behind, reads: Mutex::default(), writes: Mutex::default() }
    }

    /// Reads since the last call, by the last name of the key.
    pub fn take_reads(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    /// Last names of the keys that were written since the last call.
    pub fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }
}

#[async_trait]
impl BlobStore for CountingStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.behind.read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        *self.reads.lock().unwrap().entry(name(id)).or_default() += 1;
        self.behind.read_all(id).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        self.behind.properties(id).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.writes.lock().unwrap().push(name(id));
        self.behind.put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.writes.lock().unwrap().push(name(id));
        self.behind.upload(id).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        self.behind.list(prefix)
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.behind.delete_leased(id, condition, lease).await
    }
}
