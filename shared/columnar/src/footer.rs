//! The footer of a Parquet file: read by ranges, checked before anything else relies on it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};

use crate::contain::contain;
use crate::error::ColumnarError;
use crate::source::RangeRead;
use crate::thrift::{Compact, Kind, ThriftError, struct_length};

/// First request to a file. Nearly every footer fits, with its page indexes.
pub(crate) const TAIL_BYTES: u64 = 64 * 1024;
/// Offset indexes of more bytes are left aside: pages are then found by walking, which costs no memory.
const MAX_INDEX_BYTES: u64 = 4 * 1024 * 1024;
/// Footer length and magic.
const TRAILER: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED_MAGIC: &[u8] = b"PARE";
/// Deeper schemas are refused: the Parquet crate walks them recursively.
const MAX_SCHEMA_DEPTH: usize = 64;

/// What was read from the end of a file.
#[derive(Debug)]
pub(crate) struct Footer {
    pub(crate) metadata: Arc<ParquetMetaData>,
    /// First row of each row group, and the number of rows at the end.
    pub(crate) group_starts: Vec<u64>,
    /// The offset indexes as they stand in the file, and where they begin.
    pub(crate) offset_indexes: Option<(u64, Bytes)>,
    /// The whole file, when it came with the first request.
    pub(crate) whole: Option<Bytes>,
}

impl Footer {
    /// Reads and checks the footer. A file of at most `whole` bytes comes whole.
    pub(crate) fn read(source: &dyn RangeRead, whole: u64) -> Result<Self, ColumnarError> {
        let (name, size) = (source.name(), source.size());
        let damaged = |detail: String| ColumnarError::corrupt_file(name, detail);
        if size < MAGIC.len() as u64 + TRAILER {
            return Err(damaged(format!("{size} bytes are too short for a Parquet file")));
        }
        let tail_start = if size <= whole { 0 } else { size.saturating_sub(TAIL_BYTES) };
        let tail = source.read(tail_start..size)?;
        let trailer = &tail[tail.len() - TRAILER as usize..];
        match &trailer[4..] {
            MAGIC => {}
            ENCRYPTED_MAGIC => {
                return Err(ColumnarError::Unsupported {
                    file: name.to_owned(),
                    column: None,
                    detail: "its footer is encrypted, which is not supported".into(),
                });
            }
            _ => return Err(damaged("it does not end with the magic bytes `PAR1`".into())),
        }
        let length = u64::from(u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]));
        let footer_start = (size - TRAILER)
            .checked_sub(length)
            .filter(|start| *start >= MAGIC.len() as u64)
            .ok_or_else(|| damaged(format!("its footer claims {length} bytes in a file of {size} bytes")))?;
        let footer = if footer_start >= tail_start {
            tail.slice((footer_start - tail_start) as usize..tail.len() - TRAILER as usize)
        } else {
            let front = source.read(footer_start..tail_start)?;
            [&front[..], &tail[..tail.len() - TRAILER as usize]].concat().into()
        };
        let metadata = decode(&footer).map_err(|detail| damaged(format!("its footer cannot be read: {detail}")))?;
        let group_starts = check_metadata(name, &metadata, footer_start)?;
        let offset_indexes = match offset_index_range(&metadata, footer_start) {
            Some(range) if range.start >= tail_start => {
                let held = &tail[(range.start - tail_start) as usize..(range.end - tail_start) as usize];
                Some((range.start, Bytes::copy_from_slice(held)))
            }
            Some(range) => Some((range.start, source.read(range)?)),
            None => None,
        };
        let whole = (size <= whole).then_some(tail);
        Ok(Self { metadata: Arc::new(metadata), group_starts, offset_indexes, whole })
    }

    /// The offset index of a chunk as it stands in the file.
    pub(crate) fn offset_index(&self, group: usize, leaf: usize) -> Option<&[u8]> {
        let (start, bytes) = self.offset_indexes.as_ref()?;
        let range = index_range(self.metadata.row_groups().get(group)?.columns().get(leaf)?)?;
        bytes.get(range.start.checked_sub(*start)? as usize..range.end.checked_sub(*start)? as usize)
    }
}

/// Where the pages of a chunk lie. Some writers set a dictionary offset of 0 when there is none.
pub(crate) fn chunk_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let data = u64::try_from(chunk.data_page_offset()).ok()?;
    let start = match chunk.dictionary_page_offset().map(u64::try_from) {
        Some(Ok(dictionary)) if dictionary > 0 && dictionary < data => dictionary,
        _ => data,
    };
    Some(start..start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?)
}

fn decode(footer: &[u8]) -> Result<ParquetMetaData, String> {
    let explain = |error| match error {
        ThriftError::Short => "its lengths lead beyond its end".to_owned(),
        ThriftError::Bad(detail) => detail.to_owned(),
    };
    struct_length(footer).map_err(explain)?;
    check_schema(footer).map_err(explain)?;
    contain(|| ParquetMetaDataReader::decode_metadata(footer))?.map_err(|error| error.to_string())
}

