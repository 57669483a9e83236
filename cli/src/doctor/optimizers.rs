//! Whether another program compacts the same table: two of them merge the same files and conflict with each other.

use std::fmt;

use firn_config::Dataset;
use firn_table::{LoadedTable, other_optimizer};
use iceberg::spec::{Operation, TableMetadata};

use super::finding::Finding;

/// What every commit of Firn has in its summary.
const OWN: &str = "firn.inputs";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Optimizers {
    None {
        dataset: String,
    },
    /// A property switches one on.
    Property {
        dataset: String,
        key: String,
    },
    /// Somebody else rewrote files.
    Rewrote {
        dataset: String,
        snapshot: i64,
        engine: String,
    },
}

pub(super) fn look(dataset: &Dataset, table: &LoadedTable) -> Optimizers {
    decide(dataset.name.clone(), &table.metadata)
}

fn decide(dataset: String, metadata: &TableMetadata) -> Optimizers {
    if let Some(key) = other_optimizer(metadata) {
        return Optimizers::Property { dataset, key: key.to_owned() };
    }
    let newest = metadata
        .snapshots()
        .filter(|snapshot| {
            let summary = snapshot.summary();
            summary.operation == Operation::Replace && !summary.additional_properties.contains_key(OWN)
        })
        .max_by_key(|snapshot| snapshot.sequence_number());
    match newest {
        None => Optimizers::None { dataset },
        Some(snapshot) => {
            let engine = snapshot.summary().additional_properties.get("engine-name");
            Optimizers::Rewrote {
                dataset,
                snapshot: snapshot.snapshot_id(),
                engine: engine.cloned().unwrap_or_else(|| "an engine without a name".into()),
            }
        }
    }
}

impl fmt::Display for Optimizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Optimizers::None { dataset } => write!(f, "{dataset}: no trace of another"),
            Optimizers::Property { dataset, key } => write!(
                f,
                "{dataset}: property {key} switches another optimizer on: set it to false, or firn.enabled=false to leave the table to it"
            ),
            Optimizers::Rewrote { dataset, snapshot, engine } => write!(
                f,
                "{dataset}: snapshot {snapshot} was rewritten by {engine}: let one program compact this table; set firn.enabled=false where \
                 that is not Firn. The snapshot goes from this check when it expires"
            ),
        }
    }
}

impl Finding for Optimizers {
    fn ok(&self) -> bool {
        matches!(self, Optimizers::None { .. })
    }
}
