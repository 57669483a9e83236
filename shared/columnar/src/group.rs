//! Reads one column of one row group.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::column::page::PageIterator;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use crate::contain::contain;
use crate::cost::value_bytes;
use crate::error::ColumnarError;
use crate::footer::chunk_range;
use crate::input::FileInner;
use crate::limits::BatchLimit;
use crate::pages::{ChunkPages, ChunkPlace, SharedPages};
use crate::resolve::ReadPlan;

/// Texts are taken to be at least this part of the longest one in the dictionary: how often that one stands in the rows
/// cannot be known, and a batch should never be more than this many times too large.
const SKEW: u64 = 8;
/// A batch that turned out this many times too large makes the next ones smaller.
const MISJUDGED: u64 = 4;

/// One column within one row group: forward only, with a reader that is opened when rows are asked for.
pub(crate) struct GroupReader {
    file: Arc<FileInner>,
    plan: Arc<ReadPlan>,
    group: usize,
    rows: u64,
    leaves: Vec<SharedPages>,
    /// One leaf without repetition: pages are rows, so this reader steers by pages itself.
    flat: bool,
    limit: BatchLimit,
    reader: Option<ParquetRecordBatchReader>,
    /// Rows of a batch of the open reader.
    batch_rows: usize,
    /// Rows that a batch may have by the bytes of a row, as they were estimated when the reader was opened.
    sized_rows: usize,
    /// What the last batches taught about the bytes of a row.
    learned_row_bytes: Option<u64>,
    /// The row that the open reader gives next.
    reader_row: u64,
    /// The next row to deliver.
    row: u64,
    /// Rows from here on are not needed soon.
    reach: Option<u64>,
}

impl GroupReader {
    pub(crate) fn new(
        file: &Arc<FileInner>,
        plan: &Arc<ReadPlan>,
        group: usize,
        limit: BatchLimit,
    ) -> Result<Self, ColumnarError> {
        let metadata = file.footer.metadata.row_group(group);
        let rows = metadata.num_rows() as u64;
        let mut leaves = Vec::with_capacity(plan.leaves.len());
        let mut flat = plan.leaves.len() == 1;
        for leaf in &plan.leaves {
            let chunk = metadata.column(*leaf);
            flat &= chunk.column_descr().max_rep_level() == 0;
            let place =
                ChunkPlace { file: Arc::clone(&file.name), row_group: group, column: chunk.column_path().string() };
            let range = chunk_range(chunk).ok_or_else(|| place.corrupt(None, "its pages have no place"))?;
            leaves.push(SharedPages::new(ChunkPages::new(
                place,
                Arc::clone(&file.source),
                chunk.clone(),
                range,
                rows,
                file.footer.offset_index(group, *leaf),
                limit.read_ahead as u64,
            )));
        }
        Ok(Self {
            file: Arc::clone(file),
            plan: Arc::clone(plan),
            group,
            rows,
            leaves,
            flat,
            limit,
            reader: None,
            batch_rows: 0,
            sized_rows: 0,
            learned_row_bytes: None,
            reader_row: 0,
            row: 0,
            reach: None,
        })
    }

    /// Whether `row` can be delivered next: a reader only goes forward.
    pub(crate) fn can_go_to(&self, row: u64) -> bool {
        self.reader.is_none() || row >= self.row
    }

    /// Goes on at `row`. It may lie behind what was decoded only after a release.
    pub(crate) fn skip_to(&mut self, row: u64) {
        self.row = row;
    }

    /// Rows from `reach` on will not be asked for before the next release.
    pub(crate) fn set_reach(&mut self, reach: Option<u64>) {
        self.reach = reach;
        for pages in &self.leaves {
            pages.lock().set_reach(reach);
        }
    }

    /// Begins to read what the next calls of [`read`](Self::read) will need for `rows` rows, or as much as is read ahead.
    pub(crate) fn prime(&self, rows: Option<u64>) {
        let until = rows.map(|rows| self.row.saturating_add(rows).min(self.rows));
        for pages in &self.leaves {
            pages.lock().prime(self.row, until, self.reader.is_some());
        }
    }

