//! The port to a blob store.

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use futures::stream::BoxStream;

use crate::error::StorageError;
use crate::lease::LeaseId;

/// What a store knows of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobProperties {
    /// Size in bytes.
    pub size: u64,
    /// Changes with every write of the blob; for [`PutCondition::IfMatch`].
    pub etag: String,
    /// Time of the last write by the store's clock, never by ours.
    pub last_modified: DateTime<Utc>,
    /// CRC-64 of the content (see [`crate::crc`]): known after a put or an upload of one's own.
    pub crc64: Option<u64>,
    /// MD5 of the content, where the store keeps one. Azure keeps what the writer said and does not check it.
    pub md5: Option<[u8; 16]>,
}

/// A blob in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBlob {
    /// Identity; its key begins with the prefix that was listed.
    pub id: BlobId,
    /// Size in bytes.
    pub size: u64,
    /// As [`BlobProperties::etag`].
    pub etag: String,
    /// As [`BlobProperties::last_modified`].
    pub last_modified: DateTime<Utc>,
}

/// What must hold for a put to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// Nothing: what is there is replaced.
    Any,
    /// No blob of that name.
    IfAbsent,
    /// A blob of that name with this ETag.
    IfMatch(String),
}

/// What must hold for a delete to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteCondition {
    /// Nothing.
    Any,
    /// The blob has this ETag. A blob that is gone is [`Deleted::Absent`] all the same.
    IfMatch(String),
}

/// What a delete found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The blob was there and is gone.
    Deleted,
    /// There was no such blob.
    Absent,
}

/// A blob store. Every method retries what is worth a retry by itself; an error is final for this call.
///
/// A put or an upload becomes visible whole or not at all.
#[async_trait]
pub trait BlobStore: Send + Sync + Debug {
    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    /// [`StorageError::OutOfRange`] when the blob ends before the range does, never fewer bytes. An empty range gives no
    /// bytes without looking.
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError>;

    /// The whole blob, of one version. For small blobs: it is held in memory.
    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError>;

    /// Size, ETag and time of a blob.
    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError>;

    /// Writes a whole blob.
    ///
    /// # Errors
    /// [`StorageError::AlreadyExists`] and [`StorageError::Precondition`] say that the condition did not hold. A write whose
    /// answer was lost is looked up before either is said; where that cannot tell, [`StorageError::Unknown`].
    async fn put(&self, id: &BlobId, data: Bytes, condition: PutCondition) -> Result<BlobProperties, StorageError> {
        self.put_leased(id, data, condition, None).await
    }

    /// As [`BlobStore::put`], for who holds the blob's lease.
    ///
    /// # Errors
    /// Also [`StorageError::Leased`]: the blob is under a lease that is not `lease`, or `lease` has run out. With
    /// [`PutCondition::IfAbsent`] a blob under any lease is [`StorageError::AlreadyExists`].
    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError>;

    /// Begins a streaming write, which creates the blob only if it is absent.
    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError>;

    /// Every blob of the container whose key begins with the key of `prefix`, in no promised order, folders opened. A folder
    /// or prefix without blobs gives nothing. An item that is an error may be followed by others only when it concerns one
    /// blob ([`StorageError::Invalid`]).
    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>>;

    /// Deletes a blob, and says whether it was there. When the answer to a delete was lost and the blob is found gone, that
    /// is [`Deleted::Deleted`].
    async fn delete(&self, id: &BlobId) -> Result<Deleted, StorageError> {
        self.delete_leased(id, DeleteCondition::Any, None).await
    }

    /// As [`BlobStore::delete`], if the condition holds, for who holds the blob's lease; the lease ends with the blob.
    ///
    /// # Errors
    /// [`StorageError::Precondition`] for another ETag, [`StorageError::Leased`] as for [`BlobStore::put_leased`].
    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError>;

    /// The time by the store's own clock, asked without writing anything; None: it has no other than this machine. `id` is a blob or a
    /// folder of the container that is asked.
    ///
    /// # Errors
    /// As any other call.
    async fn time(&self, _id: &BlobId) -> Result<Option<DateTime<Utc>>, StorageError> {
        Ok(None)
    }

    /// For how many days blobs beside `id` are kept after they were deleted; None: they are not, or the store has no such thing.
    ///
    /// # Errors
    /// [`StorageError::Denied`] for an identity that may not see the settings of its account.
    async fn keeps_deleted_days(&self, _id: &BlobId) -> Result<Option<u32>, StorageError> {
        Ok(None)
    }

    /// Brings a deleted blob back that the store has kept. One that is there stays as it is. Ok: it is there afterwards, as the store says
    /// when asked for it.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when nothing is kept under this name, [`StorageError::Invalid`] for a store that keeps nothing.
    async fn undelete(&self, id: &BlobId) -> Result<(), StorageError> {
        Err(StorageError::invalid(id, "this store keeps no deleted blobs"))
    }

    /// Whether the blob is there.
    async fn exists(&self, id: &BlobId) -> Result<bool, StorageError> {
        match self.properties(id).await {
            Ok(_) => Ok(true),
            Err(StorageError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A streaming write. Nothing is visible before [`BlobUpload::complete`] returns; dropping it leaves nothing visible either.
#[async_trait]
pub trait BlobUpload: Send {
    /// Adds the next bytes, any number of them. After an error the upload is useless.
    async fn write(&mut self, block: Bytes) -> Result<(), StorageError>;

    /// Makes the blob visible, if there is none of its name. The properties carry the CRC-64 of all bytes written.
    ///
    /// # Errors
    /// [`StorageError::AlreadyExists`] when there is one.
    async fn complete(self: Box<Self>) -> Result<BlobProperties, StorageError>;

    /// Gives the upload up and removes what can be removed. Blocks in Azure that were never part of a blob vanish after a
    /// week.
    async fn abort(self: Box<Self>);
}

/// The part of `size` bytes that `range` asks for.
pub(crate) fn checked_range(id: &BlobId, range: &Range<u64>, size: u64) -> Result<Range<usize>, StorageError> {
    let fits = range.start <= range.end && range.end <= size;
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) if fits => Ok(start..end),
        _ => Err(StorageError::out_of_range(id, range, size)),
    }
}
