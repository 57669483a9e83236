//! Which row groups may be copied, from footers alone. Each reason against it has its place in `docs/decisions/copying.md`.

use std::fmt;
use std::sync::Arc;

use parquet::basic::{ColumnOrder, Compression, Encoding};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use super::group_claims::is_of_firn;
use super::index::GroupIndex;
use crate::fast::write::Encodings;
use crate::footer::chunk_range;
use crate::input::InputFile;
use crate::resolve::ColumnPlan;
use crate::writer::{BloomFilters, Codec, STATISTICS_BYTES};

/// What a row group must be like.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) codec: Codec,
    pub(super) encodings: Encodings,
    pub(super) bloom_filters: BloomFilters,
    /// Bytes that bounds of texts may need; None: all.
    pub(super) statistics_bytes: Option<usize>,
    /// A row group has at least so many bytes or so many rows, but never fewer than `floor_bytes`.
    pub(super) least_bytes: u64,
    pub(super) least_rows: u64,
    pub(super) floor_bytes: u64,
    pub(super) most_bytes: u64,
    pub(super) most_chunk_bytes: u64,
}

/// What becomes of a row group that nothing comes between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    Yes,
    No(Decoded),
}

/// Why a row group is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decoded {
    /// The file does not have the column.
    Missing { column: usize },
    /// Name, field id, type or nullability are not those that the output has.
    OtherColumn { column: usize },
    /// Better joined with its neighbours.
    Small { bytes: u64, rows: u64 },
    /// Larger than what sidecars were given memory for.
    Large { bytes: u64, most: u64 },
    /// A chunk that memory does not hold.
    LargeChunk { column: String, bytes: u64, most: u64 },
    /// Not compressed as the table wants it.
    Codec { column: String, found: String },
    /// Encoded in a way that the table's readers may not know.
    Encoding { column: String, found: String },
    /// Its statistics are not good enough for the new footer and the table's metadata.
    Statistics { column: String },
    /// It has a bloom filter, or the table asks for one: filters are made of the values.
    BloomFilter { column: String },
    /// Where its pages are is not told, and could not be found out without decoding.
    OffsetIndex { column: String },
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decoded::Missing { column } => write!(f, "column {column} of the table is not in the file"),
            Decoded::OtherColumn { column } => write!(f, "column {column} of the table is another one in the file"),
            Decoded::Small { bytes, rows } => write!(f, "{bytes} bytes and {rows} rows are better joined with others"),
            Decoded::Large { bytes, most } => write!(f, "{bytes} bytes are more than the {most} for sidecars"),
            Decoded::LargeChunk { column, bytes, most } => {
                write!(f, "column `{column}` has {bytes} bytes, memory holds {most}")
            }
            Decoded::Codec { column, found } => write!(f, "column `{column}` is compressed by {found}"),
            Decoded::Encoding { column, found } => write!(f, "column `{column}` is encoded by {found}"),
            Decoded::Statistics { column } => write!(f, "column `{column}` lacks statistics"),
            Decoded::BloomFilter { column } => write!(f, "column `{column}` has or needs a bloom filter"),
            Decoded::OffsetIndex { column } => write!(f, "column `{column}` is repeated and has no offset index"),
        }
    }
}

/// Where the columns of the output are in a file that has all of them as they will be written.
#[derive(Debug)]
pub(super) struct FileColumns {
    /// For each column of the output its leaves: in the file, and as the output describes them.
    pub(super) leaves: Vec<Vec<(usize, ColumnDescPtr)>>,
}

impl FileColumns {
    /// The columns of `output`, whose top-level columns are those of the table's schema.
    pub(super) fn of(
        input: &InputFile,
        columns: usize,
        output: &Arc<SchemaDescriptor>,
    ) -> Result<FileColumns, Decoded> {
        let file = input.metadata().file_metadata().schema_descr();
        let mut first = 0;
        let mut leaves = Vec::with_capacity(columns);
        for (column, wanted) in output.root_schema().get_fields().iter().enumerate() {
            let plan = match input.plan(column) {
                Ok(ColumnPlan::Read(plan)) => plan,
                Ok(ColumnPlan::Missing(_)) | Err(_) => return Err(Decoded::Missing { column }),
            };
            let count = crate::resolve::leaf_count(wanted);
            let start = plan.leaves.first().copied().unwrap_or(0);
            let in_order = plan.leaves.iter().copied().eq(start..start + count);
            if !in_order || !is_same(file.get_column_root(start), wanted) {
                return Err(Decoded::OtherColumn { column });
            }
            leaves.push((0..count).map(|at| (start + at, output.column(first + at))).collect());
            first += count;
        }
        Ok(FileColumns { leaves })
    }
}

/// Name, field id, nullability and type, all the way down. Types of the older kind may be left out where the newer one says it.
fn is_same(found: &Type, wanted: &Type) -> bool {
    let (one, other) = (found.get_basic_info(), wanted.get_basic_info());
    let id = |info: &parquet::schema::types::BasicTypeInfo| info.has_id().then(|| info.id());
    let described = one.logical_type_ref() == other.logical_type_ref()
        && (one.logical_type_ref().is_some() || one.converted_type() == other.converted_type());
    if one.name() != other.name() || id(one) != id(other) || !described {
        return false;
    }
    if one.has_repetition() != other.has_repetition() || one.has_repetition() && one.repetition() != other.repetition()
    {
        return false;
    }
    match (found, wanted) {
        (
            Type::PrimitiveType { physical_type: one, type_length: one_length, .. },
            Type::PrimitiveType { physical_type: other, type_length: other_length, .. },
        ) => {
            let fixed = *one == parquet::basic::Type::FIXED_LEN_BYTE_ARRAY;
            one == other && (!fixed || one_length == other_length)
        }
        (Type::GroupType { fields: one, .. }, Type::GroupType { fields: other, .. }) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => false,
    }
}

