//! Deleted files of a local folder: they go to the trash of the state for as long as an account would keep them (design section 7, "Undo").

use std::io;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::BlobId;
use firn_state::StateStore;
use firn_storage::StorageError;
use futures::StreamExt;

use crate::sweep::receipt::receipt_time;

/// As long as the deployment has an account keep deleted blobs.
pub const TRASH_DAYS: u32 = 14;

/// Bytes of a file's own name in the trash: with the number in front it stays a name that file systems take.
const NAME_BYTES: usize = 200;

/// The trash folder of a state that is a folder of this machine.
#[derive(Debug, Clone)]
pub struct Trash {
    state: StateStore,
}

impl Trash {
    /// The trash beside `state`; None when the state does not lie on this machine.
    pub fn of(state: &StateStore) -> Option<Self> {
        state.root().trash("").is_local().then(|| Self { state: state.clone() })
    }

    /// The name of the `number`th file of a sweep in the trash.
    pub fn name(receipt: &str, number: u64, id: &BlobId) -> String {
        let file = id.key.rsplit('/').next().unwrap_or_default();
        let most = file.char_indices().map(|(at, one)| at + one.len_utf8()).take_while(|end| *end <= NAME_BYTES);
        format!("{receipt}/{number:08}-{}", &file[..most.last().unwrap_or(0)])
    }

    /// Moves a file there.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when it is gone, or what the file system says. Then the file is where it was.
    pub async fn take(&self, id: &BlobId, name: &str) -> Result<(), StorageError> {
        self.moved(id.clone(), self.state.root().trash(name)).await
    }

    /// Moves a file back to where it was, unless another stands there.
    ///
    /// # Errors
    /// As [`Trash::take`]; [`StorageError::AlreadyExists`] when the place is taken.
    pub async fn give_back(&self, name: &str, id: &BlobId) -> Result<(), StorageError> {
        if Path::new(&id.key).exists() {
            return Err(StorageError::AlreadyExists { blob: Box::new(id.clone()) });
        }
        self.moved(self.state.root().trash(name), id.clone()).await
    }

    async fn moved(&self, from: BlobId, to: BlobId) -> Result<(), StorageError> {
        let (source, target) = (from.key.clone(), to.key.clone());
        let work = tokio::task::spawn_blocking(move || move_file(Path::new(&source), Path::new(&target)));
        let ended = work.await.map_err(io::Error::other).and_then(|moved| moved);
        ended.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StorageError::NotFound { blob: Box::new(from.clone()) },
            _ => StorageError::Other {
                blob: Box::new(from.clone()),
                detail: format!("cannot move it to {}: {error}", to.key),
            },
        })
    }

    /// Removes what has lain there for longer than [`TRASH_DAYS`]; gives the number of files.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn empty(&self, now: DateTime<Utc>) -> Result<u64, StorageError> {
        let root = self.state.root().trash("");
        let store = self.state.blobs();
        let mut listed = store.list(&root);
        let mut old = Vec::new();
        while let Some(blob) = listed.next().await {
            let blob = blob?;
            let sweep = blob.id.key.strip_prefix(root.key.as_str()).and_then(|rest| rest.split('/').next());
            let began = sweep.and_then(receipt_time);
            // What is not of a sweep's making stays.
            if began.is_some_and(|began| now - began > TimeDelta::days(i64::from(TRASH_DAYS))) {
                old.push(blob.id);
            }
        }
        drop(listed);
        for id in &old {
            store.delete(id).await?;
        }
        Ok(old.len() as u64)
    }
}

/// A rename; across file systems a copy that keeps the time, and then the removal.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let modified = std::fs::metadata(from)?.modified()?;
            std::fs::copy(from, to)?;
            let copy = std::fs::File::options().write(true).open(to)?;
            copy.set_modified(modified)?;
            copy.sync_all()?;
            std::fs::remove_file(from)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_state::StateRoot;
    use firn_storage::{LocalStore, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn a_file_goes_comes_back_and_is_forgotten_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new());
        let root = BlobId::local(folder.path().join("state").to_string_lossy());
        let state = StateStore::new(store.clone(), store, StateRoot::new(root));
        let trash = Trash::of(&state).unwrap();
        let file = folder.path().join("t/data/a.parquet");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "rows").unwrap();
        let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
        let id = BlobId::local(file.to_string_lossy());
        let name = Trash::name("20261101T000000Z-00000000", 7, &id);
        assert_eq!(name, "20261101T000000Z-00000000/00000007-a.parquet");

        trash.take(&id, &name).await.unwrap();
        assert!(!file.exists());
        assert!(matches!(trash.take(&id, &name).await, Err(StorageError::NotFound { .. })));
        std::fs::write(&file, "another").unwrap();
        assert!(matches!(trash.give_back(&name, &id).await, Err(StorageError::AlreadyExists { .. })));
        std::fs::remove_file(&file).unwrap();
        trash.give_back(&name, &id).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "rows");
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), modified);

        trash.take(&id, &name).await.unwrap();
        let day = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        assert_eq!(trash.empty(day("2026-11-15T00:00:00Z")).await.unwrap(), 0);
        assert_eq!(trash.empty(day("2026-11-15T00:00:01Z")).await.unwrap(), 1);
        assert!(trash.give_back(&name, &id).await.is_err());
    }

    /// A name of 255 bytes, the most that file systems take, would be too long with a number in front.
    #[tokio::test]
    async fn a_long_name_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new());
        let root = BlobId::local(folder.path().join("state").to_string_lossy());
        let trash = Trash::of(&StateStore::new(store.clone(), store, StateRoot::new(root))).unwrap();
        let long = format!("{}.parquet", "é".repeat(123));
        let file = folder.path().join(&long);
        std::fs::write(&file, "rows").unwrap();
        let id = BlobId::local(file.to_string_lossy());
        let name = Trash::name("20261101T000000Z-00000000", 0, &id);
        assert_eq!(name, format!("20261101T000000Z-00000000/00000000-{}", "é".repeat(100)));
        trash.take(&id, &name).await.unwrap();
        trash.give_back(&name, &id).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "rows");
    }

    #[test]
    fn a_state_elsewhere_has_no_trash() {
        let store = Arc::new(MemoryStore::new());
        let root = BlobId { account: "acct".into(), container: "firn-state".into(), key: String::new() };
        assert!(Trash::of(&StateStore::new(store.clone(), store, StateRoot::new(root))).is_none());
    }
}
