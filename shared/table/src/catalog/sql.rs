//! The SQL catalog that PyIceberg and Iceberg's JDBC catalog share: one table `iceberg_tables` whose row points to the
//! current metadata file, in SQLite or PostgreSQL.
//!
//! - [`database`]: what is asked of either; [`sqlite`], [`postgres`]: how each is opened and asked;
//! - [`said`]: what an error says about whether a swap was applied; [`remedy`]: what a person does who is not let in.

mod database;
mod postgres;
mod remedy;
mod said;
mod sqlite;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{PutCondition, StorageError, TokenSource};
use iceberg::spec::{FormatVersion, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};
use rand::Rng;

use self::database::{Database, Swap, SwapFailure};
use self::postgres::PostgresServer;
use self::remedy::{WRITE_REMEDY, denied_swap, login_remedy};
use self::said::Said;
use self::sqlite::SqliteFile;
use super::Catalog;
use super::metadata_file;
use crate::error::{SwapError, TableError};
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::loaded::LoadedTable;

/// How long a lock of another writer is waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How long SQLite itself waits before it says busy.
    busy_timeout: Duration,
    /// How often a busy swap is sent in all.
    swap_tries: u32,
}

const PATIENCE: Patience = Patience { busy_timeout: Duration::from_secs(2), swap_tries: 5 };

/// A catalog in a database.
#[derive(Debug, Clone)]
pub struct SqlCatalog {
    name: String,
    database: Arc<dyn Database>,
    store: TableStore,
    swap_tries: u32,
}

impl SqlCatalog {
    /// Opens the catalog `name` in a SQLite file; a relative path starts at the working directory.
    ///
    /// # Errors
    /// [`TableError::CatalogAbsent`] when there is no such file (it is never created: an empty catalog would look like
    /// success) or no catalog in it.
    pub async fn open(database: &Path, name: &str, store: TableStore) -> Result<Self, TableError> {
        Self::open_with(database, name, store, PATIENCE).await
    }

    async fn open_with(database: &Path, name: &str, store: TableStore, patience: Patience) -> Result<Self, TableError> {
        let file = SqliteFile::open(database, name, patience.busy_timeout).await?;
        Ok(Self { name: name.to_owned(), database: Arc::new(file), store, swap_tries: patience.swap_tries })
    }

    /// Opens the catalog `name` in PostgreSQL. `identity` gives tokens where the configuration asks for them (`auth: entra`).
    ///
    /// # Errors
    /// [`TableError::CatalogDenied`] when the server does not let Firn in, [`TableError::CatalogAbsent`] when it has no such database or no
    /// catalog in it;
    /// [`TableError::CatalogUnavailable`] when it does not answer.
    pub async fn open_postgres(
        server: &firn_config::Postgres,
        name: &str,
        store: TableStore,
        identity: Option<&Arc<TokenSource>>,
    ) -> Result<Self, TableError> {
        let server = PostgresServer::open(server, name, identity).await?;
        Ok(Self { name: name.to_owned(), database: Arc::new(server), store, swap_tries: PATIENCE.swap_tries })
    }

    /// The current metadata location, or None when there is no such table (views are none).
    async fn current_location(&self, ident: &TableIdent) -> Result<Option<String>, TableError> {
        let row = self.database.row(&self.name, ident).await.map_err(|error| unavailable(&self.name, error))?;
        Ok(row.filter(|row| row.is_table).and_then(|row| row.location))
    }

    async fn read_metadata(&self, ident: &TableIdent, location: &str) -> Result<TableMetadata, TableError> {
        let id = self.store.blob_id(location).map_err(|source| TableError::Url { ident: ident.clone(), source })?;
        let bytes = self.store.blobs().read_all(&id).await.map_err(|source| TableError::Read {
            ident: ident.clone(),
            what: "its current metadata",
            source,
        })?;
        metadata_file::decode(&bytes).map_err(|source| TableError::Metadata {
            ident: ident.clone(),
            location: location.to_owned(),
            source,
        })
    }

