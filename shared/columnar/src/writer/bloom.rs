//! Bloom filters of column chunks (parquet-format, "Bloom Filter"): which columns get one, and how large it may be.

use std::collections::BTreeMap;

use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::ColumnPath;

/// Bytes that a filter may have (Iceberg's default of `write.parquet.bloom-filter-max-bytes`).
const MAX_BYTES: usize = 1 << 20;
/// How often a filter may say yes in vain, where nothing else is asked for (Iceberg's default).
pub const FALSE_POSITIVES: f64 = 0.01;

/// The bloom filters that a table asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct BloomFilters {
    /// Dotted path of a column in the file, and the share of lookups of absent values that may find it.
    pub columns: BTreeMap<String, f64>,
    /// Bytes that the filter of a chunk may have; one that needs more says yes in vain more often.
    pub max_bytes: usize,
}

impl Default for BloomFilters {
    fn default() -> Self {
        BloomFilters { columns: BTreeMap::new(), max_bytes: MAX_BYTES }
    }
}

/// The filter of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BloomFilter {
    pub(crate) false_positives: f64,
    pub(crate) max_bytes: usize,
}

impl BloomFilters {
    /// What is asked for of a column.
    pub(crate) fn of(&self, path: &str) -> Option<BloomFilter> {
        let false_positives = *self.columns.get(path)?;
        Some(BloomFilter { false_positives, max_bytes: self.max_bytes })
    }

    /// The same in words of the `parquet` crate.
    pub(super) fn set(&self, mut properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        for (path, false_positives) in &self.columns {
            let filter = BloomFilter { false_positives: *false_positives, max_bytes: self.max_bytes };
            let path = ColumnPath::new(path.split('.').map(str::to_owned).collect());
            properties = properties
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), filter.false_positives)
                .set_column_bloom_filter_ndv(path, filter.most_values());
        }
        properties
    }
}

impl BloomFilter {
    /// An empty filter for so many different values.
    pub(crate) fn sized(self, values: u64) -> Result<Sbbf, ParquetError> {
        match values <= self.most_values() {
            true => Sbbf::new_with_ndv_fpp(values.max(1), self.false_positives),
            false => Ok(Sbbf::new_with_num_of_bytes(largest_power_of_two(self.max_bytes))),
        }
    }

    /// Different values for which the largest filter is good enough: the inverse of the size that the format gives for so many values, 256
    /// bits a block and 8 of them set by each value.
    fn most_values(self) -> u64 {
        let bits = largest_power_of_two(self.max_bytes) as f64 * 8.0;
        let of_each = -8.0 / (1.0 - self.false_positives.powf(1.0 / 8.0)).ln();
        (bits / of_each) as u64
    }
}

/// Filters have a power of two of bytes, and round up.
fn largest_power_of_two(bytes: usize) -> usize {
    bytes.max(1).checked_ilog2().map_or(1, |log| 1 << log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_as_large_as_its_values_need_and_no_larger_than_allowed() {
        let filter = BloomFilter { false_positives: 0.01, max_bytes: 1_000_000 };
        let bytes = |values| filter.sized(values).unwrap().num_blocks() * 32;
        assert_eq!(bytes(0), 32);
        assert_eq!(bytes(1000), 2048, "about 10 bits a value, rounded up to a power of two");
        assert_eq!(bytes(100_000), 131_072);
        assert_eq!(bytes(100_000_000), 524_288);
        assert!((1..10_000_000).step_by(99_991).all(|values| bytes(values) <= 524_288));
    }
}
