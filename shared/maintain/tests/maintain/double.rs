//! A store that can lose, refuse, hide and bring back, in front of one in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use firn_storage::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, LeaseId, ListedBlob, MemoryStore, PutCondition,
    StorageError,
};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::Notify;

/// What a test may do to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The listing lacks it.
    Unlisted,
    /// A delete is refused: somebody holds a lease.
    Leased,
    /// A delete finds nothing: another sweep was faster.
    Gone,
    /// The listing says this time.
    Time(DateTime<Utc>),
    /// The listing has a name here that no blob can have.
    Odd,
    /// The listing ends here in an error.
    EndsListing,
    /// The listing never gets past it.
    HangsListing,
    /// A read of it never ends.
    HangsReading,
    /// To undelete it is taken, and changes nothing: as on an account with versions.
    StaysDeleted,
    /// A delete of it is done, and the answer is lost.
    LosesDelete,
    /// A delete of it takes until then.
    SlowDelete(Instant),
    /// A delete of it is done, and the answer never comes.
    HangsAfterDelete,
    /// A delete of it is not allowed.
    DeniesDelete,
    /// To undelete it never ends.
    HangsUndelete,
    /// A write of it fails.
    Unwritable,
    /// Nobody may look at it.
    Hidden,
}

fn unavailable(id: &BlobId) -> StorageError {
    StorageError::Unavailable { blob: Box::new(id.clone()), detail: "no answer".into() }
}

/// Whether the account keeps what is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Days(u32),
    Nothing,
    /// The identity may not see it.
    NotShown,
}

/// The store. Blobs are deleted softly.
pub struct Double {
    pub inner: MemoryStore,
    pub faults: Mutex<BTreeMap<String, Fault>>,
    pub deleted: Mutex<BTreeMap<BlobId, Bytes>>,
    pub kept: Mutex<Kept>,
    /// Files of a size and time that the listing of this folder has beside those that are there.
    pub generated: Mutex<Option<Generated>>,
    /// Somebody came to something that never ends.
    pub hangs: Notify,
}

/// Files that are only listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    pub folder: BlobId,
    pub files: u64,
    pub time: DateTime<Utc>,
}

impl Generated {
    fn list(self) -> impl Iterator<Item = ListedBlob> + Send {
        let Generated { folder, files, time } = self;
        (0..files).map(move |number| {
            let key =
                format!("{}data/time_hour_day=2026-11-{:02}/00000-{number}-0ff6eabd.parquet", folder.key, number % 28);
            ListedBlob { id: folder.with_key(key), size: number, etag: "generated".into(), last_modified: time }
        })
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Double")
    }
}

impl Double {
    pub fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            faults: Mutex::default(),
            deleted: Mutex::default(),
            kept: Mutex::new(Kept::Days(14)),
            generated: Mutex::default(),
            hangs: Notify::new(),
        }
    }

    /// For keys that end so, or have it in them where it ends in a star.
    pub fn fault(&self, ending: &str, fault: Fault) {
        self.faults.lock().unwrap().insert(ending.to_owned(), fault);
    }

    fn find(&self, id: &BlobId) -> Option<Fault> {
        let faults = self.faults.lock().unwrap();
        let is_meant = |text: &str| match text.strip_suffix('*') {
            Some(part) => id.key.contains(part),
            None => id.key.ends_with(text),
        };
        faults.iter().find(|(text, _)| is_meant(text)).map(|(_, fault)| fault.clone())
    }

    fn check_writable(&self, id: &BlobId) -> Result<(), StorageError> {
        match self.find(id) {
            Some(Fault::Unwritable) => Err(unavailable(id)),
            _ => Ok(()),
        }
    }

    async fn hang(&self, id: &BlobId) {
        if self.find(id) == Some(Fault::HangsReading) {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl BlobStore for Double {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.hang(id).await;
        self.inner.read(id, range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        self.hang(id).await;
        self.inner.read_all(id).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        if self.find(id) == Some(Fault::Hidden) {
            return Err(StorageError::Denied { blob: Box::new(id.clone()), detail: "403".into() });
        }
        self.inner.properties(id).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.check_writable(id)?;
        self.inner.put_leased(id, data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.check_writable(id)?;
        self.inner.upload(id).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        let generated = self.generated.lock().unwrap().clone().filter(|generated| generated.folder == *prefix);
        let more = generated.into_iter().flat_map(Generated::list).map(Ok);
        let listed = self.inner.list(prefix).chain(stream::iter(more));
        let changed = listed.filter_map(move |blob| async move {
            let blob = blob.unwrap();
            match self.find(&blob.id) {
                Some(Fault::HangsListing) => std::future::pending().await,
                Some(Fault::Unlisted | Fault::Hidden) => None,
                Some(Fault::Time(last_modified)) => Some(Ok(ListedBlob { last_modified, ..blob })),
                Some(Fault::Odd) => {
                    let detail = "no blob can have this name".to_owned();
                    Some(Err(StorageError::Invalid { blob: Box::new(blob.id), detail }))
                }
                Some(Fault::EndsListing) => Some(Err(unavailable(&blob.id))),
                _ => Some(Ok(blob)),
            }
        });
        // After an error there is nothing.
        let mut ended = false;
        changed
            .take_while(move |blob| {
                let goes_on = !ended;
                ended |= matches!(blob, Err(StorageError::Unavailable { .. }));
                std::future::ready(goes_on)
            })
            .boxed()
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        match self.find(id) {
            Some(Fault::Leased) => return Err(StorageError::Leased { blob: Box::new(id.clone()) }),
            Some(Fault::DeniesDelete) => {
                return Err(StorageError::Denied { blob: Box::new(id.clone()), detail: "403".into() });
            }
            Some(Fault::SlowDelete(until)) => tokio::time::sleep_until(until.into()).await,
            Some(Fault::Gone) => {
                self.inner.delete(id).await?;
            }
            _ => {}
        }
        let data = self.inner.read_all(id).await.ok();
        let deleted = self.inner.delete_leased(id, condition, lease).await?;
        if let Some(data) = data {
            self.deleted.lock().unwrap().insert(id.clone(), data);
        }
        match self.find(id) {
            Some(Fault::LosesDelete) => Err(unavailable(id)),
            Some(Fault::HangsAfterDelete) => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            _ => Ok(deleted),
        }
    }

    async fn time(&self, id: &BlobId) -> Result<Option<DateTime<Utc>>, StorageError> {
        self.inner.time(id).await
    }

    async fn keeps_deleted_days(&self, id: &BlobId) -> Result<Option<u32>, StorageError> {
        match *self.kept.lock().unwrap() {
            Kept::Days(days) => Ok(Some(days)),
            Kept::Nothing => Ok(None),
            Kept::NotShown => Err(StorageError::Denied { blob: Box::new(id.clone()), detail: "403".into() }),
        }
    }

    async fn undelete(&self, id: &BlobId) -> Result<(), StorageError> {
        match self.find(id) {
            Some(Fault::StaysDeleted) => return Ok(()),
            Some(Fault::HangsUndelete) => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            _ => {}
        }
        let data = self.deleted.lock().unwrap().remove(id);
        let data = data.ok_or_else(|| StorageError::NotFound { blob: Box::new(id.clone()) })?;
        self.inner.put(id, data, PutCondition::IfAbsent).await?;
        Ok(())
    }
}
