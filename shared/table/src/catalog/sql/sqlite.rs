//! The catalog's table in a SQLite file.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::database::{
    Database, PointerRow, SELECT_CATALOGS, SELECT_NAMES, SELECT_NAMESPACES, SELECT_ROW, SWAP, Swap, SwapFailure,
};
use super::said::{self, Said};
use super::{absent, check_name, unavailable};
use crate::error::TableError;
use crate::ident::TableIdent;

/// An open SQLite file.
#[derive(Debug, Clone)]
pub(crate) struct SqliteFile {
    pool: SqlitePool,
}

impl SqliteFile {
    /// Opens a file that has tables of the catalog `name`, or of none. `busy_timeout` is how long SQLite itself waits for another
    /// writer before it says busy. A missing file is not created: an empty catalog would look like success.
    pub(crate) async fn open(path: &Path, name: &str, busy_timeout: Duration) -> Result<Self, TableError> {
        let place = absolute(path);
        if !path.is_file() {
            return Err(absent(
                name,
                format!(
                    "there is no database file `{place}`; sqlite:///x is relative to the working directory, sqlite:////x is \
                     absolute"
                ),
            ));
        }
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(false).busy_timeout(busy_timeout);
        let pool = SqlitePoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(20));
        let pool = pool.connect_with(options).await.map_err(|error| match said::sqlite(&error) {
            Said::Refused | Said::Denied => absent(name, format!("`{place}` cannot be opened: {error}: check that catalog.uri names the database and that this user may read and write it")),
            Said::Busy | Said::Unknown => unavailable(name, error),
        })?;
        match sqlx::query_scalar::<_, String>(SELECT_CATALOGS).fetch_all(&pool).await {
            Ok(known) => check_name(name, &place, &known)?,
            Err(error) if matches!(said::sqlite(&error), Said::Refused | Said::Denied) => {
                return Err(absent(
                    name,
                    format!(
                        "`{place}` is not an Iceberg SQL catalog: {error}: correct catalog.uri, or let the writer of the tables create it there"
                    ),
                ));
            }
            Err(error) => return Err(unavailable(name, error)),
        }
        Ok(Self { pool })
    }

    #[cfg(test)]
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

#[async_trait]
impl Database for SqliteFile {
    async fn row(&self, catalog: &str, ident: &TableIdent) -> sqlx::Result<Option<PointerRow>> {
        let query = sqlx::query(SELECT_ROW).bind(catalog).bind(ident.namespace()).bind(ident.name());
        let row = query.fetch_optional(&self.pool).await?;
        row.as_ref().map(PointerRow::of).transpose()
    }

    async fn namespaces(&self, catalog: &str) -> sqlx::Result<Vec<String>> {
        sqlx::query_scalar(SELECT_NAMESPACES).bind(catalog).fetch_all(&self.pool).await
    }

    async fn rows(&self, catalog: &str, namespace: &str) -> sqlx::Result<Vec<PointerRow>> {
        let rows = sqlx::query(SELECT_NAMES).bind(catalog).bind(namespace).fetch_all(&self.pool).await?;
        rows.iter().map(PointerRow::of).collect()
    }

    async fn swap(&self, catalog: &str, swap: &Swap<'_>) -> Result<u64, SwapFailure> {
        let mut connection = self.pool.acquire().await.map_err(SwapFailure::NotSent)?;
        let query = sqlx::query(SWAP).bind(swap.new).bind(swap.old);
        let query = query.bind(catalog).bind(swap.ident.namespace()).bind(swap.ident.name());
        match query.execute(&mut *connection).await {
            Ok(done) => Ok(done.rows_affected()),
            Err(error) => Err(SwapFailure::Sent(said::sqlite(&error), error)),
        }
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
