//! Making a file visible: temporary names, turns between writers, and the move into place.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use firn_model::BlobId;
use tempfile::NamedTempFile;

use super::{etag, modified, properties};
use crate::error::StorageError;
use crate::store::{BlobProperties, PutCondition};

/// Temporary files begin and end like this: the leading dot hides them from every reader of tables, and listings leave
/// them out.
const TEMP_PREFIX: &str = ".firn-";
const TEMP_SUFFIX: &str = ".tmp";

/// A temporary file whose writer is gone is removed when it is older than this. A live writer holds a lock on it, but has
/// none yet in the instant between creating and locking it.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Whether a file name is that of a file being written.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX)
}

/// Whether a file name is one of the store's own, never that of a blob.
pub(super) fn is_hidden(name: &str) -> bool {
    is_temporary(name) || super::lease::is_lease(name)
}

/// The folders that this store has written to, each looked through once for what killed writers left.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    swept: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Places {
    /// A temporary file in the folder of `path`, which is created if need be. Dropping it removes it.
    pub(super) fn temp_beside(&self, id: &BlobId, path: &Path) -> Result<NamedTempFile, StorageError> {
        let create = || {
            let folder = folder_of(path);
            create_folders(folder)?;
            self.sweep_once(folder);
            let mut builder = tempfile::Builder::new();
            builder.prefix(TEMP_PREFIX).suffix(TEMP_SUFFIX);
            // As any file that a program creates: the umask decides, not the private mode of temporary files.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let temp = builder.tempfile_in(folder)?;
            // Tells a sweep that the writer lives. Where locks are not supported, a sweep gets none either.
            let _ = temp.as_file().try_lock();
            Ok(temp)
        };
        create().map_err(|error: io::Error| match error.kind() {
            // Not the blob is missing or there, but a part of the way to it is no folder.
            io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                StorageError::other(id, format!("cannot create its folder: {error}"))
            }
            _ => StorageError::io(id, "create a temporary file", &error),
        })
    }

    fn sweep_once(&self, folder: &Path) {
        let first = self.swept.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf());
        if first {
            sweep(folder, SystemTime::now());
        }
    }
}

/// Removes what killed writers left in a folder. Whatever cannot be removed stays; it is hidden and harms nobody.
fn sweep(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(is_temporary) {
            continue;
        }
        let age = entry.metadata().map(|metadata| now.duration_since(modified(&metadata)).unwrap_or_default());
        if age.is_ok_and(|age| age > STALE_AFTER)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Moves a written temporary file to its name, if the condition holds and `allowed` says so while it is our turn. Its bytes are on disk before the name shows them.
pub(super) fn publish(
    id: &BlobId,
    temp: NamedTempFile,
    path: &Path,
    condition: &PutCondition,
    allowed: impl FnOnce() -> Result<(), StorageError>,
) -> Result<BlobProperties, StorageError> {
    let failed = |error: io::Error| StorageError::io(id, "write", &error);
    temp.as_file().sync_all().map_err(failed)?;
    let turn = take_turn(path);
    let existing = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    check(id, existing.as_ref(), condition)?;
    if matches!(condition, PutCondition::IfMatch(_)) {
        need_turn(id, &turn)?;
    }
    allowed()?;
    temp.as_file().set_modified(next_time(existing.as_ref())).map_err(failed)?;
    let file = match condition {
        // Also against a writer that does not take turns.
        PutCondition::IfAbsent => temp.persist_noclobber(path),
        PutCondition::Any | PutCondition::IfMatch(_) => temp.persist(path),
    };
    let file = file.map_err(|error| failed(error.error))?;
    // From here on the name is taken, whatever fails.
    let written = file.metadata().and_then(|written| sync_folder(folder_of(path)).map(|()| written));
    written.map(|written| properties(&written)).map_err(|error| StorageError::Unknown {
        blob: Box::new(id.clone()),
        detail: format!("its folder could not be forced to disk: {error}"),
    })
}

/// If-Match is worth nothing without a turn of one's own.
pub(super) fn need_turn(id: &BlobId, turn: &io::Result<File>) -> Result<(), StorageError> {
    match turn {
        Ok(_) => Ok(()),
        Err(error) => Err(StorageError::other(id, format!("cannot lock its folder, which If-Match needs: {error}"))),
    }
}

pub(super) fn check(id: &BlobId, existing: Option<&Metadata>, condition: &PutCondition) -> Result<(), StorageError> {
    match (condition, existing) {
        (PutCondition::IfAbsent, Some(_)) => Err(StorageError::already_exists(id)),
        (PutCondition::IfMatch(_), None) => Err(StorageError::precondition(id, "it is gone")),
        (PutCondition::IfMatch(wanted), Some(metadata)) if etag(metadata) != *wanted => {
            Err(StorageError::precondition(id, format!("ETag {} instead of {wanted}", etag(metadata))))
        }
        _ => Ok(()),
    }
}

/// Now, or just after the file that is there: a file system's clock ticks in milliseconds, and two writes of one size within
/// a tick must differ in their ETag.
fn next_time(existing: Option<&Metadata>) -> SystemTime {
    let now = SystemTime::now();
    match existing.map(modified) {
        Some(before) if before >= now => before + Duration::from_nanos(1),
        _ => now,
    }
}

/// Waits for one's turn to change files in the folder of `path`; it lasts as long as the value. The lock is on the folder
/// itself, so nothing is left behind, also by a killed process.
pub(super) fn take_turn(path: &Path) -> io::Result<File> {
    let folder = File::open(folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Creates a folder and those above it, and forces the new names to disk.
fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    create_folders(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(above),
    }
}

/// Forces the names in a folder to disk, where the file system knows how.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_writer_left_long_ago_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - STALE_AFTER * 2;
        let file = |name: &str, modified: SystemTime| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(modified).unwrap();
            file
        };
        file(".firn-dead.tmp", old);
        file(".firn-young.tmp", SystemTime::now());
        file(".other.tmp", old);
        file("data.parquet", old);
        let alive = file(".firn-alive.tmp", old);
        alive.lock().unwrap();

        sweep(folder.path(), SystemTime::now());

        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".firn-alive.tmp", ".firn-young.tmp", ".other.tmp", "data.parquet"]);
    }

    #[test]
    fn the_time_of_a_name_ascends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = File::create(&path).unwrap();
        let future = SystemTime::now() + Duration::from_secs(1000);
        file.set_modified(future).unwrap();
        assert_eq!(next_time(Some(&file.metadata().unwrap())), future + Duration::from_nanos(1));
        assert!(next_time(None) < future);
    }
}
