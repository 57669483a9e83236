//! The catalog of the demo: a file, or a server that is started for it.

use std::path::{Path, PathBuf};

use firn_local_host::{Azurite, IcebergRest, Postgres};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::DemoError;
use super::lake::{CATALOG, NAMESPACE};
use crate::args::DemoCatalogKind;

/// The schema that PyIceberg and Iceberg's JDBC catalog share.
const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
     table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
     previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), \
     PRIMARY KEY (catalog_name, table_namespace, table_name))";

/// The database on the server.
const DATABASE: &str = "lake";

/// A catalog that takes tables. Dropping it ends its server.
#[derive(Debug)]
pub(crate) enum DemoCatalog {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server of its own.
    Postgres(Postgres),
    /// A REST server of its own: Iceberg's handlers.
    Rest(IcebergRest),
}

impl DemoCatalog {
    /// Starts what it needs; a file is made in `folder`, and a server that keeps files itself keeps them below `warehouse` of Azurite.
    pub(crate) async fn start(
        kind: DemoCatalogKind,
        folder: &Path,
        azurite: &Azurite,
        warehouse: &str,
    ) -> Result<DemoCatalog, DemoError> {
        let catalog = match kind {
            DemoCatalogKind::Rest => {
                // Compiled the first time, and started in a second: nobody else works meanwhile.
                let server = tokio::task::block_in_place(|| IcebergRest::try_start(azurite, warehouse, &[]));
                let server = server.map_err(DemoError::of("the REST catalog"))?;
                post(&format!("{}/v1/namespaces", server.url()), &json!({ "namespace": [NAMESPACE] })).await?;
                return Ok(DemoCatalog::Rest(server));
            }
            DemoCatalogKind::Sqlite => DemoCatalog::Sqlite(folder.join("catalog.db")),
            DemoCatalogKind::Postgres => {
                let started = tokio::task::spawn_blocking(Postgres::try_start).await;
                let server = started.map_err(DemoError::of("PostgreSQL"))?.map_err(DemoError::of("PostgreSQL"))?;
                server
                    .try_run("postgres", &format!("CREATE DATABASE {DATABASE}"))
                    .map_err(DemoError::of("PostgreSQL"))?;
                DemoCatalog::Postgres(server)
            }
        };
        catalog.run(&[CREATE_TABLE.to_owned()]).await?;
        Ok(catalog)
    }

    /// The section of firn.yaml.
    pub(crate) fn section(&self, warehouse: &str) -> String {
        let uri = match self {
            DemoCatalog::Sqlite(path) => format!("sqlite:///{}", path.display()),
            DemoCatalog::Postgres(server) => server.url(DATABASE),
            DemoCatalog::Rest(server) => {
                return format!(
                    "{{ type: rest, uri: \"{}\", name: {CATALOG}, warehouse: \"{warehouse}\" }}",
                    server.url()
                );
            }
        };
        format!("{{ type: sql, uri: \"{uri}\", name: {CATALOG}, warehouse: \"{warehouse}\" }}")
    }

    /// Makes a table known by its first metadata file.
    pub(crate) async fn register(&self, table: &str, metadata: &str) -> Result<(), DemoError> {
        if let DemoCatalog::Rest(server) = self {
            let url = format!("{}/v1/namespaces/{NAMESPACE}/register", server.url());
            return post(&url, &json!({ "name": table, "metadata-location": metadata })).await;
        }
        // Names and places of the demo's own: nothing to quote.
        let row = format!("('{CATALOG}', '{NAMESPACE}', '{table}', '{metadata}', NULL, 'TABLE')");
        self.run(&[format!("INSERT INTO iceberg_tables VALUES {row}")]).await
    }

    async fn run(&self, statements: &[String]) -> Result<(), DemoError> {
        let failed = DemoError::of::<sqlx::Error>("the catalog");
        match self {
            DemoCatalog::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
                let pool = SqlitePoolOptions::new().connect_with(options).await.map_err(&failed)?;
                for statement in statements {
                    sqlx::query(statement).execute(&pool).await.map_err(&failed)?;
                }
                pool.close().await;
            }
            DemoCatalog::Postgres(server) => {
                server.try_run(DATABASE, &statements.join("; ")).map_err(DemoError::of("the catalog"))?;
            }
            DemoCatalog::Rest(_) => return Err(DemoError::new("a REST catalog takes no statements")),
        }
        Ok(())
    }
}

/// Asks the REST server for something new.
async fn post(url: &str, body: &Value) -> Result<(), DemoError> {
    let failed = DemoError::of::<reqwest::Error>("the REST catalog");
    // One TLS provider in the process; another part may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().map_err(&failed)?;
    let request = client.post(url).header("content-type", "application/json").body(body.to_string());
    let answer = request.send().await.map_err(&failed)?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(DemoError::new(format!("the REST catalog: {url}: {}", answer.text().await.unwrap_or_default()))),
    }
}
