//! A store that counts what is read.

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

/// Counts whole reads by key.
#[derive(Debug)]
pub struct CountingStore {
    behind: Arc<dyn BlobStore>,
    reads: Mutex<BTreeMap<String, usize>>,
}

impl CountingStore {
    pub fn new(behind: Arc<dyn BlobStore>) -> Self {
        Self { behind, reads: Mutex::default() }
    }

    /// Reads since the last call, by the last name of the key.
    pub fn take_reads(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }
}

#[async_trait]
impl BlobStore for CountingStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.behind.read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        let name = id.key.rsplit('/').next().unwrap().to_owned();
        *self.reads.lock().unwrap().entry(name).or_default() += 1;
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
        self.behind.put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
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
