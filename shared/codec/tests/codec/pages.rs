//! Pages written and read by the Parquet crate, and our decoders as a reader would drive them.

use std::sync::Arc;

use bytes::Bytes;
use firn_codec::{Texts, Word, delta, hybrid, hybrid::Presence, plain, split};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

/// How the Parquet crate is to write a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) encoding: Encoding,
    pub(crate) dictionary: bool,
    pub(crate) version: WriterVersion,
}

impl Way {
    /// With and without a dictionary, in both versions of data pages.
    pub(crate) fn all(encodings: &[Encoding]) -> Vec<Way> {
        let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
        let ways = |version| {
            let plain = encodings.iter().map(move |encoding| Way { encoding: *encoding, dictionary: false, version });
            plain.chain([Way { encoding: Encoding::PLAIN, dictionary: true, version }])
        };
        versions.into_iter().flat_map(ways).collect()
    }
}

fn schema(column: &str) -> Arc<parquet::schema::types::Type> {
    Arc::new(parse_message_type(&format!("message m {{ {column}; }}")).unwrap())
}

/// The pages of one column of `values`, with `validity` if it is optional.
pub(crate) fn write<D: DataType>(column: &str, way: Way, values: &[D::T], validity: Option<&[u8]>) -> Vec<Page> {
    let properties = WriterProperties::builder()
        .set_writer_version(way.version)
        .set_dictionary_enabled(way.dictionary)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(400)
        .set_write_batch_size(100);
    let properties = if way.dictionary { properties } else { properties.set_encoding(way.encoding) };
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema(column), Arc::new(properties.build())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut writer = group.next_column().unwrap().unwrap();
    let levels: Option<Vec<i16>> = validity.map(|validity| validity.iter().map(|level| i16::from(*level)).collect());
    writer.typed::<D>().write_batch(values, levels.as_deref(), None).unwrap();
    writer.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let group = reader.get_row_group(0).unwrap();
    group.get_column_page_reader(0).unwrap().map(Result::unwrap).collect()
}

/// A data page taken apart.
pub(crate) struct DataPage<'a> {
    pub(crate) encoding: Encoding,
    /// Values that are not null.
    pub(crate) present: usize,
    pub(crate) values: &'a [u8],
}

/// Takes a data page apart with our decoders and appends its validity; `None` for a dictionary page.
pub(crate) fn take_apart<'a>(page: &'a Page, optional: bool, validity: &mut Vec<u8>) -> Option<DataPage<'a>> {
    let (encoding, levels, values) = match page {
        Page::DictionaryPage { .. } => return None,
        Page::DataPage { buf, encoding, .. } if optional => {
            let (levels, values) = hybrid::prefixed(buf).unwrap();
            (*encoding, levels, values)
        }
        Page::DataPage { buf, encoding, .. } => (*encoding, &[][..], &buf[..]),
        Page::DataPageV2 { buf, encoding, def_levels_byte_len, .. } => {
            let (levels, values) = buf.split_at(*def_levels_byte_len as usize);
            (*encoding, levels, values)
        }
    };
    let rows = page.num_values() as usize;
    let present = match optional.then(|| hybrid::validity(levels, rows, validity).unwrap()) {
        Some(Presence::Mixed { present }) => present,
        None | Some(Presence::All) => {
            validity.extend(std::iter::repeat_n(1, rows));
            rows
        }
    };
    Some(DataPage { encoding, present, values })
}

/// Validity and values of a column of words.
pub(crate) fn read_words<W: Word>(pages: &[Page], optional: bool) -> (Vec<u8>, Vec<W>) {
    let (mut validity, mut values, mut dictionary) = (Vec::new(), Vec::new(), Vec::new());
    for page in pages {
        match take_apart(page, optional, &mut validity) {
            None => plain::decode(page.buffer(), page.num_values() as usize, &mut dictionary).unwrap(),
            Some(DataPage { encoding, present, values: bytes }) => match encoding {
                Encoding::PLAIN => plain::decode(bytes, present, &mut values).unwrap(),
                Encoding::DELTA_BINARY_PACKED => delta::decode(bytes, present, &mut values).unwrap(),
                Encoding::BYTE_STREAM_SPLIT => split::decode(bytes, present, &mut values).unwrap(),
                Encoding::RLE_DICTIONARY => {
                    let (width, bytes) = bytes.split_first().unwrap();
                    hybrid::decode_mapped(bytes, *width, present, &dictionary, &mut values).unwrap();
                }
                other => panic!("{other}"),
            },
        }
    }
    (validity, values)
}

