//! The page index of one row group, and whole-file reads for the Parquet crate.

use std::io::Read;

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::contain::contain;
use crate::input::FileInner;
use crate::source::RangeRead;

/// An index larger than this is left aside.
const MAX_INDEX_BYTES: i64 = 16 << 20;
/// What is read where nothing says how much is wanted.
const READ_BYTES: u64 = 64 << 10;

/// The page index of one row group, as far as the file has one that can be read.
#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    columns: Vec<Option<ColumnIndexMetaData>>,
    offsets: Vec<Option<OffsetIndexMetaData>>,
}

impl GroupIndex {
    /// One request. An index is a hint to readers: one that cannot be read is as good as none, for those of the source, too.
    pub(super) fn read(file: &FileInner, group: usize) -> GroupIndex {
        let row_group = file.footer.metadata.row_group(group);
        let has_any = row_group.columns().iter().any(|chunk| chunk.offset_index_offset().is_some());
        if !has_any || !Self::is_read(row_group) {
            return GroupIndex::default();
        }
        let schema = file.footer.metadata.file_metadata().schema_descr_ptr();
        let footer = FileMetaData::new(1, row_group.num_rows(), None, None, schema, None);
        let metadata = ParquetMetaData::new(footer, vec![row_group.clone()]);
        let read = contain(|| {
            let mut reader =
                ParquetMetaDataReader::new_with_metadata(metadata).with_page_index_policy(PageIndexPolicy::Optional);
            reader.read_page_indexes(&Ranges(&*file.source))?;
            reader.finish()
        });
        let Ok(Ok(metadata)) = read else {
            tracing::debug!(file = %file.name, group, "its page index cannot be read");
            return GroupIndex::default();
        };
        let column_index = |index: &ColumnIndexMetaData| match index {
            ColumnIndexMetaData::NONE => None,
            index => Some(index.clone()),
        };
        let columns = metadata.column_index().and_then(|groups| groups.first());
        let offsets = metadata.offset_index().and_then(|groups| groups.first());
        GroupIndex {
            columns: columns.map(|all| all.iter().map(column_index).collect()).unwrap_or_default(),
            offsets: offsets.map(|all| all.iter().cloned().map(Some).collect()).unwrap_or_default(),
        }
    }

    /// Whether the index of a row group is of a size that is read: from its first byte to its last, because all of it is read at once.
    pub(super) fn is_read(row_group: &RowGroupMetaData) -> bool {
        let parts = row_group.columns().iter().flat_map(|chunk| {
            let columns = chunk.column_index_offset().zip(chunk.column_index_length());
            let offsets = chunk.offset_index_offset().zip(chunk.offset_index_length());
            [columns, offsets].into_iter().flatten()
        });
        let (mut first, mut last) = (i64::MAX, 0);
        for (start, length) in parts {
            first = first.min(start);
            last = last.max(start.saturating_add(i64::from(length)));
        }
        last.saturating_sub(first) <= MAX_INDEX_BYTES
    }

    /// The indexes of a leaf, once.
    pub(super) fn take(&mut self, leaf: usize) -> (Option<ColumnIndexMetaData>, Option<OffsetIndexMetaData>) {
        (self.columns.get_mut(leaf).and_then(Option::take), self.offsets.get_mut(leaf).and_then(Option::take))
    }
}

/// A file for the Parquet crate.
pub(super) struct Ranges<'a>(pub(super) &'a dyn RangeRead);

impl Ranges<'_> {
    fn bytes(&self, start: u64, end: u64) -> ParquetResult<Bytes> {
        self.0.read(start..end).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl Length for Ranges<'_> {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Ranges<'_> {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(Box::new(self.bytes(start, self.len().min(start.saturating_add(READ_BYTES)))?.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.bytes(start, start.saturating_add(length as u64))
    }
}
