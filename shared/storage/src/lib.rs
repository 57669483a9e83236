//! Where blobs are kept: one port, [`BlobStore`], and what stands behind it.
//!
//! - [`store`]: the port: ranged reads, conditional puts, streaming uploads, listings, deletes;
//! - [`error`]: failures, by what the caller does next;
//! - [`azure`]: a storage account; [`local`]: a folder of this machine; [`memory`]: a store of the process;
//! - [`retry`]: time-outs and retries of everything that goes over a network;
//! - [`routing`]: sends each blob to the store of its account;
//! - [`crc`]: the CRC-64 that Azure Storage speaks.
//!
//! Every store passes the same contract suite (`tests/it/contract`). Nothing in here knows Iceberg or Parquet.

pub mod azure;
pub mod crc;
pub mod error;
pub mod local;
pub mod memory;
pub mod retry;
pub mod routing;
pub mod store;

pub use azure::{AzureOptions, AzureStore, ConnectionError, ConnectionString};
pub use error::StorageError;
pub use local::LocalStore;
pub use memory::MemoryStore;
pub use retry::RetryPolicy;
pub use routing::RoutingStore;
pub use store::{BlobProperties, BlobStore, BlobUpload, Deleted, ListedBlob, PutCondition};
