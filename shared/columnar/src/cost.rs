//! What an open column takes, estimated from the footer alone (design section 5, "Memory").

use arrow_schema::DataType;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::limits::BatchLimit;

/// Page size that writers aim at; a decoded page is taken to have at most this.
const PAGE_BYTES: u64 = 1024 * 1024;
/// Dictionary size that writers aim at: 2 MB in PyIceberg's files, doubles too.
const DICTIONARY_BYTES: u64 = 2 * 1024 * 1024;
/// A text in a dictionary of unknown lengths, with its offset.
const DICTIONARY_TEXT_BYTES: u64 = 28;
/// A slice of rows on the fast path, with which of them are there.
const SLICE_BYTES: u64 = 64 * 1024;

/// What reading one column of one file takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnCost {
    /// Memory of an open cursor in bytes: read-ahead, a page compressed and decoded, dictionary, one batch. An upper
    /// estimate for files of ordinary writers; 0 for a column that the file does not have.
    pub open_bytes: u64,
    /// Of them what stays between two reads. The rest is taken for a moment, while a dictionary or a page is decoded: of many
    /// open cursors only those that are read from at the same time take it.
    pub held_bytes: u64,
    /// Mean bytes of a decoded row, an estimate for dictionary-encoded text.
    pub bytes_per_row_decoded: u64,
    /// Bytes of all chunks as they stand in the file.
    pub compressed: u64,
    /// Bytes of all chunks decompressed, still encoded.
    pub uncompressed: u64,
}

/// The cost of reading these leaf columns together.
pub(crate) fn column_cost(groups: &[RowGroupMetaData], leaves: &[usize], limit: &BatchLimit) -> ColumnCost {
    let (cost, rows) = without_batch(groups, leaves, limit);
    let batch_rows = limit.rows_for(cost.bytes_per_row_decoded) as u64;
    let batch = batch_rows.min(rows).saturating_mul(cost.bytes_per_row_decoded);
    ColumnCost {
        open_bytes: cost.open_bytes.saturating_add(batch),
        held_bytes: cost.held_bytes.saturating_add(batch),
        ..cost
    }
}

/// The cost of reading this leaf column on the fast path: pages are decoded in slices, so there is no batch.
pub(crate) fn fast_column_cost(groups: &[RowGroupMetaData], leaf: usize, limit: &BatchLimit) -> ColumnCost {
    let (cost, _) = without_batch(groups, &[leaf], limit);
    let chunks = groups.iter().filter_map(|group| group.columns().get(leaf));
    // A numbered text has its hash and its number beside its bytes in the pool.
    let texts = chunks.filter(|chunk| chunk.column_type() == PhysicalType::BYTE_ARRAY).map(dictionary_bytes).max();
    let held_bytes = cost.held_bytes + texts.unwrap_or(0) + SLICE_BYTES;
    ColumnCost { open_bytes: held_bytes.max(cost.open_bytes + SLICE_BYTES), held_bytes, ..cost }
}

/// The same without what is decoded at once; and the rows.
fn without_batch(groups: &[RowGroupMetaData], leaves: &[usize], limit: &BatchLimit) -> (ColumnCost, u64) {
    let mut cost = ColumnCost::default();
    let (mut rows, mut decoded) = (0_u64, 0_u64);
    for group in groups {
        let (mut group_open, mut group_held, mut group_decoded) = (0, 0, 0);
        for chunk in leaves.iter().filter_map(|leaf| group.columns().get(*leaf)) {
            cost.compressed += chunk.compressed_size() as u64;
            cost.uncompressed += chunk.uncompressed_size() as u64;
            group_open += open_chunk(chunk, limit);
            group_held += held_chunk(chunk, limit);
            group_decoded += decoded_value_bytes(chunk).saturating_mul(chunk.num_values() as u64);
        }
        cost.open_bytes = cost.open_bytes.max(group_open);
        cost.held_bytes = cost.held_bytes.max(group_held);
        rows += group.num_rows() as u64;
        decoded = decoded.saturating_add(group_decoded);
    }
    cost.bytes_per_row_decoded = decoded.div_ceil(rows.max(1));
    (cost, rows)
}

/// All that an open chunk holds but its batch.
fn open_chunk(chunk: &ColumnChunkMetaData, limit: &BatchLimit) -> u64 {
    let (compressed, uncompressed) = (chunk.compressed_size() as u64, chunk.uncompressed_size() as u64);
    let ahead = compressed.min(limit.read_ahead as u64);
    let page = uncompressed.min(PAGE_BYTES);
    // A page larger than the read-ahead is held as it came, too.
    let raw = compressed.min(PAGE_BYTES).saturating_sub(ahead);
    let dictionary = dictionary_bytes(chunk);
    // Decompressing and decoding each hold source and result for a moment; the dictionary comes before the first page.
    ahead + raw + (dictionary + 2 * page).max(3 * dictionary)
}

/// What an open chunk holds between two reads, without its batch: read-ahead, the page in work and the dictionary. The
/// last two are parts of one chunk; a decoded dictionary of texts has an offset an entry besides.
fn held_chunk(chunk: &ColumnChunkMetaData, limit: &BatchLimit) -> u64 {
    let (compressed, uncompressed) = (chunk.compressed_size() as u64, chunk.uncompressed_size() as u64);
    let dictionary = dictionary_bytes(chunk);
    let page = uncompressed.min(PAGE_BYTES);
    compressed.min(limit.read_ahead as u64) + (dictionary + page).min(uncompressed + uncompressed / 2)
}

/// A dictionary, decoded; 0 for a chunk without.
fn dictionary_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    if has_dictionary(chunk) { (chunk.uncompressed_size() as u64).min(DICTIONARY_BYTES) } else { 0 }
}

fn has_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    chunk.dictionary_page_offset().is_some_and(|offset| offset > 0)
        || chunk.encodings().any(|encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY))
}

/// Mean bytes of a decoded value of a chunk, levels included.
pub(crate) fn value_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let descriptor = chunk.column_descr();
    let values = (chunk.num_values() as u64).max(1);
    let payload = match chunk.column_type() {
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        PhysicalType::INT96 => 12,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::try_from(descriptor.type_length()).unwrap_or(0),
        PhysicalType::BYTE_ARRAY => 4 + text_bytes(chunk).div_ceil(values),
    };
    // Decimals are 16 bytes in Arrow; levels are kept as 2 bytes each.
    let payload = if descriptor.type_precision() > 0 { payload.max(16) } else { payload };
    let levels = 2 * u64::from(descriptor.max_rep_level() > 0) + 2 * u64::from(descriptor.max_def_level() > 1);
    payload + levels
}

/// As [`value_bytes`], but no text of a dictionary is taken to be shorter than most names are: encoded it counts as its index only.
fn decoded_value_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let guess = chunk.column_type() == PhysicalType::BYTE_ARRAY
        && has_dictionary(chunk)
        && chunk.unencoded_byte_array_data_bytes().is_none();
    if guess { value_bytes(chunk).max(DICTIONARY_TEXT_BYTES) } else { value_bytes(chunk) }
}

/// Bytes of the texts of a chunk: from its size statistics, else what they take encoded.
fn text_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let encoded = chunk.uncompressed_size() as u64;
    match chunk.unencoded_byte_array_data_bytes().map(u64::try_from) {
        Some(Ok(bytes)) => bytes,
        _ => encoded,
    }
}

/// Bytes of a row of an all-null column.
pub(crate) fn null_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| null_bytes(field.data_type())).sum::<u64>() + 1,
        other => other.primitive_width().map_or(8, |width| width as u64) + 1,
    }
}
