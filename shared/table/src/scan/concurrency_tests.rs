//! How many manifests are read at once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, LeaseId, ListedBlob, MemoryStore, PutCondition,
    StorageError,
};
use futures::stream::BoxStream;
use iceberg::spec::Struct;
use tokio::sync::Barrier;

use super::{SizeLimits, partition_stats};
use crate::testing::{Lake, Shape, data};
use crate::{PartitionFilter, TableStore};

/// A store whose reads of manifests wait until 16 of them are there.
#[derive(Debug)]
struct Gate {
    inner: MemoryStore,
    together: Barrier,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl BlobStore for Gate {
    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        if !id.key.contains("snap-") {
            let now = self.now.fetch_add(1, SeqCst) + 1;
            self.most.fetch_max(now, SeqCst);
            self.together.wait().await;
            self.now.fetch_sub(1, SeqCst);
        }
        self.inner.read_all(id).await
    }

    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.inner.read(id, range).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        self.inner.properties(id).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.inner.put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.inner.upload(id).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        self.inner.list(prefix)
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.inner.delete_leased(id, condition, lease).await
    }
}

#[tokio::test]
async fn sixteen_manifests_are_read_at_the_same_time_and_never_more() {
    let lake = Lake::new().await;
    let mut table = lake.create("t", Shape::partitioned(&[])).await;
    for n in 0..48 {
        table = lake.append(&table, vec![data(0, &format!("f{n}"), Struct::empty(), 1, |_| {})]).await;
    }
    let gate = Arc::new(Gate { inner: lake.store.clone(), together: Barrier::new(16), now: 0.into(), most: 0.into() });
    table.store = TableStore::new(gate.clone());
    let stats = partition_stats(&table, "main", &PartitionFilter::all(), SizeLimits::small_below(1)).await.unwrap();
    assert_eq!(stats[0].files, 48);
    assert_eq!(gate.most.load(SeqCst), 16);
}
