//! Whether the catalog opens.

use std::fmt;
use std::sync::Arc;

use firn_config::Config;
use firn_table::{Catalog, TableError, TableStore, catalog};

use super::finding::Finding;

/// The catalog answers.
#[derive(Debug)]
pub(super) struct Opened(String);

/// It does not; the text has the remedy.
#[derive(Debug)]
pub(super) struct NotOpened(TableError);

/// Opens it.
pub(super) async fn look(config: &Config, store: TableStore) -> Result<(Opened, Arc<dyn Catalog>), NotOpened> {
    let catalog = catalog::open(&config.catalog, store).await.map_err(NotOpened)?;
    // An empty namespace asks the catalog without asking for a table.
    let namespace = &config.datasets[0].table.namespace;
    catalog.list_tables(namespace).await.map_err(NotOpened)?;
    Ok((Opened(catalog.name().to_owned()), catalog))
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers", self.0)
    }
}

impl Finding for Opened {
    fn ok(&self) -> bool {
        true
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Finding for NotOpened {
    fn ok(&self) -> bool {
        false
    }
}
