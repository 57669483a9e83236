//! What the catalog asks of a database, whichever it is: rows of `iceberg_tables` and the swap of one.

use std::fmt::Debug;

use async_trait::async_trait;
use sqlx::{ColumnIndex, Row};

use super::said::Said;
use crate::ident::TableIdent;

/// Statements are standard SQL with numbered parameters, which SQLite and PostgreSQL both take.
pub(super) const SELECT_ROW: &str =
    "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3";
pub(super) const SELECT_CATALOGS: &str = "SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY catalog_name";
pub(super) const SELECT_NAMESPACES: &str =
    "SELECT DISTINCT table_namespace FROM iceberg_tables WHERE catalog_name = $1 ORDER BY table_namespace";
pub(super) const SELECT_NAMES: &str =
    "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 ORDER BY table_name";
pub(super) const SWAP: &str = "UPDATE iceberg_tables SET metadata_location = $1, previous_metadata_location = $2 \
     WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $2";

/// A database that holds `iceberg_tables`.
#[async_trait]
pub(crate) trait Database: Send + Sync + Debug {
    /// The current row of a table.
    async fn row(&self, catalog: &str, ident: &TableIdent) -> sqlx::Result<Option<PointerRow>>;

    /// The namespaces that have rows, their levels joined by dots.
    async fn namespaces(&self, catalog: &str) -> sqlx::Result<Vec<String>>;

    /// The rows directly in a namespace, by name.
    async fn rows(&self, catalog: &str, namespace: &str) -> sqlx::Result<Vec<PointerRow>>;

    /// Sends the swap once, as a transaction of its own; the count of rows that it changed.
    async fn swap(&self, catalog: &str, swap: &Swap<'_>) -> Result<u64, SwapFailure>;
}

/// One row moves from one metadata file to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap<'a> {
    pub(crate) ident: &'a TableIdent,
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
}

/// Why a swap gave no count.
#[derive(Debug)]
pub(crate) enum SwapFailure {
    /// There was no connection, so nothing was sent.
    NotSent(sqlx::Error),
    /// It was sent.
    Sent(Said, sqlx::Error),
}

/// What a row says of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PointerRow {
    pub(crate) name: String,
    pub(crate) location: Option<String>,
    /// Views and the like are none.
    pub(crate) is_table: bool,
}

impl PointerRow {
    /// The first schema of the catalog has no `iceberg_type` column and knows no views; in the second, null stands for a table
    /// written by an older client.
    pub(super) fn of<R: Row>(row: &R) -> sqlx::Result<Self>
    where
        for<'a> &'a str: ColumnIndex<R>,
        for<'a> Option<String>: sqlx::Decode<'a, R::Database> + sqlx::Type<R::Database>,
        for<'a> String: sqlx::Decode<'a, R::Database> + sqlx::Type<R::Database>,
    {
        let is_table = match row.try_get::<Option<String>, _>("iceberg_type") {
            Ok(kind) => kind.is_none_or(|kind| kind.eq_ignore_ascii_case("table")),
            Err(sqlx::Error::ColumnNotFound(_)) => true,
            Err(error) => return Err(error),
        };
        Ok(Self { name: row.try_get("table_name")?, location: row.try_get("metadata_location")?, is_table })
    }
}