    /// Drops reader, pages and dictionaries; what is known of the pages stays.
    pub(crate) fn release(&mut self) {
        self.reader = None;
        self.reach = None;
        for pages in &self.leaves {
            pages.lock().release();
        }
    }

    /// The next batch as the file has it, at least one row; only while rows are left. The batch may have more than
    /// `wanted` rows, but no page is read for those.
    pub(crate) fn read(&mut self, wanted: u64) -> Result<ArrayRef, ColumnarError> {
        let read = self.try_read(self.row.saturating_add(wanted));
        if read.is_err() {
            // The reader may have stopped anywhere; a later try opens a new one at the same row.
            self.release();
        }
        read
    }

    fn try_read(&mut self, until_row: u64) -> Result<ArrayRef, ColumnarError> {
        loop {
            self.position(until_row)?;
            let first = self.reader_row;
            let Some(batch) = self.next_batch()? else {
                return Err(self.corrupt(format!("its pages end at row {first} of {}", self.rows)));
            };
            let rows = batch.len() as u64;
            self.reader_row += rows;
            if self.reader_row > self.rows {
                return Err(self.corrupt(format!("its pages hold more than {} rows", self.rows)));
            }
            if self.reader_row > self.row {
                self.learn(&batch);
                let dropped = (self.row - first) as usize;
                self.row = self.reader_row;
                return Ok(batch.slice(dropped, batch.len() - dropped));
            }
        }
    }

    /// Brings an open reader so close to the next row that decoding leads there.
    fn position(&mut self, until_row: u64) -> Result<(), ColumnarError> {
        if self.reader.is_some() && self.misjudged() {
            self.reader = None;
        }
        if self.reader.is_some() && !self.flat && self.jump_pays() {
            self.reader = None;
        }
        if self.reader.is_none() {
            return self.open(until_row);
        }
        let Some(pages) = self.flat_pages() else { return Ok(()) };
        let next_row = pages.lock().next_row();
        if self.row < next_row {
            // Rows that are left of pages already handed over; no page is needed before they are through.
            if self.reader_row < self.row {
                pages.lock().pause();
            } else {
                pages.lock().resume(self.limit.bytes as u64, until_row);
            }
        } else if self.reader_row == next_row {
            if self.row > next_row {
                self.reader_row = pages.lock().seek(self.row)?;
            }
            pages.lock().resume(self.limit.bytes as u64, until_row);
        } else {
            // What is left of the last page is decoded and dropped, then the wanted page follows.
            pages.lock().pause();
        }
        Ok(())
    }

    fn flat_pages(&self) -> Option<SharedPages> {
        if self.flat { self.leaves.first().cloned() } else { None }
    }

    /// Whether opening a new reader at the next row is cheaper than decoding all rows up to it.
    fn jump_pays(&self) -> bool {
        let group = self.file.footer.metadata.row_group(self.group);
        let ahead = self.row.saturating_sub(self.reader_row);
        if ahead <= self.batch_rows as u64 {
            return false;
        }
        let bytes: u64 = self.plan.leaves.iter().map(|leaf| group.column(*leaf).uncompressed_size() as u64).sum();
        let skipped = u128::from(bytes) * u128::from(ahead) / u128::from(self.rows.max(1));
        // A new reader starts with the dictionaries and part of a page of each leaf.
        skipped > u128::from(2 * 1024 * 1024 * self.leaves.len() as u64)
    }

