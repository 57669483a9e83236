//! Where the parts are put together: stores, catalog and budgets from the configuration.

use std::sync::Arc;

use firn_columnar::{StopFlag, sweep_stale};
use firn_compact::Services;
use firn_config::{Catalog, Config, Database};
use firn_storage::azure::{AzureOptions, AzureStore, ConnectionString};
use firn_storage::{BlobStore, RoutingStore};
use firn_table::{SqlCatalog, TableStore};

use crate::load::pass_error;
use crate::report::PassError;

/// Opens what a pass works with. Temporary files of runs that died are removed on the way.
///
/// # Errors
/// [`PassError::Usage`] for what this version cannot use, [`PassError::Unavailable`] for what is not there.
pub(crate) async fn open(config: &Config) -> Result<Services, PassError> {
    let store = table_store(config)?;
    let catalog = match &config.catalog {
        Catalog::Sql(sql) => match &sql.database {
            Database::Sqlite(path) => SqlCatalog::open(path, &sql.name, store).await.map_err(pass_error)?,
            Database::Postgres(_) => return Err(not_yet("a PostgreSQL catalog")),
        },
        Catalog::Rest(_) => return Err(not_yet("a REST catalog")),
    };
    let temp_root = std::env::temp_dir();
    if let Err(error) = sweep_stale(&temp_root) {
        tracing::warn!(%error, "temporary files of earlier runs could not be removed");
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Services { catalog: Arc::new(catalog), temp_root, threads, stop: StopFlag::default() })
}

fn table_store(config: &Config) -> Result<TableStore, PassError> {
    let mut stores = RoutingStore::new();
    let mut default_account = None;
    if let Some(connection) = config.storage.as_ref().and_then(|storage| storage.connection_string.as_ref()) {
        let wrong = |error: &dyn std::fmt::Display| PassError::Usage(format!("storage.connectionString: {error}"));
        let connection = ConnectionString::parse(connection.expose()).map_err(|error| wrong(&error))?;
        let azure = AzureStore::new(&connection, AzureOptions::default()).map_err(|error| wrong(&error))?;
        default_account = Some(azure.account().to_owned());
        let account = azure.account().to_owned();
        stores = stores.with_account(&account, Arc::new(azure));
    }
    let stores: Arc<dyn BlobStore> = Arc::new(stores);
    Ok(TableStore::new(stores).with_default_account(default_account.as_deref()))
}

fn not_yet(what: &str) -> PassError {
    PassError::Usage(format!(
        "{what} comes with a later version; today the catalog is SQLite: uri sqlite:////path/catalog.db"
    ))
}
