//! From the rows of a row group's column to its chunk: everything is known before the first page is written, so the encoding is chosen
//! by what is there, dictionaries are exact and sorted, and statistics come with them.
//!
//! - [`plan`]: dictionary or plain, decided from figures; [`body`]: the values of a page;
//! - [`chunk`]: pages, headers, indexes and metadata; [`stats`]: minima and maxima; [`compress`]: the table's codec.

mod body;
mod chunk;
mod compress;
mod plan;
mod stats;

use firn_codec::distinct::Distinct;
use firn_codec::order::Sorter;
use firn_codec::{Damage, Word};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use super::kind::Kind;
use super::lane::{Lane, Rows, compact};
use super::pool::{Pool, PoolValues};
use crate::writer::{BloomFilter, Codec};
use body::{Dictionary, Values};
pub(crate) use chunk::OwnChunk;
use chunk::{Buffers, ChunkBuilder};
use compress::Kept;
pub use plan::Encodings;
use plan::{Facts, Plan};

/// How chunks are written.
#[derive(Debug, Clone)]
pub(crate) struct ChunkSettings {
    pub(crate) descriptor: ColumnDescPtr,
    pub(crate) codec: Codec,
    pub(crate) page_rows: usize,
    pub(crate) page_bytes: usize,
    pub(crate) dictionary_bytes: usize,
    pub(crate) encodings: Encodings,
    /// Bytes after which texts are cut in the statistics of the chunk; None: never.
    pub(crate) statistics_bytes: Option<usize>,
    /// The same in the column index.
    pub(crate) index_bytes: Option<usize>,
    /// The bloom filter that is asked for.
    pub(crate) bloom_filter: Option<BloomFilter>,
}

/// Memory of an encoder, used again from column to column.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    narrow: (Distinct<u32>, Sorter<u32>),
    wide: (Distinct<u64>, Sorter<u64>),
    indices: Vec<u32>,
    narrow_values: Vec<u32>,
    wide_values: Vec<u64>,
    compressor: Kept,
    page: Vec<u8>,
    compressed: Vec<u8>,
}

/// Encodes the rows of a row group.
///
/// # Errors
/// What the codec says, or sizes that Parquet cannot tell.
pub(crate) fn encode(
    rows: &Rows,
    kind: Kind,
    pool: &Pool,
    settings: &ChunkSettings,
    workspace: &mut Workspace,
) -> Result<OwnChunk, ParquetError> {
    let Workspace { narrow, wide, indices, narrow_values, wide_values, compressor, page, compressed } = workspace;
    let mut buffers = Buffers { compressor, body: page, compressed };
    let buffers = &mut buffers;
    let chunk = Chunk { kind, rows: rows.len(), present: rows.present.as_deref(), settings };
    match (&rows.lane, &pool.values) {
        (Lane::Narrow(words), _) => {
            let words = without_nulls(words, chunk.present, narrow_values);
            chunk.words(
                Values::Narrow(words),
                Dictionary::of_narrow(words, kind, settings.dictionary_bytes, (&mut narrow.0, &mut narrow.1)),
                buffers,
            )
        }
        (Lane::Wide(words), _) => {
            let words = without_nulls(words, chunk.present, wide_values);
            let space = (&mut wide.0, &mut wide.1);
            chunk.words(
                Values::Wide(words),
                Dictionary::of_wide(words, kind, settings.dictionary_bytes, space),
                buffers,
            )
        }
        (Lane::Ids(ids), values) => {
            let ids = without_nulls(ids, chunk.present, narrow_values);
            chunk.numbers(ids, values, (indices, wide_values), buffers)
        }
    }
}

fn without_nulls<'a, W: Word>(words: &'a [W], present: Option<&[u8]>, buffer: &'a mut Vec<W>) -> &'a [W] {
    match present {
        None => words,
        Some(present) => {
            compact(words, present, buffer);
            buffer
        }
    }
}

fn too_large(damage: Damage) -> ParquetError {
    ParquetError::General(format!("values that Parquet cannot store: {damage}"))
}

/// What is known of a chunk besides its values.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    kind: Kind,
    rows: usize,
    present: Option<&'a [u8]>,
    settings: &'a ChunkSettings,
}

impl Chunk<'_> {
    fn words(
        self,
        values: Values<'_>,
        dictionary: Option<Dictionary<'_>>,
        buffers: &mut Buffers<'_>,
    ) -> Result<OwnChunk, ParquetError> {
        let facts = Facts::of_words(values, self.kind, dictionary.as_ref());
        let plan = Plan::decide(&facts, self.settings.encodings);
        self.write(plan, values, dictionary, buffers)
    }

    fn numbers(
        self,
        ids: &[u32],
        values: &PoolValues,
        (indices, wide): (&mut Vec<u32>, &mut Vec<u64>),
        buffers: &mut Buffers<'_>,
    ) -> Result<OwnChunk, ParquetError> {
        let (dictionary, used_bytes) = Dictionary::of_numbers(ids, values, self.kind, indices).map_err(too_large)?;
        let facts =
            Facts::of_numbers(ids, values, self.kind, &dictionary, (used_bytes, self.settings.dictionary_bytes));
        let plan = Plan::decide(&facts, self.settings.encodings);
        if plan == Plan::Dictionary {
            // The rows are the dictionary's own indices: nothing else is needed of them.
            return self.write(plan, Values::None, Some(dictionary), buffers);
        }
        match values {
            PoolValues::Narrow(pool) => {
                indices.clear();
                indices.extend(ids.iter().map(|id| pool.values()[*id as usize]));
                self.write(plan, Values::Narrow(indices), None, buffers)
            }
            PoolValues::Wide(pool) => {
                wide.clear();
                wide.extend(ids.iter().map(|id| pool.values()[*id as usize]));
                self.write(plan, Values::Wide(wide), None, buffers)
            }
            PoolValues::Texts(pool) => self.write(plan, Values::Texts(ids, pool.texts()), None, buffers),
        }
    }

    fn write(
        self,
        plan: Plan,
        values: Values<'_>,
        dictionary: Option<Dictionary<'_>>,
        buffers: &mut Buffers<'_>,
    ) -> Result<OwnChunk, ParquetError> {
        let dictionary = dictionary.filter(|_| plan == Plan::Dictionary);
        let builder = ChunkBuilder::new(self.settings, self.kind, plan, dictionary.as_ref(), buffers)?;
        builder.write(values, self.rows, self.present)
    }
}
