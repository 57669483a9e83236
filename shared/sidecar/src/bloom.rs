//! Bloom filters: for each column one split-block filter over all values of the file (parquet-format, "Bloom Filter").
//!
//! The blob is a bundle; a filter's part has the bits alone, as they follow the header in a Parquet file.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use firn_model::BlobId;
use firn_storage::BlobStore;
use parquet::bloom_filter::Sbbf;
use serde::{Deserialize, Serialize};

use crate::bundle::{Bundle, BundleReader, Part};
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn, SidecarKind};
use crate::values::{Form, each_value};

/// How often a filter may say yes in vain.
pub const FALSE_POSITIVES: f64 = 0.01;
/// Bytes that the filter of a column may have.
pub const MAX_BYTES: u64 = 8 << 20;
/// Bytes of a block of a filter.
const BLOCK: usize = 32;

/// What the footer says of the filters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BloomAbout {
    /// Always `xxh64-split-block`.
    pub algorithm: String,
    /// One entry a column.
    pub columns: Vec<BloomColumn>,
}

/// A column that has a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BloomColumn {
    /// Name in the table when the filter was built.
    pub name: String,
    /// Field id.
    pub field_id: i32,
    /// Type of the values whose bytes were hashed, in Arrow's words: a reader asks with the bytes that Parquet stores for it.
    pub data_type: String,
    /// The part that has the bits.
    pub part: String,
    /// Values that are null; they are not in the filter.
    pub nulls: u64,
}

const ALGORITHM: &str = "xxh64-split-block";

/// Builds the filters of one data file.
#[derive(Debug)]
pub struct BloomBuilder {
    columns: Vec<(SidecarColumn, Sbbf)>,
    nulls: Vec<u64>,
}

impl BloomBuilder {
    /// Filters over `columns` of a file of at most `rows` rows.
    ///
    /// # Errors
    /// [`SidecarError::Unsupported`] for a column that cannot have one, [`SidecarError::OverBudget`] when they take more than
    /// `memory_bytes` together.
    pub fn new(columns: Vec<SidecarColumn>, rows: u64, memory_bytes: u64) -> Result<BloomBuilder, SidecarError> {
        let needed_bytes = BloomBuilder::memory(columns.len(), rows);
        if needed_bytes > memory_bytes {
            return Err(SidecarError::OverBudget {
                what: format!("bloom filters of {} columns", columns.len()),
                needed_bytes,
                budget_bytes: memory_bytes,
            });
        }
        let bytes = filter_bytes(rows);
        let columns = columns.into_iter().map(|column| {
            Form::Parquet.check(&column)?;
            Ok((column, Sbbf::new_with_num_of_bytes(bytes as usize)))
        });
        let columns = columns.collect::<Result<Vec<_>, SidecarError>>()?;
        Ok(BloomBuilder { nulls: vec![0; columns.len()], columns })
    }

    /// Memory that filters over so many columns and rows take while they are built.
    pub fn memory(columns: usize, rows: u64) -> u64 {
        filter_bytes(rows) * columns as u64
    }

    /// The next rows: one array a column, in the order of the columns.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] for arrays that are not those of the columns.
    pub fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), SidecarError> {
        for (((_, filter), nulls), array) in self.columns.iter_mut().zip(&mut self.nulls).zip(arrays) {
            each_value(array, Form::Parquet, |value| filter.insert(value))?;
            *nulls += array.null_count() as u64;
        }
        Ok(())
    }

    /// The filters, each as small as its values allow.
    ///
    /// # Errors
    /// [`SidecarError::Failed`] when a filter cannot be written.
    pub fn finish(self) -> Result<Bundle, SidecarError> {
        let mut parts = Vec::with_capacity(self.columns.len());
        let mut about = BloomAbout { algorithm: ALGORITHM.into(), columns: Vec::new() };
        for ((column, mut filter), nulls) in self.columns.into_iter().zip(self.nulls) {
            filter.fold_to_target_fpp(FALSE_POSITIVES);
            let mut bits = Vec::with_capacity(filter.num_blocks() * BLOCK);
            filter.write_bitset(&mut bits).map_err(|error| SidecarError::Failed(error.to_string()))?;
            let part = format!("{}.sbbf", column.field_id);
            about.columns.push(BloomColumn {
                name: column.name,
                field_id: column.field_id,
                data_type: column.data_type.to_string(),
                part: part.clone(),
                nulls,
            });
            parts.push(Part::memory(part, bits));
        }
        let about = serde_json::to_value(about).map_err(|error| SidecarError::Failed(error.to_string()))?;
        Ok(Bundle { kind: SidecarKind::Bloom, about, parts })
    }
}

