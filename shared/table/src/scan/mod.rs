//! What is live in a table, by partition: manifests are read once, several at a time, and reduced as they come.

mod audit;
mod deletes;
pub(crate) mod entry;
pub(crate) mod every_entry;
mod live;
pub(crate) mod manifests;
mod partition;
mod stats;
mod time;

use std::collections::HashMap;
use std::sync::Arc;

use firn_model::PartitionKey;
use iceberg::spec::{MAIN_BRANCH, SnapshotRef};

use crate::error::TableError;
use crate::key_bytes::memcmp;
use crate::loaded::LoadedTable;
use crate::partition_type::SpecTypes;

pub use audit::{Audit, audit};
pub use deletes::{DeleteFile, delete_files};
pub use live::{LiveFile, LiveFiles};
pub use partition::{PartitionFacts, partition_facts};
pub(crate) use partition::{live_data_paths, may_hold_partition};
pub use stats::{PartitionStats, SizeLimits, partition_stats};
pub use time::{TimeColumn, highest_time};

/// The snapshot a branch points to; None when nothing was ever written to the main branch.
fn head<'a>(table: &'a LoadedTable, branch: &str) -> Result<Option<&'a SnapshotRef>, TableError> {
    match table.head(branch) {
        Some(snapshot) => Ok(Some(snapshot)),
        None if branch == MAIN_BRANCH => Ok(None),
        None => Err(TableError::BranchAbsent { ident: table.ident.clone(), branch: branch.to_owned() }),
    }
}

/// The position of every known ancestor of a snapshot, itself included, the oldest known being 0.
fn history(table: &LoadedTable, head: &SnapshotRef) -> HashMap<i64, u64> {
    let mut ids = vec![head.snapshot_id()];
    let mut parent = head.parent_snapshot_id();
    while let Some(snapshot) = parent.and_then(|id| table.metadata.snapshot_by_id(id)) {
        // Damaged metadata may hold a circle.
        if ids.len() > table.metadata.snapshots().len() {
            break;
        }
        ids.push(snapshot.snapshot_id());
        parent = snapshot.parent_snapshot_id();
    }
    ids.into_iter().rev().zip(0..).collect()
}

/// Sorts by spec and then by the values of the tuple, nulls first.
fn sorted_by_key<T>(items: &mut [T], key: impl Fn(&T) -> &Arc<PartitionKey>) {
    items.sort_by_cached_key(|item| {
        let key = key(item);
        let values: Vec<Option<Vec<u8>>> = key.values.iter().map(|value| value.value.as_ref().map(memcmp)).collect();
        (key.spec_id, values)
    });
}

#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod parity_tests;
#[cfg(test)]
mod tests;
