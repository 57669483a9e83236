//! One column of one input, forward only, in slices that never reach beyond what was asked for.

use std::fmt;
use std::sync::Arc;

use parquet::column::page::Page;

use super::Stop;
use super::dictionary::{Entries, Refusal, entries};
use super::hashes::RowHashes;
use super::kind::Kind;
use super::lane::{Lane, Rows};
use super::page::{Decoding, OpenPage, Scratch, TakeHashes};
use super::pool::Pool;
use crate::error::ColumnarError;
use crate::footer::chunk_range;
use crate::input::{FileInner, InputFile};
use crate::limits::BatchLimit;
use crate::pages::{ChunkPages, ChunkPlace};
use crate::proof::ColumnHasher;
use crate::resolve::ColumnPlan;

/// Rows that are decoded at once: small enough for the first-level cache, large enough that what is done once a slice does not count.
const SLICE_ROWS: u64 = 4096;

/// Reads one column of one file.
pub(crate) struct FastSource {
    file: Arc<FileInner>,
    /// The leaf column; None when the file does not have it.
    leaf: Option<usize>,
    optional: bool,
    limit: BatchLimit,
    rows: u64,
    /// The next row to decode.
    row: u64,
    group: Option<OpenGroup>,
    reach: Option<u64>,
    /// The rows decoded last, and the first of them.
    slice: Rows,
    slice_start: u64,
}

struct OpenGroup {
    /// First row in the file, and the one after the last.
    start: u64,
    end: u64,
    place: ChunkPlace,
    pages: ChunkPages,
    /// Its pages have definition levels.
    optional: bool,
    dictionary: Option<Entries>,
    page: Option<OpenPage>,
    /// Number of that page in its chunk, counted from 1.
    page_index: usize,
    /// Whether reading has begun: the dictionary is known.
    begun: bool,
}

/// What all inputs of a column share while they are read.
pub(crate) struct Shared<'a> {
    pub(crate) kind: Kind,
    /// Rows are read as numbers of the pool.
    pub(crate) numbered: bool,
    pub(crate) pool: &'a mut Pool,
    pub(crate) hasher: &'a ColumnHasher,
    pub(crate) scratch: &'a mut Scratch,
}

/// Takes the hashes of rows of an input; the number is the first of them.
pub(crate) type TakeRows<'a> = &'a mut dyn FnMut(u64, RowHashes<'_>) -> Result<(), ColumnarError>;

impl fmt::Debug for FastSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastSource").field("file", &self.file.name).field("row", &self.row).finish_non_exhaustive()
    }
}

impl FastSource {
    pub(crate) fn new(
        input: &InputFile,
        column: usize,
        lane: Lane,
        limit: BatchLimit,
    ) -> Result<FastSource, ColumnarError> {
        let file = input.inner();
        let (leaf, optional) = match input.plan(column)? {
            ColumnPlan::Missing(_) => (None, true),
            ColumnPlan::Read(plan) => {
                let leaf = plan.leaves.first().copied();
                let schema = file.footer.metadata.file_metadata().schema_descr();
                (leaf, leaf.is_some_and(|leaf| schema.column(leaf).max_def_level() > 0))
            }
        };
        let slice = Rows::new(lane);
        let rows = input.rows();
        Ok(FastSource { file, leaf, optional, limit, rows, row: 0, group: None, reach: None, slice, slice_start: 0 })
    }

    /// The next row to decode.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The row after the last one of [`slice`](Self::slice).
    #[inline]
    pub(crate) fn slice_end(&self) -> u64 {
        self.slice_start + self.slice.len() as u64
    }

    /// The rows decoded last and the first of them.
    #[inline]
    pub(crate) fn slice(&self) -> (&Rows, u64) {
        (&self.slice, self.slice_start)
    }

    /// Tells how many rows will be read before the next release.
    pub(crate) fn expect(&mut self, rows: u64) {
        let reach = self.row.saturating_add(rows);
        self.reach = Some(reach);
        if let Some(group) = &mut self.group {
            group.pages.set_reach(Some(reach.saturating_sub(group.start)));
        }
    }

    /// Begins to read what the next calls of [`read`](Self::read) will need up to row `until`, in the row group that comes next.
    pub(crate) fn prime(&mut self, until: u64) -> Result<(), ColumnarError> {
        let Some(leaf) = self.leaf.filter(|_| self.row < self.rows && self.file.source.reads_in_background()) else {
            return Ok(());
        };
        let row = self.row;
        let mut group = match self.group.take() {
            Some(group) if (group.start..group.end).contains(&row) => group,
            _ => self.open(leaf, row)?,
        };
        group.pages.prime(row - group.start, Some(until.min(group.end) - group.start), group.begun);
        self.group = Some(group);
        Ok(())
    }

    /// Gives up memory; reading goes on where it stopped. What was numbered has to be numbered again.
    pub(crate) fn release(&mut self) {
        self.reach = None;
        if let Some(group) = &mut self.group {
            group.pages.release();
            group.dictionary = None;
            group.page = None;
            group.begun = false;
        }
    }

    /// Goes back to `row`, with another sort of lane if need be.
    pub(crate) fn go_back(&mut self, row: u64, lane: Lane) {
        self.group = None;
        self.row = row;
        self.slice = Rows::new(lane);
        self.slice_start = row;
    }

