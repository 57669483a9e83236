//! A blob as a source of ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{BlobStore, StorageError};
use tokio::runtime::Handle;

use crate::error::ColumnarError;
use crate::source::{RangeRead, check_range};

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
}

impl BlobRange {
    /// The blob `id` of `size` bytes (from the table's metadata, so no request is needed), named `name` in errors.
    pub fn new(store: Arc<dyn BlobStore>, id: BlobId, name: impl Into<Arc<str>>, size: u64, handle: Handle) -> Self {
        Self { store, id, name: name.into(), size, handle }
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
        self.handle.block_on(self.store.read(&self.id, range)).map_err(|error| match error {
            StorageError::OutOfRange { size, .. } => ColumnarError::corrupt_file(
                &self.name,
                format!("it has {size} bytes in storage but {} in the table's metadata", self.size),
            ),
            error => {
                let retryable = error.is_retryable();
                ColumnarError::Read { file: self.name.to_string(), source: error.into(), retryable }
            }
        })
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

        let beyond = blob("a", 10).read(3..11).unwrap_err();
        assert!(matches!(beyond, ColumnarError::Corrupt { .. }), "{beyond}");
        let shorter = blob("a", 12).read(3..11).unwrap_err();
        assert!(shorter.to_string().contains("10 bytes in storage but 12"), "{shorter}");
        let gone = blob("b", 10).read(0..1).unwrap_err();
        assert!(matches!(gone, ColumnarError::Read { retryable: false, .. }), "{gone}");
        assert_eq!(gone.file(), Some("abfss://b"));
    }
}
