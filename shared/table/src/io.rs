//! A blob store as the iceberg crate's file I/O.
//!
//! The crate reads and writes manifests and manifest lists through this. Everything it writes has a fresh name, so every write
//! creates: a blob that is there already is never replaced.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::{BlobId, BlobIdError};
use firn_storage::{BlobProperties, BlobStore, BlobUpload, PutCondition, StorageError};
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig,
    StorageFactory,
};
use iceberg::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// A blob store together with the account that URLs without one belong to.
#[derive(Debug, Clone)]
pub struct TableStore {
    store: Arc<dyn BlobStore>,
    default_account: Option<String>,
}

impl TableStore {
    /// A store for tables whose URLs all name their account (or are local).
    pub fn new(store: Arc<dyn BlobStore>) -> Self {
        Self { store, default_account: None }
    }

    /// URLs in the short form (`abfss://container/key`) belong to this account.
    #[must_use]
    pub fn with_default_account(mut self, account: Option<&str>) -> Self {
        self.default_account = account.map(str::to_owned);
        self
    }

    /// The same account for short URLs, with another way to the blobs.
    #[must_use]
    pub(crate) fn with_blobs(mut self, store: Arc<dyn BlobStore>) -> Self {
        self.store = store;
        self
    }

    /// The store itself.
    pub fn blobs(&self) -> &Arc<dyn BlobStore> {
        &self.store
    }

    /// The identity of a path of the table's metadata.
    ///
    /// # Errors
    /// [`BlobIdError`] when the path names no blob that Firn can reach.
    pub fn blob_id(&self, path: &str) -> Result<BlobId, BlobIdError> {
        BlobId::parse_with(path, self.default_account.as_deref())
    }

    /// Writes a file that must not be there yet; tells what the store says of it.
    ///
    /// # Errors
    /// The store's error as its source; a path that names no blob.
    pub(crate) async fn create(&self, path: &str, bytes: Bytes) -> iceberg::Result<BlobProperties> {
        let id = self.blob_id(path).map_err(|error| Error::new(ErrorKind::DataInvalid, error.to_string()))?;
        self.store.put(&id, bytes, PutCondition::IfAbsent).await.map_err(wrap)
    }

    /// File I/O for the iceberg crate.
    pub fn file_io(&self) -> FileIO {
        FileIOBuilder::new(Arc::new(FirnStorage { live: Some(self.clone()) })).build()
    }
}

/// The crate wants its storage serializable; a live store is not, so a copy that was read back can do nothing but say so.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct FirnStorage {
    #[serde(skip)]
    live: Option<TableStore>,
}

impl FirnStorage {
    fn live(&self) -> iceberg::Result<&TableStore> {
        self.live.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::FeatureUnsupported, "this file I/O was serialized and has no store any more")
        })
    }

    fn blob(&self, path: &str) -> iceberg::Result<(&Arc<dyn BlobStore>, BlobId)> {
        let live = self.live()?;
        let id = live.blob_id(path).map_err(|error| Error::new(ErrorKind::DataInvalid, error.to_string()))?;
        Ok((&live.store, id))
    }
}

/// A storage error as the crate's error. The [`StorageError`] is its source.
fn wrap(error: StorageError) -> Error {
    let retryable = error.is_retryable();
    Error::new(ErrorKind::Unexpected, error.to_string()).with_retryable(retryable).with_source(error)
}

#[typetag::serde(name = "firn")]
impl StorageFactory for FirnStorage {
    fn build(&self, _config: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde(name = "firn")]
impl Storage for FirnStorage {
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        let (store, id) = self.blob(path)?;
        store.exists(&id).await.map_err(wrap)
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        let (store, id) = self.blob(path)?;
        Ok(FileMetadata { size: store.properties(&id).await.map_err(wrap)?.size })
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        let (store, id) = self.blob(path)?;
        store.read_all(&id).await.map_err(wrap)
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        let (store, id) = self.blob(path)?;
        Ok(Box::new(Reader { store: Arc::clone(store), id }))
    }

    async fn write(&self, path: &str, bs: Bytes) -> iceberg::Result<()> {
        self.live()?.create(path, bs).await?;
        Ok(())
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        let (store, id) = self.blob(path)?;
        let upload = store.upload(&id).await.map_err(wrap)?;
        Ok(Box::new(Writer { upload: Some(upload) }))
    }