    /// Decodes the next rows, at least one and none from `end` on.
    pub(crate) fn read(&mut self, end: u64, shared: &mut Shared<'_>, take: TakeRows<'_>) -> Result<(), Stop> {
        self.slice_start = self.row;
        let Some(leaf) = self.leaf else {
            self.read_nulls(end);
            return Ok(());
        };
        let row = self.row;
        let mut group = match self.group.take() {
            Some(group) if (group.start..group.end).contains(&row) => group,
            _ => self.open(leaf, row)?,
        };
        let read = group.read(row, end, self.reach, &mut self.slice, shared, take)?;
        self.row += read;
        if self.row < group.end {
            self.group = Some(group);
        }
        Ok(())
    }

    /// Nulls add nothing to the proof.
    fn read_nulls(&mut self, end: u64) {
        let rows = (end.min(self.rows) - self.row).min(SLICE_ROWS);
        self.slice.clear();
        self.slice.push_nulls(rows as usize);
        self.row += rows;
    }

    fn open(&self, leaf: usize, row: u64) -> Result<OpenGroup, ColumnarError> {
        let starts = &self.file.footer.group_starts;
        // Row groups without rows share their start with the next one, so the last of them is taken.
        let index = starts.partition_point(|start| *start <= row).saturating_sub(1);
        let start = starts.get(index).copied().unwrap_or(0);
        let metadata = self.file.footer.metadata.row_group(index);
        let rows = metadata.num_rows() as u64;
        let chunk = metadata.column(leaf);
        let column = chunk.column_path().string();
        let place = ChunkPlace { file: Arc::clone(&self.file.name), row_group: index, column };
        let range = chunk_range(chunk).ok_or_else(|| place.corrupt(None, "its pages have no place"))?;
        let pages = ChunkPages::new(
            place.clone(),
            Arc::clone(&self.file.source),
            chunk.clone(),
            range,
            rows,
            self.file.footer.offset_index(index, leaf),
            self.limit.read_ahead as u64,
        );
        let end = start + rows;
        let optional = self.optional;
        Ok(OpenGroup { start, end, place, pages, optional, dictionary: None, page: None, page_index: 0, begun: false })
    }
}

impl OpenGroup {
    /// Decodes rows from `row` on, which is the next one unless reading begins; returns how many.
    fn read(
        &mut self,
        row: u64,
        end: u64,
        reach: Option<u64>,
        out: &mut Rows,
        shared: &mut Shared<'_>,
        take: TakeRows<'_>,
    ) -> Result<u64, Stop> {
        if !self.begun {
            self.begin(row, reach, out, shared)?;
        }
        let wanted = (end.min(self.end) - row).min(SLICE_ROWS);
        self.read_slice(wanted, out, shared, Some(&mut |hashes| take(row, hashes)))
    }

    /// Goes to the page that holds `row`, and in it to the row.
    fn begin(&mut self, row: u64, reach: Option<u64>, out: &mut Rows, shared: &mut Shared<'_>) -> Result<(), Stop> {
        let reach = reach.map(|reach| reach.saturating_sub(self.start));
        let first = self.pages.begin(row - self.start, reach, true)?;
        self.page = None;
        self.dictionary = None;
        self.begun = true;
        let mut before = (row - self.start).saturating_sub(first);
        while before > 0 {
            before -= self.read_slice(before.min(SLICE_ROWS), out, shared, None)?;
        }
        Ok(())
    }

    /// Decodes at most `wanted` rows, at least one.
    fn read_slice(
        &mut self,
        wanted: u64,
        out: &mut Rows,
        shared: &mut Shared<'_>,
        take: Option<TakeHashes<'_>>,
    ) -> Result<u64, Stop> {
        while self.page.as_ref().is_none_or(|page| page.rows_left() == 0) {
            self.next_page(shared)?;
        }
        let Some(page) = &mut self.page else { return Err(Stop::Unfit("a chunk without pages")) };
        let rows = wanted.min(page.rows_left() as u64);
        let decoding = Decoding { kind: shared.kind, hasher: shared.hasher, dictionary: self.dictionary.as_ref() };
        match page.read(rows as usize, decoding, out, shared.scratch, take) {
            Ok(()) => Ok(rows),
            Err(refusal) => Err(self.explain(refusal)),
        }
    }

    fn next_page(&mut self, shared: &mut Shared<'_>) -> Result<(), Stop> {
        let Some(page) = self.pages.next_page()? else {
            let rows = self.end - self.start;
            return Err(self.place.corrupt(None, format!("its pages end before row {rows}")).into());
        };
        if let Page::DictionaryPage { .. } = &page {
            let numbered = shared.numbered;
            let read = entries(&page, shared.kind, numbered, shared.pool, shared.hasher);
            self.dictionary = Some(read.map_err(|refusal| self.explain(refusal))?);
            return Ok(());
        }
        self.page_index = self.pages.pages_handed();
        self.page = Some(OpenPage::open(page, shared.kind, self.optional).map_err(|refusal| self.explain(refusal))?);
        Ok(())
    }

    fn explain(&self, refusal: Refusal) -> Stop {
        match refusal {
            Refusal::Stop(stop) => stop,
            Refusal::Damage(damage) => {
                let page = self.page_index.checked_sub(1);
                Stop::Error(self.place.corrupt(page, damage.to_string()))
            }
        }
    }
}
