//! An input file of a merge: its footer, and its columns as the table wants them.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::file::metadata::ParquetMetaData;

use crate::cost::{ColumnCost, column_cost, fast_column_cost, null_bytes};
use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;
use crate::footer::{Footer, TAIL_BYTES};
use crate::limits::BatchLimit;
use crate::resolve::{ColumnPlan, NameMapping, resolve, resolve_by_name};
use crate::source::{MemoryFile, RangeRead};

/// A Parquet file, opened for reading with the table's schema. Cheap to clone; clones share the footer.
#[derive(Clone)]
pub struct InputFile {
    inner: Arc<FileInner>,
    plans: Arc<Vec<ColumnPlan>>,
    /// Bytes of the file where it came whole.
    whole_bytes: u64,
}

pub(crate) struct FileInner {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<dyn RangeRead>,
    pub(crate) footer: Footer,
}

impl fmt::Debug for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputFile").field("name", &self.inner.name).field("rows", &self.rows()).finish_non_exhaustive()
    }
}

impl InputFile {
    /// As [`open_holding`](Self::open_holding) with [`LEAST_WHOLE`](Self::LEAST_WHOLE).
    ///
    /// # Errors
    /// As [`open_holding`](Self::open_holding).
    pub fn open(
        source: Arc<dyn RangeRead>,
        target: &SchemaRef,
        mapping: Option<&NameMapping>,
    ) -> Result<Self, ColumnarError> {
        Self::open_holding(source, target, mapping, Self::LEAST_WHOLE)
    }

    /// Bytes of a file that comes whole with its footer in any case: nearly every footer fits, with its page indexes.
    pub const LEAST_WHOLE: u64 = TAIL_BYTES;

    /// Reads the footer (one request for most files) and finds every column of `target` in the file by field id. A file of at most `whole`
    /// bytes comes in that request and stays in memory: where every request is waited for and paid for, that is less than its columns take.
    ///
    /// Each field of `target`, nested ones too, carries its id under the metadata key `PARQUET:field_id`. `mapping` is
    /// the table's name mapping; it is used only when the file has no field id at all.
    ///
    /// # Errors
    /// [`ColumnarError::Corrupt`], [`ColumnarError::Read`], and what `target` does not allow of this file:
    /// [`ColumnarError::Incompatible`], [`ColumnarError::MissingRequired`], [`ColumnarError::NoFieldIds`],
    /// [`ColumnarError::Unsupported`].
    pub fn open_holding(
        source: Arc<dyn RangeRead>,
        target: &SchemaRef,
        mapping: Option<&NameMapping>,
        whole: u64,
    ) -> Result<Self, ColumnarError> {
        let mut footer = Footer::read(&*source, whole)?;
        let plans = resolve(source.name(), &footer.metadata, target, mapping)?;
        let name: Arc<str> = source.name().into();
        // A file that came whole with its footer is not asked for again.
        let (source, whole_bytes): (Arc<dyn RangeRead>, _) = match footer.whole.take() {
            Some(bytes) => (Arc::new(MemoryFile::new(&*name, bytes)), source.size()),
            None => (source, 0),
        };
        Ok(Self { inner: Arc::new(FileInner { name, source, footer }), plans: Arc::new(plans), whole_bytes })
    }

    /// The name that its source gives.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Rows of the file.
    pub fn rows(&self) -> u64 {
        self.inner.footer.group_starts.last().copied().unwrap_or(0)
    }

