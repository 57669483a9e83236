//! Manifests as a commit reads them: each at most once over all its tries, sixteen at a time.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{
    DataContentType, Manifest, ManifestContentType, ManifestEntryRef, ManifestFile, ManifestStatus, SchemaRef,
};
use tokio::sync::Semaphore;

use super::error::CommitError;
use crate::avro::with_plain_names;
use crate::loaded::LoadedTable;

/// Manifests read at the same time (design section 6).
const READS_AT_ONCE: usize = 16;
/// Bytes of manifests that may be read at the same time; large manifests wait for each other.
const BYTES_AT_ONCE: u32 = 64 * 1024 * 1024;

/// Live files of a manifest, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LiveSums {
    pub(crate) files: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) position_deletes: u64,
    pub(crate) equality_deletes: u64,
}

/// What is kept of a manifest that was read.
#[derive(Debug)]
pub(crate) struct ReadManifest {
    /// Schema in the manifest's header.
    pub(crate) schema: SchemaRef,
    /// Its live files.
    pub(crate) live: LiveSums,
    /// The counts that manifest lists of version 2 need and those of version 1 may lack.
    counts: EntryCounts,
    /// All entries; None when nobody needed them.
    pub(crate) entries: Option<Vec<ManifestEntryRef>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct EntryCounts {
    added: (u32, u64),
    existing: (u32, u64),
    deleted: (u32, u64),
}

impl ReadManifest {
    fn new(schema: SchemaRef, entries: Vec<ManifestEntryRef>, keep: bool) -> Self {
        let (mut live, mut counts) = (LiveSums::default(), EntryCounts::default());
        for entry in &entries {
            let count = match entry.status() {
                ManifestStatus::Added => &mut counts.added,
                ManifestStatus::Existing => &mut counts.existing,
                ManifestStatus::Deleted => &mut counts.deleted,
            };
            count.0 += 1;
            count.1 += entry.record_count();
            if !entry.is_alive() {
                continue;
            }
            live.files += 1;
            live.bytes += entry.file_size_in_bytes();
            match entry.content_type() {
                DataContentType::Data => live.records += entry.record_count(),
                DataContentType::PositionDeletes => live.position_deletes += entry.record_count(),
                DataContentType::EqualityDeletes => live.equality_deletes += entry.record_count(),
            }
        }
        Self { schema, live, counts, entries: keep.then_some(entries) }
    }

    /// The list entry with the counts that it lacked.
    pub(crate) fn with_counts(&self, mut file: ManifestFile) -> ManifestFile {
        let EntryCounts { added, existing, deleted } = self.counts;
        file.added_files_count.get_or_insert(added.0);
        file.added_rows_count.get_or_insert(added.1);
        file.existing_files_count.get_or_insert(existing.0);
        file.existing_rows_count.get_or_insert(existing.1);
        file.deleted_files_count.get_or_insert(deleted.0);
        file.deleted_rows_count.get_or_insert(deleted.1);
        file
    }
}

/// True when the list entry has all its counts.
pub(crate) fn has_counts(file: &ManifestFile) -> bool {
    file.added_files_count.is_some()
        && file.existing_files_count.is_some()
        && file.deleted_files_count.is_some()
        && file.added_rows_count.is_some()
        && file.existing_rows_count.is_some()
        && file.deleted_rows_count.is_some()
}

/// Live files and rows by the counts of a list entry.
pub(crate) fn counted(file: &ManifestFile) -> Option<(u64, u64)> {
    let files = u64::from(file.added_files_count?) + u64::from(file.existing_files_count?);
    Some((files, file.added_rows_count? + file.existing_rows_count?))
}

/// All manifests read by one commit, by path. Manifests never change, so one read serves every try.
#[derive(Debug, Default)]
pub(crate) struct ManifestCache {
    read: HashMap<String, Arc<ReadManifest>>,
}

impl ManifestCache {
    /// A manifest read before.
    pub(crate) fn get(&self, path: &str) -> Option<&Arc<ReadManifest>> {
        self.read.get(path)
    }