    /// Sends the swap until the database takes or refuses it.
    async fn send_swap(&self, swap: &Swap<'_>) -> Result<Swapped, SwapError> {
        let ident = swap.ident;
        for attempt in 1..=self.swap_tries {
            match self.database.swap(&self.name, swap).await {
                Ok(1) => return Ok(Swapped::Yes),
                Ok(_) => return Ok(Swapped::No),
                Err(SwapFailure::NotSent(error)) => {
                    return Err(match login_remedy(&error) {
                        Some(remedy) => denied_swap(ident, &error, remedy),
                        None => not_sent(ident, error),
                    });
                }
                Err(SwapFailure::Sent(Said::Busy, error)) => {
                    tracing::debug!(table = %ident, attempt, %error, "the catalog's database is busy");
                    if attempt < self.swap_tries {
                        let jitter = rand::rng().random_range(0..100);
                        tokio::time::sleep(Duration::from_millis(u64::from(50 * attempt) + jitter)).await;
                    }
                }
                Err(SwapFailure::Sent(Said::Denied, error)) => {
                    return Err(denied_swap(ident, &error, login_remedy(&error).unwrap_or(WRITE_REMEDY)));
                }
                Err(SwapFailure::Sent(Said::Refused, error)) => {
                    return Err(SwapError::Permanent { ident: ident.clone(), source: error.into() });
                }
                Err(SwapFailure::Sent(Said::Unknown, error)) => {
                    return Err(SwapError::Unknown { ident: ident.clone(), source: error.into() });
                }
            }
        }
        Ok(Swapped::Busy)
    }
}

/// What a definite answer to a swap said.
enum Swapped {
    Yes,
    No,
    Busy,
}

#[async_trait]
impl Catalog for SqlCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        let Some(location) = self.current_location(ident).await? else {
            let known = self.list_tables(ident.namespace_levels()).await?;
            return Err(TableError::TableAbsent { ident: ident.clone(), catalog: self.name.clone(), known });
        };
        let metadata = self.read_metadata(ident, &location).await?;
        Ok(LoadedTable {
            ident: ident.clone(),
            metadata_location: location,
            metadata: Arc::new(metadata),
            io: self.store.file_io(),
            store: self.store.clone(),
            read_only: None,
        })
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        let names = self.database.namespaces(&self.name).await.map_err(|error| unavailable(&self.name, error))?;
        Ok(names.iter().map(|name| name.split('.').map(str::to_owned).collect()).collect())
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        let rows = self.database.rows(&self.name, &namespace.join(".")).await;
        let rows = rows.map_err(|error| unavailable(&self.name, error))?;
        Ok(rows.into_iter().filter(|row| row.is_table).map(|row| row.name).collect())
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        let ident = &table.ident;
        let old = &table.metadata_location;
        let metadata = next_metadata(table, updates, requirements)?;
        let permanent = |source| SwapError::Permanent { ident: ident.clone(), source };
        if table.format_version() == FormatVersion::V1 {
            self.refuse_to_lose_references(table).await?;
        }
        let new = metadata_file::next_location(old, &metadata).map_err(permanent)?;
        let bytes = metadata_file::encode(&metadata).map_err(permanent)?;
        let id = self.store.blob_id(&new).map_err(|error| permanent(error.into()))?;
        let written = self.store.blobs().put(&id, Bytes::from(bytes), PutCondition::IfAbsent).await;
        written.map_err(|error| match error {
            // The catalog was not touched, whatever became of the file.
            error if error.is_retryable() || matches!(error, StorageError::Unknown { .. }) => not_sent(ident, error),
            error => permanent(error.into()),
        })?;

        let lost = match self.send_swap(&Swap { ident, old, new: &new }).await {
            Ok(Swapped::Yes) => None,
            Ok(Swapped::No) => Some("its metadata is no longer the version that this commit was built on"),
            Ok(Swapped::Busy) => Some("the catalog database stayed locked by another writer"),
            Err(error) => {
                // Only an unknown state may still need the file.
                if !matches!(error, SwapError::Unknown { .. }) {
                    self.delete_unused(&id).await;
                }
                return Err(error);
            }
        };
        if let Some(detail) = lost {
            self.delete_unused(&id).await;
            return Err(SwapError::Conflict { ident: ident.clone(), detail: detail.to_owned() });
        }
        Ok(LoadedTable { metadata_location: new, metadata: Arc::new(metadata), ..table.clone() })
    }
}

