//! One store for a job whose blobs lie in a local folder and in storage accounts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::{BlobId, BlobIdError};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::azure::{AzureAccount, AzureOptions, AzureStore, ConnectionError};
use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::local::LocalStore;
use crate::store::{BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition};

/// Sends local ids to the file system and every other id to the store of its account. With an identity, accounts that nobody
/// named are opened with the same one when they are first met; a key is good for its account only, and any other is an
/// error that names it.
#[derive(Debug, Clone)]
pub struct RoutingStore {
    local: Arc<dyn BlobStore>,
    accounts: BTreeMap<String, Arc<dyn BlobStore>>,
    default_account: Option<String>,
    siblings: Option<Arc<Siblings>>,
}

/// Accounts that are opened with the identity of one that is configured.
#[derive(Debug)]
struct Siblings {
    of: AzureAccount,
    options: AzureOptions,
    opened: Mutex<BTreeMap<String, AzureStore>>,
}

impl Siblings {
    /// None: the credential is good for its own account only.
    fn store(&self, account: &str) -> Option<Result<AzureStore, ConnectionError>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = opened.get(account) {
            return Some(Ok(store.clone()));
        }
        let made = AzureStore::new(&self.of.sibling(account)?, self.options.clone());
        Some(made.inspect(|store| {
            opened.insert(account.to_owned(), store.clone());
        }))
    }
}

impl Default for RoutingStore {
    fn default() -> Self {
        RoutingStore {
            local: Arc::new(LocalStore::new()),
            accounts: BTreeMap::new(),
            default_account: None,
            siblings: None,
        }
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

    /// With a storage account, and with others that its identity can reach.
    ///
    /// # Errors
    /// As [`AzureStore::new`].
    pub fn with_connection(self, account: &AzureAccount, options: AzureOptions) -> Result<Self, ConnectionError> {
        let store = AzureStore::new(account, options.clone())?;
        Ok(self.with_account(account.account(), Arc::new(store)).with_siblings_of(account, options))
    }

    /// With every account that the identity of `account` can reach. Nothing changes where it has a key.
    #[must_use]
    pub fn with_siblings_of(mut self, account: &AzureAccount, options: AzureOptions) -> Self {
        self.siblings = Some(Arc::new(Siblings { of: account.clone(), options, opened: Mutex::default() }));
        self
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

    fn store(&self, id: &BlobId) -> Result<Arc<dyn BlobStore>, StorageError> {
        match self.named(id) {
            Some(store) => Ok(store.clone()),
            None => Ok(Arc::new(self.sibling(id)?)),
        }
    }

    /// The store that was given for it.
    fn named(&self, id: &BlobId) -> Option<&Arc<dyn BlobStore>> {
        if id.is_local() { Some(&self.local) } else { self.accounts.get(&id.account) }
    }

    fn sibling(&self, id: &BlobId) -> Result<AzureStore, StorageError> {
        match self.siblings.as_ref().and_then(|siblings| siblings.store(&id.account)) {
            Some(opened) => opened.map_err(|error| StorageError::invalid(id, error.to_string())),
            None => {
                let known: Vec<_> = self.accounts.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let account = &id.account;
                Err(StorageError::invalid(
                    id,
                    format!(
                        "no credentials for storage account `{account}`: a connection string is good for its own account; write \
                         storage.credential with an identity that has a role on both (configured: {known})"
                    ),
                ))
            }
        }
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
        match self.named(prefix) {
            Some(store) => store.list(prefix),
            None => match self.sibling(prefix) {
                Ok(store) => store.list_owned(prefix),
                Err(error) => stream::iter([Err(error)]).boxed(),
            },
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

    async fn time(&self, id: &BlobId) -> Result<Option<DateTime<Utc>>, StorageError> {
        self.store(id)?.time(id).await
    }

    async fn keeps_deleted_days(&self, id: &BlobId) -> Result<Option<u32>, StorageError> {
        self.store(id)?.keeps_deleted_days(id).await
    }

    async fn undelete(&self, id: &BlobId) -> Result<(), StorageError> {
        self.store(id)?.undelete(id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::ConnectionString;
    use crate::azure::identity::tests::scripted;
    use crate::azure::{AccountAddress, AzureAccount};
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

    #[tokio::test]
    async fn an_identity_reaches_accounts_that_nobody_named() {
        let address = AccountAddress { account: Some("state".into()), ..AccountAddress::default() };
        let account = AzureAccount::with_identity(&address, scripted(vec![]).0).unwrap();
        let routing = RoutingStore::new().with_connection(&account, AzureOptions::default()).unwrap();
        let id = routing.parse("abfss://lake@data.dfs.core.windows.net/.").unwrap();
        // Refused by that account's store, before anything is sent.
        let error = routing.read_all(&id).await.unwrap_err();
        assert!(error.to_string().contains("no blob can have this name"), "{error}");
        assert_eq!(routing.sibling(&id).unwrap().account(), "data");
    }
}
