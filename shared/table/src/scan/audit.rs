//! The invariants of a whole table, snapshot by snapshot (design section 8): what `firn verify` reports.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use firn_storage::StorageError;
use futures::{StreamExt, stream};
use iceberg::spec::SnapshotRef;

use super::entry::Content;
use super::manifests::{reduce, select};
use crate::error::TableError;
use crate::loaded::LoadedTable;

/// Files looked up in the store at the same time.
const LOOKUPS_AT_ONCE: usize = 16;

/// What was found. Each list holds sentences for a person, empty when the invariant holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Snapshots looked at.
    pub snapshots: usize,
    /// Distinct files of all of them, their statistics with them.
    pub files: usize,
    /// I2: files of retained snapshots that are not in the store.
    pub missing: Vec<String>,
    /// I2: data and statistics files that have another size in the store than in the metadata.
    pub resized: Vec<String>,
    /// I3: paths that are live twice in one snapshot.
    pub doubled: Vec<String>,
    /// I4: summary totals that a recount does not confirm.
    pub wrong_totals: Vec<String>,
}

/// A live file of a manifest.
#[derive(Debug, Clone)]
struct Live {
    path: String,
    data: bool,
    rows: u64,
    bytes: u64,
}

/// Reads every manifest of every retained snapshot once, recounts, and asks the store for every file.
///
/// Memory grows with the files of the retained snapshots.
///
/// # Errors
/// When a manifest list or manifest cannot be read (which is a violation of I2 of its own, named by the error) or the store does not
/// answer.
pub async fn audit(table: &LoadedTable) -> Result<Audit, TableError> {
    let mut audit = Audit::default();
    let mut known: HashMap<String, Arc<Vec<Live>>> = HashMap::new();
    let mut paths: HashMap<String, Option<u64>> = HashMap::new();
    let mut snapshots: Vec<&SnapshotRef> = table.metadata.snapshots().collect();
    snapshots.sort_by_key(|snapshot| (snapshot.sequence_number(), snapshot.timestamp_ms()));
    for snapshot in snapshots {
        audit.snapshots += 1;
        let live = live_files(table, snapshot, &mut known).await?;
        recount(snapshot, &live, &mut audit);
        // A deletion vector's entry may say how long it is itself.
        let sizes = live.iter().flat_map(|files| files.iter());
        paths.extend(sizes.map(|file| (file.path.clone(), file.data.then_some(file.bytes))));
    }
    let statistics = table.metadata.statistics_iter();
    paths.extend(statistics.map(|file| (file.statistics_path.clone(), u64::try_from(file.file_size_in_bytes).ok())));
    audit.files = paths.len();
    look_up(table, paths, &mut audit).await?;
    Ok(audit)
}

/// The live files of a snapshot, manifest by manifest; manifests that are known are not read again.
async fn live_files(
    table: &LoadedTable,
    snapshot: &SnapshotRef,
    known: &mut HashMap<String, Arc<Vec<Live>>>,
) -> Result<Vec<Arc<Vec<Live>>>, TableError> {
    let manifests = table.manifests(snapshot).await?;
    let wanted: Vec<String> = manifests.iter().map(|manifest| manifest.manifest_path.clone()).collect();
    let specs = table.spec_types()?;
    for one in select(table, &specs, manifests, |manifest, _| !known.contains_key(&manifest.manifest_path))? {
        let path = one.manifest.manifest_path.clone();
        let mut files = Vec::new();
        let add = |files: &mut Vec<Live>, entry: super::entry::Entry, _: &_| {
            let path = entry.path()?.to_owned();
            let data = entry.content == Content::Data;
            files.push(Live { path, data, rows: entry.rows()?, bytes: entry.size()? });
            Ok(())
        };
        reduce(table, vec![one], Vec::new, add, |found| files = found).await?;
        known.insert(path, Arc::new(files));
    }
    Ok(wanted.iter().filter_map(|path| known.get(path).cloned()).collect())
}

fn recount(snapshot: &SnapshotRef, live: &[Arc<Vec<Live>>], audit: &mut Audit) {
    let id = snapshot.snapshot_id();
    let mut seen: HashSet<(&str, bool)> = HashSet::new();
    let (mut data_files, mut delete_files, mut records, mut bytes) = (0, 0, 0, 0);
    for file in live.iter().flat_map(|files| files.iter()) {
        // One Puffin file holds the deletion vectors of many data files.
        if !seen.insert((&file.path, file.data)) && file.data {
            audit.doubled.push(format!("`{}` is live twice in snapshot {id}", file.path));
        }
        bytes += file.bytes;
        if file.data {
            data_files += 1;
            records += file.rows;
        } else {
            delete_files += 1;
        }
    }
    let summary = &snapshot.summary().additional_properties;
    for (key, found) in [
        ("total-data-files", data_files),
        ("total-delete-files", delete_files),
        ("total-records", records),
        ("total-files-size", bytes),
    ] {
        if let Some(said) = summary.get(key).filter(|said| said.parse() != Ok(found)) {
            audit.wrong_totals.push(format!("snapshot {id} says {key} {said}, a recount gives {found}"));
        }
    }
}

/// What is odd with a file.
enum Odd {
    Missing(String),
    Size(String),
}

/// Asks the store for every file.
async fn look_up(
    table: &LoadedTable,
    paths: HashMap<String, Option<u64>>,
    audit: &mut Audit,
) -> Result<(), TableError> {
    let lookups = stream::iter(paths).map(|(path, expected)| async move {
        let id = table.blob_id(&path)?;
        match table.blobs().properties(&id).await {
            Ok(found) => Ok(expected.filter(|expected| *expected != found.size).map(|expected| {
                Odd::Size(format!("`{path}` has {} bytes in the store, {expected} in the table's metadata", found.size))
            })),
            Err(StorageError::NotFound { .. }) => Ok(Some(Odd::Missing(path))),
            Err(source) => Err(TableError::Read { ident: table.ident.clone(), what: "a file", source }),
        }
    });
    let mut lookups = lookups.buffer_unordered(LOOKUPS_AT_ONCE);
    while let Some(found) = lookups.next().await {
        match found? {
            Some(Odd::Missing(path)) => audit.missing.push(path),
            Some(Odd::Size(said)) => audit.resized.push(said),
            None => {}
        }
    }
    audit.missing.sort();
    audit.resized.sort();
    Ok(())
}
