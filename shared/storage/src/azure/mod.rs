//! Azure Blob and Queue Storage through the official SDK, one storage account a store, one queue a port.
//!
//! Each call of the SDK is made to be one request, and [`RetryPolicy`] repeats it: so what is known of a failed try stays
//! known, and a write whose answer was lost is looked up instead of being called a conflict.

mod account;
mod blocks;
mod client;
mod connection;
mod failure;
pub mod identity;
mod lease;
mod list;
mod queue;
mod read;
mod service;
mod signing;
mod undelete;
mod upload;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::Etag;
use azure_core::time::OffsetDateTime;
use azure_storage_blob::models::BlobClientGetPropertiesResultHeaders;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use futures::stream::BoxStream;
use std::ops::Range;

use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::retry::{Failure, RetryPolicy};
use crate::store::{BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition};
use client::Clients;

pub use account::{AccountAddress, AzureAccount, SasSource};
pub use blocks::BlockPlan;
pub use connection::{ConnectionError, ConnectionString};
pub use identity::{Identity, IdentityKind, TokenError, TokenSource};
pub use queue::AzureQueue;

/// Settings of an account's store. The defaults are right for Azure and for the emulator.
#[derive(Debug, Clone, Default)]
pub struct AzureOptions {
    /// Time-outs and retries.
    pub retry: RetryPolicy,
    /// How uploads are cut into blocks.
    pub blocks: BlockPlan,
    /// Version of the service to ask for (`x-ms-version`) instead of the SDK's; the emulator gets the newest that it knows.
    pub service_version: Option<String>,
}

/// The blobs of one storage account, and their leases. Clones share connections.
#[derive(Debug, Clone)]
pub struct AzureStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clients: Clients,
    options: AzureOptions,
    /// To open connections once more.
    account: AzureAccount,
}

impl AzureStore {
    /// A store for an account. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectionError::Client`] when the machine allows no HTTP client (for example no root certificates).
    pub fn new(account: &AzureAccount, options: AzureOptions) -> Result<AzureStore, ConnectionError> {
        let clients = Clients::new(account, &options)?;
        Ok(AzureStore { inner: Arc::new(Inner { clients, options, account: account.clone() }) })
    }

    /// The storage account, lower case.
    pub fn account(&self) -> &str {
        &self.inner.clients.account
    }

    /// As [`BlobStore::list`], by a stream that keeps the account open by itself.
    pub(crate) fn list_owned(&self, prefix: &BlobId) -> BoxStream<'static, Result<ListedBlob, StorageError>> {
        list::list(self.inner.clone(), prefix.clone())
    }

    /// Creates the container of `id` unless it exists.
    ///
    /// # Errors
    /// As any other call.
    pub async fn create_container(&self, id: &BlobId) -> Result<(), StorageError> {
        let client = self.inner.clients.container(id)?;
        let attempt = || async {
            match client.create(None).await.map_err(|error| Failure::of(&error)) {
                Err(failure) if failure.has_code("ContainerAlreadyExists") => Ok(()),
                result => result.map(|_| ()),
            }
        };
        self.inner.call("create container", id, attempt).await
    }
}

impl Inner {
    /// A call that may be repeated without harm.
    async fn call<T, F>(&self, doing: &str, id: &BlobId, mut attempt: impl FnMut() -> F) -> Result<T, StorageError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let retry = &self.options.retry;
        let result = retry.run(doing, id, || retry.timed(0, attempt())).await;
        result.map_err(|gave_up| gave_up.into_error(id, &self.clients.endpoint))
    }

    async fn properties(&self, id: &BlobId) -> Result<(BlobProperties, Option<String>), StorageError> {
        let client = self.clients.blob(id)?;
        self.call("read properties", id, || async {
            let answer = client.get_properties(None).await.map_err(|error| Failure::of(&error))?;
            let headers = || {
                let properties = BlobProperties {
                    size: answer.content_length()?.unwrap_or_default(),
                    etag: etag(answer.etag()?.as_ref()),
                    last_modified: time(answer.last_modified()?),
                    crc64: None,
                    md5: answer.content_md5()?.and_then(|md5| md5.try_into().ok()),
                };
                azure_core::Result::Ok((properties, answer.metadata()?.remove(write::WRITE_ID)))
            };
            headers().map_err(|error| Failure::of(&error))
        })
        .await
    }
}

#[async_trait]
impl BlobStore for AzureStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.inner.read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        self.inner.read_all(id).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        Ok(self.inner.properties(id).await?.0)
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.inner.put(id, data, &condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        Ok(Box::new(upload::Upload::new(self.inner.clone(), id.clone())?))
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        list::list(self.inner.clone(), prefix.clone())
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.inner.delete(id, &condition, lease).await
    }

    async fn time(&self, id: &BlobId) -> Result<Option<DateTime<Utc>>, StorageError> {
        self.inner.time(id).await.map(Some)
    }

    async fn keeps_deleted_days(&self, _id: &BlobId) -> Result<Option<u32>, StorageError> {
        self.soft_delete_days().await
    }

    async fn undelete(&self, id: &BlobId) -> Result<(), StorageError> {
        self.inner.undelete(id).await
    }
}

/// An ETag without its quotation marks: headers have them, listings do not.
fn etag(etag: Option<&Etag>) -> String {
    etag.map(|etag| etag.as_ref().trim_matches('"').to_owned()).unwrap_or_default()
}

/// The service always says when a blob was written; a time that is missing counts as the oldest.
fn time(time: Option<OffsetDateTime>) -> DateTime<Utc> {
    time.and_then(|time| DateTime::from_timestamp(time.unix_timestamp(), 0)).unwrap_or_default()
}
