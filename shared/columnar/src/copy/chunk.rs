//! The encoded bytes of one column chunk: read whole, walked page by page, handed on as they are.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use super::index::Ranges;
use crate::contain::contain;
use crate::error::ColumnarError;
use crate::footer::chunk_range;
use crate::input::FileInner;
use crate::pages::{ChunkPlace, PageHeader, PageKind, check_sizes};
use crate::source::PendingRead;
use crate::thrift::ThriftError;

/// A chunk that will be copied.
pub(crate) struct CopiedChunk {
    file: Arc<FileInner>,
    group: usize,
    leaf: usize,
    range: Range<u64>,
    descriptor: ColumnDescPtr,
    column_index: Option<ColumnIndexMetaData>,
    offset_index: Option<OffsetIndexMetaData>,
    begun: Option<PendingRead>,
}

impl fmt::Debug for CopiedChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopiedChunk").field("file", &self.file.name).field("group", &self.group).finish_non_exhaustive()
    }
}

/// What its pages turned out to be.
#[derive(Debug, PartialEq, Eq)]
struct Walked {
    /// Where the first data page begins.
    data_start: usize,
    has_dictionary: bool,
    /// Offset, length and rows of each data page with values; rows are not known of version 1 pages with repetition.
    pages: Vec<(usize, u32, Option<u32>)>,
}

impl CopiedChunk {
    /// `descriptor` is the output's for this column.
    pub(super) fn new(
        file: &Arc<FileInner>,
        group: usize,
        leaf: usize,
        descriptor: ColumnDescPtr,
        column_index: Option<ColumnIndexMetaData>,
        offset_index: Option<OffsetIndexMetaData>,
    ) -> Result<CopiedChunk, ColumnarError> {
        let chunk = file.footer.metadata.row_group(group).column(leaf);
        let Some(range) = chunk_range(chunk) else {
            return Err(place(file, group, chunk).corrupt(None, "its place in the file makes no sense"));
        };
        let file = Arc::clone(file);
        Ok(CopiedChunk { file, group, leaf, range, descriptor, column_index, offset_index, begun: None })
    }

    /// Bytes in the file, here and there.
    pub(crate) fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Begins to read it, where reads are waited for.
    pub(crate) fn prime(&mut self) {
        if self.begun.is_none() {
            self.begun = self.file.source.begin(self.range.clone());
        }
    }

    /// Reads and checks it: the bytes, and what the output's footer will say of them, with offsets that count from the first byte.
    ///
    /// # Errors
    /// [`ColumnarError::Read`], or [`ColumnarError::Corrupt`] with file, row group, column and page.
    pub(crate) fn load(mut self) -> Result<(Bytes, ColumnCloseResult), ColumnarError> {
        let bytes = match self.begun.take() {
            Some(read) => read.wait()?,
            None => self.file.source.read(self.range.clone())?,
        };
        let row_group = self.file.footer.metadata.row_group(self.group);
        let chunk = row_group.column(self.leaf);
        let place = place(&self.file, self.group, chunk);
        if bytes.len() as u64 != self.range.end - self.range.start {
            return Err(place.corrupt(None, format!("{} of its bytes were read", bytes.len())));
        }
        let rows = u64::try_from(row_group.num_rows()).unwrap_or(0);
        let walked = walk(&place, chunk, &bytes, rows)?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows,
            metadata: self.metadata(chunk, &walked, bytes.len()).map_err(|error| place.corrupt(None, error))?,
            bloom_filter: bloom_filter(&self.file, chunk, &place)?,
            column_index: self.column_index.filter(|index| index.num_pages() == walked.pages.len() as u64),
            offset_index: offset_index(&walked, self.range.start, self.offset_index, &place)?,
        };
        Ok((bytes, close))
    }

    fn metadata(
        &self,
        chunk: &ColumnChunkMetaData,
        walked: &Walked,
        bytes: usize,
    ) -> Result<ColumnChunkMetaData, String> {
        let mut metadata = ColumnChunkMetaData::builder(Arc::clone(&self.descriptor))
            .set_compression(chunk.compression())
            .set_encodings_mask(*chunk.encodings_mask())
            .set_total_compressed_size(bytes as i64)
            .set_total_uncompressed_size(chunk.uncompressed_size())
            .set_num_values(chunk.num_values())
            .set_data_page_offset(walked.data_start as i64)
            .set_dictionary_page_offset(walked.has_dictionary.then_some(0))
            .set_unencoded_byte_array_data_bytes(chunk.unencoded_byte_array_data_bytes())
            .set_repetition_level_histogram(chunk.repetition_level_histogram().cloned())
            .set_definition_level_histogram(chunk.definition_level_histogram().cloned());
        if let Some(statistics) = chunk.statistics() {
            metadata = metadata.set_statistics(whole(statistics));
        }
        if let Some(pages) = chunk.page_encoding_stats() {
            metadata = metadata.set_page_encoding_stats(pages.clone());
        }
        metadata.build().map_err(|error| error.to_string())
    }
}

