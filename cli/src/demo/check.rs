//! What must hold after the demo. Rows are read back with the Parquet crate's own reader, not with Firn's, and compared with what was
//! written value by value.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::ArrowError;
use firn_table::LoadedTable;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DemoError;
use super::lake::manifests_of;
use super::rows::DemoTable;

/// The rows that a table must have: with a key the last one written of each, else all.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    by_key: BTreeMap<Vec<String>, Vec<String>>,
    all: Vec<Vec<String>>,
    /// Rows written, repeats included.
    pub(crate) written: u64,
}

impl Expected {
    /// Notes rows in the order of their commits.
    pub(crate) fn add(&mut self, table: DemoTable, rows: &RecordBatch) -> Result<(), DemoError> {
        for row in texts(rows).map_err(DemoError::of("rows"))? {
            self.written += 1;
            match table.key_columns() {
                Some(columns) => {
                    self.by_key.insert(row[..columns].to_vec(), row);
                }
                None => self.all.push(row),
            }
        }
        Ok(())
    }

    /// The rows, sorted.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = self.by_key.values().chain(&self.all).cloned().collect();
        rows.sort();
        rows
    }
}

/// Data files that are live in the current snapshot, with their sizes.
pub(crate) async fn live_files(table: &LoadedTable) -> Result<Vec<(String, u64)>, DemoError> {
    let Some(snapshot) = table.metadata.current_snapshot() else { return Ok(Vec::new()) };
    let manifests = manifests_of(table, snapshot).await.map_err(DemoError::of("a manifest list"))?;
    let mut files = Vec::new();
    for manifest in manifests {
        let manifest = manifest.load_manifest(&table.io).await.map_err(DemoError::of("a manifest"))?;
        let live = manifest.entries().iter().filter(|entry| entry.is_alive());
        files.extend(live.map(|entry| (entry.file_path().to_owned(), entry.data_file().file_size_in_bytes())));
    }
    Ok(files)
}

/// The rows of the current snapshot, sorted.
pub(crate) async fn live_rows(table: &LoadedTable) -> Result<Vec<Vec<String>>, DemoError> {
    let mut rows = Vec::new();
    for (path, _) in live_files(table).await? {
        let id = table.blob_id(&path).map_err(DemoError::of("a path"))?;
        let bytes = table.blobs().read_all(&id).await.map_err(DemoError::of("a data file"))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(|builder| builder.build());
        for batch in reader.map_err(DemoError::of("a data file"))? {
            rows.extend(batch.and_then(|batch| texts(&batch)).map_err(DemoError::of("a data file"))?);
        }
    }
    rows.sort();
    Ok(rows)
}

/// Every value as text: the shortest that reads back as the same number, `null` apart from every text.
fn texts(rows: &RecordBatch) -> Result<Vec<Vec<String>>, ArrowError> {
    let options = FormatOptions::new().with_null("\u{0}null");
    let columns: Vec<ArrayFormatter<'_>> = rows
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect::<Result<_, _>>()?;
    Ok((0..rows.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()).collect())
}
