//! Reading the manifests of a snapshot, several at a time, each decoded off the async runtime and reduced at once.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestContentType, ManifestFile, ManifestList, SnapshotRef};
use tokio::sync::Semaphore;

use super::entry::{Entry, live_entries};
use crate::error::TableError;
use crate::loaded::LoadedTable;
use crate::partition_type::SpecTypes;

/// Manifests read at the same time.
const AT_ONCE: usize = 16;
/// Bytes of manifests in memory at the same time; a larger manifest is read alone.
const BYTES_AT_ONCE: usize = 16 << 20;

/// A manifest that may hold what is looked for.
pub(crate) struct Selected {
    pub(crate) manifest: ManifestFile,
    pub(crate) spec: Arc<SpecTypes>,
}

impl LoadedTable {
    /// The manifests of a snapshot, in the order of its manifest list.
    ///
    /// # Errors
    /// [`TableError::Read`] when the list cannot be read, [`TableError::Damaged`] when it is no manifest list.
    pub async fn manifests(&self, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>, TableError> {
        let path = snapshot.manifest_list();
        if path.is_empty() || snapshot.encryption_key_id().is_some() {
            return Err(self.damaged(format!(
                "snapshot {} has no readable manifest list (manifests in the metadata or encrypted)",
                snapshot.snapshot_id()
            )));
        }
        let bytes = self.read("the manifest list", path).await?;
        let list = ManifestList::parse_with_version(&bytes, self.format_version())
            .map_err(|error| self.damaged(format!("`{path}` is no manifest list: {error}")))?;
        Ok(list.consume_entries().into_iter().collect())
    }

    /// A whole file of the table's metadata.
    pub(crate) async fn read(&self, what: &'static str, path: &str) -> Result<Bytes, TableError> {
        let id = self.blob_id(path)?;
        let read = self.blobs().read_all(&id).await;
        read.map_err(|source| TableError::Read { ident: self.ident.clone(), what, source })
    }
}

/// Manifests that have live files and pass `may_hold`.
pub(crate) fn select(
    table: &LoadedTable,
    specs: &HashMap<i32, Arc<SpecTypes>>,
    manifests: Vec<ManifestFile>,
    may_hold: impl Fn(&ManifestFile, &SpecTypes) -> bool,
) -> Result<Vec<Selected>, TableError> {
    let mut selected = Vec::new();
    for manifest in manifests {
        let Some(spec) = specs.get(&manifest.partition_spec_id) else {
            return Err(table.damaged(format!(
                "manifest `{}` has partition spec {}, which the table does not have",
                manifest.manifest_path, manifest.partition_spec_id
            )));
        };
        refuse_encrypted(table, &manifest)?;
        let has_live_files = manifest.has_added_files() || manifest.has_existing_files();
        if has_live_files && may_hold(&manifest, spec) {
            selected.push(Selected { manifest, spec: Arc::clone(spec) });
        }
    }
    Ok(selected)
}

/// Reads manifests up to 16 at a time, in no particular order: `start` makes an empty result for a manifest, `each` adds an
/// entry to it, `combine` takes the result of a whole manifest.
pub(crate) async fn reduce<T: Send + 'static>(
    table: &LoadedTable,
    selected: Vec<Selected>,
    start: impl Fn() -> T + Send + Sync + 'static,
    each: impl Fn(&mut T, Entry, &SpecTypes) -> Result<(), String> + Send + Sync + 'static,
    combine: impl FnMut(T),
) -> Result<(), TableError> {
    let manifests = selected.into_iter().map(|Selected { manifest, spec }| (manifest, spec));
    let decode = move |content: Bytes, manifest: &ManifestFile, spec: &Arc<SpecTypes>| {
        let mut result = start();
        live_entries(&content, spec, manifest, |entry| each(&mut result, entry, spec))?;
        Ok(result)
    };
    decode_each(table, manifests, AtOnce { manifests: AT_ONCE, bytes: BYTES_AT_ONCE }, decode, combine).await
}

/// How much of a table's manifests is in memory at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtOnce {
    pub(crate) manifests: usize,
    /// A larger manifest is read alone.
    pub(crate) bytes: usize,
}

/// Reads whole manifests, each with something that goes with it, in no particular order. They are decoded off the async runtime; `combine`
/// takes what came of each.
///
/// # Errors
/// [`TableError::Read`], or [`TableError::Damaged`] with what `decode` says.
pub(crate) async fn decode_each<X: Send + Sync + 'static, T: Send + 'static>(
    table: &LoadedTable,
    manifests: impl IntoIterator<Item = (ManifestFile, X)>,
    at_once: AtOnce,
    decode: impl Fn(Bytes, &ManifestFile, &X) -> Result<T, String> + Send + Sync + 'static,
    mut combine: impl FnMut(T),
) -> Result<(), TableError> {
    let decode = Arc::new(decode);
    let room = Semaphore::new(at_once.bytes);
    let results = stream::iter(manifests).map(|(manifest, with)| {
        let (decode, room) = (Arc::clone(&decode), &room);
        async move {
            let bytes = usize::try_from(manifest.manifest_length).unwrap_or(0).clamp(1, at_once.bytes);
            let path = manifest.manifest_path.clone();
            let damaged = |detail: String| table.damaged(format!("manifest `{path}` {detail}"));
            // The semaphore is never closed, and a permit count above u32 cannot come from the clamp.
            let _permit = room.acquire_many(bytes as u32).await.map_err(|error| damaged(error.to_string()))?;
            let content = table.read("a manifest", &path).await?;
            let decoded = tokio::task::spawn_blocking(move || decode(content, &manifest, &with));
            decoded.await.map_err(|error| damaged(format!("cannot be decoded: {error}")))?.map_err(damaged)
        }
    });
    let mut results = results.buffer_unordered(at_once.manifests);
    while let Some(result) = results.try_next().await? {
        combine(result);
    }
    Ok(())
}

/// A manifest that Firn cannot read.
pub(crate) fn refuse_encrypted(table: &LoadedTable, manifest: &ManifestFile) -> Result<(), TableError> {
    match manifest.key_metadata.as_ref().is_some_and(|key| !key.is_empty()) {
        true => Err(table.damaged(format!("manifest `{}` is encrypted", manifest.manifest_path))),
        false => Ok(()),
    }
}

/// Whether a manifest holds delete files.
pub(crate) fn holds_deletes(manifest: &ManifestFile) -> bool {
    manifest.content == ManifestContentType::Deletes
}
