//! The SQL catalog that PyIceberg and Iceberg's JDBC catalog share: one table `iceberg_tables` whose row points to the
//! current metadata file. Queries use numbered parameters and standard SQL only, so that PostgreSQL takes them as well.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{PutCondition, StorageError};
use iceberg::spec::{FormatVersion, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};
use rand::Rng;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{ColumnIndex, Row};

use super::metadata_file;
use super::{Catalog, sql_error};
use crate::error::{SwapError, TableError};
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::loaded::LoadedTable;

const SELECT_ROW: &str =
    "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3";
const SELECT_CATALOGS: &str = "SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY catalog_name";
const SELECT_NAMES: &str =
    "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 ORDER BY table_name";
const SWAP: &str = "UPDATE iceberg_tables SET metadata_location = $1, previous_metadata_location = $2 \
     WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $2";

/// How long a lock of another writer is waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How long SQLite itself waits before it says busy.
    busy_timeout: Duration,
    /// How often a busy swap is sent in all.
    swap_tries: u32,
}

const PATIENCE: Patience = Patience { busy_timeout: Duration::from_secs(2), swap_tries: 5 };

/// A catalog in a SQLite file.
#[derive(Debug, Clone)]
pub struct SqlCatalog {
    name: String,
    pool: SqlitePool,
    store: TableStore,
    swap_tries: u32,
}

impl SqlCatalog {
    /// Opens the catalog `name` in a database file; a relative path starts at the working directory.
    ///
    /// # Errors
    /// [`TableError::CatalogAbsent`] when there is no such file (it is never created: an empty catalog would look like
    /// success) or no catalog in it.
    pub async fn open(database: &Path, name: &str, store: TableStore) -> Result<Self, TableError> {
        Self::open_with(database, name, store, PATIENCE).await
    }

    async fn open_with(database: &Path, name: &str, store: TableStore, patience: Patience) -> Result<Self, TableError> {
        if !database.is_file() {
            return Err(TableError::CatalogAbsent {
                catalog: name.to_owned(),
                detail: format!(
                    "there is no database file `{}`; sqlite:///x is relative to the working directory, sqlite:////x is \
                     absolute",
                    absolute(database)
                ),
            });
        }
        let options =
            SqliteConnectOptions::new().filename(database).create_if_missing(false).busy_timeout(patience.busy_timeout);
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(20))
            .connect_with(options)
            .await
            .map_err(|error| match error {
                error if sql_error::is_refused(&error) => TableError::CatalogAbsent {
                    catalog: name.to_owned(),
                    detail: format!("`{}` cannot be opened: {error}", absolute(database)),
                },
                error => unavailable(name, error),
            })?;
        let catalog = Self { name: name.to_owned(), pool, store, swap_tries: patience.swap_tries };
        catalog.check_schema(database).await?;
        Ok(catalog)
    }

    /// A file that is no database, or holds none of the catalog's tables, is named at once; so is a name that no row has while
    /// others do: it would look like a catalog without tables.
    async fn check_schema(&self, path: &Path) -> Result<(), TableError> {
        let absent = |detail: String| TableError::CatalogAbsent { catalog: self.name.clone(), detail };
        match sqlx::query_scalar::<_, String>(SELECT_CATALOGS).fetch_all(&self.pool).await {
            Ok(known) if known.is_empty() || known.contains(&self.name) => Ok(()),
            Ok(known) => Err(absent(format!(
                "`{}` has no tables of a catalog of this name; its catalogs are `{}`",
                absolute(path),
                known.join("`, `")
            ))),
            Err(error) if sql_error::is_refused(&error) => {
                Err(absent(format!("`{}` is not an Iceberg SQL catalog: {error}", absolute(path))))
            }
            Err(error) => Err(unavailable(&self.name, error)),
        }
    }

    /// The current metadata location, or None when there is no such table (views are none).
    async fn current_location(&self, ident: &TableIdent) -> Result<Option<String>, sqlx::Error> {
        let row = sqlx::query(SELECT_ROW)
            .bind(&self.name)
            .bind(ident.namespace())
            .bind(ident.name())
            .fetch_optional(&self.pool)
            .await?;
        match row {
            Some(row) if is_table(&row)? => row.try_get("metadata_location"),
            _ => Ok(None),
        }
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
    async fn send_swap(&self, ident: &TableIdent, old: &str, new: &str) -> Result<Swapped, SwapError> {
        for attempt in 1.. {
            // Nothing was sent while there is no connection.
            let mut connection = self.pool.acquire().await.map_err(|error| not_sent(ident, error))?;
            let result = sqlx::query(SWAP)
                .bind(new)
                .bind(old)
                .bind(&self.name)
                .bind(ident.namespace())
                .bind(ident.name())
                .execute(&mut *connection)
                .await;
            match result {
                Ok(done) if done.rows_affected() == 1 => return Ok(Swapped::Yes),
                Ok(_) => return Ok(Swapped::No),
                Err(error) if sql_error::is_busy(&error) => {
                    if attempt >= self.swap_tries {
                        return Ok(Swapped::Busy);
                    }
                    drop(connection);
                    let jitter = rand::rng().random_range(0..100);
                    tokio::time::sleep(Duration::from_millis(u64::from(50 * attempt) + jitter)).await;
                }
                Err(error) if sql_error::is_refused(&error) => {
                    return Err(SwapError::Permanent { ident: ident.clone(), source: error.into() });
                }
                Err(error) => return Err(SwapError::Unknown { ident: ident.clone(), source: error.into() }),
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
        let location = self.current_location(ident).await.map_err(|error| unavailable(&self.name, error))?;
        let Some(location) = location else {
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
        })
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        let rows = sqlx::query(SELECT_NAMES)
            .bind(&self.name)
            .bind(namespace.join("."))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| unavailable(&self.name, error))?;
        let mut names = Vec::new();
        for row in rows {
            if is_table(&row).map_err(|error| unavailable(&self.name, error))? {
                names.push(row.try_get("table_name").map_err(|error| unavailable(&self.name, error))?);
            }
        }
        Ok(names)
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

        let lost = match self.send_swap(ident, old, &new).await {
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

/// Whether a row of `iceberg_tables` is a table. The first schema of the catalog has no `iceberg_type` column and knows no
/// views; in the second, null stands for a table written by an older client.
fn is_table<R: Row>(row: &R) -> Result<bool, sqlx::Error>
where
    for<'a> &'a str: ColumnIndex<R>,
    for<'a> Option<String>: sqlx::Decode<'a, R::Database> + sqlx::Type<R::Database>,
{
    match row.try_get::<Option<String>, _>("iceberg_type") {
        Ok(kind) => Ok(kind.is_none_or(|kind| kind.eq_ignore_ascii_case("table"))),
        Err(sqlx::Error::ColumnNotFound(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn unavailable(catalog: &str, error: sqlx::Error) -> TableError {
    TableError::CatalogUnavailable { catalog: catalog.to_owned(), source: error.into() }
}

fn not_sent(ident: &TableIdent, error: impl Into<crate::error::Source>) -> SwapError {
    SwapError::NotSent { ident: ident.clone(), source: error.into() }
}

#[cfg(test)]
mod tests;
