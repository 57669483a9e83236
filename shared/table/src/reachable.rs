//! Every file that a table refers to (design section 7): what orphan cleanup must leave.
//!
//! The metadata file, its log, statistics, manifest lists, manifests, and every entry of every manifest, removed ones too. A manifest is
//! read once however many snapshots share it, and its entries are reduced where they are decoded, so memory grows with the number of
//! manifests and never with that of files.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use firn_storage::StorageError;
use futures::{StreamExt, stream};
use iceberg::spec::{ManifestFile, SnapshotRef};
use sha2::{Digest, Sha256};

use crate::error::TableError;
use crate::loaded::LoadedTable;
use crate::location::layout::metadata_root;
use crate::scan::every_entry::every_entry;
use crate::scan::manifests::{AtOnce, decode_each, refuse_encrypted};

/// Manifest lists and manifests read at the same time.
const AT_ONCE: usize = 8;
/// Bytes of manifests in memory at the same time; a larger manifest is read alone.
const BYTES_AT_ONCE: usize = 8 << 20;

/// What in the table refers to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefersBy {
    /// The catalog: the current metadata file.
    Catalog,
    /// The metadata log: an older metadata file, which writers may have removed.
    MetadataLog,
    /// The name by which readers without a catalog find the current version, which most tables do not have.
    VersionHint,
    /// The metadata: statistics or partition statistics.
    Statistics,
    /// A snapshot: its manifest list.
    Snapshot,
    /// A manifest list: a manifest.
    ManifestList,
    /// An entry of a manifest of the current snapshot: a data file, delete file or deletion vector that is live there.
    Head,
    /// An entry of a manifest of a tag, or of the head of another branch than `main`.
    OtherHead,
    /// An entry of a manifest of another snapshot.
    OlderSnapshot,
    /// An entry that says that the file was removed. The file may be gone already.
    Removed,
}

impl RefersBy {
    /// Whether the file must be there for the table to be whole.
    pub fn must_exist(self) -> bool {
        !matches!(self, RefersBy::MetadataLog | RefersBy::VersionHint | RefersBy::Removed)
    }
}

/// One reference to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileReference<'a> {
    /// The path exactly as the metadata has it.
    pub path: &'a str,
    /// What refers to it.
    pub by: RefersBy,
    /// When the snapshot that brought it was made, in milliseconds; None: so long ago that it is no longer known, or by no snapshot.
    pub since_ms: Option<i64>,
}

/// How much a walk read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WalkCounts {
    /// Snapshots.
    pub snapshots: u64,
    /// Manifests.
    pub manifests: u64,
    /// Entries of manifests.
    pub entries: u64,
}

/// A walk over everything that a table refers to. It may go on with a later version of the same table: then only what is new is read.
#[derive(Debug, Default, Clone)]
pub struct ManifestWalk {
    snapshots: HashSet<i64>,
    manifests: HashSet<u128>,
    metadata: HashSet<u128>,
    /// Manifest lists and manifests that are gone are passed over.
    tolerant: bool,
    /// What was read so far.
    pub counts: WalkCounts,
}

impl ManifestWalk {
    /// A walk that knows what this one has read and passes over manifest lists and manifests that are gone: for a version of the table that
    /// no catalog may ever have named, whose writer may have cleaned up behind it.
    #[must_use]
    pub fn tolerant(&self) -> Self {
        Self { tolerant: true, ..self.clone() }
    }

