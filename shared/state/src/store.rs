//! Documents in blobs, changed by If-Match and If-None-Match only.

use std::sync::Arc;

use firn_model::BlobId;
use firn_storage::{BlobStore, DeleteCondition, Deleted, Lease, LeaseId, PutCondition, StorageError};
use futures::TryStreamExt;

use crate::address::{Address, StateRoot, segment};
use crate::document::{Document, decode, encode};
use crate::error::StateError;
use crate::inflight::InflightRecord;
use crate::parked::ParkedRecord;
use crate::passes::PassRecord;

/// The version of a document that was read or written: a change names the one it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(String);

/// A document with its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Read<T> {
    /// What it holds.
    pub value: T,
    /// For [`StateStore::replace`] and [`StateStore::delete`].
    pub version: Version,
}

/// The state of Firn. Clones are the same store.
#[derive(Debug, Clone)]
pub struct StateStore {
    blobs: Arc<dyn BlobStore>,
    lease: Arc<dyn Lease>,
    root: StateRoot,
}

impl StateStore {
    /// State below `root`, which exists.
    pub fn new(blobs: Arc<dyn BlobStore>, lease: Arc<dyn Lease>, root: StateRoot) -> Self {
        Self { blobs, lease, root }
    }

    /// Names of documents.
    pub fn root(&self) -> &StateRoot {
        &self.root
    }

    /// Leases of its blobs.
    pub fn lease(&self) -> &Arc<dyn Lease> {
        &self.lease
    }

    /// The store that holds its blobs, for what is no document (the blobs of commit turns).
    pub fn blobs(&self) -> &Arc<dyn BlobStore> {
        &self.blobs
    }

    /// The document, or None when there is none.
    ///
    /// # Errors
    /// [`StateError::Newer`], [`StateError::Unreadable`], or what the store says.
    pub async fn read<T: Document>(&self, address: &Address<T>) -> Result<Option<Read<T>>, StateError> {
        // The version first: when the document changes in between, it is older than the content, and a change that rests on
        // it is refused.
        match self.version(address).await? {
            Some(version) => self.content(address, version).await,
            None => Ok(None),
        }
    }

