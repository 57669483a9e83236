//! Iceberg tables as Firn sees them: which files are live, in which order rows belong, and how metadata is swapped.
//!
//! - [`catalog`]: where the current metadata of a table is found and swapped;
//! - [`loaded`]: one version of a table;
//! - [`scan`]: what is live in it, by partition, as facts of the model;
//! - [`commit`]: swaps a group's files for its outputs in one snapshot;
//! - [`location`], [`new_file`]: where new files belong and what a manifest says of them;
//! - [`filter`]: which partitions a person asked for; [`partition_json`]: the partition that a message names;
//! - [`order`]: the row order of a dataset on a table;
//! - [`partition_type`], [`key_bytes`]: types of partition values, values as ordered bytes;
//! - [`io`]: a blob store as the iceberg crate's file I/O;
//! - [`statistics`]: a statistics file of a snapshot into the metadata;
//! - [`references`], [`mod@expire`]: snapshots and references, and their removal; [`reachable`]: every file that a table refers to;
//!   [`places`]: the folders that are its own;
//! - [`ident`], [`error`]: names and what can go wrong.

mod arrow_types;
mod avro;
mod calendar;
pub mod catalog;
pub mod commit;
pub mod error;
pub mod expire;
mod facts;
pub mod filter;
pub mod ident;
pub mod io;
pub mod key_bytes;
pub mod loaded;
pub mod location;
pub mod new_file;
pub mod order;
pub mod partition_json;
pub mod partition_type;
pub mod places;
pub mod reachable;
pub mod references;
pub mod scan;
pub mod statistics;
#[cfg(test)]
mod testing;

pub use catalog::{Catalog, metadata_file::version as metadata_version, rest::RestCatalog, sql::SqlCatalog};
pub use commit::{
    CommitError, CommitPolicy, Committed, ReplaceOperation, ReplaceRequest, already_done, check_writable, replace,
};
pub use error::{NextStep, SwapError, TableError};
pub use expire::{ExpireError, Removal, expire};
pub use filter::{DateRange, FilterError, PartitionFilter, PartitionTerm};
pub use ident::TableIdent;
pub use io::TableStore;
pub use loaded::LoadedTable;
pub use location::{output_path, partition_label, sidecar_uuid};
pub use new_file::{NewDataFile, NewFileMetrics};
pub use order::{OrderColumns, OrderError, row_order};
pub use partition_json::partition_from_json;
pub use places::{TablePlaces, other_optimizer};
pub use reachable::{FileReference, ManifestWalk, RefersBy, WalkCounts};
pub use references::{BranchFacts, History, RefFacts, SnapshotFacts};
pub use scan::{
    Audit, DeleteFile, LiveFile, LiveFiles, PartitionFacts, PartitionStats, SizeLimits, TimeColumn, audit,
    delete_files, highest_time, partition_facts, partition_stats,
};
pub use statistics::{Registered, StatisticsError, register_statistics};
