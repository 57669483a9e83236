//! Whether the catalog opens.

use std::fmt;
use std::sync::Arc;

use firn_config::Config;
use firn_storage::AzureAccount;
use firn_table::{Catalog, TableError, TableStore, catalog};

use super::finding::Finding;

/// The catalog answers.
#[derive(Debug)]
pub(super) struct Opened {
    name: String,
    /// Why it takes no commits.
    read_only: Option<String>,
}

/// It does not; the text has the remedy.
#[derive(Debug)]
pub(super) struct NotOpened(TableError);

/// Opens it.
pub(super) async fn look(
    config: &Config,
    store: TableStore,
    account: Option<&AzureAccount>,
) -> Result<(Opened, Arc<dyn Catalog>), NotOpened> {
    let catalog = catalog::open(&config.catalog, store, account).await.map_err(NotOpened)?;
    // An empty namespace asks the catalog without asking for a table.
    let namespace = &config.datasets[0].table.namespace;
    catalog.list_tables(namespace).await.map_err(NotOpened)?;
    let opened = Opened { name: catalog.name().to_owned(), read_only: catalog.read_only().map(str::to_owned) };
    Ok((opened, catalog))
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.read_only {
            None => write!(f, "{} answers", self.name),
            Some(reason) => write!(
                f,
                "{} answers, but {reason}: nothing is planned; write the catalog that the tables' writers commit to",
                self.name
            ),
        }
    }
}

impl Finding for Opened {
    fn ok(&self) -> bool {
        self.read_only.is_none()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_that_takes_no_commits_is_not_well() {
        let found = |read_only: Option<&str>| Opened { name: "lake".into(), read_only: read_only.map(str::to_owned) };
        assert_eq!((found(None).ok(), found(None).to_string()), (true, "lake answers".into()));
        let one_lake = found(Some("OneLake's catalog is read-only"));
        assert!(!one_lake.ok());
        assert!(
            one_lake.to_string().starts_with("lake answers, but OneLake's catalog is read-only: nothing is planned")
        );
    }
}
