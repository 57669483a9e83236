//! Was a group committed before? Then a repeated or late message has nothing to do (design section 6).

use std::collections::HashSet;

use firn_model::PartitionKey;

use super::history::replaced_by;
use crate::error::TableError;
use crate::loaded::LoadedTable;
use crate::location::is_output_of;
use crate::scan::live_data_paths;

/// Whether a group was committed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlreadyDone {
    /// No sign of it.
    No,
    /// The head has a live output of the same inputs.
    LiveOutput {
        /// Its path.
        path: String,
    },
    /// An ancestor of the head replaced the same inputs, and none of them is live; the outputs were merged on since.
    Replaced {
        /// That snapshot.
        snapshot_id: i64,
    },
}

/// Looks for signs that the group `inputs_hash` of `partition` was committed to `branch`: a live file named
/// `<hash>-…`, or an ancestor of the head with the hash in its summary while no input is live.
///
/// # Errors
/// What is wrong with the branch or a manifest.
pub async fn already_done(
    table: &LoadedTable,
    branch: &str,
    partition: &PartitionKey,
    inputs_hash: &str,
    inputs: &[String],
) -> Result<AlreadyDone, TableError> {
    let wanted: HashSet<String> = inputs.iter().cloned().collect();
    let hash = inputs_hash.to_owned();
    let seen =
        live_data_paths(table, branch, partition, move |path| wanted.contains(path) || is_output_of(path, &hash));
    let seen = seen.await?;
    if let Some(path) = seen.iter().find(|path| is_output_of(path, inputs_hash)) {
        return Ok(AlreadyDone::LiveOutput { path: path.clone() });
    }
    if !seen.is_empty() {
        return Ok(AlreadyDone::No);
    }
    Ok(match replaced_by(&table.metadata, branch, inputs_hash) {
        Some(snapshot_id) => AlreadyDone::Replaced { snapshot_id },
        None => AlreadyDone::No,
    })
}
