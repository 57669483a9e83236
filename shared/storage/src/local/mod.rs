//! Blobs as files of this machine.
//!
//! A file becomes visible whole: it is written under a hidden name beside its place, forced to disk, and moved. Writers in
//! several processes that all use this store see the same conditions as in Azure; a writer that goes around it is not held up.

mod lease;
mod list;
mod publish;

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use futures::stream::BoxStream;
use tempfile::NamedTempFile;

use crate::clock::Clock;
use crate::crc::{Crc64, crc64};
use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::store::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition, checked_range,
};
use lease::Leases;
use publish::Places;

/// The file system. Keys are absolute paths as they stand. Clones are the same store.
#[derive(Debug, Clone, Default)]
pub struct LocalStore {
    places: Places,
    leases: Leases,
}

impl LocalStore {
    /// The file system of this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with leases that run out by `clock`.
    pub fn with_clock(clock: Clock) -> Self {
        LocalStore { places: Places::default(), leases: Leases::with_clock(clock) }
    }
}

#[async_trait]
impl BlobStore for LocalStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        if range.start == range.end {
            return Ok(Bytes::new());
        }
        on_disk(id, move |id, path| {
            let mut file = File::open(path).map_err(|error| reading(id, &error))?;
            let size = file.metadata().map_err(|error| reading(id, &error))?.len();
            let length = checked_range(id, &range, size)?.len();
            let mut data = vec![0; length];
            file.seek(SeekFrom::Start(range.start)).map_err(|error| reading(id, &error))?;
            file.read_exact(&mut data).map_err(|error| reading(id, &error))?;
            Ok(Bytes::from(data))
        })
        .await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        on_disk(id, |id, path| fs::read(path).map(Bytes::from).map_err(|error| reading(id, &error))).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        on_disk(id, |id, path| match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(StorageError::not_found(id)),
            Ok(metadata) => Ok(properties(&metadata)),
            Err(error) => Err(reading(id, &error)),
        })
        .await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        let (places, leases, lease) = (self.places.clone(), self.leases.clone(), lease.cloned());
        on_disk(id, move |id, path| {
            let mut temp = places.temp_beside(id, path)?;
            temp.as_file_mut().write_all(&data).map_err(|error| StorageError::io(id, "write", &error))?;
            let allowed = || leases.check_write(id, path, lease.as_ref());
            let written = publish::publish(id, temp, path, &condition, allowed)?;
            Ok(BlobProperties { crc64: Some(crc64(&data)), ..written })
        })
        .await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        let places = self.places.clone();
        let temp = on_disk(id, move |id, path| places.temp_beside(id, path)).await?;
        Ok(Box::new(LocalUpload { id: id.clone(), temp: Some(temp), crc: Crc64::default() }))
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        list::list(prefix)
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        let (leases, lease) = (self.leases.clone(), lease.cloned());
        on_disk(id, move |id, path| {
            let turn = publish::take_turn(path);
            let existing = match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => return Ok(Deleted::Absent),
                Ok(metadata) => metadata,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Ok(Deleted::Absent);
                }
                Err(error) => return Err(StorageError::io(id, "delete", &error)),
            };
            if let DeleteCondition::IfMatch(etag) = condition {
                publish::check(id, Some(&existing), &PutCondition::IfMatch(etag))?;
                publish::need_turn(id, &turn)?;
            }
            leases.check_write(id, path, lease.as_ref())?;
            match fs::remove_file(path) {
                Ok(()) => Ok(Deleted::Deleted),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Deleted::Absent),
                Err(error) => Err(StorageError::io(id, "delete", &error)),
            }
        })
        .await
    }
}

struct LocalUpload {
    id: BlobId,
    /// None after a failed write: dropping the file removed it.
    temp: Option<NamedTempFile>,
    crc: Crc64,
}

impl LocalUpload {
    fn take(&mut self) -> Result<NamedTempFile, StorageError> {
        self.temp.take().ok_or_else(|| StorageError::other(&self.id, "an earlier write of this upload failed"))
    }
}

#[async_trait]
impl BlobUpload for LocalUpload {
    async fn write(&mut self, block: Bytes) -> Result<(), StorageError> {
        self.crc.update(&block);
        let mut temp = self.take()?;
        let written = on_disk(&self.id, move |id, _| {
            temp.as_file_mut().write_all(&block).map_err(|error| StorageError::io(id, "write", &error))?;
            Ok(temp)
        });
        self.temp = Some(written.await?);
        Ok(())
    }

    async fn complete(mut self: Box<Self>) -> Result<BlobProperties, StorageError> {
        let temp = self.take()?;
        let publish =
            move |id: &BlobId, path: &Path| publish::publish(id, temp, path, &PutCondition::IfAbsent, || Ok(()));
        let written = on_disk(&self.id, publish).await?;
        Ok(BlobProperties { crc64: Some(self.crc.value()), ..written })
    }

    async fn abort(self: Box<Self>) {
        // Dropping the temporary file removes it.
    }
}

/// Runs `work` on the runtime's threads for blocking calls.
async fn on_disk<T: Send + 'static>(
    id: &BlobId,
    work: impl FnOnce(&BlobId, &Path) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let path = path_of(id)?;
    let own = id.clone();
    match tokio::task::spawn_blocking(move || work(&own, &path)).await {
        Ok(result) => result,
        Err(ended) => Err(StorageError::other(id, format!("the file operation ended early: {ended}"))),
    }
}

fn path_of(id: &BlobId) -> Result<PathBuf, StorageError> {
    if !id.is_local() {
        return Err(StorageError::invalid(id, "not a local file: configure its storage account"));
    }
    if !id.key.starts_with('/') || id.key.contains('\0') {
        return Err(StorageError::invalid(id, "not an absolute path: write file:///path"));
    }
    Ok(PathBuf::from(&id.key))
}

fn reading(id: &BlobId, error: &io::Error) -> StorageError {
    if error.kind() == io::ErrorKind::IsADirectory {
        return StorageError::not_found(id);
    }
    StorageError::io(id, "read", error)
}

fn properties(metadata: &Metadata) -> BlobProperties {
    BlobProperties {
        size: metadata.len(),
        etag: etag(metadata),
        last_modified: DateTime::<Utc>::from(modified(metadata)),
        crc64: None,
        md5: None,
    }
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Inode, modification time in nanoseconds, size. `publish` keeps the times of one name ascending.
fn etag(metadata: &Metadata) -> String {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    let nanos = modified(metadata).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{inode:x}-{nanos:x}-{:x}", metadata.len())
}