    /// Opens a reader at the next row, or at the beginning of the page that holds it.
    fn open(&mut self, until_row: u64) -> Result<(), ColumnarError> {
        let mut row_bytes = 0;
        let mut start = self.row;
        for pages in &self.leaves {
            let first_row = pages.lock().begin(self.row, self.reach, self.flat)?;
            if self.flat {
                start = first_row;
            }
        }
        let metadata = self.file.footer.metadata.row_group(self.group);
        for (leaf, pages) in self.plan.leaves.iter().zip(&self.leaves) {
            let chunk = metadata.column(*leaf);
            let mut value = value_bytes(chunk);
            if let Some(facts) = pages.lock().dictionary_facts() {
                // Encoded, a text counts as the index it is; what it becomes shows only in the dictionary.
                value = value.max(4 + facts.mean.max(facts.longest / SKEW));
            }
            row_bytes += (value * chunk.num_values() as u64).div_ceil(self.rows.max(1));
        }
        let row_bytes = self.learned_row_bytes.unwrap_or(row_bytes);
        self.sized_rows = self.sized(row_bytes);
        self.batch_rows = self.sized_rows;
        if let Some(reach) = self.reach.filter(|reach| *reach > self.row && !self.flat) {
            // Where pages cannot end a batch, rows that will be thrown away are not decoded.
            self.batch_rows = self.batch_rows.min(usize::try_from(reach - self.row).unwrap_or(usize::MAX));
        }
        let selection = (!self.flat && start > 0).then(|| {
            RowSelection::from(vec![
                RowSelector::skip(start as usize),
                RowSelector::select((self.rows - start) as usize),
            ])
        });
        let group = OneGroup {
            metadata: &self.file.footer.metadata,
            group: self.group,
            rows: self.rows as usize,
            leaves: &self.leaves,
        };
        if self.flat {
            for pages in &self.leaves {
                pages.lock().resume(self.limit.bytes as u64, until_row);
            }
        }
        let levels = &self.plan.levels;
        let batch_rows = self.batch_rows;
        let reader =
            contain(|| ParquetRecordBatchReader::try_new_with_row_groups(levels, &group, batch_rows, selection));
        match reader {
            Ok(Ok(reader)) => {
                self.reader = Some(reader);
                self.reader_row = start;
                Ok(())
            }
            Ok(Err(error)) => Err(self.explain(error.to_string())),
            Err(panic) => Err(self.explain(panic)),
        }
    }

    fn next_batch(&mut self) -> Result<Option<ArrayRef>, ColumnarError> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        match contain(|| reader.next()) {
            Ok(None) => self.take_failure().map_or(Ok(None), Err),
            Ok(Some(Ok(batch))) => Ok(batch.columns().first().cloned()),
            Ok(Some(Err(error))) => Err(self.explain(error.to_string())),
            Err(panic) => Err(self.explain(panic)),
        }
    }

    /// Remembers how many bytes a row really takes when a batch shows that it was misjudged.
    fn learn(&mut self, batch: &ArrayRef) {
        let rows = batch.len() as u64;
        let bytes = batch.to_data().get_slice_memory_size().unwrap_or(0) as u64;
        let row_bytes = bytes.div_ceil(rows.max(1));
        if bytes > (self.limit.bytes as u64).saturating_mul(MISJUDGED) && rows > 1 {
            self.learned_row_bytes = Some(row_bytes);
        }
    }

    /// Whether the open reader's batches are far larger than what was learned allows.
    fn misjudged(&self) -> bool {
        self.learned_row_bytes.is_some_and(|row_bytes| self.sized_rows / 2 >= self.sized(row_bytes))
    }

    fn sized(&self, row_bytes: u64) -> usize {
        self.limit.rows_for(row_bytes).min(usize::try_from(self.rows).unwrap_or(usize::MAX))
    }

    fn take_failure(&self) -> Option<ColumnarError> {
        self.leaves.iter().find_map(|pages| pages.lock().take_failure())
    }

    fn explain(&self, text: String) -> ColumnarError {
        self.take_failure().unwrap_or_else(|| self.corrupt(text))
    }

    fn corrupt(&self, detail: String) -> ColumnarError {
        ColumnarError::Corrupt {
            file: self.file.name.to_string(),
            row_group: Some(self.group),
            column: Some(self.plan.path.clone()),
            page: None,
            detail,
        }
    }
}

/// One row group as the Parquet crate's reader wants it: its columns are the leaves that are read.
struct OneGroup<'a> {
    metadata: &'a ParquetMetaData,
    group: usize,
    rows: usize,
    leaves: &'a [SharedPages],
}

impl RowGroups for OneGroup<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        match self.leaves.get(leaf) {
            Some(pages) => Ok(Box::new(pages.iterator())),
            None => Err(ParquetError::General(format!("there is no leaf column {leaf}"))),
        }
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}