impl SqlCatalog {
    /// See [`metadata_file::reference_lost`].
    async fn refuse_to_lose_references(&self, table: &LoadedTable) -> Result<(), SwapError> {
        let ident = &table.ident;
        let permanent = |source| SwapError::Permanent { ident: ident.clone(), source };
        let id = self.store.blob_id(&table.metadata_location).map_err(|error| permanent(error.into()))?;
        let bytes = self.store.blobs().read_all(&id).await.map_err(|error| not_sent(ident, error))?;
        match metadata_file::reference_lost(&bytes).map_err(permanent)? {
            None => Ok(()),
            Some(name) => Err(permanent(
                format!("reference `{name}` of a version 1 table cannot be written; upgrade the table to version 2")
                    .into(),
            )),
        }
    }

    /// Removes a metadata file that no catalog row will ever name. A failure leaves an orphan, nothing worse.
    async fn delete_unused(&self, id: &BlobId) {
        if let Err(error) = self.store.blobs().delete(id).await {
            tracing::warn!(blob = %id, %error, "an unused metadata file was left behind");
        }
    }
}

/// The metadata after `updates`, when `requirements` hold for the version they were built on.
pub(crate) fn next_metadata(
    table: &LoadedTable,
    updates: Vec<TableUpdate>,
    requirements: Vec<TableRequirement>,
) -> Result<TableMetadata, SwapError> {
    let ident = &table.ident;
    for requirement in &requirements {
        requirement
            .check(Some(&table.metadata))
            .map_err(|error| SwapError::Conflict { ident: ident.clone(), detail: error.to_string() })?;
    }
    let permanent = |error: iceberg::Error| SwapError::Permanent { ident: ident.clone(), source: error.into() };
    let mut builder = TableMetadata::clone(&table.metadata).into_builder(Some(table.metadata_location.clone()));
    for update in updates {
        builder = update.apply(builder).map_err(permanent)?;
    }
    Ok(builder.build().map_err(permanent)?.metadata)
}

/// A name that no row has while others do would look like a catalog without tables.
fn check_name(name: &str, place: &str, known: &[String]) -> Result<(), TableError> {
    if known.is_empty() || known.iter().any(|other| other == name) {
        return Ok(());
    }
    let known = known.join("`, `");
    Err(absent(
        name,
        format!("`{place}` has no tables of a catalog of this name; its catalogs are `{known}`: correct catalog.name"),
    ))
}

fn absent(catalog: &str, detail: String) -> TableError {
    TableError::CatalogAbsent { catalog: catalog.to_owned(), detail }
}

fn denied(catalog: &str, detail: String) -> TableError {
    TableError::CatalogDenied { catalog: catalog.to_owned(), detail }
}

fn unavailable(catalog: &str, error: sqlx::Error) -> TableError {
    match login_remedy(&error) {
        Some(remedy) => denied(catalog, format!("{error}: {remedy}")),
        None => TableError::CatalogUnavailable { catalog: catalog.to_owned(), source: error.into() },
    }
}

fn not_sent(ident: &TableIdent, error: impl Into<crate::error::Source>) -> SwapError {
    SwapError::NotSent { ident: ident.clone(), source: error.into() }
}

#[cfg(test)]
mod tests;
