//! How files are written.

use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{
    DEFAULT_CREATED_BY, EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion,
};
use parquet::schema::types::ColumnDescPtr;

use crate::ColumnarError;
use crate::fast::write::{ChunkSettings, Encodings};
use crate::metrics::{MetricsMode, MetricsModes};
use crate::writer::bloom::BloomFilters;

/// Values that are encoded between two looks at the size of a page.
const WRITE_BATCH_ROWS: usize = 1024;
/// Bytes after which a text or binary value is cut in the statistics of chunks and pages. Minima are cut, maxima cut and
/// rounded up (whole when that cannot be), so no value is ever excluded. 64 bytes hold 16 characters of any script: enough
/// for Iceberg's default bounds to be as tight as from the values themselves.
pub(crate) const STATISTICS_BYTES: usize = 64;

/// Compression of pages, as Iceberg's table property `write.parquet.compression-codec` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// No compression.
    Uncompressed,
    /// Zstandard with a level from 1 to 22.
    Zstd(i32),
    /// Snappy.
    Snappy,
    /// Gzip with a level from 0 to 9.
    Gzip(u32),
    /// LZ4, raw blocks.
    Lz4,
}

impl Codec {
    /// The codec of Iceberg's table properties `write.parquet.compression-codec` and `write.parquet.compression-level`.
    ///
    /// # Errors
    /// A message that quotes the value and lists what is known.
    pub fn parse(name: &str, level: Option<i32>) -> Result<Self, String> {
        let codec = match name.trim().to_ascii_lowercase().as_str() {
            "uncompressed" | "none" => Self::Uncompressed,
            "zstd" => Self::Zstd(level.unwrap_or(3)),
            "snappy" => Self::Snappy,
            "gzip" => Self::Gzip(match level {
                None => 6,
                Some(level) => {
                    u32::try_from(level).map_err(|_| format!("level {level} is none of gzip: use 0 to 9"))?
                }
            }),
            "lz4" | "lz4_raw" => Self::Lz4,
            _ => {
                return Err(format!("unknown compression codec `{name}`: use zstd, snappy, gzip, lz4 or uncompressed"));
            }
        };
        codec.to_parquet().map(|_| codec)
    }

    /// The same in words of the `parquet` crate.
    pub(crate) fn to_parquet(self) -> Result<Compression, String> {
        Ok(match self {
            Self::Uncompressed => Compression::UNCOMPRESSED,
            Self::Zstd(level) => Compression::ZSTD(
                ZstdLevel::try_new(level).map_err(|_| format!("level {level} is none of zstd: use 1 to 22"))?,
            ),
            Self::Snappy => Compression::SNAPPY,
            Self::Gzip(level) => Compression::GZIP(
                GzipLevel::try_new(level).map_err(|_| format!("level {level} is none of gzip: use 0 to 9"))?,
            ),
            Self::Lz4 => Compression::LZ4_RAW,
        })
    }
}

/// Settings of a [`FileWriter`](super::FileWriter).
#[derive(Debug, Clone)]
pub struct WriterSettings {
    /// Compression of every column.
    pub compression: Codec,
    /// Encoded bytes at which whoever fills row groups should close one (`rowGroupMb`). The writer itself only reports sizes.
    pub row_group_bytes: u64,
    /// Rows at which whoever fills row groups should close one.
    pub max_row_group_rows: usize,
    /// Bytes of a data page before compression; a page is closed by the value that reaches them.
    pub page_bytes: usize,
    /// Rows of a data page.
    pub page_rows: usize,
    /// Bytes of a dictionary; a chunk with more distinct values goes on without one.
    pub dictionary_bytes: usize,
    /// Who wrote the file, in the form `name version x (build y)`: parquet-java ignores the statistics of other forms.
    pub created_by: String,
    /// Key-value entries of every file. Entries given to [`finish`](super::FileWriter::finish) come on top and win.
    pub key_values: Vec<(String, String)>,
    /// Which metrics are computed for the table's metadata.
    pub metrics: MetricsModes,
    /// Which encodings may be used.
    pub encodings: Encodings,
    /// Bloom filters that are asked for.
    pub bloom_filters: BloomFilters,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self {
            compression: Codec::Zstd(3),
            row_group_bytes: 32 << 20,
            max_row_group_rows: 1_048_576,
            page_bytes: 1 << 20,
            page_rows: 20_000,
            dictionary_bytes: 2 << 20,
            created_by: format!("firn version {} (build {DEFAULT_CREATED_BY})", env!("CARGO_PKG_VERSION")),
            key_values: Vec::new(),
            metrics: MetricsModes::default(),
            encodings: Encodings::default(),
            bloom_filters: BloomFilters::default(),
        }
    }
}

