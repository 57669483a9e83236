//! What the host needs of a storage account: queues, and a container of its own for timers.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use firn_model::BlobId;
use firn_storage::{
    AzureOptions, AzureQueue, AzureStore, BlobStore, Clock, ConnectionString, Lease, MemoryQueue, MemoryStore, Queue,
};

/// The container of the host's own blobs.
const HOST_CONTAINER: &str = "azure-webjobs-hosts";

/// The host's own container.
#[derive(Debug, Clone)]
pub struct HostBlobs {
    /// Its blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// Their leases.
    pub lease: Arc<dyn Lease>,
    /// The container itself, with an empty key.
    pub container: BlobId,
}

/// Opens queues and the host's container by connection string. An error is a sentence for a person; next: correct the
/// connection string or start the emulator.
#[async_trait]
pub trait HostStorage: Send + Sync + Debug {
    /// A queue. Nothing is created.
    async fn queue(&self, connection: &str, name: &str) -> Result<Arc<dyn Queue>, String>;

    /// The host's container, created when it is missing.
    async fn host_blobs(&self, connection: &str) -> Result<HostBlobs, String>;
}

/// Storage accounts and Azurite.
#[derive(Debug, Clone, Copy, Default)]
pub struct AzureHostStorage;

#[async_trait]
impl HostStorage for AzureHostStorage {
    async fn queue(&self, connection: &str, name: &str) -> Result<Arc<dyn Queue>, String> {
        let connection = ConnectionString::parse(connection).map_err(|error| error.to_string())?;
        let queue = AzureQueue::open(&connection, name).map_err(|error| error.to_string())?;
        Ok(Arc::new(queue))
    }

    async fn host_blobs(&self, connection: &str) -> Result<HostBlobs, String> {
        let connection = ConnectionString::parse(connection).map_err(|error| error.to_string())?;
        let store = AzureStore::new(&connection, AzureOptions::default()).map_err(|error| error.to_string())?;
        let container =
            BlobId { account: store.account().into(), container: HOST_CONTAINER.into(), key: String::new() };
        store.create_container(&container).await.map_err(|error| error.to_string())?;
        Ok(HostBlobs { blobs: Arc::new(store.clone()), lease: Arc::new(store), container })
    }
}

/// Queues and blobs of this process, one account whatever the connection string. Clones share them.
#[derive(Debug, Clone)]
pub struct MemoryHostStorage {
    clock: Clock,
    queues: Arc<Mutex<HashMap<String, MemoryQueue>>>,
    blobs: MemoryStore,
}

impl MemoryHostStorage {
    /// An empty account.
    pub fn new(clock: Clock) -> Self {
        Self { queues: Arc::default(), blobs: MemoryStore::with_clock(clock.clone()), clock }
    }

    /// The queue of this name, which may have to be created first.
    pub fn memory_queue(&self, name: &str) -> MemoryQueue {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(name.into()).or_insert_with(|| MemoryQueue::with_clock(name, self.clock.clone())).clone()
    }

    /// The blobs.
    pub fn blobs(&self) -> MemoryStore {
        self.blobs.clone()
    }
}

#[async_trait]
impl HostStorage for MemoryHostStorage {
    async fn queue(&self, _connection: &str, name: &str) -> Result<Arc<dyn Queue>, String> {
        Ok(Arc::new(self.memory_queue(name)))
    }

    async fn host_blobs(&self, _connection: &str) -> Result<HostBlobs, String> {
        let container = BlobId { account: "memory".into(), container: HOST_CONTAINER.into(), key: String::new() };
        Ok(HostBlobs { blobs: Arc::new(self.blobs.clone()), lease: Arc::new(self.blobs.clone()), container })
    }
}
