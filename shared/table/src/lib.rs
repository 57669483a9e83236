//! Iceberg tables as Firn sees them: which files are live, in which order rows belong, and how metadata is swapped.
//!
//! - [`catalog`]: where the current metadata of a table is found and swapped;
//! - [`loaded`]: one version of a table;
//! - [`scan`]: what is live in it, by partition, as facts of the model;
//! - [`filter`]: which partitions a person asked for;
//! - [`order`]: the row order of a dataset on a table;
//! - [`partition_type`], [`key_bytes`]: types of partition values, values as ordered bytes;
//! - [`io`]: a blob store as the iceberg crate's file I/O;
//! - [`ident`], [`error`]: names and what can go wrong.

mod calendar;
pub mod catalog;
pub mod error;
mod facts;
pub mod filter;
pub mod ident;
pub mod io;
pub mod key_bytes;
pub mod loaded;
pub mod order;
pub mod partition_type;
pub mod scan;
#[cfg(test)]
mod testing;

pub use catalog::{Catalog, sql::SqlCatalog};
pub use error::{NextStep, SwapError, TableError};
pub use filter::{DateRange, FilterError, PartitionFilter, PartitionTerm};
pub use ident::TableIdent;
pub use io::TableStore;
pub use loaded::LoadedTable;
pub use order::{OrderColumns, OrderError, row_order};
pub use scan::{PartitionFacts, PartitionStats, partition_facts, partition_stats};
