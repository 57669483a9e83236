//! Finds a group's inputs among the live files of a head, by their exact paths.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use firn_model::PartitionKey;
use iceberg::spec::{ManifestEntryRef, ManifestFile, Struct};

use super::entry::{CarriedEntry, Carry};
use super::error::CommitError;
use super::manifests::{LiveSums, ManifestCache, ReadManifest};
use super::tuple::is_tuple_of;
use crate::loaded::LoadedTable;
use crate::scan::may_hold_partition;

/// The inputs of a group as a head has them.
#[derive(Debug)]
pub(crate) struct Located {
    /// Paths of the manifests that hold at least one input.
    pub(crate) touched: HashSet<String>,
    /// The partition tuple of the inputs, copied from a manifest entry.
    pub(crate) tuple: Struct,
    /// Files, rows and bytes of the inputs.
    pub(crate) sums: LiveSums,
    /// Highest data sequence number of the inputs.
    pub(crate) newest: i64,
}

/// Why the inputs were not found as they should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotLocated {
    /// These are not live.
    Missing(Vec<String>),
    /// The table or the request is not as it must be.
    Wrong(String),
}

/// Data manifests of the partition's spec that can hold one of its files.
pub(crate) fn candidates<'a>(
    table: &LoadedTable,
    data: &[&'a ManifestFile],
    partition: &PartitionKey,
) -> Result<Vec<&'a ManifestFile>, CommitError> {
    let specs = table.spec_types().map_err(CommitError::from)?;
    let Some(spec) = specs.get(&partition.spec_id) else { return Ok(Vec::new()) };
    let of_spec = data.iter().copied().filter(|file| file.partition_spec_id == partition.spec_id);
    Ok(of_spec.filter(|file| holds_live_files(file) && may_hold_partition(file, spec, partition)).collect())
}

/// False when the list knows that every entry is a deletion.
pub(crate) fn holds_live_files(file: &ManifestFile) -> bool {
    file.has_added_files() || file.has_existing_files()
}

/// True when the manifest has a live entry of one of the paths.
pub(crate) fn holds_any(entries: &[ManifestEntryRef], paths: &HashSet<String>) -> bool {
    entries.iter().any(|entry| entry.is_alive() && paths.contains(entry.file_path()))
}

/// Looks up every input in the manifests that were read.
pub(crate) fn locate(
    cache: &ManifestCache,
    candidates: &[&ManifestFile],
    inputs: &HashSet<String>,
    partition: &PartitionKey,
) -> Result<Located, NotLocated> {
    let mut found: HashMap<&str, &ManifestEntryRef> = HashMap::new();
    let mut touched = HashSet::new();
    for file in candidates {
        let Some(entries) = cache.get(&file.manifest_path).and_then(|read| read.entries.as_ref()) else { continue };
        for entry in entries.iter().filter(|entry| entry.is_alive() && inputs.contains(entry.file_path())) {
            if found.insert(entry.file_path(), entry).is_some() {
                return Err(NotLocated::Wrong(format!(
                    "`{}` is live twice; readers see its rows twice, and Firn would not",
                    entry.file_path()
                )));
            }
            touched.insert(file.manifest_path.clone());
        }
    }
    let mut missing: Vec<String> = inputs.iter().filter(|path| !found.contains_key(path.as_str())).cloned().collect();
    if !missing.is_empty() {
        missing.sort();
        return Err(NotLocated::Missing(missing));
    }
    let mut located = Located { touched, tuple: Struct::empty(), sums: LiveSums::default(), newest: 0 };
    for entry in found.into_values() {
        let file = entry.data_file();
        if !is_tuple_of(partition, file.partition()) {
            return Err(NotLocated::Wrong(format!("`{}` is not of partition ({partition})", entry.file_path())));
        }
        let Some(number) = entry.sequence_number() else {
            return Err(NotLocated::Wrong(format!("`{}` has no data sequence number", entry.file_path())));
        };
        located.tuple = file.partition().clone();
        located.newest = located.newest.max(number);
        located.sums.files += 1;
        located.sums.records += entry.record_count();
        located.sums.bytes += entry.file_size_in_bytes();
    }
    Ok(located)
}

/// The entries of a manifest that is written again: live ones as EXISTING, inputs as DELETED; what was deleted before goes.
pub(crate) fn carried(
    file: &ManifestFile,
    read: &Arc<ReadManifest>,
    inputs: &HashSet<String>,
) -> Result<Vec<CarriedEntry>, String> {
    let Some(entries) = &read.entries else {
        return Err(format!("manifest `{}` was not kept", file.manifest_path));
    };
    let live = entries.iter().filter(|entry| entry.is_alive());
    live.map(|entry| {
        // Without its own numbers the entry would take those of the new manifest, past deletes that reach its rows.
        let (Some(snapshot_id), Some(sequence_number), Some(file_sequence_number)) =
            (entry.snapshot_id(), entry.sequence_number(), entry.file_sequence_number)
        else {
            return Err(format!(
                "manifest `{}`: entry of `{}` has no snapshot id or sequence number and inherits none",
                file.manifest_path,
                entry.file_path()
            ));
        };
        let carry = if inputs.contains(entry.file_path()) { Carry::Deleted } else { Carry::Existing { snapshot_id } };
        Ok(CarriedEntry { file: entry.data_file().clone(), carry, sequence_number, file_sequence_number })
    })
    .collect()
}