    /// Reads what `table` refers to and was not read before. `map` sees each reference, entries on threads of their own; what it makes of
    /// them goes to `each`, many at a time.
    ///
    /// # Errors
    /// What cannot be read: then the references are not all known.
    pub async fn run<T, M, E>(&mut self, table: &LoadedTable, map: M, mut each: E) -> Result<(), TableError>
    where
        T: Send + 'static,
        M: Fn(&FileReference<'_>) -> T + Send + Sync + 'static,
        E: FnMut(Vec<T>),
    {
        let map = Arc::new(map);
        let fresh = metadata_references(table)?.into_iter().filter(|(path, _)| self.metadata.insert(fingerprint(path)));
        let fresh: Vec<(String, RefersBy)> = fresh.collect();
        let seen = |(path, by): &(String, RefersBy)| map(&FileReference { path, by: *by, since_ms: None });
        each(fresh.iter().map(seen).collect());
        // Heads first: an entry that they share with older snapshots counts as live; and that of `main` before all.
        let heads: HashSet<i64> = table.history()?.refs.into_iter().map(|reference| reference.snapshot_id).collect();
        let by = |id: i64| match id {
            id if Some(id) == table.metadata.current_snapshot_id() => RefersBy::Head,
            id if heads.contains(&id) => RefersBy::OtherHead,
            _ => RefersBy::OlderSnapshot,
        };
        for refers in [RefersBy::Head, RefersBy::OtherHead, RefersBy::OlderSnapshot] {
            let snapshots: Vec<SnapshotRef> = table
                .metadata
                .snapshots()
                .filter(|snapshot| by(snapshot.snapshot_id()) == refers)
                .filter(|snapshot| self.snapshots.insert(snapshot.snapshot_id()))
                .cloned()
                .collect();
            self.counts.snapshots += snapshots.len() as u64;
            self.lists(table, snapshots, refers, &map, &mut each).await?;
        }
        Ok(())
    }

    async fn lists<T, M, E>(
        &mut self,
        table: &LoadedTable,
        snapshots: Vec<SnapshotRef>,
        refers: RefersBy,
        map: &Arc<M>,
        each: &mut E,
    ) -> Result<(), TableError>
    where
        T: Send + 'static,
        M: Fn(&FileReference<'_>) -> T + Send + Sync + 'static,
        E: FnMut(Vec<T>),
    {
        let reads = stream::iter(snapshots).map(|snapshot| async move {
            let manifests = table.manifests(&snapshot).await?;
            Ok::<_, TableError>((snapshot, manifests))
        });
        let mut reads = reads.buffered(AT_ONCE);
        while let Some(read) = reads.next().await {
            let (snapshot, mut manifests) = match read {
                Err(error) if self.tolerant && is_gone(&error) => continue,
                read => read?,
            };
            manifests.retain(|manifest| self.manifests.insert(fingerprint(&manifest.manifest_path)));
            let since_ms = Some(snapshot.timestamp_ms());
            let list = FileReference { path: snapshot.manifest_list(), by: RefersBy::Snapshot, since_ms };
            let mut seen = vec![map(&list)];
            seen.extend(manifests.iter().map(|manifest| {
                let since_ms = since(table, manifest.added_snapshot_id);
                map(&FileReference { path: &manifest.manifest_path, by: RefersBy::ManifestList, since_ms })
            }));
            each(seen);
            self.counts.manifests += manifests.len() as u64;
            if !self.tolerant {
                self.entries(table, manifests, refers, map, each).await?;
                continue;
            }
            for manifest in manifests {
                match self.entries(table, vec![manifest], refers, map, each).await {
                    Err(error) if is_gone(&error) => {}
                    read => read?,
                }
            }
        }
        Ok(())
    }

    async fn entries<T, M, E>(
        &mut self,
        table: &LoadedTable,
        manifests: Vec<ManifestFile>,
        refers: RefersBy,
        map: &Arc<M>,
        each: &mut E,
    ) -> Result<(), TableError>
    where
        T: Send + 'static,
        M: Fn(&FileReference<'_>) -> T + Send + Sync + 'static,
        E: FnMut(Vec<T>),
    {
        for manifest in &manifests {
            refuse_encrypted(table, manifest)?;
        }
        let (known, map) = (table.clone(), Arc::clone(map));
        let decode = move |content: Bytes, manifest: &ManifestFile, (): &()| {
            let mut seen = Vec::new();
            every_entry(&content, |entry| {
                let by = if entry.live { refers } else { RefersBy::Removed };
                let since_ms = since(&known, entry.snapshot_id.unwrap_or(manifest.added_snapshot_id));
                seen.push(map(&FileReference { path: entry.path, by, since_ms }));
            })?;
            Ok(seen)
        };
        let counts = &mut self.counts;
        let count = |seen: Vec<T>| {
            counts.entries += seen.len() as u64;
            each(seen);
        };
        let at_once = AtOnce { manifests: AT_ONCE, bytes: BYTES_AT_ONCE };
        decode_each(table, manifests.into_iter().map(|manifest| (manifest, ())), at_once, decode, count).await
    }
}

/// Whether a file is not there.
fn is_gone(error: &TableError) -> bool {
    matches!(error, TableError::Read { source: StorageError::NotFound { .. }, .. })
}

/// When a snapshot was made, where it is still known.
fn since(table: &LoadedTable, snapshot_id: i64) -> Option<i64> {
    table.metadata.snapshot_by_id(snapshot_id).map(|snapshot| snapshot.timestamp_ms())
}

/// What the metadata file itself and the catalog name.
fn metadata_references(table: &LoadedTable) -> Result<Vec<(String, RefersBy)>, TableError> {
    let metadata = &table.metadata;
    let root = metadata_root(metadata.location(), metadata.properties());
    let mut found = vec![
        (table.metadata_location.clone(), RefersBy::Catalog),
        (format!("{root}/version-hint.text"), RefersBy::VersionHint),
    ];
    found.extend(metadata.metadata_log().iter().map(|entry| (entry.metadata_file.clone(), RefersBy::MetadataLog)));
    found.extend(metadata.statistics_iter().map(|file| (file.statistics_path.clone(), RefersBy::Statistics)));
    let partitions = metadata.partition_statistics_iter();
    found.extend(partitions.map(|file| (file.statistics_path.clone(), RefersBy::Statistics)));
    Ok(found)
}

fn fingerprint(path: &str) -> u128 {
    let mut first = [0; 16];
    first.copy_from_slice(&Sha256::digest(path.as_bytes())[..16]);
    u128::from_le_bytes(first)
}

#[cfg(test)]
mod tests;
