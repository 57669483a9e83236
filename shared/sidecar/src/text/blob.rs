//! A bundle as tantivy reads it: each part is a file, fetched by ranges.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

use crate::bundle::PartEntry;
use crate::bundle::ranged::RangedBundle;

/// The parts of a bundle. Reading blocks, and must not be done on a thread of the runtime.
#[derive(Debug, Clone)]
pub(crate) struct BundleFolder {
    bytes: RangedBundle,
}

impl BundleFolder {
    pub(crate) fn new(bytes: RangedBundle) -> BundleFolder {
        BundleFolder { bytes }
    }

    fn find(&self, path: &Path) -> Result<PartEntry, OpenReadError> {
        let parts = &self.bytes.bundle().footer().parts;
        let found = parts.iter().find(|part| Path::new(&part.name) == path);
        found.cloned().ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a sidecar is not changed once it is written")
}

impl Directory for BundleFolder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let part = self.find(path)?;
        Ok(Arc::new(PartHandle { bytes: self.bytes.clone(), part }))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.find(path).is_ok())
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let part = self.find(path)?;
        let read = self.bytes.read(part.offset..part.offset + part.length);
        read.map(|bytes| bytes.to_vec()).map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// One part.
#[derive(Debug)]
struct PartHandle {
    bytes: RangedBundle,
    part: PartEntry,
}

impl HasLen for PartHandle {
    fn len(&self) -> usize {
        usize::try_from(self.part.length).unwrap_or(usize::MAX)
    }
}

impl FileHandle for PartHandle {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let (start, end) = (range.start as u64, range.end as u64);
        if end > self.part.length || start > end {
            let detail = format!("bytes {start}..{end} of `{}`, which has {}", self.part.name, self.part.length);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail));
        }
        let bytes = self.bytes.read(self.part.offset + start..self.part.offset + end)?;
        Ok(OwnedBytes::new(Arc::<[u8]>::from(&bytes[..])))
    }
}
