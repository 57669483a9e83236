//! A folder as it was, to start many rounds from the same table.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A copy of a folder that can be put back at the same path, which the metadata of a table needs: its paths are absolute.
#[derive(Debug)]
pub struct Backup {
    original: PathBuf,
    copy: TempDir,
}

impl Backup {
    /// Copies a folder.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn of(folder: &Path) -> Backup {
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_into(folder, copy.path());
        Backup { original: folder.to_path_buf(), copy }
    }

    /// Makes the folder what it was; whatever came since is gone.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn restore(&self) {
        for entry in entries(&self.original) {
            let removed = if entry.is_dir() { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
            removed.expect("the folder can be emptied");
        }
        copy_into(self.copy.path(), &self.original);
    }
}

fn copy_into(from: &Path, to: &Path) {
    for entry in entries(from) {
        let target = to.join(entry.file_name().expect("an entry has a name"));
        if entry.is_dir() {
            fs::create_dir(&target).expect("a folder can be made");
            copy_into(&entry, &target);
        } else {
            fs::copy(&entry, &target).expect("a file can be copied");
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("the folder can be listed");
    listed.map(|entry| entry.expect("the folder can be listed").path()).collect()
}

/// Every file below a folder whose name satisfies `wanted`.
///
/// # Panics
/// When a folder cannot be listed.
pub fn files_below(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries(folder) {
        if entry.is_dir() {
            found.extend(files_below(&entry, wanted));
        } else if entry.file_name().and_then(|name| name.to_str()).is_some_and(wanted) {
            found.push(entry);
        }
    }
    found
}
