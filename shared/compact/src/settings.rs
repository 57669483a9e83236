//! The dataset's keys and the table's properties, as planner and merge want them.

use std::collections::HashMap;

use firn_columnar::WriterSettings;
use firn_columnar::writer::{BloomFilters, Codec, Encodings, FALSE_POSITIVES};
use firn_config::{CompactionSettings, Dataset, DedupOperation, Verify};
use firn_plan::{Group, PlanSettings};
use firn_table::LoadedTable;
use iceberg::spec::TableMetadata;

use crate::metrics_modes::{ineffective_metrics, metrics_modes};

const MB: u64 = 1 << 20;

/// What one job may use and how it works. Bytes, unless said otherwise.
#[derive(Debug, Clone)]
pub struct JobSettings {
    /// `targetSizeMb`.
    pub target_bytes: u64,
    /// `minFileSizeMb`.
    pub min_file_bytes: u64,
    /// `memoryMb`.
    pub memory_bytes: u64,
    /// `tempDiskMb`.
    pub temp_bytes: u64,
    /// `readBatchKb`.
    pub read_batch_bytes: usize,
    /// `commitRetryMax`.
    pub commit_retry_max: u32,
    /// `verify`.
    pub verify: Verify,
    /// `dedupOperation`.
    pub dedup_operation: DedupOperation,
    /// How outputs are written.
    pub writer: WriterSettings,
}

impl JobSettings {
    /// Settings of a job on `table`.
    ///
    /// # Errors
    /// A sentence that names the table property that cannot be honoured.
    pub fn new(settings: &CompactionSettings, table: &LoadedTable) -> Result<Self, String> {
        Ok(Self {
            target_bytes: settings.target_size_mb * MB,
            min_file_bytes: settings.min_file_size_mb * MB,
            memory_bytes: settings.memory_mb * MB,
            temp_bytes: settings.temp_disk_mb * MB,
            read_batch_bytes: usize::try_from(settings.read_batch_kb * 1024).unwrap_or(usize::MAX),
            commit_retry_max: u32::try_from(settings.commit_retry_max).unwrap_or(u32::MAX),
            verify: settings.verify,
            dedup_operation: settings.dedup_operation,
            writer: writer_settings(settings, table)?,
        })
    }

    /// The same for a group whose files are to have a size of their own.
    pub fn of_group(&self, group: &Group) -> Self {
        Self { target_bytes: group.target_bytes().unwrap_or(self.target_bytes), ..self.clone() }
    }
}

/// How the table wants its files written (Iceberg's table properties `write.parquet.*` and
/// `write.metadata.metrics.*`); what it does not say is Firn's choice.
fn writer_settings(settings: &CompactionSettings, table: &LoadedTable) -> Result<WriterSettings, String> {
    let size = |key: &str| -> Result<Option<usize>, String> { positive(key, table.property(key)) };
    let default = WriterSettings::default();
    let row_group_bytes = size("write.parquet.row-group-size-bytes")?.map(|bytes| bytes as u64);
    Ok(WriterSettings {
        compression: compression(table)?,
        row_group_bytes: row_group_bytes.unwrap_or(settings.row_group_mb * MB),
        page_bytes: size("write.parquet.page-size-bytes")?.unwrap_or(default.page_bytes),
        page_rows: size("write.parquet.page-row-limit")?.unwrap_or(default.page_rows),
        dictionary_bytes: size("write.parquet.dict-size-bytes")?.unwrap_or(default.dictionary_bytes),
        encodings: match settings.encodings {
            firn_config::Encodings::Compatible => Encodings::Compatible,
            firn_config::Encodings::Modern => Encodings::Modern,
        },
        bloom_filters: bloom_filters(|key| table.property(key), table.metadata.properties().keys())?,
        metrics: metrics_modes(
            table.metadata.properties(),
            table.metadata.current_schema(),
            table.metadata.default_sort_order(),
        ),
        ..default
    })
}

fn positive(key: &str, text: Option<&str>) -> Result<Option<usize>, String> {
    let Some(text) = text else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(format!("table property {key}: `{text}` is not a whole number above 0; correct or remove it")),
    }
}

/// Switches a column's bloom filter on.
const BLOOM_FILTER: &str = "write.parquet.bloom-filter-enabled.column.";

/// Table properties about files that have no effect, each with what is wrong, sorted: Iceberg's own writers pass over them in
/// silence, so no merge fails for them.
pub fn ineffective_properties(metadata: &TableMetadata) -> Vec<String> {
    let columns = |name: &str| metadata.current_schema().field_id_by_name(name).is_some();
    let mut problems = ineffective_bloom_filters(metadata.properties(), columns);
    problems.extend(ineffective_metrics(metadata.properties(), columns));
    problems.sort();
    problems
}

fn ineffective_bloom_filters(properties: &HashMap<String, String>, is_column: impl Fn(&str) -> bool) -> Vec<String> {
    let problem = |(key, value): (&String, &String)| {
        let column = key.strip_prefix(BLOOM_FILTER)?;
        match value.trim().to_ascii_lowercase().as_str() {
            "true" if is_column(column) => None,
            "true" => Some(format!("table property {key}: the table has no column `{column}`")),
            "false" => None,
            _ => Some(format!("table property {key}: `{value}` is neither true nor false and counts as false")),
        }
    };
    properties.iter().filter_map(problem).collect()
}