    /// The footer. It holds no page indexes.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.inner.footer.metadata
    }

    /// The value of a key-value entry of the footer; the last one when the key stands there more than once.
    pub fn key_value(&self, key: &str) -> Option<&str> {
        let entries = self.metadata().file_metadata().key_value_metadata()?;
        entries.iter().rev().find(|entry| entry.key == key)?.value.as_deref()
    }

    /// Bytes that stay in memory as long as the file is open: the footer, and the whole file if it is tiny.
    pub fn held_bytes(&self) -> u64 {
        let footer = &self.inner.footer;
        let indexes = footer.offset_indexes.as_ref().map_or(0, |(_, bytes)| bytes.len());
        (footer.metadata.memory_size() + indexes) as u64 + self.whole_bytes
    }

    /// A cursor over the column with the given index among the top-level fields of the target schema.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when the target has no such column.
    pub fn cursor(&self, target_column: usize, batch: BatchLimit) -> Result<ColumnCursor, ColumnarError> {
        Ok(ColumnCursor::new(Arc::clone(&self.inner), self.plan(target_column)?.clone(), batch))
    }

    /// A cursor over a top-level primitive column found by its exact name, with the type it has in the file: for the
    /// hidden columns of Firn's temporary files, which are in no table and have no field id.
    ///
    /// # Errors
    /// [`ColumnarError::MissingRequired`] when the file has no such column.
    pub fn cursor_by_name(&self, name: &str, batch: BatchLimit) -> Result<ColumnCursor, ColumnarError> {
        let plan = resolve_by_name(&self.inner.name, self.metadata(), name)?;
        Ok(ColumnCursor::new(Arc::clone(&self.inner), ColumnPlan::Read(Arc::new(plan)), batch))
    }

    /// What an open cursor over a column takes, estimated from the footer.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when the target has no such column.
    pub fn column_cost(&self, target_column: usize, batch: &BatchLimit) -> Result<ColumnCost, ColumnarError> {
        Ok(match self.plan(target_column)? {
            ColumnPlan::Read(plan) => column_cost(self.metadata().row_groups(), &plan.leaves, &self.held_ahead(batch)),
            ColumnPlan::Missing(data_type) => {
                let row = null_bytes(data_type);
                let open_bytes = (batch.rows_for(row) as u64).min(self.rows()) * row;
                ColumnCost { open_bytes, held_bytes: open_bytes, bytes_per_row_decoded: row, ..ColumnCost::default() }
            }
        })
    }

    /// The same on the fast path.
    ///
    /// # Errors
    /// As [`column_cost`](Self::column_cost).
    pub(crate) fn fast_column_cost(
        &self,
        target_column: usize,
        batch: &BatchLimit,
    ) -> Result<ColumnCost, ColumnarError> {
        match self.plan(target_column)? {
            ColumnPlan::Read(plan) => {
                let leaf = plan.leaves.first().copied().unwrap_or(usize::MAX);
                Ok(fast_column_cost(self.metadata().row_groups(), leaf, &self.held_ahead(batch)))
            }
            ColumnPlan::Missing(_) => self.column_cost(target_column, batch),
        }
    }

    /// Whether reads are waited for, as from a storage account.
    pub(crate) fn is_far(&self) -> bool {
        self.inner.source.reads_in_background()
    }

    /// Bytes that are read ahead are held once; where reading goes on in the background they are held while the next ones are under way.
    fn held_ahead(&self, batch: &BatchLimit) -> BatchLimit {
        let times = if self.is_far() { 2 } else { 1 };
        BatchLimit { read_ahead: batch.read_ahead.saturating_mul(times), ..*batch }
    }

    /// Whether the file has the column at all; without, all values are null.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when the target has no such column.
    pub fn has_column(&self, target_column: usize) -> Result<bool, ColumnarError> {
        Ok(matches!(self.plan(target_column)?, ColumnPlan::Read(_)))
    }

    pub(crate) fn inner(&self) -> Arc<FileInner> {
        Arc::clone(&self.inner)
    }

    pub(crate) fn plan(&self, target_column: usize) -> Result<&ColumnPlan, ColumnarError> {
        self.plans.get(target_column).ok_or_else(|| ColumnarError::Usage {
            detail: format!("column {target_column} of a target schema with {} columns", self.plans.len()),
        })
    }
}