    /// The version of what stands there now.
    async fn version<T>(&self, address: &Address<T>) -> Result<Option<Version>, StateError> {
        match self.blobs.properties(address.blob()).await {
            Ok(properties) => Ok(Some(Version(properties.etag))),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn content<T: Document>(
        &self,
        address: &Address<T>,
        version: Version,
    ) -> Result<Option<Read<T>>, StateError> {
        match self.blobs.read_all(address.blob()).await {
            Ok(bytes) => Ok(Some(Read { value: decode(address.blob(), &bytes)?, version })),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a document that is not there yet.
    ///
    /// # Errors
    /// [`StateError::Changed`] when it is there.
    pub async fn create<T: Document>(&self, address: &Address<T>, document: &T) -> Result<Version, StateError> {
        self.put(address, document, PutCondition::IfAbsent, None).await
    }

    /// Replaces the version that was read; `lease` for who holds the blob's lease.
    ///
    /// # Errors
    /// [`StateError::Changed`] when it is another version or gone, [`StateError::Leased`] when another holds the lease, or
    /// `lease` has run out.
    pub async fn replace<T: Document>(
        &self,
        address: &Address<T>,
        document: &T,
        version: &Version,
        lease: Option<&LeaseId>,
    ) -> Result<Version, StateError> {
        self.put(address, document, PutCondition::IfMatch(version.0.clone()), lease).await
    }

    /// Replaces the version that was read, or creates the document where none was.
    ///
    /// # Errors
    /// As [`replace`](Self::replace) and [`create`](Self::create).
    pub async fn follow<T: Document>(
        &self,
        address: &Address<T>,
        document: &T,
        read: Option<&Version>,
    ) -> Result<Version, StateError> {
        match read {
            Some(version) => self.replace(address, document, version, None).await,
            None => self.create(address, document).await,
        }
    }

    /// Writes a document whatever was there: entries that only people read (parked, reports).
    ///
    /// # Errors
    /// What the store says.
    pub async fn write<T: Document>(&self, address: &Address<T>, document: &T) -> Result<Version, StateError> {
        self.put(address, document, PutCondition::Any, None).await
    }

    async fn put<T: Document>(
        &self,
        address: &Address<T>,
        document: &T,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Version, StateError> {
        let bytes = encode(address.blob(), document)?;
        Ok(Version(self.blobs.put_leased(address.blob(), bytes, condition, lease).await?.etag))
    }

    /// Deletes the version that was read; `lease` for who holds the blob's lease, which ends with it. Gone already is fine.
    ///
    /// # Errors
    /// As [`StateStore::replace`].
    pub async fn delete<T: Document>(
        &self,
        address: &Address<T>,
        version: &Version,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StateError> {
        let condition = DeleteCondition::IfMatch(version.0.clone());
        Ok(self.blobs.delete_leased(address.blob(), condition, lease).await?)
    }

    /// Deletes a document whatever its version.
    ///
    /// # Errors
    /// [`StateError::Leased`], or what the store says.
    pub async fn discard<T: Document>(&self, address: &Address<T>) -> Result<Deleted, StateError> {
        Ok(self.blobs.delete_leased(address.blob(), DeleteCondition::Any, None).await?)
    }

    /// Deletes what stands at a document's place and cannot be read as one ([`StateError::Unreadable`]): whoever looks next finds none. What
    /// can be read, was changed meanwhile or is leased by a worker stays.
    ///
    /// # Errors
    /// What the store says.
    pub async fn clear_damaged<T: Document>(&self, address: &Address<T>) -> Result<(), StateError> {
        let Some(version) = self.version(address).await? else { return Ok(()) };
        match self.content(address, version.clone()).await {
            Err(StateError::Unreadable { .. }) => match self.delete(address, &version, None).await {
                Err(error) if !error.is_conflict() => Err(error),
                _ => Ok(()),
            },
            Ok(_) | Err(StateError::Newer { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The in-flight records of a dataset, or of all of them.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list_inflight(&self, dataset: Option<&str>) -> Result<Vec<Listed<InflightRecord>>, StateError> {
        match dataset {
            Some(dataset) => self.list(&format!("inflight/{}/", segment(dataset))).await,
            None => self.list("inflight/").await,
        }
    }

    /// Every parked entry.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list_parked(&self) -> Result<Vec<Listed<ParkedRecord>>, StateError> {
        self.list("parked/").await
    }

    /// Every pass.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list_passes(&self) -> Result<Vec<Listed<PassRecord>>, StateError> {
        self.list("passes/").await
    }

    /// The receipts of a dataset, or of all of them, oldest first, with their parts.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list_receipts<T>(&self, dataset: Option<&str>) -> Result<Vec<Listed<T>>, StateError> {
        match dataset {
            Some(dataset) => self.list(&format!("receipts/{}/", segment(dataset))).await,
            None => self.list("receipts/").await,
        }
    }

    pub(crate) async fn list<T>(&self, prefix: &str) -> Result<Vec<Listed<T>>, StateError> {
        let prefix: BlobId = self.root.below(prefix);
        let blobs: Vec<_> = self.blobs.list(&prefix).try_collect().await?;
        let mut listed: Vec<_> = blobs
            .into_iter()
            .map(|blob| Listed { address: Address::new(blob.id), version: Version(blob.etag) })
            .collect();
        listed.sort_by(|one, other| one.address.blob().cmp(other.address.blob()));
        Ok(listed)
    }

    /// The content of a document that was listed; None when it is gone.
    ///
    /// # Errors
    /// As [`StateStore::read`].
    pub async fn read_listed<T: Document>(&self, listed: &Listed<T>) -> Result<Option<Read<T>>, StateError> {
        self.content(&listed.address, listed.version.clone()).await
    }
}

/// A document in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// Its name.
    pub address: Address<T>,
    /// Its version then.
    pub version: Version,
}
