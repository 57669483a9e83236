//! Temporary disk: one folder a run, under a budget, gone on every exit.
//!
//! A run holds an exclusive lock on `<root>/firn-<id>.lock` for as long as it lives, and keeps its files in `<root>/firn-<id>/`.
//! A lock that can be had belongs to a dead process: its folder goes at the next start. Process ids are not trusted for that,
//! they are used again (and are all 1 in containers).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::ColumnarError;

const PREFIX: &str = "firn-";
const LOCK: &str = "lock";
/// Names are unique by time and count; a clash is somebody sweeping at the same moment.
const TRIES: u32 = 16;

/// The temporary folder of one run. Dropping the last handle removes it.
#[derive(Debug, Clone)]
pub struct TempSpace {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    lock_path: PathBuf,
    /// Held, never read: closing it gives up the lock.
    _lock: File,
    budget_bytes: u64,
    used: AtomicU64,
    peak: AtomicU64,
    files: AtomicU64,
}

impl TempSpace {
    /// Makes a folder below `root`, which is created when missing, for at most `budget_bytes`.
    ///
    /// # Errors
    /// [`ColumnarError::Disk`].
    pub fn create(root: &Path, budget_bytes: u64) -> Result<TempSpace, ColumnarError> {
        fs::create_dir_all(root).map_err(|source| disk(root, source))?;
        let mut last = None;
        for _ in 0..TRIES {
            let id = unique_id();
            let lock_path = root.join(format!("{PREFIX}{id}.{LOCK}"));
            match take_lock(&lock_path) {
                Ok(lock) => {
                    let folder = root.join(format!("{PREFIX}{id}"));
                    fs::create_dir(&folder).map_err(|source| disk(&folder, source))?;
                    let shared = Shared {
                        folder,
                        lock_path,
                        _lock: lock,
                        budget_bytes,
                        used: AtomicU64::new(0),
                        peak: AtomicU64::new(0),
                        files: AtomicU64::new(0),
                    };
                    return Ok(TempSpace { shared: Arc::new(shared) });
                }
                Err(source) if matches!(source.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock) => {
                    last = Some(source);
                }
                Err(source) => return Err(disk(&lock_path, source)),
            }
        }
        Err(disk(root, last.unwrap_or_else(|| io::Error::other("no name is free"))))
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Bytes allowed (`tempDiskMb`).
    pub fn budget_bytes(&self) -> u64 {
        self.shared.budget_bytes
    }

    /// Bytes written and not yet removed.
    pub fn used_bytes(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// The most that was ever used.
    pub fn peak_bytes(&self) -> u64 {
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// Bytes that may still be written.
    pub fn free_bytes(&self) -> u64 {
        self.budget_bytes().saturating_sub(self.used_bytes())
    }

    /// Starts a file; `purpose` is part of its name.
    ///
    /// # Errors
    /// [`ColumnarError::Disk`].
    pub fn create_file(&self, purpose: &str) -> Result<TempWriter, ColumnarError> {
        let number = self.shared.files.fetch_add(1, Ordering::Relaxed);
        let path = self.shared.folder.join(format!("{number:05}-{purpose}.parquet"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|source| disk(&path, source))?;
        let temp = TempFile { space: Arc::clone(&self.shared), path, bytes: AtomicU64::new(0) };
        Ok(TempWriter { file, temp: Arc::new(temp) })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The folder first: a lock file without a folder is harmless, the other way round the lock protects the folder.
        let removed = fs::remove_dir_all(&self.folder).and_then(|()| fs::remove_file(&self.lock_path));
        if let Err(error) = removed {
            tracing::warn!(folder = %self.folder.display(), %error, "temporary folder not removed, the next start removes it");
        }
    }
}

/// A finished or growing temporary file; removed when the last handle goes.
#[derive(Debug)]
pub struct TempFile {
    space: Arc<Shared>,
    path: PathBuf,
    bytes: AtomicU64,
}

impl TempFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(file = %self.path.display(), %error, "temporary file not removed, it goes with its folder");
        }
        self.space.used.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

/// More was to be written than the budget allows.
#[derive(Debug, thiserror::Error)]
#[error("the temporary files would take {needed_bytes} bytes, tempDiskMb allows {budget_bytes}")]
struct BudgetUsedUp {
    needed_bytes: u64,
    budget_bytes: u64,
}

/// The bytes that would have been needed, when `error` says that the budget (not the disk) was used up.
pub(crate) fn needed_bytes(error: &io::Error) -> Option<u64> {
    used_up(error).map(|(needed_bytes, _)| needed_bytes)
}

/// The bytes that would have been needed and those that are allowed, when `error` says that the budget (not the disk) was used up.
pub fn used_up(error: &io::Error) -> Option<(u64, u64)> {
    error.get_ref()?.downcast_ref::<BudgetUsedUp>().map(|full| (full.needed_bytes, full.budget_bytes))
}

/// Writes a temporary file within the budget. A full disk and a used-up budget are the same to the caller: an I/O error of kind
/// `StorageFull`.
#[derive(Debug)]
pub struct TempWriter {
    file: File,
    temp: Arc<TempFile>,
}

impl TempWriter {
    /// The file being written.
    pub fn file(&self) -> Arc<TempFile> {
        Arc::clone(&self.temp)
    }
}

impl Write for TempWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let space = &self.temp.space;
        let length = bytes.len() as u64;
        let used = space.used.fetch_add(length, Ordering::Relaxed) + length;
        if used > space.budget_bytes {
            space.used.fetch_sub(length, Ordering::Relaxed);
            let full = BudgetUsedUp { needed_bytes: used, budget_bytes: space.budget_bytes };
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.temp.bytes.fetch_add(length, Ordering::Relaxed);
                space.peak.fetch_max(used, Ordering::Relaxed);
                Ok(bytes.len())
            }
            Err(error) => {
                space.used.fetch_sub(length, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes what dead processes left below `root`. Returns how many folders went. A root that does not exist has none.
///
/// # Errors
/// [`ColumnarError::Disk`] when `root` cannot be listed; a folder that cannot be removed is logged and left.
pub fn sweep_stale(root: &Path) -> Result<usize, ColumnarError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(disk(root, source)),
    };
    let mut swept = 0;
    for entry in entries.filter_map(Result::ok) {
        let lock_path = entry.path();
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(".lock")) else {
            continue;
        };
        match sweep_one(&lock_path, &root.join(format!("{PREFIX}{id}"))) {
            Ok(true) => swept += 1,
            Ok(false) => {}
            // Another user's, who may be at work.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => tracing::warn!(lock = %lock_path.display(), %error, "stale temporary folder not removed"),
        }
    }
    Ok(swept)
}

fn sweep_one(lock_path: &Path, folder: &Path) -> io::Result<bool> {
    let lock = OpenOptions::new().write(true).open(lock_path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_file(lock_path)?;
    Ok(true)
}

/// Creates and locks a lock file. Between the two a sweeper may have locked and removed it: then it is not this one any more.
fn take_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) if named.ino() == held.ino() && named.dev() == held.dev() => Ok(file),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn unique_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}-{nanos:x}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn disk(path: &Path, source: io::Error) -> ColumnarError {
    ColumnarError::Disk { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_count_against_the_budget_until_they_are_dropped() {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 10).unwrap();
        let mut first = space.create_file("a").unwrap();
        first.write_all(b"123456").unwrap();
        let mut second = space.create_file("b").unwrap();
        let error = second.write_all(b"12345").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), "the temporary files would take 11 bytes, tempDiskMb allows 10");
        second.write_all(b"1234").unwrap();
        assert_eq!((space.used_bytes(), space.free_bytes()), (10, 0));
        let kept = first.file();
        drop(first);
        assert!(kept.path().exists());
        assert_eq!(kept.bytes(), 6);
        drop(kept);
        assert_eq!((space.used_bytes(), space.peak_bytes()), (4, 10));
    }

    #[test]
    fn the_folder_goes_with_its_last_handle() {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 10).unwrap();
        let file = space.create_file("a").unwrap().file();
        drop(space);
        assert_eq!(names(root.path()).len(), 2, "a file that is in use keeps its folder");
        drop(file);
        assert_eq!(names(root.path()), Vec::<String>::new());
    }

    #[test]
    fn only_folders_of_the_dead_are_swept() {
        let root = tempfile::tempdir().unwrap();
        let alive = TempSpace::create(root.path(), 10).unwrap();
        // What a killed process leaves: a lock file that nobody holds, and a folder with a file.
        fs::write(root.path().join("firn-1-dead-0.lock"), b"").unwrap();
        fs::create_dir(root.path().join("firn-1-dead-0")).unwrap();
        fs::write(root.path().join("firn-1-dead-0/00000-sort.parquet"), b"half").unwrap();
        fs::write(root.path().join("other.lock"), b"").unwrap();
        assert_eq!(sweep_stale(root.path()).unwrap(), 1);
        let left = names(root.path());
        assert_eq!(left.len(), 3);
        assert!(left.contains(&"other.lock".to_owned()));
        assert!(alive.folder().is_dir());
        assert_eq!(sweep_stale(root.path()).unwrap(), 0);
        assert_eq!(sweep_stale(&root.path().join("missing")).unwrap(), 0);
    }

    #[test]
    fn a_root_that_cannot_be_made_is_a_clean_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = TempSpace::create(&file.join("below"), 10).unwrap_err();
        assert!(matches!(&error, ColumnarError::Disk { path, .. } if path.contains("below")), "{error}");
    }
}