/// Bytes that a filter starts with: enough for `rows` different values, a power of two. What is not needed is folded away at the end.
fn filter_bytes(rows: u64) -> u64 {
    // Each value sets a bit in each of the 8 words of its block.
    let bits_each = -8.0 / (1.0 - FALSE_POSITIVES.powf(1.0 / 8.0)).ln();
    let bytes = (rows as f64 * bits_each / 8.0).ceil() as u64;
    bytes.clamp(BLOCK as u64, MAX_BYTES).next_power_of_two()
}

/// What a filter says of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloomAnswer {
    /// No row of the file has it.
    Absent,
    /// A row may have it.
    Maybe,
    /// The column has no filter: any row may have it.
    NotFiltered,
}

/// The filters of a data file.
#[derive(Debug, Clone)]
pub struct BloomSidecar {
    bundle: BundleReader,
    about: BloomAbout,
}

impl BloomSidecar {
    /// Opens the filters `id` of `expected`.
    ///
    /// # Errors
    /// [`SidecarError::Absent`], [`SidecarError::Unusable`], or what the store says.
    pub async fn open(
        store: Arc<dyn BlobStore>,
        id: &BlobId,
        expected: &DataFile,
    ) -> Result<BloomSidecar, SidecarError> {
        BloomSidecar::of(BundleReader::open(store, id, SidecarKind::Bloom, Some(expected)).await?)
    }

    /// The filters in a bundle.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] for a bundle that says something else.
    pub fn of(bundle: BundleReader) -> Result<BloomSidecar, SidecarError> {
        let about = serde_json::from_value::<BloomAbout>(bundle.footer().about.clone())
            .map_err(|error| SidecarError::unusable(bundle.id(), error.to_string()))?;
        if about.algorithm != ALGORITHM {
            return Err(SidecarError::unusable(bundle.id(), format!("algorithm `{}` is not known", about.algorithm)));
        }
        Ok(BloomSidecar { bundle, about })
    }

    /// What has filters.
    pub fn about(&self) -> &BloomAbout {
        &self.about
    }

    /// Whether a row may have `value` in the column `field_id`: the bytes that Parquet stores for the column's type. Reads the column's
    /// filter.
    ///
    /// # Errors
    /// [`SidecarError::Unusable`] for a damaged filter, or what the store says.
    pub async fn check(&self, field_id: i32, value: &[u8]) -> Result<BloomAnswer, SidecarError> {
        let Some(filter) = self.filter(field_id).await? else { return Ok(BloomAnswer::NotFiltered) };
        Ok(if filter.check(value) { BloomAnswer::Maybe } else { BloomAnswer::Absent })
    }

    /// The filter of a column; None when it has none.
    ///
    /// # Errors
    /// As [`BloomSidecar::check`].
    pub async fn filter(&self, field_id: i32) -> Result<Option<Sbbf>, SidecarError> {
        let Some(column) = self.about.columns.iter().find(|column| column.field_id == field_id) else {
            return Ok(None);
        };
        let bits = self.bundle.part(&column.part).await?;
        if bits.is_empty() || !bits.len().is_multiple_of(BLOCK) {
            let detail = format!("filter `{}` has {} bytes", column.part, bits.len());
            return Err(SidecarError::unusable(self.bundle.id(), detail));
        }
        Ok(Some(Sbbf::new(&bits)))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Int64Array, StringArray};
    use arrow_schema::DataType;
    use firn_storage::MemoryStore;

    use super::*;

    fn column(name: &str, field_id: i32, data_type: DataType) -> SidecarColumn {
        SidecarColumn { name: name.into(), field_id, data_type }
    }

