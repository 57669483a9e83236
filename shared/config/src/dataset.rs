//! `ingestion.datasets`: the tables that Firn keeps, shared with an ingestor whose own keys are ignored.

use std::collections::HashMap;
use std::fmt;

use crate::compaction::{self, CompactionSettings};
use crate::section::{Section, Unknown};
use crate::writers;

/// One dataset with its resolved settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// `name`: unique in the file.
    pub name: String,
    /// `table`.
    pub table: TableName,
    /// `branch` (main).
    pub branch: String,
    /// `seriesColumns`: first columns of the row order; part of the dedup key.
    pub series_columns: Vec<String>,
    /// `timeColumn`: always there with `seriesColumns`, `insertionTimeColumn` or `dedup`.
    pub time_column: Option<String>,
    /// `insertionTimeColumn`: among rows of one key the later insertion wins.
    pub insertion_time_column: Option<String>,
    /// `dedup` (false): keep the last row of each key (series columns, time column) of a partition.
    pub dedup: bool,
    /// `sortColumns`: begin with the series columns where there are any.
    pub sort_columns: Vec<String>,
    /// `tantivy.indexingColumns`: columns of the full-text index.
    pub indexing_columns: Vec<String>,
    /// `bloomFilterColumns`.
    pub bloom_filter_columns: Vec<String>,
    /// `ndvColumns`.
    pub ndv_columns: Vec<String>,
    /// `tableStatistics` (false): the sketches of `ndvColumns` of all files merged into statistics of the table.
    pub table_statistics: bool,
    /// `backfillWriters`: whose files get a text index on schedule, as regular expressions; see [`Dataset::backfills_files_of`].
    pub backfill_writers: Vec<String>,
    /// `compaction`: the top-level section with this dataset's block put over it.
    pub compaction: CompactionSettings,
    /// Dotted path of this dataset in the file, for [`crate::Config::problem`].
    pub(crate) path: String,
}

impl Dataset {
    /// The dotted path of one of this dataset's keys, for [`crate::Config::problem`].
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}

/// Namespace levels and name of a table; prints as `iot.readings`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// At least one level.
    pub namespace: Vec<String>,
    /// The name itself.
    pub name: String,
}

impl TableName {
    fn parse(text: &str) -> Result<Self, String> {
        let mut levels: Vec<String> = text.split('.').map(str::to_owned).collect();
        let name = levels.pop().unwrap_or_default();
        let empty = |level: &String| level.trim().is_empty();
        if levels.is_empty() || levels.iter().any(empty) || empty(&name) {
            return Err("is not a table with its namespace; write for example iot.readings".into());
        }
        Ok(Self { namespace: levels, name })
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for level in &self.namespace {
            write!(f, "{level}.")?;
        }
        f.write_str(&self.name)
    }
}

/// The column list of the block `tantivy`.
pub(crate) const INDEXING_COLUMNS: &str = "indexingColumns";

/// Keys of a dataset.
pub(crate) const KEYS: [&str; 14] = [
    "name",
    "table",
    "branch",
    "seriesColumns",
    "timeColumn",
    "insertionTimeColumn",
    "dedup",
    "sortColumns",
    "tantivy",
    "bloomFilterColumns",
    "ndvColumns",
    "tableStatistics",
    "backfillWriters",
    "compaction",
];

/// Reads `ingestion`. Its other keys are the ingestor's.
pub(crate) fn read_all(ingestion: &Section<'_>, base: &CompactionSettings) -> Vec<Dataset> {
    let entries = ingestion.list("datasets");
    let reader = ingestion.reader();
    if entries.is_empty() && reader.sound(&[&ingestion.path_of("datasets")]) {
        let message = "names no dataset; write at least one as `- { name: readings, table: iot.readings }`";
        ingestion.fault("datasets", message);
    }
    let mut names: HashMap<String, Option<usize>> = HashMap::new();
    let mut tables: HashMap<(TableName, String), String> = HashMap::new();
    let mut datasets = Vec::with_capacity(entries.len());
    for (index, node) in entries.iter().enumerate() {
        let unnamed_path = format!("{}[{index}]", ingestion.path_of("datasets"));
        reader.note_line(&unnamed_path, node.line);
        let unnamed = Section::new(reader, &unnamed_path, Some(node));
        let name = read_name(&unnamed);
        let name = name.filter(|name| match names.get(name) {
            None => {
                names.insert(name.clone(), reader.line_of(&unnamed.path_of("name")));
                true
            }
            Some(first) => {
                let place = first.map(|line| format!(" on line {line}")).unwrap_or_default();
                unnamed.fault("name", format!("\"{name}\" is the name of another dataset{place}; names must differ"));
                false
            }
        });
        let section = match &name {
            Some(name) => {
                let path = format!("{}[{name}]", ingestion.path_of("datasets"));
                reader.note_line(&path, node.line);
                Section::new(reader, path, Some(node))
            }
            None => unnamed,
        };
        let Some(dataset) = read_one(&section, name, base) else { continue };
        let target = (dataset.table.clone(), dataset.branch.clone());
        match tables.get(&target) {
            None => {
                tables.insert(target, dataset.name.clone());
            }
            Some(other) => {
                let message = format!(
                    "\"{}\" on branch {} is already the table of dataset {other}; two datasets would merge the same \
                     files, keep one or name another branch",
                    dataset.table, dataset.branch
                );
                section.fault("table", message);
            }
        }
        datasets.push(dataset);
    }
    ingestion.finish(&["datasets"], Unknown::Ignore);
    datasets
}

