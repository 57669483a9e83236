//! Which files need no look: those with a text index, and those with a note that still holds.

use std::collections::HashSet;

use firn_config::Dataset;
use firn_model::{BlobId, FileFacts};
use firn_plan::IndexNeed;
use firn_sidecar::identity::{FOLDER, marker_id};
use firn_sidecar::note::NOTE_ENDING;
use firn_sidecar::{DataFile, DecidedOn, NoIndex, NoteStanding, SidecarColumns, SidecarError, SidecarKind, sidecar_id};
use firn_storage::{BlobStore, StorageError};
use firn_table::{LoadedTable, sidecar_uuid};
use futures::TryStreamExt;
use futures::future::join_all;
use uuid::Uuid;

/// Notes that are read at once.
const READ_AT_ONCE: usize = 32;

/// What decides on the text indexes of a dataset's files as it is configured now.
pub fn decided_on(dataset: &Dataset, columns: &SidecarColumns) -> DecidedOn {
    let settings = &dataset.compaction;
    DecidedOn::new(&columns.text, &dataset.backfill_patterns(), settings.memory_mb, settings.temp_disk_mb)
}

/// The indexes and notes of a table, by one listing. A note is read when its file is asked about: only then it matters whether it holds.
#[derive(Debug)]
pub struct SettledFiles {
    location: BlobId,
    now: DecidedOn,
    indexed: HashSet<Uuid>,
    noted: HashSet<Uuid>,
}

impl SettledFiles {
    /// Lists what the table at `location` has; `now` is what decides today.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list(store: &dyn BlobStore, location: &BlobId, now: DecidedOn) -> Result<SettledFiles, StorageError> {
        let prefix = location.with_key(format!("{}/{FOLDER}/", location.key.trim_end_matches('/')));
        let mut listing = store.list(&prefix);
        let (mut indexed, mut noted) = (HashSet::new(), HashSet::new());
        while let Some(blob) = listing.try_next().await? {
            match settled_by(&blob.id.key[prefix.key.len()..]) {
                Some((uuid, SettledBy::Index)) => indexed.insert(uuid),
                Some((uuid, SettledBy::Note)) => noted.insert(uuid),
                None => false,
            };
        }
        Ok(SettledFiles { location: location.clone(), now, indexed, noted })
    }

    /// The paths of those of `files` that need no look. What a store does not say now is asked by a later pass.
    pub async fn of(&self, table: &LoadedTable, files: &[FileFacts], target_bytes: u64) -> HashSet<String> {
        let asked = files.iter().filter(|file| IndexNeed::of(file, target_bytes, false) == IndexNeed::Missing);
        let asked: Vec<&FileFacts> = asked.collect();
        let mut found = HashSet::new();
        for asked in asked.chunks(READ_AT_ONCE) {
            let settled: Vec<_> = asked.iter().map(|file| self.is_settled(table, file)).collect();
            let settled = join_all(settled).await;
            found.extend(asked.iter().zip(settled).filter(|(_, settled)| *settled).map(|(file, _)| file.path.clone()));
        }
        found
    }

    async fn is_settled(&self, table: &LoadedTable, file: &FileFacts) -> bool {
        // A path that names no blob cannot be read either.
        let Ok(id) = table.blob_id(&file.path) else { return true };
        let uuid = sidecar_uuid(&id);
        if self.indexed.contains(&uuid) {
            return true;
        }
        if !self.noted.contains(&uuid) {
            return false;
        }
        let note = marker_id(&self.location, &uuid, NOTE_ENDING);
        match note_holds(&**table.blobs(), &note, &DataFile::new(&id, file.size, file.rows), &self.now).await {
            Ok(holds) => holds,
            Err(error) => {
                tracing::warn!(path = file.path, %error, "a note cannot be read now, a later pass asks again");
                true
            }
        }
    }
}