    /// Reads those of `files` of which the entries are not at hand, and keeps them.
    pub(crate) async fn read_whole(
        &mut self,
        table: &LoadedTable,
        files: impl IntoIterator<Item = &ManifestFile>,
    ) -> Result<(), CommitError> {
        let files: Vec<&ManifestFile> = files.into_iter().collect();
        for file in &files {
            if self.get(&file.manifest_path).is_some_and(|read| read.entries.is_none()) {
                self.read.remove(&file.manifest_path);
            }
        }
        self.read(table, files, |_, _| true).await
    }

    /// Reads those of `files` that were not read yet. `keep` says of which the entries are needed; of the others only sums
    /// remain, so that memory does not grow with the table.
    pub(crate) async fn read(
        &mut self,
        table: &LoadedTable,
        files: impl IntoIterator<Item = &ManifestFile>,
        keep: impl Fn(&ManifestFile, &[ManifestEntryRef]) -> bool + Sync,
    ) -> Result<(), CommitError> {
        let (room, keep) = (&Semaphore::new(BYTES_AT_ONCE as usize), &keep);
        let unread = files.into_iter().filter(|file| !self.read.contains_key(&file.manifest_path));
        let reads: Vec<_> = unread.map(|file| read_one(table, file, keep, room)).collect();
        let found: Vec<(String, Arc<ReadManifest>)> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        self.read.extend(found);
        Ok(())
    }
}

async fn read_one(
    table: &LoadedTable,
    file: &ManifestFile,
    keep: &(impl Fn(&ManifestFile, &[ManifestEntryRef]) -> bool + Sync),
    room: &Semaphore,
) -> Result<(String, Arc<ReadManifest>), CommitError> {
    let path = &file.manifest_path;
    let refused = |detail: String| CommitError::Permanent { ident: table.ident.clone(), detail };
    if file.key_metadata.as_ref().is_some_and(|key| !key.is_empty()) {
        return Err(refused(format!("manifest `{path}` is encrypted, which Firn cannot write")));
    }
    let weight = u32::try_from(file.manifest_length).unwrap_or(BYTES_AT_ONCE).clamp(1, BYTES_AT_ONCE);
    // The semaphore is never closed.
    let _permit = room.acquire_many(weight).await;
    let bytes = table.read("a manifest", path).await?;
    let listed = file.clone();
    // Decoding takes milliseconds, in which nothing else would run.
    let decoded = tokio::task::spawn_blocking(move || decode(&bytes, &listed)).await;
    let (schema, entries) = decoded
        .map_err(|error| error.to_string())
        .and_then(|decoded| decoded)
        .map_err(|detail| refused(format!("cannot understand manifest `{path}`: {detail}")))?;
    let kept = keep(file, &entries);
    Ok((path.clone(), Arc::new(ReadManifest::new(schema, entries, kept))))
}

/// The entries of a manifest with what they inherit from their place in the list (Iceberg spec, "Sequence Number
/// Inheritance" and "Snapshot ID Inheritance").
fn decode(bytes: &[u8], file: &ManifestFile) -> Result<(SchemaRef, Vec<ManifestEntryRef>), String> {
    let manifest = Manifest::parse_avro(&with_plain_names(bytes)?).map_err(|error| error.to_string())?;
    let (entries, metadata) = manifest.into_parts();
    let inherited = entries.into_iter().map(|entry| {
        let mut entry = Arc::unwrap_or_clone(entry);
        entry.snapshot_id.get_or_insert(file.added_snapshot_id);
        // Everything in a manifest of version 1 has number 0.
        if entry.status() == ManifestStatus::Added || file.sequence_number == 0 {
            entry.sequence_number.get_or_insert(file.sequence_number);
            entry.file_sequence_number.get_or_insert(file.sequence_number);
        }
        Arc::new(entry)
    });
    Ok((metadata.schema.clone(), inherited.collect()))
}

/// Data manifests and delete manifests of a list, in its order.
pub(crate) fn split(list: &[ManifestFile]) -> (Vec<&ManifestFile>, Vec<&ManifestFile>) {
    list.iter().partition(|file| file.content == ManifestContentType::Data)
}
