//! Facts and words of Firn: what a file, a partition, a row order, a rule and a reason are.
//!
//! No I/O and no Iceberg, Parquet or Arrow in here, so that decisions can be written and tested as pure functions
//! over plain values. Everything that crosses a layer of the house is made of these types.
//!
//! - [`blob_id`], [`blob_url`]: one identity for a blob, whatever URL form names it, and the forms;
//! - [`partition`]: the typed partition tuple and its JSON form;
//! - [`mod@file`]: what the planner knows of a data file or a delete file;
//! - [`key`]: encoded key bounds and ranges, and what they prove;
//! - [`tier`]: files of similar size;
//! - [`order`]: the row order of a dataset;
//! - [`message`]: what stands in the queue;
//! - [`rule`], [`reason`], [`outcome`]: why a partition was taken or left, and how it ended.

pub mod blob_id;
pub mod blob_url;
pub mod file;
pub mod key;
pub mod message;
pub mod order;
pub mod outcome;
pub mod partition;
pub mod reason;
pub mod rule;
pub mod tier;

pub use blob_id::{BlobId, BlobIdError};
pub use blob_url::UrlForm;
pub use file::{DeleteFacts, DeleteKind, FileFacts, FileFormat};
pub use key::{Bounds, KeyRange};
pub use message::{BadMessage, Message, MessageKind, PartitionJson, parse_message};
pub use order::{OrderColumn, RowOrder};
pub use outcome::Outcome;
pub use partition::{PartitionKey, PartitionValue, Scalar, ScalarType};
pub use reason::{LeftReason, Moment, SelectReason};
pub use rule::Rule;
pub use tier::{TierCounts, TierSizes, size_tier};
