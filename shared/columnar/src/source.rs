//! Where bytes come from: blocking reads of ranges, from a local file or from memory.

use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::error::ColumnarError;

/// A file of known size that is read by ranges, on the calling thread.
///
/// Implementations hold no position, so any number of readers may share one.
pub trait RangeRead: Send + Sync + Debug {
    /// The name that errors give, as it stands in the table's metadata.
    fn name(&self) -> &str;

    /// Size in bytes.
    fn size(&self) -> u64;

    /// Exactly the bytes of `range`.
    ///
    /// # Errors
    /// [`ColumnarError::Corrupt`] when the range leaves the file, [`ColumnarError::Read`] when the bytes cannot be had.
    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError>;

    /// Begins to read `range` while the calling thread goes on. None where nothing is gained by that, which is every source that does
    /// not wait for a network; then the range is read when it is needed.
    fn begin(&self, range: Range<u64>) -> Option<PendingRead> {
        let _ = range;
        None
    }

    /// Whether [`begin`](Self::begin) begins: memory is then admitted for what is under way.
    fn reads_in_background(&self) -> bool {
        false
    }
}

/// A read that is under way. Dropping it gives it up.
pub struct PendingRead(Box<dyn FnOnce() -> Result<Bytes, ColumnarError> + Send>);

impl PendingRead {
    /// `wait` blocks until the bytes are there; it is called once at most.
    pub fn new(wait: impl FnOnce() -> Result<Bytes, ColumnarError> + Send + 'static) -> PendingRead {
        PendingRead(Box::new(wait))
    }

    /// The bytes, once they are there.
    ///
    /// # Errors
    /// As [`RangeRead::read`].
    pub fn wait(self) -> Result<Bytes, ColumnarError> {
        (self.0)()
    }
}

impl Debug for PendingRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingRead")
    }
}

/// Checks a range against the size of the file before bytes are asked for.
pub(crate) fn check_range(name: &str, size: u64, range: &Range<u64>) -> Result<usize, ColumnarError> {
    if range.start > range.end || range.end > size {
        return Err(ColumnarError::corrupt_file(
            name,
            format!("it points to bytes {}..{} but has only {size} bytes", range.start, range.end),
        ));
    }
    usize::try_from(range.end - range.start).map_err(|_| {
        ColumnarError::corrupt_file(name, format!("{} bytes at once are too many", range.end - range.start))
    })
}

/// A file that is not as long as the table says.
pub(crate) fn other_size(name: &str, found: u64, expected: u64) -> ColumnarError {
    ColumnarError::corrupt_file(name, format!("it has {found} bytes in storage but {expected} in the table's metadata"))
}

/// A file on a local disk, read with `pread`: clones of a `File` share one position, so seeking would mix up readers.
#[derive(Debug)]
pub struct LocalFile {
    name: String,
    file: File,
    size: u64,
}

impl LocalFile {
    /// Opens the file at `path`; its name is the path.
    ///
    /// # Errors
    /// [`ColumnarError::Read`] when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ColumnarError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::from_file(name, file),
            Err(source) => Err(ColumnarError::Read { file: name, source: source.into(), retryable: false }),
        }
    }

    /// Opens the file at `path` that a table's metadata knows as `name`, of `size` bytes.
    ///
    /// # Errors
    /// [`ColumnarError::Read`] when it cannot be opened, [`ColumnarError::Corrupt`] when it has another size.
    pub fn of_table(path: &Path, name: &str, size: u64) -> Result<Self, ColumnarError> {
        let opened = match File::open(path) {
            Ok(file) => Self::from_file(name, file)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let source = "it does not exist; restore the file or remove it from the table".into();
                return Err(ColumnarError::Read { file: name.to_owned(), source, retryable: false });
            }
            Err(error) => {
                return Err(ColumnarError::Read { file: name.to_owned(), source: error.into(), retryable: false });
            }
        };
        match opened.size == size {
            true => Ok(opened),
            false => Err(other_size(name, opened.size, size)),
        }
    }

    /// Reads an open file (which may have no path any more) under the given name. The file must not grow afterwards.
    ///
    /// # Errors
    /// [`ColumnarError::Read`] when its size cannot be had.
    pub fn from_file(name: impl Into<String>, file: File) -> Result<Self, ColumnarError> {
        let name = name.into();
        match file.metadata() {
            Ok(metadata) => Ok(Self { name, size: metadata.len(), file }),
            Err(source) => Err(ColumnarError::Read { file: name, source: source.into(), retryable: false }),
        }
    }
}

