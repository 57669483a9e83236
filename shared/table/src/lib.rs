//! Iceberg tables as Firn sees them: which files are live, in which order rows belong, and how metadata is swapped.
//!
//! - [`catalog`]: where the current metadata of a table is found and swapped;
//! - [`loaded`]: one version of a table;
//! - [`ident`], [`error`]: names and what can go wrong.

pub mod catalog;
pub mod error;
pub mod ident;
pub mod loaded;

pub use catalog::{Catalog, sql::SqlCatalog};
pub use error::{NextStep, SwapError, TableError};
pub use ident::TableIdent;
pub use loaded::LoadedTable;
