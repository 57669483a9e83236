//! The files of a group, opened: from the disk of this machine, or from storage with many requests under way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_schema::SchemaRef;
use firn_columnar::{BlobRange, ColumnarError, InputFile, LocalFile, NameMapping, RangeRead, ReadGate};
use firn_model::FileFacts;
use firn_table::LoadedTable;
use tokio::runtime::Handle;

/// Property of a table (Iceberg spec, "Column Projection").
const NAME_MAPPING: &str = "schema.name-mapping.default";
/// Footers that are asked for at once: each is a request that is waited for.
const OPENED_AT_ONCE: usize = 16;
/// Files of a local disk that are kept open; of more than these each is opened for every read, as a process may have 1,024 only.
pub(crate) const KEPT_OPEN: usize = 128;
/// The part of the memory that the files of a group may take whole, all of them.
const ALL_WHOLE_PART: u64 = 3;
/// A file that is larger does not come whole even then: should it be out of order, sorting it takes memory, too.
const LARGEST_WHOLE: u64 = 8 << 20;
/// Where they do not fit, the part that the small ones among them may take.
const SMALL_WHOLE_PART: u64 = 8;

/// Up to which size a file comes whole when files of these sizes share `memory_bytes`.
pub(crate) fn whole_bytes(memory_bytes: u64, sizes: impl ExactSizeIterator<Item = u64>) -> u64 {
    let files = (sizes.len() as u64).max(1);
    match sizes.sum::<u64>() <= memory_bytes / ALL_WHOLE_PART {
        true => LARGEST_WHOLE,
        false => (memory_bytes / SMALL_WHOLE_PART / files).clamp(InputFile::LEAST_WHOLE, LARGEST_WHOLE),
    }
}

/// The table's name mapping for files without field ids; None when it has none.
///
/// # Errors
/// [`ColumnarError`] that names the property, when its value is no name mapping.
pub fn name_mapping(table: &LoadedTable) -> Result<Option<NameMapping>, ColumnarError> {
    table.property(NAME_MAPPING).map(NameMapping::parse).transpose()
}

/// Opens files of a table.
pub(crate) struct Opener<'a> {
    pub(crate) table: &'a LoadedTable,
    pub(crate) schema: &'a SchemaRef,
    pub(crate) mapping: Option<&'a NameMapping>,
    pub(crate) handle: &'a Handle,
    pub(crate) gate: ReadGate,
    /// Blobs up to this size come whole.
    pub(crate) whole: u64,
    /// Files of a local disk stay open.
    pub(crate) keep_open: bool,
}

impl Opener<'_> {
    /// Opens the file that the table's metadata knows as `path`. Blocks.
    pub(crate) fn open(&self, path: &str, size: u64) -> Result<InputFile, ColumnarError> {
        let source = self.source(path, size)?;
        // The system holds a local disk's files in memory as it is.
        let whole = if source.reads_in_background() { self.whole } else { InputFile::LEAST_WHOLE };
        InputFile::open_holding(source, self.schema, self.mapping, whole)
    }

    fn source(&self, path: &str, size: u64) -> Result<Arc<dyn RangeRead>, ColumnarError> {
        let usage = |error: &dyn std::fmt::Display| ColumnarError::Usage { detail: error.to_string() };
        let id = self.table.store.blob_id(path).map_err(|error| usage(&error))?;
        if id.account.is_empty() && self.keep_open {
            return Ok(Arc::new(LocalFile::of_table(Path::new(&id.key), path, size)?));
        }
        let (blobs, handle) = (self.table.store.blobs().clone(), self.handle.clone());
        Ok(Arc::new(BlobRange::new(blobs, id, path, size, handle).sharing(&self.gate)))
    }

    /// Opens files, several at once, and gives them in their order. Of several that cannot be opened the first is named.
    pub(crate) fn open_all(&self, files: &[FileFacts]) -> Result<Vec<InputFile>, ColumnarError> {
        several_at_once(files, |file| self.open(&file.path, file.size)).into_iter().collect()
    }
}

/// Does `work` for each of the files, which waits for requests: on several threads. The results are in the order of the files.
pub(crate) fn several_at_once<T: Send>(files: &[FileFacts], work: impl Fn(&FileFacts) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work_on = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { return done };
            done.push((at, work(file)));
        }
    };
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..OPENED_AT_ONCE.min(files.len())).map(|_| scope.spawn(work_on)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        // A panic goes on in the calling thread, where whoever called contains it.
        joined.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_come_whole_as_far_as_memory_allows() {
        let whole = |files: usize, size: u64| whole_bytes(512 << 20, vec![size; files].into_iter());
        assert_eq!(whole(0, 0), LARGEST_WHOLE);
        assert_eq!(whole(32, 5 << 20), LARGEST_WHOLE, "160 MB are less than a third");
        assert_eq!(whole(36, 5 << 20), (512 << 20) / 8 / 36, "180 MB are more: only files that are far smaller");
        assert_eq!(whole(2000, 1 << 20), InputFile::LEAST_WHOLE, "the footer is asked for anyway");
    }
}
