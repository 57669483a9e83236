//! Where tantivy writes while an index is built: files on temporary disk, counted against its budget.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use firn_columnar::TempSpace;
use firn_columnar::temp::{TempFile, TempWriter};
use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// A folder of one index. Files vanish from the disk when the last clone, and the last reader, is dropped.
#[derive(Clone)]
pub(crate) struct Folder {
    space: TempSpace,
    files: Arc<Mutex<BTreeMap<PathBuf, Stored>>>,
}

/// A file of the folder.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// On temporary disk.
    Temp(Arc<TempFile>),
    /// Small and written whole: lists of files.
    Memory(Arc<[u8]>),
}

impl Folder {
    pub(crate) fn new(space: &TempSpace) -> Folder {
        Folder { space: space.clone(), files: Arc::default() }
    }

    /// The files by their names.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Stored> {
        self.lock().clone()
    }

    /// Bytes that they have on disk.
    pub(crate) fn bytes(&self) -> u64 {
        let on_disk = |stored: &Stored| match stored {
            Stored::Temp(file) => file.bytes(),
            Stored::Memory(_) => 0,
        };
        self.lock().values().map(on_disk).sum()
    }

    /// Bytes of the files with an ending.
    pub(crate) fn bytes_of(&self, ending: &str) -> u64 {
        let ends = |path: &Path| path.extension().is_some_and(|found| found == ending);
        let on_disk = |(path, stored): (&PathBuf, &Stored)| match stored {
            Stored::Temp(file) if ends(path) => file.bytes(),
            Stored::Temp(_) | Stored::Memory(_) => 0,
        };
        self.lock().iter().map(on_disk).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Stored>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &Path) -> Result<Stored, OpenReadError> {
        self.lock().get(path).cloned().ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Folder({} files)", self.lock().len())
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        match self.find(path)? {
            Stored::Memory(bytes) => Ok(Arc::new(OwnedBytes::new(bytes.to_vec()))),
            Stored::Temp(temp) => {
                let length = usize::try_from(temp.bytes()).unwrap_or(usize::MAX);
                Ok(Arc::new(OnDisk { temp, length, window: Mutex::new((0, OwnedBytes::empty())) }))
            }
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let removed = self.lock().remove(path);
        removed.map(|_| ()).ok_or_else(|| DeleteError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.lock().contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        if self.lock().contains_key(path) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        let writer = self.space.create_file("index");
        let writer = writer.map_err(|error| OpenWriteError::wrap_io_error(io::Error::other(error), path.to_owned()))?;
        let file = InWork { folder: self.clone(), path: path.to_owned(), writer };
        Ok(BufWriter::new(Box::new(file)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        match self.find(path)? {
            Stored::Memory(bytes) => Ok(bytes.to_vec()),
            Stored::Temp(temp) => {
                std::fs::read(temp.path()).map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))
            }
        }
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.lock().insert(path.to_owned(), Stored::Memory(data.into()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// The folder is this process's alone.
    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file that is being written; it is in the folder when it is whole.
struct InWork {
    folder: Folder,
    path: PathBuf,
    writer: TempWriter,
}

impl Write for InWork {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl TerminatingWrite for InWork {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.writer.flush()?;
        let file = Stored::Temp(self.writer.file());
        self.folder.lock().insert(self.path.clone(), file);
        Ok(())
    }
}

/// Bytes read ahead: segments are merged word by word, each from where the last one ended.
const WINDOW_BYTES: usize = 64 << 10;

/// A file on temporary disk, read by ranges. It is open only while it is read: there may be many segments.
struct OnDisk {
    temp: Arc<TempFile>,
    length: usize,
    /// Where the bytes read last begin, and those bytes.
    window: Mutex<(usize, OwnedBytes)>,
}

impl OnDisk {
    fn fetch(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        File::open(self.temp.path())?.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

impl fmt::Debug for OnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnDisk({} bytes)", self.length)
    }
}

impl HasLen for OnDisk {
    fn len(&self) -> usize {
        self.length
    }
}

impl FileHandle for OnDisk {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        if range.len() >= WINDOW_BYTES {
            return self.fetch(range);
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = &mut *window;
        if range.start < *start || range.end > *start + bytes.len() {
            let end = self.length.min(range.start + WINDOW_BYTES).max(range.end);
            *bytes = self.fetch(range.start..end)?;
            *start = range.start;
        }
        Ok(bytes.slice(range.start - *start..range.end - *start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_read_as_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let space = TempSpace::create(root.path(), 1 << 20).unwrap();
        let folder = Folder::new(&space);
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let mut writer = folder.open_write(Path::new("a.idx")).unwrap();
        writer.write_all(&content).unwrap();
        writer.terminate().unwrap();
        let file = folder.get_file_handle(Path::new("a.idx")).unwrap();
        assert_eq!(file.len(), content.len());
        for (start, length) in
            [(0, 10), (10, 90), (5, 3), (199_990, 10), (0, 200_000), (65_000, 1000), (66_000, 64 << 10), (7, 0)]
        {
            let read = file.read_bytes(start..start + length).unwrap();
            assert_eq!(&read[..], &content[start..start + length], "{start} {length}");
        }
        assert!(file.read_bytes(199_999..200_001).is_err());
        assert!(folder.get_file_handle(Path::new("b.idx")).is_err());
        // The bytes stay readable while somebody holds the file; after that the disk is free.
        folder.delete(Path::new("a.idx")).unwrap();
        assert_eq!(file.read_bytes(0..1).unwrap()[..], content[..1]);
        drop(file);
        assert_eq!(space.used_bytes(), 0);
    }
}
