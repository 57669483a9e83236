//! Where blobs and messages are kept: three ports, [`BlobStore`], [`Lease`] and [`Queue`], and what stands behind them.
//!
//! - [`store`]: the port to blobs: ranged reads, conditional puts, streaming uploads, listings, deletes;
//! - [`lease`]: the port to leases of blobs, and the thread that keeps one;
//! - [`queue`]: the port to queues;
//! - [`error`]: failures, by what the caller does next;
//! - [`azure`]: a storage account; [`local`]: a folder of this machine; [`memory`]: a store of the process;
//! - [`retry`]: time-outs and retries of everything that goes over a network;
//! - [`routing`]: sends each blob to the store of its account; [`overlay`]: lays credentials for some blobs over a store;
//! - [`crc`]: the CRC-64 that Azure Storage speaks; [`clock`]: the time of what is kept on this machine.
//!
//! Everything behind a port passes the same contract suite (`tests/it`). Nothing in here knows Iceberg or Parquet.

pub mod azure;
pub mod clock;
pub mod crc;
pub mod error;
pub mod lease;
pub mod local;
pub mod memory;
pub mod overlay;
pub mod queue;
pub mod retry;
pub mod routing;
pub mod store;

pub use azure::{
    AccountAddress, AzureAccount, AzureOptions, AzureQueue, AzureStore, ConnectionError, ConnectionString, Identity,
    IdentityKind, SasSource, TokenError, TokenSource,
};
pub use clock::Clock;
pub use error::StorageError;
pub use lease::{Lease, LeaseError, LeaseId, LeaseKeeper};
pub use local::LocalStore;
pub use memory::MemoryStore;
pub use overlay::{Layer, OverlayStore};
pub use queue::{MemoryQueue, PeekedMessage, Queue, QueueError, QueueMessage, SendOptions};
pub use retry::RetryPolicy;
pub use routing::RoutingStore;
pub use store::{BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, ListedBlob, PutCondition};
