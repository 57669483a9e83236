//! Where the current metadata of a table is found and swapped.

pub mod later;
pub(crate) mod metadata_file;
pub mod rest;
pub mod sql;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use firn_config::Database;
use firn_storage::AzureAccount;
use iceberg::{TableRequirement, TableUpdate};

use crate::error::{SwapError, TableError};
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::loaded::LoadedTable;
use rest::RestCatalog;
use sql::SqlCatalog;

/// An Iceberg catalog: the place that says which metadata file of a table is current.
#[async_trait]
pub trait Catalog: Send + Sync + Debug {
    /// The name of the catalog, for messages.
    fn name(&self) -> &str;

    /// Why nothing can be committed to any of its tables; None: commits are taken.
    fn read_only(&self) -> Option<&str> {
        None
    }

    /// Loads the table as it is now. Nothing is cached between calls: a pass over a remembered version would plan on files
    /// that are gone.
    ///
    /// # Errors
    /// See [`TableError`]; a table that is not known is [`TableError::TableAbsent`] with the known names of its namespace.
    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError>;

    /// Every namespace that may have tables, nested ones too, sorted. All of them or none: who asks decides by it that nobody else is
    /// there.
    ///
    /// # Errors
    /// [`TableError::CatalogUnavailable`], [`TableError::CatalogAbsent`], or [`TableError::CatalogDenied`] when the catalog does not let this
    /// identity list them.
    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError>;

    /// Names of the tables directly in the namespace `namespace`, sorted.
    ///
    /// # Errors
    /// [`TableError::CatalogUnavailable`], [`TableError::CatalogDenied`] or [`TableError::CatalogAbsent`].
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

/// Opens the catalog of a configuration; the tables' files are in `store`. `account` is that of the storage section: some catalogs take
/// tokens of its identity, others hand out credentials for accounts whose address it knows.
///
/// # Errors
/// As the catalog's own `open`.
pub async fn open(
    catalog: &firn_config::Catalog,
    store: TableStore,
    account: Option<&AzureAccount>,
) -> Result<Arc<dyn Catalog>, TableError> {
    Ok(match catalog {
        firn_config::Catalog::Sql(sql) => match &sql.database {
            Database::Sqlite(path) => Arc::new(SqlCatalog::open(path, &sql.name, store).await?),
            Database::Postgres(server) => {
                let identity = account.and_then(AzureAccount::identity);
                Arc::new(SqlCatalog::open_postgres(server, &sql.name, store, identity).await?)
            }
        },
        firn_config::Catalog::Rest(rest) => Arc::new(RestCatalog::open(rest, store, account).await?),
    })
}
