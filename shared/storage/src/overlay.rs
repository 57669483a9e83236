//! A store over another one: blobs below some prefixes are reached with credentials of their own, as a catalog hands them out for a table.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use futures::stream::BoxStream;

use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::store::{BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition};

/// Where credentials of their own are good, and for what beside reading and writing.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Blobs whose key begins so; an empty container stands for the whole account.
    pub prefix: BlobId,
    /// The way to them.
    pub store: Arc<dyn BlobStore>,
    /// Whether it may list.
    pub lists: bool,
    /// Whether it may delete.
    pub deletes: bool,
}

impl Layer {
    fn covers(&self, id: &BlobId) -> bool {
        let Layer { prefix, .. } = self;
        let inside = || id.container == prefix.container && id.key.starts_with(&prefix.key);
        id.account == prefix.account && (prefix.container.is_empty() || inside())
    }
}

/// Sends each call to the layer with the longest prefix that may do it, everything else to the store below.
#[derive(Debug, Clone)]
pub struct OverlayStore {
    below: Arc<dyn BlobStore>,
    layers: Vec<Layer>,
}

impl OverlayStore {
    /// Layers over a store.
    pub fn new(below: Arc<dyn BlobStore>, mut layers: Vec<Layer>) -> OverlayStore {
        layers.sort_by_key(|layer| std::cmp::Reverse((!layer.prefix.container.is_empty(), layer.prefix.key.len())));
        OverlayStore { below, layers }
    }

    fn store(&self, id: &BlobId, may: impl Fn(&Layer) -> bool) -> &Arc<dyn BlobStore> {
        let layer = self.layers.iter().find(|layer| layer.covers(id) && may(layer));
        layer.map_or(&self.below, |layer| &layer.store)
    }

    fn any(&self, id: &BlobId) -> &Arc<dyn BlobStore> {
        self.store(id, |_| true)
    }
}

#[async_trait]
impl BlobStore for OverlayStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.any(id).read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        self.any(id).read_all(id).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        self.any(id).properties(id).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.any(id).put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.any(id).upload(id).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        self.store(prefix, |layer| layer.lists).list(prefix)
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.store(id, |layer| layer.deletes).delete_leased(id, condition, lease).await
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::memory::MemoryStore;

    fn id(url: &str) -> BlobId {
        BlobId::parse(url).unwrap()
    }

    async fn put(store: &dyn BlobStore, url: &str) {
        store.put(&id(url), Bytes::from_static(b"1"), PutCondition::Any).await.unwrap();
    }

    #[tokio::test]
    async fn each_call_goes_to_the_narrowest_layer_that_may_do_it() {
        let stores: Vec<MemoryStore> = (0..3).map(|_| MemoryStore::new()).collect();
        let layer = |prefix: BlobId, store: &MemoryStore, all: bool| Layer {
            prefix,
            store: Arc::new(store.clone()),
            lists: all,
            deletes: all,
        };
        let table = "abfss://lake@data.dfs.core.windows.net/wh/t/";
        let account = BlobId { account: "data".into(), container: String::new(), key: String::new() };
        let layers = vec![layer(account, &stores[1], false), layer(id(table), &stores[2], true)];
        let overlay = OverlayStore::new(Arc::new(stores[0].clone()), layers);
        for (url, expected) in [
            ("abfss://lake@data.dfs.core.windows.net/wh/t/x", 2),
            ("abfss://lake@data.dfs.core.windows.net/wh/tt/x", 1),
            ("abfss://other@data.dfs.core.windows.net/wh/t/x", 1),
            ("abfss://lake@state.dfs.core.windows.net/wh/t/x", 0),
        ] {
            put(&overlay, url).await;
            let holders: Vec<usize> = {
                let mut found = Vec::new();
                for (number, store) in stores.iter().enumerate() {
                    if store.exists(&id(url)).await.unwrap() {
                        found.push(number);
                    }
                }
                found
            };
            assert_eq!(holders, [expected], "{url}");
            assert_eq!(overlay.read_all(&id(url)).await.unwrap(), "1");
        }
        assert_eq!(overlay.list(&id(table)).count().await, 1);
        assert_eq!(overlay.delete(&id(&format!("{table}x"))).await.unwrap(), Deleted::Deleted);
        // The account's layer may neither list nor delete: the store below is asked, which has nothing there.
        let beside = "abfss://lake@data.dfs.core.windows.net/wh/tt/x";
        assert_eq!(overlay.list(&id(beside)).count().await, 0);
        assert_eq!(overlay.delete(&id(beside)).await.unwrap(), Deleted::Absent);
    }
}
