//! The app that the local host runs: the files that Azure gets too, beside a configuration for the demo's tables.

use std::fs;
use std::path::{Path, PathBuf};

use super::DemoError;
use super::catalog::DemoCatalog;
use super::lake::NAMESPACE;
use super::rows::DemoTable;

/// Thresholds under which the demo's few megabytes are worth a merge, and the strictest proof.
const COMPACTION: &str = "backlogFileThreshold: 10, verify: reread";

/// Where everything of the demo lies.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The demo's folder.
    pub(crate) folder: PathBuf,
    /// URL of the folder that holds the tables.
    pub(crate) warehouse: String,
    /// Azurite.
    pub(crate) connection: String,
}

impl Places {
    pub(crate) fn new(folder: &Path, connection: String) -> Self {
        Self {
            folder: folder.to_owned(),
            warehouse: "abfss://lake@devstoreaccount1.dfs.core.windows.net/wh".into(),
            connection,
        }
    }

    /// firn.yaml.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("firn.yaml")
    }
}

/// Writes the configuration.
pub(crate) fn write_config(places: &Places, catalog: &DemoCatalog) -> Result<(), DemoError> {
    let mut text = format!(
        "storage: {{ connectionString: \"{}\" }}\n\
         catalog: {}\n\
         compaction: {{ {COMPACTION} }}\n\
         ingestion:\n  datasets:\n",
        places.connection,
        catalog.section(&places.warehouse)
    );
    for table in DemoTable::ALL {
        let (name, keys) = (table.name(), table.dataset_keys());
        text += &format!("    - {{ name: {name}, table: {NAMESPACE}.{name}, {keys} }}\n");
    }
    fs::write(places.config(), text).map_err(DemoError::of("firn.yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_firn_takes() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::new(folder.path(), "UseDevelopmentStorage=true".into());
        write_config(&places, &DemoCatalog::Sqlite(folder.path().join("catalog.db"))).unwrap();
        let config = firn_config::Config::from_file(&places.config()).unwrap();
        assert!(config.warnings.is_empty(), "{config:?}");
        let names: Vec<&str> = config.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
        assert_eq!(names, ["readings", "logs"]);
        assert!(config.datasets[0].dedup);
    }
}