/// Validity and values of a column of byte strings; `width` if they are of fixed length.
pub(crate) fn read_texts(pages: &[Page], optional: bool, width: Option<usize>) -> (Vec<u8>, Texts) {
    let (mut validity, mut values, mut dictionary) = (Vec::new(), Texts::new(), Texts::new());
    for page in pages {
        let Some(DataPage { encoding, present, values: bytes }) = take_apart(page, optional, &mut validity) else {
            let count = page.num_values() as usize;
            match width {
                Some(width) => plain::decode_fixed(page.buffer(), width, count, &mut dictionary).unwrap(),
                None => plain::decode_texts(page.buffer(), count, &mut dictionary).unwrap(),
            }
            continue;
        };
        match (encoding, width) {
            (Encoding::PLAIN, None) => plain::decode_texts(bytes, present, &mut values).unwrap(),
            (Encoding::PLAIN, Some(width)) => plain::decode_fixed(bytes, width, present, &mut values).unwrap(),
            (Encoding::DELTA_LENGTH_BYTE_ARRAY, _) => delta::decode_texts(bytes, present, &mut values).unwrap(),
            (Encoding::DELTA_BYTE_ARRAY, None) => delta::decode_shared(bytes, present, 1 << 20, &mut values).unwrap(),
            (Encoding::DELTA_BYTE_ARRAY, Some(width)) => {
                delta::decode_shared_fixed(bytes, width, present, &mut values).unwrap();
            }
            (Encoding::BYTE_STREAM_SPLIT, Some(width)) => {
                split::decode_fixed(bytes, width, present, &mut values).unwrap();
            }
            (Encoding::RLE_DICTIONARY, _) => {
                let (width, bytes) = bytes.split_first().unwrap();
                let mut indices = Vec::new();
                hybrid::decode_indices(bytes, *width, present, dictionary.len() as u32, &mut indices).unwrap();
                for index in indices {
                    values.push(dictionary.get(index as usize).unwrap()).unwrap();
                }
            }
            other => panic!("{other:?}"),
        }
    }
    (validity, values)
}

/// Column metadata for pages of `rows` rows that stand at the start of `bytes` bytes, uncompressed.
fn chunk(column: &str, bytes: usize, rows: usize) -> (ColumnDescPtr, ColumnChunkMetaData) {
    let descriptor = SchemaDescriptor::new(schema(column)).column(0);
    let chunk = ColumnChunkMetaData::builder(Arc::clone(&descriptor))
        .set_num_values(rows as i64)
        .set_total_compressed_size(bytes as i64)
        .set_total_uncompressed_size(bytes as i64)
        .set_data_page_offset(0)
        .build()
        .unwrap();
    (descriptor, chunk)
}

fn page_reader(column: &str, bytes: Vec<u8>, rows: usize) -> (ColumnDescPtr, SerializedPageReader<Bytes>) {
    let (descriptor, chunk) = chunk(column, bytes.len(), rows);
    (descriptor, SerializedPageReader::new(Arc::new(Bytes::from(bytes)), &chunk, rows, None).unwrap())
}

/// The pages in `bytes`, headers included, as the Parquet crate sees them.
pub(crate) fn parse(column: &str, bytes: Vec<u8>, rows: usize) -> Vec<Page> {
    page_reader(column, bytes, rows).1.map(Result::unwrap).collect()
}

/// Validity and values that the Parquet crate reads from pages in `bytes`, headers included.
pub(crate) fn read<D: DataType>(column: &str, bytes: Vec<u8>, rows: usize) -> (Vec<u8>, Vec<D::T>) {
    let (descriptor, pages) = page_reader(column, bytes, rows);
    let optional = descriptor.max_def_level() > 0;
    let mut reader = ColumnReaderImpl::<D>::new(descriptor, Box::new(pages) as Box<dyn PageReader>);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let found = reader.read_records(rows.max(1), optional.then_some(&mut levels), None, &mut values).unwrap();
    assert_eq!(found.0, rows);
    let validity = if optional { levels.iter().map(|level| *level as u8).collect() } else { vec![1; rows] };
    (validity, values)
}
