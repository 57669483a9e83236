//! A blob as a source of ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{BlobStore, StorageError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::error::ColumnarError;
use crate::source::{PendingRead, RangeRead, check_range, other_size};

/// Requests that are under way at once. More of them do not make a storage account faster, and each holds its bytes.
const AT_ONCE: usize = 32;

/// How many reads may be under way at once; shared by the blobs of a merge.
#[derive(Debug, Clone)]
pub struct ReadGate(Arc<Semaphore>);

impl Default for ReadGate {
    fn default() -> ReadGate {
        ReadGate(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// A blob that is read by ranges, each by one download.
///
/// Reads block the calling thread until the runtime behind the handle has the bytes. They are made by the threads that
/// merge and encode, never by a thread of that runtime (tokio panics there, instead of waiting for itself for ever).
#[derive(Debug, Clone)]
pub struct BlobRange {
    store: Arc<dyn BlobStore>,
    id: BlobId,
    name: Arc<str>,
    size: u64,
    handle: Handle,
    gate: ReadGate,
}

impl BlobRange {
    /// The blob `id` of `size` bytes (from the table's metadata, so no request is needed), named `name` in errors.
    pub fn new(store: Arc<dyn BlobStore>, id: BlobId, name: impl Into<Arc<str>>, size: u64, handle: Handle) -> Self {
        Self { store, id, name: name.into(), size, handle, gate: ReadGate::default() }
    }

    /// The same, with reads that take turns with those of other blobs.
    #[must_use]
    pub fn sharing(self, gate: &ReadGate) -> Self {
        Self { gate: gate.clone(), ..self }
    }

    fn explain(&self, error: StorageError) -> ColumnarError {
        match error {
            StorageError::OutOfRange { size, .. } => other_size(&self.name, size, self.size),
            error => {
                let retryable = error.is_retryable();
                ColumnarError::Read { file: self.name.to_string(), source: error.into(), retryable }
            }
        }
    }
}

impl RangeRead for BlobRange {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        check_range(&self.name, self.size, &range)?;
        self.handle.block_on(self.store.read(&self.id, range)).map_err(|error| self.explain(error))
    }

    fn begin(&self, range: Range<u64>) -> Option<PendingRead> {
        // A range that leaves the file is refused when it is read.
        if !self.reads_in_background() || check_range(&self.name, self.size, &range).is_err() {
            return None;
        }
        let (blob, gate) = (self.clone(), self.gate.clone());
        let reading = Download(self.handle.spawn(async move {
            // The gate is never closed; without it the read would only come sooner.
            let _turn = gate.0.acquire().await;
            blob.store.read(&blob.id, range).await
        }));
        let blob = self.clone();
        Some(PendingRead::new(move || {
            let mut reading = reading;
            match blob.handle.block_on(&mut reading.0) {
                Ok(read) => read.map_err(|error| blob.explain(error)),
                Err(error) => {
                    Err(ColumnarError::Read { file: blob.name.to_string(), source: error.into(), retryable: true })
                }
            }
        }))
    }

    /// A local disk is faster than the way there and back between threads.
    fn reads_in_background(&self) -> bool {
        !self.id.account.is_empty()
    }
}

/// A download that ends when nobody waits for it any more.
struct Download(JoinHandle<Result<Bytes, StorageError>>);

impl Drop for Download {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_storage::{MemoryStore, PutCondition};

    fn id(key: &str) -> BlobId {
        BlobId { account: "acct".into(), container: "c".into(), key: key.into() }
    }

    #[test]
    fn ranges_come_from_the_store() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store: Arc<dyn BlobStore> = Arc::new(MemoryStore::default());
        let content = Bytes::from_static(b"0123456789");
        runtime.block_on(store.put(&id("a"), content, PutCondition::IfAbsent)).unwrap();
        let blob = |key: &str, size| {
            BlobRange::new(Arc::clone(&store), id(key), format!("abfss://{key}"), size, runtime.handle().clone())
        };
        assert_eq!(blob("a", 10).read(3..6).unwrap().as_ref(), b"345");
        let begun = [0..2, 8..10, 4..4].map(|range| blob("a", 10).begin(range).unwrap());
        assert_eq!(begun.map(|read| read.wait().unwrap()), ["01", "89", ""].map(Bytes::from));
        assert!(blob("a", 10).begin(8..11).is_none(), "it is refused when it is read");

        let beyond = blob("a", 10).read(3..11).unwrap_err();
        assert!(matches!(beyond, ColumnarError::Corrupt { .. }), "{beyond}");
        let shorter = blob("a", 12).read(3..11).unwrap_err();
        let later = blob("a", 12).begin(3..11).unwrap().wait().unwrap_err();
        assert_eq!(later.to_string(), shorter.to_string());
        assert!(shorter.to_string().contains("10 bytes in storage but 12"), "{shorter}");
        let gone = blob("b", 10).read(0..1).unwrap_err();
        assert!(matches!(gone, ColumnarError::Read { retryable: false, .. }), "{gone}");
        assert_eq!(gone.file(), Some("abfss://b"));
    }
}