    fn data(rows: u64) -> DataFile {
        DataFile { path: "/t/data/a.parquet".into(), size: 1000, rows }
    }

    async fn written(builder: BloomBuilder, rows: u64) -> (Arc<MemoryStore>, BlobId) {
        let (store, id) = (Arc::new(MemoryStore::default()), BlobId::local("/t/_firn/a.bloom"));
        builder.finish().unwrap().write(&*store, &id, data(rows)).await.unwrap();
        (store, id)
    }

    #[tokio::test]
    async fn what_is_in_the_file_is_found_and_little_else() {
        let columns = vec![column("name", 1, DataType::Utf8), column("n", 7, DataType::Int64)];
        let mut builder = BloomBuilder::new(columns, 20_000, u64::MAX).unwrap();
        for start in [0, 5000] {
            let names =
                StringArray::from_iter((start..start + 5000).map(|n| (n % 10 != 3).then(|| format!("name {n}"))));
            let numbers = Int64Array::from_iter_values((start..start + 5000).map(|n| n % 100));
            builder.add(&[Arc::new(names), Arc::new(numbers)]).unwrap();
        }
        let (store, id) = written(builder, 10_000).await;
        let sidecar = BloomSidecar::open(store, &id, &data(10_000)).await.unwrap();
        let nulls: Vec<u64> = sidecar.about().columns.iter().map(|column| column.nulls).collect();
        assert_eq!(nulls, [1000, 0]);
        let names = sidecar.filter(1).await.unwrap().unwrap();
        assert!((0..10_000).filter(|n| n % 10 != 3).all(|n| names.check(format!("name {n}").as_bytes())));
        let wrong = (10_000..110_000).filter(|n| names.check(format!("name {n}").as_bytes())).count();
        assert!(wrong < 1500, "{wrong} of 100000 are found although they are absent");
        let numbers = sidecar.filter(7).await.unwrap().unwrap();
        assert!(numbers.num_blocks() <= 8, "100 values need {} blocks", numbers.num_blocks());
        assert_eq!(sidecar.check(7, &99_i64.to_le_bytes()).await.unwrap(), BloomAnswer::Maybe);
        assert_eq!(sidecar.check(7, &123_456_i64.to_le_bytes()).await.unwrap(), BloomAnswer::Absent);
        assert_eq!(sidecar.check(2, &[0]).await.unwrap(), BloomAnswer::NotFiltered);
    }

    #[tokio::test]
    async fn a_column_of_nulls_has_a_filter_that_finds_nothing() {
        let mut builder = BloomBuilder::new(vec![column("a", 1, DataType::Utf8)], 3, u64::MAX).unwrap();
        builder.add(&[Arc::new(StringArray::from(vec![None::<&str>; 3]))]).unwrap();
        let (store, id) = written(builder, 3).await;
        let sidecar = BloomSidecar::open(store.clone(), &id, &data(3)).await.unwrap();
        assert_eq!(sidecar.check(1, b"").await.unwrap(), BloomAnswer::Absent);
        // Another file of the same name: as if there were none.
        let error = BloomSidecar::open(store, &id, &data(4)).await.unwrap_err();
        assert!(matches!(error, SidecarError::Unusable { .. }), "{error}");
    }

    #[test]
    fn what_cannot_be_filtered_or_held_is_refused() {
        let list = column("tags", 1, DataType::Boolean);
        let error = BloomBuilder::new(vec![list], 10, u64::MAX).unwrap_err();
        assert_eq!(error.to_string(), "column `tags` cannot be filtered: its type is Boolean");
        let wide = (0..100).map(|id| column("a", id, DataType::Int64)).collect();
        let error = BloomBuilder::new(wide, 10_000_000, 64 << 20).unwrap_err();
        assert!(matches!(error, SidecarError::OverBudget { needed_bytes: 838_860_800, .. }), "{error}");
        let array: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        assert_eq!(array.len(), 1);
    }

    #[test]
    fn a_filter_starts_as_large_as_its_rows_may_need() {
        assert_eq!([0, 1, 1000, 100_000, u64::MAX].map(filter_bytes), [32, 32, 2048, 131_072, MAX_BYTES]);
    }
}