fn place(file: &Arc<FileInner>, group: usize, chunk: &ColumnChunkMetaData) -> ChunkPlace {
    ChunkPlace { file: Arc::clone(&file.name), row_group: group, column: chunk.column_path().string() }
}

/// Bounds of values of one length are whole where they have that length, whether their writer said so or not.
fn whole(statistics: &Statistics) -> Statistics {
    match statistics {
        Statistics::FixedLenByteArray(values) => {
            let whole: ValueStatistics<_> = values.clone().with_min_is_exact(true).with_max_is_exact(true);
            Statistics::FixedLenByteArray(whole)
        }
        other => other.clone(),
    }
}

fn bloom_filter(
    file: &FileInner,
    chunk: &ColumnChunkMetaData,
    place: &ChunkPlace,
) -> Result<Option<Sbbf>, ColumnarError> {
    if chunk.bloom_filter_offset().is_none() {
        return Ok(None);
    }
    match contain(|| Sbbf::read_from_column_chunk(chunk, &Ranges(&*file.source))) {
        Ok(Ok(filter)) => Ok(filter),
        Ok(Err(parquet::errors::ParquetError::External(error))) => match error.downcast::<ColumnarError>() {
            Ok(error) => Err(*error),
            Err(error) => Err(place.corrupt(None, format!("its bloom filter cannot be read: {error}"))),
        },
        Ok(Err(error)) => Err(place.corrupt(None, format!("its bloom filter cannot be read: {error}"))),
        Err(panic) => Err(place.corrupt(None, format!("its bloom filter cannot be read: {panic}"))),
    }
}

/// Goes from header to header. Every page lies inside, has sizes that can be, the checksum that its header says, and together they have the
/// values that the footer promises.
fn walk(place: &ChunkPlace, chunk: &ColumnChunkMetaData, bytes: &Bytes, rows: u64) -> Result<Walked, ColumnarError> {
    let promised = u64::try_from(chunk.num_values()).unwrap_or(0);
    let flat = chunk.column_descr().max_rep_level() == 0;
    let mut walked = Walked { data_start: 0, has_dictionary: false, pages: Vec::new() };
    let (mut at, mut values, mut known_rows, mut seen_data) = (0_usize, 0_u64, Some(0_u64), false);
    while values < promised {
        let page = seen_data.then_some(walked.pages.len());
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| place.corrupt(page, format!("its pages hold {values} of {promised} values")))?;
        let header = PageHeader::parse(rest).map_err(|error| match error {
            ThriftError::Short => place.corrupt(page, "its header leads beyond its chunk"),
            ThriftError::Bad(detail) => place.corrupt(page, detail),
        })?;
        let Some(body) = rest.get(header.length as usize..header.total() as usize) else {
            return Err(place.corrupt(page, format!("{} bytes reach beyond its chunk", header.total())));
        };
        check_sizes(chunk, &header).map_err(|detail| place.corrupt(page, detail))?;
        if let Some(expected) = header.crc {
            let found = checksum(CrcAlgorithm::Crc32IsoHdlc, body) as u32;
            if found != expected {
                let detail = format!("its CRC is {found:08x}, its header says {expected:08x}");
                return Err(place.corrupt(page, detail));
            }
        }
        let length = header.length + header.compressed;
        let (page_values, page_rows) = match header.kind {
            PageKind::Dictionary { .. } if seen_data || walked.has_dictionary => {
                return Err(place.corrupt(page, "a second dictionary"));
            }
            PageKind::Dictionary { .. } if at > 0 => {
                return Err(place.corrupt(page, "a dictionary that is not its first page"));
            }
            PageKind::Dictionary { .. } => {
                walked.has_dictionary = true;
                at += length as usize;
                continue;
            }
            PageKind::Other => {
                at += length as usize;
                continue;
            }
            PageKind::V1 { values, .. } => (values, flat.then_some(values)),
            PageKind::V2 { values, rows, .. } => (values, Some(rows)),
        };
        values += u64::from(page_values);
        if values > promised {
            return Err(place.corrupt(page, format!("its pages hold more than {promised} values")));
        }
        if flat && page_rows != Some(page_values) {
            return Err(place.corrupt(page, format!("it has {page_values} values but other rows")));
        }
        if !seen_data {
            (walked.data_start, seen_data) = (at, true);
        }
        if page_values > 0 {
            walked.pages.push((at, length, page_rows));
        }
        known_rows = known_rows.zip(page_rows).map(|(sum, rows)| sum + u64::from(rows));
        at += length as usize;
    }
    if known_rows.is_some_and(|known| known != rows) {
        return Err(place.corrupt(None, format!("its pages do not have the {rows} rows of the row group")));
    }
    Ok(walked)
}