/// Whether a file has an index or a note that holds, asked of the store.
pub(super) async fn is_settled(
    table: &LoadedTable,
    location: &BlobId,
    file: &FileFacts,
    now: &DecidedOn,
) -> Result<bool, String> {
    let id = table.blob_id(&file.path).map_err(|error| error.to_string())?;
    let (uuid, store) = (sidecar_uuid(&id), &**table.blobs());
    match store.properties(&sidecar_id(location, &uuid, SidecarKind::Text)).await {
        Ok(_) => return Ok(true),
        Err(StorageError::NotFound { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    let data = DataFile::new(&id, file.size, file.rows);
    let holds = note_holds(store, &marker_id(location, &uuid, NOTE_ENDING), &data, now).await;
    holds.map_err(|error| error.to_string())
}

async fn note_holds(
    store: &dyn BlobStore,
    id: &BlobId,
    data: &DataFile,
    now: &DecidedOn,
) -> Result<bool, SidecarError> {
    let standing = match NoIndex::read(store, id).await {
        Ok(note) => note.standing(data, now),
        Err(SidecarError::Absent { .. }) => return Ok(false),
        // What is no note says nothing.
        Err(error @ SidecarError::Unusable { .. }) => {
            tracing::warn!(%error, "a note is no note, its file is looked at again");
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    if standing != NoteStanding::Holds {
        tracing::info!(path = data.path, %standing, "a note does not hold any more, its file is looked at again");
    }
    Ok(standing == NoteStanding::Holds)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettledBy {
    Index,
    Note,
}

/// Of which file a blob is an index or a note, by its name.
fn settled_by(name: &str) -> Option<(Uuid, SettledBy)> {
    let (stem, ending) = name.split_once('.')?;
    let by = match ending {
        NOTE_ENDING => SettledBy::Note,
        _ if ending == SidecarKind::Text.extension() => SettledBy::Index,
        _ => return None,
    };
    Some((Uuid::try_parse(stem).ok()?, by))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use firn_storage::{MemoryStore, PutCondition};

    use super::*;

    const UUID: &str = "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f";
    const OTHER: &str = "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e60";
    const THIRD: &str = "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e61";

    fn now() -> DecidedOn {
        DecidedOn::new(&[], &["^firn"], 512, 400)
    }

    #[tokio::test]
    async fn an_index_or_a_note_may_settle_a_file_and_no_other_sidecar_does() {
        let store = MemoryStore::default();
        let location = BlobId::local("/wh/t/");
        for name in [
            format!("{UUID}.tantivy"),
            format!("{UUID}.bloom"),
            format!("{OTHER}.none"),
            format!("{THIRD}.ndv"),
            "notes.none".into(),
        ] {
            let id = BlobId::local(format!("/wh/t/_firn/{name}"));
            store.put(&id, Bytes::from_static(b"x"), PutCondition::Any).await.unwrap();
        }
        let other_table = BlobId::local(format!("/wh/t2/_firn/{THIRD}.none"));
        store.put(&other_table, Bytes::new(), PutCondition::Any).await.unwrap();
        let texts = |uuids: &HashSet<Uuid>| uuids.iter().map(Uuid::to_string).collect::<Vec<_>>();
        let found = SettledFiles::list(&store, &location, now()).await.unwrap();
        assert_eq!((texts(&found.indexed), texts(&found.noted)), (vec![UUID.to_owned()], vec![OTHER.to_owned()]));
        let none = SettledFiles::list(&store, &BlobId::local("/wh/none"), now()).await.unwrap();
        assert!(none.indexed.is_empty() && none.noted.is_empty());
    }

    #[tokio::test]
    async fn a_note_counts_as_long_as_it_holds() {
        let (store, id) = (MemoryStore::default(), BlobId::local("/wh/t/_firn/a.none"));
        let data = DataFile { path: "/wh/t/data/a.parquet".into(), size: 7, rows: 2 };
        assert!(!note_holds(&store, &id, &data, &now()).await.unwrap(), "there is none");
        NoIndex::new(data.clone(), "why", now()).write(&store, &id).await.unwrap();
        assert!(note_holds(&store, &id, &data, &now()).await.unwrap());
        let changed = DecidedOn { writers: vec![".*".into()], ..now() };
        assert!(!note_holds(&store, &id, &data, &changed).await.unwrap());
        store.put(&id, "junk".into(), PutCondition::Any).await.unwrap();
        assert!(!note_holds(&store, &id, &data, &now()).await.unwrap());
    }
}
