//! One data file: which of its rows match, and what is in them. Everything here blocks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, SchemaRef};
use firn_columnar::chosen::{read_run, runs};
use firn_columnar::{BatchLimit, BlobRange, ColumnarError, InputFile, NameMapping};
use firn_model::BlobId;
use firn_sidecar::{Query, RowSet, Scanner};
use firn_storage::BlobStore;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::deletes::FileDeletes;
use super::values::to_json;

/// Rows looked at, or read, at once.
const ROWS: u64 = 4096;

/// A row with its number and its values.
pub(super) type Found = (u64, Map<String, Value>);

/// What is done with one file.
pub(super) struct FileSearch {
    pub(super) store: Arc<dyn BlobStore>,
    pub(super) id: BlobId,
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) schema: SchemaRef,
    pub(super) mapping: Option<NameMapping>,
    pub(super) query: Query,
    /// The rows that match, where an index has told; None: look at every row.
    pub(super) rows: Option<RowSet>,
    /// Rows that are not told although they match.
    pub(super) deletes: FileDeletes,
    pub(super) limit: u64,
    pub(super) handle: Handle,
}

impl FileSearch {
    pub(super) fn run(mut self) -> Result<Vec<Found>, ColumnarError> {
        let source =
            BlobRange::new(self.store.clone(), self.id.clone(), self.path.as_str(), self.size, self.handle.clone());
        let file = InputFile::open(Arc::new(source), &self.schema, self.mapping.as_ref())?;
        let mut matching = match self.rows.take() {
            Some(rows) => rows,
            None => self.scan(&file)?,
        };
        if !self.deletes.is_empty() {
            matching = self.deletes.surviving(&file, matching)?;
        }
        self.read(&file, &matching)
    }

    /// Looks at the text columns of every row.
    fn scan(&self, file: &InputFile) -> Result<RowSet, ColumnarError> {
        let columns = self.query.columns().iter().map(|column| {
            let at = self.schema.index_of(&column.name).map_err(|error| usage(error.to_string()))?;
            file.cursor(at, BatchLimit::default())
        });
        let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut scanner = Scanner::new(&self.query);
        let mut matching = RowSet::none(file.rows());
        // What is deleted afterwards must not use up the limit.
        let mut left = if self.deletes.is_empty() { self.limit } else { u64::MAX };
        let mut start = 0;
        while start < file.rows() && left > 0 {
            let rows = ROWS.min(file.rows() - start);
            let run = start..start + rows;
            let columns = columns.iter_mut().map(|column| read_run(column, &run)).collect::<Result<Vec<_>, _>>()?;
            for row in 0..rows {
                let texts: Vec<Option<&str>> = columns.iter().map(|pieces| text_at(pieces, row)).collect();
                if left > 0 && scanner.matches(&texts) {
                    matching.insert(start + row);
                    left -= 1;
                }
            }
            start += rows;
        }
        Ok(matching)
    }

    /// All values of the matching rows.
    fn read(&self, file: &InputFile, matching: &RowSet) -> Result<Vec<Found>, ColumnarError> {
        let mut found: Vec<Found> = Vec::new();
        let rows: Vec<u64> = matching.iter().take(usize::try_from(self.limit).unwrap_or(usize::MAX)).collect();
        found.extend(rows.iter().map(|row| (*row, Map::new())));
        for (at, field) in self.schema.fields().iter().enumerate() {
            let mut column = file.cursor(at, BatchLimit::default())?;
            let mut next = 0;
            for run in runs(&rows) {
                for piece in read_run(&mut column, &run)? {
                    for row in 0..piece.len() {
                        if let Some((_, values)) = found.get_mut(next) {
                            values.insert(field.name().clone(), to_json(&piece, row));
                        }
                        next += 1;
                    }
                }
            }
        }
        Ok(found)
    }
}

fn usage(detail: String) -> ColumnarError {
    ColumnarError::Usage { detail }
}

fn text_at(pieces: &[ArrayRef], row: u64) -> Option<&str> {
    let mut row = usize::try_from(row).ok()?;
    for piece in pieces {
        if row >= piece.len() {
            row -= piece.len();
            continue;
        }
        if piece.is_null(row) {
            return None;
        }
        return match piece.data_type() {
            DataType::Utf8 => Some(piece.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Some(piece.as_string::<i64>().value(row)),
            DataType::Utf8View => Some(piece.as_string_view().value(row)),
            _ => None,
        };
    }
    None
}