    /// A file that is gone already is fine.
    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        let (store, id) = self.blob(path)?;
        store.delete(&id).await.map_err(wrap)?;
        Ok(())
    }

    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        Err(Error::new(ErrorKind::FeatureUnsupported, format!("firn deletes single files only, never all of {path}")))
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        while let Some(path) = paths.next().await {
            self.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> iceberg::Result<InputFile> {
        self.blob(path)?;
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> iceberg::Result<OutputFile> {
        self.blob(path)?;
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

struct Reader {
    store: Arc<dyn BlobStore>,
    id: BlobId,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        self.store.read(&self.id, range).await.map_err(wrap)
    }
}

struct Writer {
    upload: Option<Box<dyn BlobUpload>>,
}

fn closed() -> Error {
    Error::new(ErrorKind::Unexpected, "the file is closed")
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bs: Bytes) -> iceberg::Result<()> {
        self.upload.as_mut().ok_or_else(closed)?.write(bs).await.map_err(wrap)
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        self.upload.take().ok_or_else(closed)?.complete().await.map_err(wrap)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_storage::MemoryStore;

    fn io() -> (MemoryStore, FileIO) {
        let store = MemoryStore::new();
        let io = TableStore::new(Arc::new(store.clone())).with_default_account(Some("acct")).file_io();
        (store, io)
    }

    #[tokio::test]
    async fn every_form_of_url_reaches_the_same_blob() {
        let (_, io) = io();
        let long = "abfss://lake@acct.dfs.core.windows.net/t/metadata/a%20b.avro";
        io.new_output(long).unwrap().write(Bytes::from_static(b"0123456789")).await.unwrap();
        for url in [
            long,
            "wasbs://lake@acct.blob.core.windows.net/t/metadata/a%20b.avro",
            "https://acct.blob.core.windows.net/lake/t/metadata/a%2520b.avro",
            "abfss://lake/t/metadata/a%20b.avro",
        ] {
            let input = io.new_input(url).unwrap();
            assert_eq!(input.read().await.unwrap(), "0123456789", "{url}");
            assert_eq!(input.metadata().await.unwrap().size, 10);
            assert_eq!(input.reader().await.unwrap().read(2..5).await.unwrap(), "234");
            assert!(io.exists(url).await.unwrap());
        }
        assert!(!io.exists("abfss://lake/t/metadata/a b.avro").await.unwrap());
        assert!(io.new_input("s3://bucket/key").is_err());
    }

    #[tokio::test]
    async fn a_write_never_replaces_and_a_delete_tolerates_absence() {
        let (_, io) = io();
        let url = "abfss://lake/t/metadata/m.avro";
        let mut writer = io.new_output(url).unwrap().writer().await.unwrap();
        writer.write(Bytes::from_static(b"one")).await.unwrap();
        assert!(!io.exists(url).await.unwrap());
        writer.close().await.unwrap();
        assert!(writer.close().await.is_err());
        let error = io.new_output(url).unwrap().write(Bytes::from_static(b"two")).await.unwrap_err();
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<StorageError>());
        assert!(matches!(source, Some(StorageError::AlreadyExists { .. })), "{error}");
        let mut late = io.new_output(url).unwrap().writer().await.unwrap();
        late.write(Bytes::from_static(b"two")).await.unwrap();
        assert!(late.close().await.is_err());
        assert_eq!(io.new_input(url).unwrap().read().await.unwrap(), "one");
        io.delete(url).await.unwrap();
        io.delete(url).await.unwrap();
        assert!(io.new_input(url).unwrap().read().await.is_err());
        assert!(io.delete_prefix("abfss://lake/t").await.is_err());
    }

    #[test]
    fn a_serialized_copy_says_that_it_has_no_store() {
        let storage: Arc<dyn Storage> =
            Arc::new(FirnStorage { live: Some(TableStore::new(Arc::new(MemoryStore::new()))) });
        let copy: Arc<dyn Storage> =
            serde_json::from_str::<Box<dyn Storage>>(&serde_json::to_string(&storage).unwrap()).unwrap().into();
        let error = copy.new_input("file:///x").unwrap_err();
        assert!(error.to_string().contains("no store"), "{error}");
    }
}