/// Checks that the children which schema elements claim exist, and that they nest within reason.
fn check_schema(footer: &[u8]) -> Result<(), ThriftError> {
    let mut compact = Compact::new(footer);
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        if (id, kind) != (2, Kind::List) {
            compact.skip(kind)?;
            continue;
        }
        let (count, element) = compact.list()?;
        if element != Kind::Struct {
            return Err(ThriftError::Bad("a schema that is no list of elements"));
        }
        let mut open: Vec<usize> = Vec::new();
        for index in 0..count {
            let children = children_of_element(&mut compact)?;
            if index > 0 {
                match open.last_mut() {
                    Some(left) => *left -= 1,
                    None => return Err(ThriftError::Bad("a schema with elements outside its root")),
                }
            }
            if children > count - index - 1 {
                return Err(ThriftError::Bad("a schema element with more children than the schema has elements"));
            }
            open.push(children);
            if open.len() > MAX_SCHEMA_DEPTH {
                return Err(ThriftError::Bad("a schema that nests more than 64 deep"));
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        if !open.is_empty() {
            return Err(ThriftError::Bad("a schema element without its children"));
        }
    }
    Ok(())
}

fn children_of_element(compact: &mut Compact<'_>) -> Result<usize, ThriftError> {
    let mut children = 0;
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        match (id, kind) {
            (5, Kind::I32) => children = compact.size()? as usize,
            (_, other) => compact.skip(other)?,
        }
    }
    Ok(children)
}

/// Checks what readers rely on: counts add up, chunks lie inside the file. Gives the first row of each row group.
fn check_metadata(name: &str, metadata: &ParquetMetaData, footer_start: u64) -> Result<Vec<u64>, ColumnarError> {
    let mut starts = vec![0_u64];
    let mut rows = 0_u64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let damaged = |column: Option<&ColumnChunkMetaData>, detail: String| ColumnarError::Corrupt {
            file: name.to_owned(),
            row_group: Some(index),
            column: column.map(|column| column.column_path().string()),
            page: None,
            detail,
        };
        let group_rows = u64::try_from(group.num_rows()).ok();
        rows = group_rows
            .and_then(|group_rows| rows.checked_add(group_rows))
            .ok_or_else(|| damaged(None, format!("it claims {} rows", group.num_rows())))?;
        starts.push(rows);
        for chunk in group.columns() {
            check_chunk(name, chunk)?;
            // A chunk without values may have no place.
            let inside = chunk_range(chunk).is_some_and(|range| range.start >= 4 && range.end <= footer_start);
            if !inside && chunk.num_values() != 0 {
                return Err(damaged(
                    Some(chunk),
                    format!(
                        "{} bytes of pages at {} do not lie before the footer at {footer_start}",
                        chunk.compressed_size(),
                        chunk.data_page_offset()
                    ),
                ));
            }
            let flat = chunk.column_descr().max_rep_level() == 0;
            if chunk.num_values() < 0 || chunk.uncompressed_size() < 0 || flat && chunk.num_values() != group.num_rows()
            {
                return Err(damaged(
                    Some(chunk),
                    format!("it claims {} values for {} rows", chunk.num_values(), group.num_rows()),
                ));
            }
        }
    }
    let claimed = metadata.file_metadata().num_rows();
    if u64::try_from(claimed) != Ok(rows) {
        return Err(ColumnarError::corrupt_file(
            name,
            format!("its footer claims {claimed} rows but its row groups have {rows}"),
        ));
    }
    Ok(starts)
}

/// Refuses what cannot be read at all.
fn check_chunk(name: &str, chunk: &ColumnChunkMetaData) -> Result<(), ColumnarError> {
    let unsupported = |detail: String| {
        Err(ColumnarError::Unsupported { file: name.to_owned(), column: Some(chunk.column_path().string()), detail })
    };
    if let Some(path) = chunk.file_path().filter(|path| !path.is_empty()) {
        return unsupported(format!("its pages are in another file, `{path}`, which is not supported"));
    }
    match chunk.compression() {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::LZ4
        | Compression::LZ4_RAW
        | Compression::ZSTD(_) => Ok(()),
        other => unsupported(format!("compression {other} is not supported")),
    }
}

fn index_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(chunk.offset_index_offset()?).ok()?;
    let end = start.checked_add(u64::try_from(chunk.offset_index_length()?).ok()?)?;
    Some(start..end)
}

/// The range that holds all offset indexes; `None` when there are none, or none that can be used.
fn offset_index_range(metadata: &ParquetMetaData, footer_start: u64) -> Option<Range<u64>> {
    let ranges = metadata.row_groups().iter().flat_map(|group| group.columns()).filter_map(index_range);
    let range = ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))?;
    (range.start < range.end && range.end <= footer_start && range.end - range.start <= MAX_INDEX_BYTES)
        .then_some(range)
}
