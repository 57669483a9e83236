//! One store for a job whose blobs lie in a local folder and in storage accounts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::{BlobId, BlobIdError};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::azure::{AzureOptions, AzureStore, ConnectionError, ConnectionString};
use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::local::LocalStore;
use crate::store::{BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition};

/// Sends local ids to the file system and every other id to the store of its account. An account that nobody configured is
/// an error that names it.
#[derive(Debug, Clone)]
pub struct RoutingStore {
    local: Arc<dyn BlobStore>,
    accounts: BTreeMap<String, Arc<dyn BlobStore>>,
    default_account: Option<String>,
}

impl Default for RoutingStore {
    fn default() -> Self {
        RoutingStore { local: Arc::new(LocalStore::new()), accounts: BTreeMap::new(), default_account: None }
    }
}

impl RoutingStore {
    /// Local files only; accounts are added by [`RoutingStore::with_account`].
    pub fn new() -> Self {
        Self::default()
    }

    /// With another store for local files.
    #[must_use]
    pub fn with_local(mut self, store: Arc<dyn BlobStore>) -> Self {
        self.local = store;
        self
    }

    /// With a store for a storage account. The first one is also the account of URLs in the short form.
    #[must_use]
    pub fn with_account(mut self, account: &str, store: Arc<dyn BlobStore>) -> Self {
        let account = account.to_ascii_lowercase();
        self.default_account.get_or_insert_with(|| account.clone());
        self.accounts.insert(account, store);
        self
    }

    /// With the storage account of a connection string.
    ///
    /// # Errors
    /// As [`AzureStore::new`].
    pub fn with_connection(self, text: &ConnectionString, options: AzureOptions) -> Result<Self, ConnectionError> {
        Ok(self.with_account(text.account(), Arc::new(AzureStore::new(text, options)?)))
    }

    /// The account of URLs in the short form: the first that was added.
    pub fn default_account(&self) -> Option<&str> {
        self.default_account.as_deref()
    }

    /// The identity of a URL, see [`BlobId::parse_with`]: the short form belongs to the first configured account.
    ///
    /// # Errors
    /// As [`BlobId::parse_with`].
    pub fn parse(&self, url: &str) -> Result<BlobId, BlobIdError> {
        BlobId::parse_with(url, self.default_account.as_deref())
    }

    fn store(&self, id: &BlobId) -> Result<&Arc<dyn BlobStore>, StorageError> {
        if id.is_local() {
            return Ok(&self.local);
        }
        self.accounts.get(&id.account).ok_or_else(|| {
            let known: Vec<_> = self.accounts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let account = &id.account;
            StorageError::invalid(
                id,
                format!(
                    "no credentials for storage account `{account}`: set storage.connectionString (configured: {known})"
                ),
            )
        })
    }
}

#[async_trait]
impl BlobStore for RoutingStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.store(id)?.read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        self.store(id)?.read_all(id).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        self.store(id)?.properties(id).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.store(id)?.put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.store(id)?.upload(id).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        match self.store(prefix) {
            Ok(store) => store.list(prefix),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.store(id)?.delete_leased(id, condition, lease).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[tokio::test]
    async fn ids_go_to_the_store_of_their_account() {
        let (local, first, second) = (MemoryStore::new(), MemoryStore::new(), MemoryStore::new());
        let routing = RoutingStore::new()
            .with_local(Arc::new(local.clone()))
            .with_account("First", Arc::new(first.clone()))
            .with_account("second", Arc::new(second.clone()));
        for (url, store) in [("/x", &local), ("az://c/x", &first), ("abfss://c@Second.dfs.core.windows.net/x", &second)]
        {
            let id = routing.parse(url).unwrap();
            routing.put(&id, Bytes::from_static(b"1"), PutCondition::IfAbsent).await.unwrap();
            assert_eq!(store.read_all(&id).await.unwrap(), "1");
        }
        assert_eq!(routing.default_account(), Some("first"));
        let unknown = routing.parse("abfss://c@third.dfs.core.windows.net/x").unwrap();
        let error = routing.read_all(&unknown).await.unwrap_err();
        assert!(error.to_string().contains("no credentials for storage account `third`"), "{error}");
        assert!(error.to_string().contains("configured: first, second"), "{error}");
        assert_eq!(routing.list(&unknown).next().await, Some(Err(error)));
    }

    #[tokio::test]
    async fn a_connection_string_adds_its_account() {
        let connection = ConnectionString::parse("UseDevelopmentStorage=true").unwrap();
        let routing = RoutingStore::new().with_connection(&connection, AzureOptions::default()).unwrap();
        let id = routing.parse("az://lake/.").unwrap();
        assert_eq!(id.account, "devstoreaccount1");
        // Refused by the account's store, before anything is sent.
        let error = routing.read_all(&id).await.unwrap_err();
        assert!(matches!(error, StorageError::Invalid { .. }) && error.to_string().contains("no blob"), "{error}");
    }
}
