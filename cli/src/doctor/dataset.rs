//! Whether the table of a dataset is there and of a kind that Firn works on.

use std::fmt;

use firn_config::Dataset;
use firn_table::{Catalog, LoadedTable, TableIdent};

use super::finding::Finding;

/// The newest format version that Firn merges.
const NEWEST: u8 = 2;

/// What was found, and the table when it can be looked into.
pub(super) struct Looked {
    pub(super) finding: Table,
    pub(super) table: Option<LoadedTable>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Table {
    There {
        dataset: String,
        metadata: String,
    },
    /// Its owner switched Firn off for it.
    SwitchedOff {
        dataset: String,
    },
    /// It holds no rows yet, so there is no branch.
    Empty {
        dataset: String,
    },
    NoBranch {
        dataset: String,
        branch: String,
    },
    NewerFormat {
        dataset: String,
        version: u8,
    },
    /// The text has the remedy.
    NotLoaded {
        dataset: String,
        reason: String,
    },
}

pub(super) async fn look(catalog: &dyn Catalog, dataset: &Dataset) -> Looked {
    let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
    match catalog.load(&ident).await {
        Err(error) => Looked {
            finding: Table::NotLoaded { dataset: dataset.name.clone(), reason: error.to_string() },
            table: None,
        },
        Ok(table) => {
            let seen = Seen {
                version: table.format_version() as u8,
                enabled: table.is_enabled(),
                snapshots: table.metadata.snapshots().len(),
                branch: table.head(&dataset.branch).is_some(),
            };
            Looked { finding: decide(dataset, &table.metadata_location, &seen), table: Some(table) }
        }
    }
}

/// What decides.
struct Seen {
    version: u8,
    enabled: bool,
    snapshots: usize,
    branch: bool,
}

fn decide(dataset: &Dataset, metadata: &str, seen: &Seen) -> Table {
    let name = dataset.name.clone();
    if !seen.enabled {
        Table::SwitchedOff { dataset: name }
    } else if seen.version > NEWEST {
        Table::NewerFormat { dataset: name, version: seen.version }
    } else if seen.branch {
        Table::There { dataset: name, metadata: metadata.to_owned() }
    } else if seen.snapshots == 0 {
        Table::Empty { dataset: name }
    } else {
        Table::NoBranch { dataset: name, branch: dataset.branch.clone() }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Table::There { dataset, metadata } => write!(f, "{dataset}: loaded from {metadata}"),
            Table::SwitchedOff { dataset } => {
                write!(f, "{dataset}: left alone, because its property firn.enabled is false")
            }
            Table::Empty { dataset } => write!(f, "{dataset}: there, without rows yet"),
            Table::NoBranch { dataset, branch } => {
                write!(
                    f,
                    "{dataset}: the table has no branch {branch}; correct branch in the configuration or create it"
                )
            }
            Table::NewerFormat { dataset, version } => write!(
                f,
                "{dataset}: format version {version}; this version of Firn merges up to {NEWEST} and leaves the table as it is"
            ),
            Table::NotLoaded { dataset, reason } => write!(f, "{dataset}: {reason}"),
        }
    }
}

impl Finding for Table {
    fn ok(&self) -> bool {
        matches!(self, Table::There { .. } | Table::SwitchedOff { .. } | Table::Empty { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use firn_config::Config;

    use super::*;

    #[test]
    fn each_kind_of_table() {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [{name: readings, table: a.b, branch: audit}]}";
        let config = Config::load(text, &HashMap::new()).unwrap();
        let decide = |version, enabled, snapshots, branch| {
            let finding = decide(&config.datasets[0], "m", &Seen { version, enabled, snapshots, branch });
            (finding.ok(), finding.to_string())
        };
        for (found, ok, part) in [
            (decide(2, true, 3, true), true, "readings: loaded from m"),
            (decide(2, true, 0, false), true, "without rows yet"),
            (decide(3, false, 1, true), true, "firn.enabled is false"),
            (decide(3, true, 1, true), false, "format version 3"),
            (decide(2, true, 1, false), false, "no branch audit"),
        ] {
            assert!(found.0 == ok && found.1.contains(part), "{found:?}");
        }
    }
}