impl WriterSettings {
    /// Bytes after which texts are cut in the statistics of chunks; None: never. Bounds cannot be longer than the statistics that they
    /// come from, and a character has up to 4 bytes.
    pub(crate) fn statistics_bytes(&self) -> Option<usize> {
        // One length for all columns: the longest that one of them needs.
        self.metrics.all().try_fold(STATISTICS_BYTES, |longest, mode| match mode {
            MetricsMode::Full => None,
            MetricsMode::Truncate(length) => Some(longest.max(length.saturating_mul(4))),
            MetricsMode::None | MetricsMode::Counts => Some(longest),
        })
    }

    /// How the fast path writes a column of this descriptor.
    pub(super) fn to_chunk(&self, descriptor: ColumnDescPtr) -> ChunkSettings {
        ChunkSettings {
            bloom_filter: self.bloom_filters.of(&descriptor.path().string()),
            descriptor,
            codec: self.compression,
            page_rows: self.page_rows,
            page_bytes: self.page_bytes,
            dictionary_bytes: self.dictionary_bytes,
            encodings: self.encodings,
            statistics_bytes: self.statistics_bytes(),
            index_bytes: Some(STATISTICS_BYTES),
        }
    }

    /// The same in words of the `parquet` crate.
    pub(super) fn to_parquet(&self) -> Result<WriterPropertiesPtr, ColumnarError> {
        let compression = self.compression.to_parquet().map_err(|detail| ColumnarError::Usage { detail })?;
        if self.page_rows == 0 || self.page_bytes == 0 {
            return Err(ColumnarError::Usage { detail: "a page must hold at least one row and one byte".into() });
        }
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(compression)
            .set_dictionary_enabled(true)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            // The limits above are looked at once per write batch.
            .set_write_batch_size(WRITE_BATCH_ROWS.min(self.page_rows))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_statistics_truncate_length(self.statistics_bytes())
            .set_column_index_truncate_length(Some(STATISTICS_BYTES))
            .set_offset_index_disabled(false)
            .set_max_row_group_row_count(None)
            .set_created_by(self.created_by.clone());
        Ok(Arc::new(self.bloom_filters.set(properties).build()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_named_as_iceberg_names_them() {
        assert_eq!(Codec::parse("ZSTD", None), Ok(Codec::Zstd(3)));
        assert_eq!(Codec::parse("zstd", Some(9)), Ok(Codec::Zstd(9)));
        assert_eq!(Codec::parse("gzip", None), Ok(Codec::Gzip(6)));
        assert_eq!(Codec::parse("lz4", None), Ok(Codec::Lz4));
        assert_eq!(Codec::parse("zstd", Some(40)), Err("level 40 is none of zstd: use 1 to 22".into()));
        assert_eq!(Codec::parse("gzip", Some(-1)), Err("level -1 is none of gzip: use 0 to 9".into()));
        assert!(Codec::parse("lzo", None).unwrap_err().contains("`lzo`"));
    }

    #[test]
    fn the_writer_names_itself_in_a_form_that_other_readers_parse() {
        let created_by = WriterSettings::default().created_by;
        assert!(created_by.starts_with("firn version ") && created_by.contains(" (build parquet-rs"), "{created_by}");
    }

    #[test]
    fn settings_without_sense_are_refused() {
        let settings = WriterSettings { page_rows: 0, ..WriterSettings::default() };
        assert!(matches!(settings.to_parquet(), Err(ColumnarError::Usage { .. })));
        let settings = WriterSettings { compression: Codec::Zstd(0), ..WriterSettings::default() };
        assert!(matches!(settings.to_parquet(), Err(ColumnarError::Usage { .. })));
    }
}
