//! The metrics of a new file as a table's metadata wants them (Iceberg spec, "Manifests": data file fields 108, 109, 110,
//! 137, 125, 128 and 132), computed from the footer and from what the encoders saw.
//!
//! Sizes and counts are those of the Parquet chunks, per leaf, as Iceberg's and PyIceberg's own writers count them: inside a
//! list or map a value is an entry, and an empty or missing list counts as one null. There are no bounds inside lists and
//! maps. A bound never excludes a value; where none can be given, there is none.

mod bounds;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::ColumnarError;
use crate::fields::{child_path, field_id, map_fields};
use bounds::BoundsBuilder;

/// Which metrics a column gets (Iceberg's table properties `write.metadata.metrics.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsMode {
    /// Column sizes only.
    None,
    /// Sizes and counts.
    Counts,
    /// Sizes, counts and bounds; bounds of text have at most so many characters, bounds of binary so many bytes.
    Truncate(usize),
    /// Sizes, counts and whole bounds.
    Full,
}

impl Default for MetricsMode {
    /// `truncate(16)`, Iceberg's default.
    fn default() -> Self {
        Self::Truncate(16)
    }
}

/// Which metrics each column of a file gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsModes {
    /// For columns that have none of their own.
    pub default: MetricsMode,
    /// By field id of the leaf.
    pub columns: HashMap<i32, MetricsMode>,
}

impl From<MetricsMode> for MetricsModes {
    /// The same for every column.
    fn from(default: MetricsMode) -> Self {
        Self { default, columns: HashMap::new() }
    }
}

impl MetricsModes {
    /// The mode of a column.
    pub fn of(&self, field_id: i32) -> MetricsMode {
        self.columns.get(&field_id).copied().unwrap_or(self.default)
    }

    /// Every mode that some column has.
    pub(crate) fn all(&self) -> impl Iterator<Item = MetricsMode> {
        self.columns.values().copied().chain([self.default])
    }
}

/// Metrics of one file, by field id of the leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMetrics {
    /// Bytes of a column on storage, with page headers and dictionary.
    pub column_sizes: HashMap<i32, u64>,
    /// Values, nulls and NaN included.
    pub value_counts: HashMap<i32, u64>,
    /// Nulls.
    pub null_counts: HashMap<i32, u64>,
    /// NaN, for float and double columns.
    pub nan_counts: HashMap<i32, u64>,
    /// At or below every value that is neither null nor NaN, in Iceberg's single-value binary form (spec, Appendix D).
    pub lower: HashMap<i32, Vec<u8>>,
    /// At or above every value that is neither null nor NaN, in the same form.
    pub upper: HashMap<i32, Vec<u8>>,
    /// Where each row group starts, ascending.
    pub split_offsets: Vec<i64>,
}

/// A leaf of the target schema, in the order of the Parquet columns.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) field_id: Option<i32>,
    data_type: DataType,
    /// Inside a list or map.
    repeated: bool,
}

impl Leaf {
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.data_type, DataType::Float32 | DataType::Float64)
    }
}

/// The leaves of a schema, depth first.
pub(crate) fn leaves(schema: &Schema) -> Result<Vec<Leaf>, ColumnarError> {
    let mut leaves = Vec::new();
    for field in schema.fields() {
        collect_leaves(field, field.name(), false, &mut leaves)?;
    }
    Ok(leaves)
}

fn collect_leaves(field: &Field, path: &str, repeated: bool, leaves: &mut Vec<Leaf>) -> Result<(), ColumnarError> {
    match field.data_type() {
        DataType::Struct(fields) => {
            for field in fields {
                collect_leaves(field, &child_path(path, field.name()), repeated, leaves)?;
            }
        }
        DataType::List(element) | DataType::LargeList(element) => {
            collect_leaves(element, &child_path(path, element.name()), true, leaves)?;
        }
        DataType::Map(entries, _) => {
            let (key, value) = map_fields(path, entries)?;
            collect_leaves(key, &child_path(path, key.name()), true, leaves)?;
            collect_leaves(value, &child_path(path, value.name()), true, leaves)?;
        }
        data_type => leaves.push(Leaf { field_id: field_id(field), data_type: data_type.clone(), repeated }),
    }
    Ok(())
}

/// The metrics of a file of `row_groups`. `nan_counts` has for each row group the NaN of each leaf. Leaves without a field id
/// (hidden columns of temporary files) have no metrics. Where a row group does not tell its NaN, the column has neither a count nor bounds.
pub(crate) fn file_metrics(
    leaves: &[Leaf],
    row_groups: &[RowGroupMetaData],
    nan_counts: &[Vec<Option<u64>>],
    modes: &MetricsModes,
) -> FileMetrics {
    let mut metrics =
        FileMetrics { split_offsets: row_groups.iter().map(starting_offset).collect(), ..Default::default() };
    metrics.split_offsets.sort_unstable();
    for (position, leaf) in leaves.iter().enumerate() {
        let Some(id) = leaf.field_id else { continue };
        let mode = modes.of(id);
        let mut counts = Counts::default();
        let mut bounds = BoundsBuilder::new(&leaf.data_type);
        for (row_group, row_group_nans) in row_groups.iter().zip(nan_counts) {
            let chunk = row_group.column(position);
            let values = u64::try_from(chunk.num_values()).unwrap_or_default();
            let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
            let nans = row_group_nans.get(position).copied().unwrap_or(Some(0));
            counts.size += u64::try_from(chunk.compressed_size()).unwrap_or_default();
            counts.values += values;
            counts.nulls = counts.nulls.zip(nulls).map(|(sum, nulls)| sum + nulls);
            counts.nans = counts.nans.zip(nans).map(|(sum, nans)| sum + nans);
            let comparable = nulls.is_none_or(|nulls| nulls + nans.unwrap_or(0) < values);
            bounds.add(chunk.statistics(), comparable);
        }
        metrics.column_sizes.insert(id, counts.size);
        if mode == MetricsMode::None {
            continue;
        }
        metrics.value_counts.insert(id, counts.values);
        if let Some(nulls) = counts.nulls {
            metrics.null_counts.insert(id, nulls);
        }
        if leaf.is_float()
            && let Some(nans) = counts.nans
        {
            metrics.nan_counts.insert(id, nans);
        }
        let truncate = match mode {
            MetricsMode::None | MetricsMode::Counts => continue,
            MetricsMode::Truncate(length) => Some(length),
            MetricsMode::Full => None,
        };
        // Iceberg's strict evaluation takes a missing count of NaN for none: with bounds it would drop rows that it must keep.
        let nans_known = !leaf.is_float() || counts.nans.is_some();
        if !leaf.repeated && nans_known {
            let (lower, upper) = bounds.finish(truncate);
            metrics.lower.extend(lower.map(|bytes| (id, bytes)));
            metrics.upper.extend(upper.map(|bytes| (id, bytes)));
        }
    }
    metrics
}

struct Counts {
    size: u64,
    values: u64,
    /// None once a row group does not know it.
    nulls: Option<u64>,
    /// None once a row group does not tell it.
    nans: Option<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { size: 0, values: 0, nulls: Some(0), nans: Some(0) }
    }
}

/// First byte of a row group: of its first column's dictionary, or of its first data page.
fn starting_offset(row_group: &RowGroupMetaData) -> i64 {
    let Some(first) = row_group.columns().first() else { return row_group.file_offset().unwrap_or_default() };
    first.dictionary_page_offset().map_or(first.data_page_offset(), |offset| offset.min(first.data_page_offset()))
}
