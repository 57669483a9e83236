//! One column of one file, from the first row to the last.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;

use crate::adapt::Origin;
use crate::contain::contain;
use crate::cost::null_bytes;
use crate::error::ColumnarError;
use crate::group::GroupReader;
use crate::input::FileInner;
use crate::limits::BatchLimit;
use crate::resolve::ColumnPlan;

/// A forward-only cursor over one column, across all row groups. Values come as the table's type.
///
/// Nothing is read before the first call of [`Self::next`]. After an error the cursor stands where it stood before the
/// call, so a failed transfer can be tried again.
pub struct ColumnCursor {
    file: Arc<FileInner>,
    plan: ColumnPlan,
    limit: BatchLimit,
    /// The next row to deliver.
    row: u64,
    /// The row group in work.
    group: Option<GroupReader>,
    group_index: usize,
    /// What is decoded and not delivered yet.
    held: Option<ArrayRef>,
    reach: Option<u64>,
}

impl fmt::Debug for ColumnCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnCursor")
            .field("file", &self.file.name)
            .field("plan", &self.plan)
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

impl ColumnCursor {
    pub(crate) fn new(file: Arc<FileInner>, plan: ColumnPlan, limit: BatchLimit) -> Self {
        Self { file, plan, limit, row: 0, group: None, group_index: 0, held: None, reach: None }
    }

    /// The next row to be delivered, counted from 0 over the whole file.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// Rows of the file.
    pub fn rows(&self) -> u64 {
        self.file.footer.group_starts.last().copied().unwrap_or(0)
    }

    /// The type of the arrays that [`Self::next`] gives.
    pub fn data_type(&self) -> &DataType {
        match &self.plan {
            ColumnPlan::Missing(data_type) => data_type,
            ColumnPlan::Read(plan) => plan.adapt.data_type(),
        }
    }

    /// The next rows: at least one and at most `max_rows`; `None` after the last row.
    ///
    /// # Errors
    /// [`ColumnarError::Read`], [`ColumnarError::Corrupt`], [`ColumnarError::NullInRequired`],
    /// [`ColumnarError::Inexact`].
    #[allow(clippy::should_implement_trait)] // It takes an argument.
    pub fn next(&mut self, max_rows: usize) -> Result<Option<ArrayRef>, ColumnarError> {
        if self.row >= self.rows() {
            return Ok(None);
        }
        if max_rows == 0 {
            return Err(ColumnarError::Usage { detail: "0 rows asked for".into() });
        }
        let batch = match self.held.take() {
            Some(batch) => batch,
            None => self.decode(max_rows)?,
        };
        let taken = batch.len().min(max_rows);
        if taken < batch.len() {
            self.held = Some(batch.slice(taken, batch.len() - taken));
        }
        self.row += taken as u64;
        Ok(Some(if taken < batch.len() { batch.slice(0, taken) } else { batch }))
    }

    /// Passes over `rows` rows. What lies between is decoded only as far as it must be, when the next rows are read.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when the file ends before.
    pub fn skip(&mut self, rows: u64) -> Result<(), ColumnarError> {
        let target = self.row.checked_add(rows).filter(|target| *target <= self.rows()).ok_or_else(|| {
            let left = self.rows() - self.row;
            ColumnarError::Usage { detail: format!("{rows} rows to be skipped, {left} are left") }
        })?;
        self.held = match self.held.take() {
            Some(batch) if rows < batch.len() as u64 => Some(batch.slice(rows as usize, batch.len() - rows as usize)),
            _ => None,
        };
        self.row = target;
        Ok(())
    }

    /// Tells that about `rows` rows will be read before the next [`Self::release`]: nothing is read ahead beyond them.
    pub fn expect(&mut self, rows: u64) {
        self.reach = Some(self.row.saturating_add(rows));
        self.set_group_reach();
    }

    /// Begins to read what the next calls of [`Self::next`] will need for `rows` rows, or as much as is read ahead, where the file's source
    /// reads in the background.
    ///
    /// # Errors
    /// [`ColumnarError::Corrupt`], where the footer alone shows it.
    pub fn prime(&mut self, rows: Option<u64>) -> Result<(), ColumnarError> {
        let read = matches!(self.plan, ColumnPlan::Read(_)) && self.held.is_none() && self.row < self.rows();
        if read && self.file.source.reads_in_background() {
            self.group_at(self.row)?.prime(rows);
        }
        Ok(())
    }

    /// Frees readers, pages, dictionaries and decoded rows. Position and learned page offsets stay, so that the next
    /// call of [`Self::next`] goes straight to the right page (in a column with repetition and without an offset index
    /// it decodes again from the beginning of the row group).
    pub fn release(&mut self) {
        self.held = None;
        self.reach = None;
        if let Some(group) = &mut self.group {
            group.release();
        }
    }

    fn decode(&mut self, max_rows: usize) -> Result<ArrayRef, ColumnarError> {
        let plan = match &self.plan {
            ColumnPlan::Missing(data_type) => {
                let left = usize::try_from(self.rows() - self.row).unwrap_or(usize::MAX);
                let rows = self.limit.rows_for(null_bytes(data_type)).min(left).min(max_rows);
                return Ok(new_null_array(data_type, rows));
            }
            ColumnPlan::Read(plan) => Arc::clone(plan),
        };
        let row = self.row;
        let group = self.group_at(row)?;
        let first_row = row;
        let batch = group.read(max_rows as u64)?;
        let origin = Origin { file: &self.file.name, first_row };
        let adapted = match contain(|| plan.adapt.apply(batch, origin)) {
            Ok(adapted) => adapted,
            Err(panic) => Err(ColumnarError::Corrupt {
                file: self.file.name.to_string(),
                row_group: Some(self.group_index),
                column: Some(plan.path.clone()),
                page: None,
                detail: panic,
            }),
        };
        if adapted.is_err() {
            // The batch is gone; a later call decodes it again.
            self.group = None;
        }
        adapted
    }

    /// The reader of the row group that holds `row`, standing at `row`.
    fn group_at(&mut self, row: u64) -> Result<&mut GroupReader, ColumnarError> {
        let starts = &self.file.footer.group_starts;
        // Row groups without rows share their start with the next one, so the last of them is taken.
        let index = starts.partition_point(|start| *start <= row).saturating_sub(1);
        let start = starts.get(index).copied().unwrap_or(0);
        if self.group_index != index || self.group.as_ref().is_some_and(|group| !group.can_go_to(row - start)) {
            self.group = None;
        }
        let group = match self.group.take() {
            Some(group) => group,
            None => match &self.plan {
                ColumnPlan::Read(plan) => GroupReader::new(&self.file, plan, index, self.limit)?,
                ColumnPlan::Missing(_) => {
                    return Err(ColumnarError::Usage { detail: "a column that is not in the file is not read".into() });
                }
            },
        };
        self.group_index = index;
        let group = self.group.insert(group);
        group.skip_to(row - start);
        self.set_group_reach();
        self.group.as_mut().ok_or_else(|| ColumnarError::Usage { detail: "no row group".into() })
    }

    fn set_group_reach(&mut self) {
        let start = self.file.footer.group_starts.get(self.group_index).copied().unwrap_or(0);
        let reach = self.reach.map(|reach| reach.saturating_sub(start));
        if let Some(group) = &mut self.group {
            group.set_reach(reach);
        }
    }
}