/// Iceberg's `write.parquet.bloom-filter-*`: a filter for each column whose property says `true`.
fn bloom_filters<'a>(
    property: impl Fn(&str) -> Option<&'a str>,
    keys: impl Iterator<Item = &'a String>,
) -> Result<BloomFilters, String> {
    const MAX_BYTES: &str = "write.parquet.bloom-filter-max-bytes";
    let mut filters = BloomFilters::default();
    if let Some(bytes) = positive(MAX_BYTES, property(MAX_BYTES))? {
        filters.max_bytes = bytes;
    }
    for key in keys {
        let Some(column) = key.strip_prefix(BLOOM_FILTER) else { continue };
        if !property(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            continue;
        }
        let key = format!("write.parquet.bloom-filter-fpp.column.{column}");
        let share = match property(&key) {
            None => FALSE_POSITIVES,
            Some(text) => match text.trim().parse::<f64>() {
                Ok(share) if share > 0.0 && share < 1.0 => share,
                _ => {
                    return Err(format!("table property {key}: `{text}` is not between 0 and 1; correct or remove it"));
                }
            },
        };
        filters.columns.insert(column.to_owned(), share);
    }
    Ok(filters)
}

fn compression(table: &LoadedTable) -> Result<Codec, String> {
    const CODEC: &str = "write.parquet.compression-codec";
    const LEVEL: &str = "write.parquet.compression-level";
    let level = table
        .property(LEVEL)
        .filter(|text| !text.eq_ignore_ascii_case("null"))
        .map(|text| {
            text.trim().parse::<i32>().map_err(|_| format!("table property {LEVEL}: `{text}` is not a whole number"))
        })
        .transpose()?;
    match table.property(CODEC) {
        Some(name) => Codec::parse(name, level).map_err(|error| format!("table property {CODEC}: {error}")),
        None => Codec::parse("zstd", level).map_err(|error| format!("table property {LEVEL}: {error}")),
    }
}

/// What the planner needs of a dataset's settings. Size tiers are for datasets with `timeColumn` (design section 3).
pub fn plan_settings(dataset: &Dataset) -> PlanSettings {
    let settings = &dataset.compaction;
    let count = |files: u64| usize::try_from(files).unwrap_or(usize::MAX);
    let sizes = PlanSettings::from_megabytes(
        settings.target_size_mb,
        settings.min_file_size_mb,
        count(settings.backlog_file_threshold),
        settings.group_budget_mb,
    );
    let min_files = settings.compact_min_files.filter(|_| dataset.time_column.is_some()).map(count);
    let cold_after = settings.compact_cold_after.map(|after| i64::try_from(after.as_micros()).unwrap_or(i64::MAX));
    sizes.with_times(min_files, cold_after).with_max_target(settings.max_target_size_mb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_above_0() {
        assert_eq!(positive("k", None), Ok(None));
        assert_eq!(positive("k", Some(" 20000 ")), Ok(Some(20_000)));
        for wrong in ["0", "-1", "1k", ""] {
            let message = positive("write.parquet.page-row-limit", Some(wrong)).unwrap_err();
            assert!(message.contains("write.parquet.page-row-limit") && message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn a_bloom_filter_that_cannot_be_meant_is_named() {
        let properties = [
            ("write.parquet.bloom-filter-enabled.column.id", "maybe"),
            ("write.parquet.bloom-filter-enabled.column.gone", "true"),
            ("write.parquet.bloom-filter-enabled.column.a.b", "True"),
            ("write.parquet.bloom-filter-enabled.column.old", "false"),
            ("owner", "maybe"),
        ];
        let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let mut found = ineffective_bloom_filters(&properties, |name| ["id", "a.b"].contains(&name));
        found.sort();
        assert_eq!(
            found,
            [
                "table property write.parquet.bloom-filter-enabled.column.gone: the table has no column `gone`",
                "table property write.parquet.bloom-filter-enabled.column.id: `maybe` is neither true nor false and counts as false",
            ]
        );
    }

    #[test]
    fn bloom_filters_are_those_that_the_table_asks_for() {
        let filters = |properties: &[(&str, &str)]| {
            let properties: std::collections::HashMap<String, String> =
                properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            bloom_filters(|key| properties.get(key).map(String::as_str), properties.keys())
        };
        assert_eq!(filters(&[]), Ok(BloomFilters::default()));
        let asked = filters(&[
            ("write.parquet.bloom-filter-enabled.column.id", "true"),
            ("write.parquet.bloom-filter-enabled.column.a.b", "True"),
            ("write.parquet.bloom-filter-enabled.column.no", "false"),
            ("write.parquet.bloom-filter-fpp.column.a.b", "0.001"),
            ("write.parquet.bloom-filter-max-bytes", "4096"),
        ]);
        let columns = [("a.b".to_owned(), 0.001), ("id".to_owned(), 0.01)].into();
        assert_eq!(asked, Ok(BloomFilters { columns, max_bytes: 4096 }));
        let wrong = filters(&[
            ("write.parquet.bloom-filter-enabled.column.id", "true"),
            ("write.parquet.bloom-filter-fpp.column.id", "1"),
        ]);
        assert_eq!(
            wrong.unwrap_err(),
            "table property write.parquet.bloom-filter-fpp.column.id: `1` is not between 0 and 1; correct or remove it"
        );
    }
}