/// Made from the pages themselves where they tell their rows, else the file's own, which then must know the same pages.
fn offset_index(
    walked: &Walked,
    start: u64,
    own: Option<OffsetIndexMetaData>,
    place: &ChunkPlace,
) -> Result<Option<OffsetIndexMetaData>, ColumnarError> {
    let mut index = OffsetIndexBuilder::new();
    let mut rows_known = true;
    for (offset, length, rows) in &walked.pages {
        rows_known &= rows.is_some();
        index.append_offset_and_size(*offset as i64, *length as i32);
        index.append_row_count(rows.unwrap_or(0).into());
    }
    if rows_known {
        return Ok(Some(index.build()));
    }
    let Some(mut own) = own else { return Ok(None) };
    let same = own.page_locations.len() == walked.pages.len()
        && own.page_locations.iter().zip(&walked.pages).all(|(spot, (offset, length, _))| {
            spot.offset == start as i64 + *offset as i64 && i64::from(spot.compressed_page_size) == i64::from(*length)
        });
    if !same {
        return Err(place.corrupt(None, "its offset index and its pages disagree"));
    }
    own.page_locations.iter_mut().for_each(|spot| spot.offset -= start as i64);
    Ok(Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::{Compression, Type as PhysicalType};
    use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};

    /// A page of version 1 with 5 values whose body of 4 bytes has the checksum that its header says.
    fn page(body: [u8; 4], crc: u32) -> Vec<u8> {
        let mut bytes = vec![0x15, 0, 0x15, 8, 0x15, 8, 0x15];
        let mut zigzag = u64::from(((crc as i32) << 1) as u32 ^ ((crc as i32) >> 31) as u32);
        while zigzag >= 0x80 {
            bytes.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        bytes.push(zigzag as u8);
        bytes.extend([0x1c, 0x15, 10, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
        bytes.extend(body);
        bytes
    }

    fn good() -> Vec<u8> {
        page(*b"good", checksum(CrcAlgorithm::Crc32IsoHdlc, b"good") as u32)
    }

    fn walked(bytes: Vec<u8>, values: i64, rows: u64) -> Result<Walked, ColumnarError> {
        let leaf = Type::primitive_type_builder("x", PhysicalType::INT32).build().unwrap();
        let descriptor = Arc::new(ColumnDescriptor::new(Arc::new(leaf), 0, 0, ColumnPath::from("x")));
        let chunk = ColumnChunkMetaData::builder(descriptor)
            .set_num_values(values)
            .set_compression(Compression::UNCOMPRESSED)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(bytes.len() as i64)
            .build()
            .unwrap();
        let place = ChunkPlace { file: "f".into(), row_group: 2, column: "x".into() };
        walk(&place, &chunk, &bytes.into(), rows)
    }

    fn damage(bytes: Vec<u8>, values: i64, rows: u64) -> (Option<usize>, String) {
        match walked(bytes, values, rows) {
            Err(ColumnarError::Corrupt { file, row_group: Some(2), column: Some(column), page, detail }) => {
                assert_eq!((file.as_str(), column.as_str()), ("f", "x"));
                (page, detail)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pages_are_walked_and_their_checksums_verified() {
        let one = good();
        let length = one.len();
        let two = [good(), good()].concat();
        let pages = vec![(0, length as u32, Some(5)), (length, length as u32, Some(5))];
        let expected = Walked { data_start: 0, has_dictionary: false, pages };
        assert_eq!(walked(two.clone(), 10, 10).unwrap(), expected);

        let mut flipped = two.clone();
        flipped[2 * length - 1] ^= 1;
        let (page, detail) = damage(flipped, 10, 10);
        assert!(page == Some(1) && detail.starts_with("its CRC is "), "{page:?} {detail}");

        let (page, detail) = damage(two.clone(), 7, 7);
        assert_eq!((page, detail.as_str()), (Some(1), "its pages hold more than 7 values"));
        let (page, detail) = damage(two.clone(), 15, 15);
        assert_eq!((page, detail.as_str()), (Some(2), "its pages hold 10 of 15 values"));
        let (_, detail) = damage(two.clone(), 10, 11);
        assert_eq!(detail, "its pages do not have the 11 rows of the row group");
        let (page, detail) = damage(two[..2 * length - 1].to_vec(), 10, 10);
        assert!(page == Some(1) && detail.ends_with("bytes reach beyond its chunk"), "{page:?} {detail}");
        let (page, detail) = damage(vec![0; 8], 5, 5);
        assert_eq!((page, detail.as_str()), (None, "a page header without a type"));
    }
}