/// The name is part of paths and messages, so it must be safe in both.
fn read_name(section: &Section<'_>) -> Option<String> {
    section.require("name", "give the dataset a name");
    section.parsed("name", |name| {
        let unsafe_character = |c: char| c.is_control() || matches!(c, '/' | '\\' | '?' | '#' | '%');
        match name.len() <= 128 && !name.starts_with('.') && !name.contains(unsafe_character) {
            true => Ok(name.to_owned()),
            false => Err("is not a name; write at most 128 characters, none of / \\ ? # %, no dot at the start".into()),
        }
    })
}

fn read_one(section: &Section<'_>, name: Option<String>, base: &CompactionSettings) -> Option<Dataset> {
    section.require("table", "write namespace and name of the table, for example iot.readings");
    let table = section.parsed("table", TableName::parse);
    let tantivy = section.section("tantivy");
    let indexing_columns = tantivy.texts(INDEXING_COLUMNS);
    tantivy.finish(&[INDEXING_COLUMNS], Unknown::TolerateDistant);
    let dataset = Dataset {
        name: name.clone().unwrap_or_default(),
        table: table.clone().unwrap_or_else(|| TableName { namespace: Vec::new(), name: String::new() }),
        branch: section.text("branch").unwrap_or_else(|| "main".into()),
        series_columns: section.texts("seriesColumns"),
        time_column: section.exact_text("timeColumn"),
        insertion_time_column: section.exact_text("insertionTimeColumn"),
        dedup: section.flag("dedup", false),
        sort_columns: section.texts("sortColumns"),
        indexing_columns,
        bloom_filter_columns: section.texts("bloomFilterColumns"),
        ndv_columns: section.texts("ndvColumns"),
        table_statistics: section.flag("tableStatistics", false),
        backfill_writers: section.text_or_texts("backfillWriters"),
        compaction: compaction::read_override(&section.section("compaction"), base),
        path: section.path().to_owned(),
    };
    check_columns(section, &dataset);
    if dataset.table_statistics
        && dataset.ndv_columns.is_empty()
        && section.reader().sound(&[&section.path_of("ndvColumns")])
    {
        section.fault("tableStatistics", "needs ndvColumns: name the columns whose values are counted");
    }
    writers::check(section, &dataset.backfill_writers);
    for key in compaction::PASS_KEYS {
        if section.has(key) {
            compaction::refuse_pass_key(section, key);
        }
    }
    for key in compaction::SETTINGS_KEYS {
        if section.has(key) {
            section.get(key);
            section
                .fault(key, format!("belongs into the dataset's compaction block; write compaction: {{ {key}: … }}"));
        }
    }
    let known = [KEYS.as_slice(), &compaction::PASS_KEYS, &compaction::SETTINGS_KEYS].concat();
    section.finish_with(&KEYS, &known, Unknown::TolerateDistant);
    (name.is_some() && table.is_some()).then_some(dataset)
}

/// Combinations of columns that have no meaning (design section 5, "Row order of a dataset").
fn check_columns(section: &Section<'_>, dataset: &Dataset) {
    let sound = |key: &str| section.reader().sound(&[&section.path_of(key)]);
    if dataset.time_column.is_none() && sound("timeColumn") {
        let needing = [
            ("dedup", dataset.dedup, "the key of a row is (seriesColumns, timeColumn)"),
            ("seriesColumns", !dataset.series_columns.is_empty(), "rows are ordered by series and then by time"),
            ("insertionTimeColumn", dataset.insertion_time_column.is_some(), "it orders rows of one time"),
        ];
        for (key, used, why) in needing {
            if used {
                section.fault(key, format!("needs timeColumn: {why}; name the timeColumn or remove {key}"));
            }
        }
    }
    let series = &dataset.series_columns;
    if !dataset.sort_columns.is_empty()
        && !dataset.sort_columns.starts_with(series)
        && sound("seriesColumns")
        && sound("sortColumns")
    {
        let message =
            format!("must begin with the seriesColumns; write [{}, …] or remove sortColumns", series.join(", "));
        section.fault("sortColumns", message);
    }
    let own = [dataset.time_column.as_ref(), dataset.insertion_time_column.as_ref()];
    for (key, column) in ["timeColumn", "insertionTimeColumn"].into_iter().zip(own) {
        if let Some(column) = column.filter(|column| series.contains(column)) {
            section.fault(key, format!("\"{column}\" is also one of the seriesColumns; keep it in one place"));
        }
    }
    if let [Some(time), Some(insertion)] = own
        && time == insertion
    {
        section.fault("insertionTimeColumn", format!("\"{insertion}\" is also the timeColumn; remove it"));
    }
}