/// Whether row group `group` may be copied.
pub(super) fn decide(metadata: &ParquetMetaData, group: usize, columns: &FileColumns, rules: &Rules) -> Copy {
    let row_group = metadata.row_group(group);
    let chunk_of = |leaf: usize| row_group.column(leaf);
    let size = |chunk: &ColumnChunkMetaData| chunk_range(chunk).map_or(u64::MAX, |range| range.end - range.start);
    let bytes = columns.leaves.iter().flatten().map(|(leaf, _)| size(chunk_of(*leaf))).fold(0, u64::saturating_add);
    let rows = u64::try_from(row_group.num_rows()).unwrap_or(0);
    if rows == 0 || bytes < rules.floor_bytes || bytes < rules.least_bytes && rows < rules.least_rows {
        return Copy::No(Decoded::Small { bytes, rows });
    }
    if bytes > rules.most_bytes {
        return Copy::No(Decoded::Large { bytes, most: rules.most_bytes });
    }
    let firn = is_of_firn(metadata);
    for (leaf, descriptor) in columns.leaves.iter().flatten() {
        let chunk = chunk_of(*leaf);
        let column = || descriptor.path().string();
        let bytes = size(chunk);
        if bytes > rules.most_chunk_bytes {
            return Copy::No(Decoded::LargeChunk { column: column(), bytes, most: rules.most_chunk_bytes });
        }
        if !is_wanted_codec(chunk.compression(), rules.codec, firn) {
            return Copy::No(Decoded::Codec { column: column(), found: chunk.compression().to_string() });
        }
        if let Some(found) = chunk.encodings().find(|encoding| !is_known(*encoding, rules.encodings)) {
            return Copy::No(Decoded::Encoding { column: column(), found: found.to_string() });
        }
        let order = metadata.file_metadata().column_orders().and_then(|orders| orders.get(*leaf)).copied();
        if !has_statistics(chunk, order, rules.statistics_bytes) {
            return Copy::No(Decoded::Statistics { column: column() });
        }
        // A filter of the source is not checked by anybody: one that lacks values would hide rows.
        if rules.bloom_filters.of(&column()).is_some() || chunk.bloom_filter_offset().is_some() {
            return Copy::No(Decoded::BloomFilter { column: column() });
        }
        // The offset indexes of a row group are read all or none.
        let has_offsets = |chunk: &ColumnChunkMetaData| chunk.offset_index_offset().is_some();
        if descriptor.max_rep_level() > 0
            && !(row_group.columns().iter().all(has_offsets) && GroupIndex::is_read(row_group))
        {
            return Copy::No(Decoded::OffsetIndex { column: column() });
        }
    }
    Copy::Yes
}

/// Levels are not told by a file. Firn itself leaves chunks uncompressed that compression makes no smaller.
fn is_wanted_codec(found: Compression, wanted: Codec, firn: bool) -> bool {
    match (found, wanted) {
        (Compression::UNCOMPRESSED, _) if firn => true,
        (Compression::UNCOMPRESSED, Codec::Uncompressed)
        | (Compression::ZSTD(_), Codec::Zstd(_))
        | (Compression::SNAPPY, Codec::Snappy)
        | (Compression::GZIP(_), Codec::Gzip(_))
        | (Compression::LZ4_RAW, Codec::Lz4) => true,
        _ => false,
    }
}

#[allow(deprecated)] // Files have it for levels.
fn is_known(found: Encoding, wanted: Encodings) -> bool {
    let plain = matches!(
        found,
        Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE | Encoding::BIT_PACKED
    );
    match wanted {
        Encodings::Compatible => plain,
        Encodings::Modern => true,
    }
}

/// Nulls are counted; where there are values outside of lists and maps there are minimum and maximum, in the order of the type, long
/// enough for the bounds that the table keeps.
fn has_statistics(chunk: &ColumnChunkMetaData, order: Option<ColumnOrder>, needed: Option<usize>) -> bool {
    let Some(statistics) = chunk.statistics() else { return false };
    let values = u64::try_from(chunk.num_values()).unwrap_or(0);
    let Some(nulls) = statistics.null_count_opt().filter(|nulls| *nulls <= values) else { return false };
    let (Some(min), Some(max)) = (statistics.min_bytes_opt(), statistics.max_bytes_opt()) else {
        return nulls == values || chunk.column_descr().max_rep_level() > 0;
    };
    let ordered = matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_)));
    if statistics.is_min_max_deprecated() || !ordered || is_nan(statistics) {
        return false;
    }
    let long_enough = |bytes: &[u8], exact: bool| match statistics {
        // A cut value would be shorter.
        Statistics::FixedLenByteArray(_) => bytes.len() as i64 == i64::from(chunk.column_descr().type_length()),
        Statistics::ByteArray(_) => exact || needed == Some(STATISTICS_BYTES),
        _ => true,
    };
    long_enough(min, statistics.min_is_exact()) && long_enough(max, statistics.max_is_exact())
}

fn is_nan(statistics: &Statistics) -> bool {
    match statistics {
        Statistics::Float(values) => [values.min_opt(), values.max_opt()].into_iter().flatten().any(|v| v.is_nan()),
        Statistics::Double(values) => [values.min_opt(), values.max_opt()].into_iter().flatten().any(|v| v.is_nan()),
        _ => false,
    }
}
