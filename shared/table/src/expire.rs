//! Snapshots out of the metadata: one commit, no file is touched (design section 7, "Expiry").

use std::collections::HashSet;

use iceberg::{TableRequirement, TableUpdate};

use crate::catalog::Catalog;
use crate::error::{SwapError, TableError};
use crate::loaded::LoadedTable;

/// What is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// Ids of snapshots, with their statistics and partition statistics. Statistics of snapshots that are gone already go with them.
    pub snapshots: Vec<i64>,
    /// Names of branches and tags.
    pub refs: Vec<String>,
}

impl Removal {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.refs.is_empty()
    }
}

/// Why nothing was expired.
#[derive(Debug, thiserror::Error)]
pub enum ExpireError {
    /// A reference that stays points to a snapshot that would go. Nothing was sent.
    #[error("snapshot {snapshot} would go although `{reference}` points to it")]
    StillReferred {
        /// The snapshot.
        snapshot: i64,
        /// The reference.
        reference: String,
    },
    /// The metadata cannot be used.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The swap did not go through; by its kind the caller loads the table again and decides anew.
    #[error(transparent)]
    Swap(#[from] SwapError),
}

/// Removes snapshots and references from `table`, if no reference moved since it was loaded. Returns the new version.
///
/// # Errors
/// See [`ExpireError`].
pub async fn expire(catalog: &dyn Catalog, table: &LoadedTable, removal: &Removal) -> Result<LoadedTable, ExpireError> {
    let (updates, requirements) = changes(table, removal)?;
    Ok(catalog.swap(table, updates, requirements).await?)
}

fn changes(table: &LoadedTable, removal: &Removal) -> Result<(Vec<TableUpdate>, Vec<TableRequirement>), ExpireError> {
    let metadata = &table.metadata;
    let refs = table.history()?.refs;
    for reference in refs.iter().filter(|reference| !removal.refs.contains(&reference.name)) {
        if removal.snapshots.contains(&reference.snapshot_id) {
            return Err(ExpireError::StillReferred {
                snapshot: reference.snapshot_id,
                reference: reference.name.clone(),
            });
        }
    }
    // References first: a library that drops those of removed snapshots by itself does not say so to the catalog.
    let mut updates: Vec<TableUpdate> =
        removal.refs.iter().map(|name| TableUpdate::RemoveSnapshotRef { ref_name: name.clone() }).collect();
    let goes: HashSet<i64> = removal.snapshots.iter().copied().collect();
    // Statistics may have been registered at a REST catalog while their snapshot was being expired.
    let gone = |id: &i64| goes.contains(id) || metadata.snapshot_by_id(*id).is_none();
    let statistics = metadata.statistics_iter().map(|file| file.snapshot_id).filter(gone);
    updates.extend(statistics.map(|snapshot_id| TableUpdate::RemoveStatistics { snapshot_id }));
    let partitions = metadata.partition_statistics_iter().map(|file| file.snapshot_id).filter(|id| goes.contains(id));
    updates.extend(partitions.map(|snapshot_id| TableUpdate::RemovePartitionStatistics { snapshot_id }));
    if !removal.snapshots.is_empty() {
        updates.push(TableUpdate::RemoveSnapshots { snapshot_ids: removal.snapshots.clone() });
    }
    let mut requirements = vec![TableRequirement::UuidMatch { uuid: metadata.uuid() }];
    requirements.extend(refs.into_iter().map(|reference| TableRequirement::RefSnapshotIdMatch {
        r#ref: reference.name,
        snapshot_id: Some(reference.snapshot_id),
    }));
    Ok((updates, requirements))
}