impl RangeRead for LocalFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        let mut bytes = vec![0; check_range(&self.name, self.size, &range)?];
        self.file.read_exact_at(&mut bytes, range.start).map_err(|source| ColumnarError::Read {
            file: self.name.clone(),
            source: source.into(),
            retryable: false,
        })?;
        Ok(bytes.into())
    }
}

/// A whole file that is held in memory.
#[derive(Debug, Clone)]
pub struct MemoryFile {
    name: String,
    bytes: Bytes,
}

impl MemoryFile {
    /// A file of the given name and content.
    pub fn new(name: impl Into<String>, bytes: Bytes) -> Self {
        Self { name: name.into(), bytes }
    }
}

impl RangeRead for MemoryFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        let length = check_range(&self.name, self.size(), &range)?;
        let start = range.start as usize;
        Ok(self.bytes.slice(start..start + length))
    }
}

/// For tests: a file in memory that is read in the background, as those of a storage account are.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct FarFile {
    pub(crate) inner: MemoryFile,
    /// Reads that were begun before they were needed, and those that were waited for.
    pub(crate) begun: AtomicU64,
    pub(crate) waited: AtomicU64,
}

#[cfg(test)]
impl FarFile {
    pub(crate) fn new(inner: MemoryFile) -> FarFile {
        FarFile { inner, begun: AtomicU64::new(0), waited: AtomicU64::new(0) }
    }
}

#[cfg(test)]
impl RangeRead for FarFile {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        self.waited.fetch_add(1, Ordering::Relaxed);
        self.inner.read(range)
    }

    fn begin(&self, range: Range<u64>) -> Option<PendingRead> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let inner = self.inner.clone();
        Some(PendingRead::new(move || inner.read(range)))
    }

    fn reads_in_background(&self) -> bool {
        true
    }
}

/// Counts the requests and bytes that another source is asked for.
#[derive(Debug)]
pub struct CountedRange {
    inner: Arc<dyn RangeRead>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl CountedRange {
    /// Counts from zero what `inner` is asked for.
    pub fn new(inner: Arc<dyn RangeRead>) -> Self {
        Self { inner, requests: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Reads so far, failed ones included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes asked for so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl RangeRead for CountedRange {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ColumnarError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(range.end.saturating_sub(range.start), Ordering::Relaxed);
        self.inner.read(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sources() -> (tempfile::NamedTempFile, Vec<Arc<dyn RangeRead>>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let local = LocalFile::open(file.path()).unwrap();
        let memory = MemoryFile::new("m", Bytes::from_static(b"0123456789"));
        (file, vec![Arc::new(local), Arc::new(memory)])
    }

    #[test]
    fn ranges_are_exact_and_never_leave_the_file() {
        let (_file, sources) = sources();
        for source in sources {
            assert_eq!(source.size(), 10);
            assert_eq!(source.read(2..5).unwrap().as_ref(), b"234");
            assert_eq!(source.read(10..10).unwrap().len(), 0);
            for range in [5..11, 11..11, u64::MAX - 1..u64::MAX, Range { start: 6, end: 5 }] {
                let error = source.read(range).unwrap_err();
                assert!(matches!(error, ColumnarError::Corrupt { .. }), "{error}");
                assert_eq!(error.file(), Some(source.name()));
            }
        }
    }

    #[test]
    fn one_file_is_read_from_two_threads_at_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&(0..=255).collect::<Vec<u8>>()).unwrap();
        let local = LocalFile::open(file.path()).unwrap();
        std::thread::scope(|scope| {
            for offset in 0..4_u64 {
                let local = &local;
                scope.spawn(move || {
                    for _ in 0..200 {
                        assert_eq!(local.read(offset * 50..offset * 50 + 1).unwrap()[0], (offset * 50) as u8);
                    }
                });
            }
        });
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = LocalFile::open(Path::new("/nowhere/x.parquet")).unwrap_err();
        assert_eq!(error.file(), Some("/nowhere/x.parquet"));
        assert!(!error.is_retryable());
    }

    #[test]
    fn reads_are_counted() {
        let counted = CountedRange::new(Arc::new(MemoryFile::new("m", Bytes::from_static(b"0123"))));
        counted.read(0..3).unwrap();
        counted.read(1..2).unwrap();
        assert_eq!((counted.requests(), counted.bytes()), (2, 4));
    }
}
