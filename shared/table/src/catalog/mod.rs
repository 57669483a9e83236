//! Where the current metadata of a table is found and swapped.

pub(crate) mod metadata_file;
pub mod sql;
mod sql_error;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use firn_config::Database;
use iceberg::{TableRequirement, TableUpdate};

use crate::error::{SwapError, TableError};
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::loaded::LoadedTable;
use sql::SqlCatalog;

/// An Iceberg catalog: the place that says which metadata file of a table is current.
#[async_trait]
pub trait Catalog: Send + Sync + Debug {
    /// The name of the catalog, for messages.
    fn name(&self) -> &str;

    /// Loads the table as it is now. Nothing is cached between calls: a pass over a remembered version would plan on files
    /// that are gone.
    ///
    /// # Errors
    /// See [`TableError`]; a table that is not known is [`TableError::TableAbsent`] with the known names of its namespace.
    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError>;

    /// Names of the tables directly in the namespace of `ident`, sorted.
    ///
    /// # Errors
    /// [`TableError::CatalogUnavailable`] or [`TableError::CatalogAbsent`].
    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError>;

    /// Makes `updates` of `table` current, if `requirements` hold and nobody else changed the table since `table` was
    /// loaded. Returns the new version.
    ///
    /// # Errors
    /// See [`SwapError`]; only [`SwapError::Unknown`] leaves open whether the swap was applied.
    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError>;
}

/// Opens the catalog of a configuration; the tables' files are in `store`.
///
/// # Errors
/// [`TableError::CatalogKind`] for a kind that this version cannot open, else as the catalog's own `open`.
pub async fn open(catalog: &firn_config::Catalog, store: TableStore) -> Result<Arc<dyn Catalog>, TableError> {
    let kind = match catalog {
        firn_config::Catalog::Sql(sql) => match &sql.database {
            Database::Sqlite(path) => return Ok(Arc::new(SqlCatalog::open(path, &sql.name, store).await?)),
            Database::Postgres(_) => "PostgreSQL",
        },
        firn_config::Catalog::Rest(_) => "REST",
    };
    Err(TableError::CatalogKind { kind })
}
