//! One column of a merge on the fast path: the rows of a window, gathered from all inputs by its runs.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use firn_merge::{RowRef, Window};

use super::Stop;
use super::carried::Value;
use super::hashes::RowHashes;
use super::kind::{Kind, common_kind};
use super::lane::{Lane, Rows};
use super::page::Scratch;
use super::pool::Pool;
use super::source::{FastSource, Shared};
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::proof::ColumnHasher;

/// Rows whose hashes are handed over at once on the output side.
const HASHED_AT_ONCE: usize = 16_384;
/// A word column is read as numbers while the dictionaries of its chunks are at most this long in the file.
const SMALL_DICTIONARY_BYTES: i64 = 16 << 10;

/// Where the hashes of the proof go.
pub(crate) trait HashSink {
    /// Hashes of neighbouring rows that were read from an input.
    fn came_in(&self, input: usize, first_row: u64, hashes: RowHashes<'_>) -> Result<(), ColumnarError>;
    /// Hashes of neighbouring rows that will be encoded; `from` counts from the start of the window.
    fn went_out(&self, from: usize, hashes: RowHashes<'_>) -> Result<(), ColumnarError>;
}

/// A column and where its rows come from.
#[derive(Debug)]
pub(crate) struct FastColumn {
    kind: Kind,
    required: bool,
    data_type: DataType,
    path: String,
    files: Vec<String>,
    /// Rows are moved as numbers of the pool.
    numbered: bool,
    pool: Pool,
    hasher: ColumnHasher,
    sources: Vec<FastSource>,
    /// This column's value of the row that the last window carried out.
    carried: Option<Value>,
    carried_next: Option<Value>,
}

/// The rows of a window in output order.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) kind: Kind,
    pub(crate) rows: Rows,
}

impl FastColumn {
    /// None for a column that goes the generic way.
    pub(crate) fn new<'a>(
        field: &Field,
        column: usize,
        inputs: impl Iterator<Item = &'a InputFile> + Clone,
        limit: BatchLimit,
    ) -> Result<Option<FastColumn>, ColumnarError> {
        let Some(kind) = common_kind(field, column, inputs.clone()) else { return Ok(None) };
        let numbered = !kind.is_word() || inputs.clone().all(|input| has_small_dictionaries(input, column));
        let sources = inputs.clone().map(|input| FastSource::new(input, column, lane(kind, numbered), limit));
        Ok(Some(FastColumn {
            kind,
            required: !field.is_nullable(),
            data_type: field.data_type().clone(),
            path: field.name().clone(),
            files: inputs.clone().map(|input| input.name().to_owned()).collect(),
            numbered,
            pool: Pool::new(kind),
            hasher: ColumnHasher::new(field)?,
            sources: sources.collect::<Result<_, _>>()?,
            carried: None,
            carried_next: None,
        }))
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The window is done in every column.
    pub(crate) fn settle(&mut self) {
        self.carried = self.carried_next.take();
    }

    /// The carried value as an array, for the generic way.
    pub(crate) fn carried_array(&self) -> Result<Option<ArrayRef>, ColumnarError> {
        self.carried.as_ref().map(|value| value.to_array(self.kind, &self.data_type)).transpose()
    }

    /// The window is given up: its rows will be read once more.
    pub(crate) fn go_back(&mut self, window: &Window) {
        self.carried_next = None;
        let lane = lane(self.kind, self.numbered);
        for (source, range) in self.sources.iter_mut().zip(&window.ranges) {
            source.go_back(range.start, lane.clone());
        }
    }

    /// Passes over the rows of a window.
    pub(crate) fn skip(&mut self, window: &Window) {
        let lane = lane(self.kind, self.numbered);
        for (source, range) in self.sources.iter_mut().zip(&window.ranges).filter(|(_, range)| !range.is_empty()) {
            source.go_back(range.end, lane.clone());
        }
    }

    /// Words were to be read as numbers, and that does not pay: they are read as words from now on. False when they were read as words
    /// already.
    pub(crate) fn give_up_numbers(&mut self) -> bool {
        let possible = self.numbered && self.kind.is_word();
        if possible {
            self.numbered = false;
            self.pool.clear();
        }
        possible
    }

    /// Begins to read what a window needs of the inputs.
    pub(crate) fn prime(&mut self, window: &Window) -> Result<(), ColumnarError> {
        for (source, range) in self.sources.iter_mut().zip(&window.ranges).filter(|(_, range)| !range.is_empty()) {
            source.prime(range.end)?;
        }
        Ok(())
    }

    /// Gathers the rows of a window. `release` frees what the inputs hold as soon as the window needs no more of them.
    pub(crate) fn gather(
        &mut self,
        window: &Window,
        release: bool,
        scratch: &mut Scratch,
        sink: &dyn HashSink,
    ) -> Result<Gathered, Stop> {
        // Readers that stay open read on into the next window: it will be wanted.
        if release {
            for (source, range) in self.sources.iter_mut().zip(&window.ranges) {
                source.expect(range.end - range.start);
            }
        }
        let mut out = scratch.gathered.take(&lane(self.kind, self.numbered), window.rows as usize);
        let carried = self.carried.take();
        let gathered = self.fill(window, release, scratch, sink, carried.as_ref(), &mut out);
        self.carried = carried;
        gathered?;
        self.hash_output(&out, scratch, sink)?;
        Ok(Gathered { kind: self.kind, rows: out })
    }

    /// Between windows: numbers that are no longer in use are forgotten, with all that refers to them.
    pub(crate) fn tidy(&mut self, release: bool) {
        let generation = self.pool.generation;
        if release {
            self.pool.clear()
        } else {
            self.pool.tidy()
        }
        if self.pool.generation != generation {
            self.sources.iter_mut().for_each(FastSource::release);
        }
    }

    fn fill(
        &mut self,
        window: &Window,
        release: bool,
        scratch: &mut Scratch,
        sink: &dyn HashSink,
        carried_in: Option<&Value>,
        out: &mut Rows,
    ) -> Result<(), Stop> {
        let mut reading = Reading { column: self, window, release, scratch, sink, carried_out: None };
        for run in &window.runs {
            let input = run.input as usize;
            let mut row = run.first_row;
            let end = run.first_row + u64::from(run.count);
            if window.carried_in == Some(RowRef { input: run.input, row }) {
                let value = carried_in.ok_or_else(|| usage(format!("no value was carried for row {row}")))?;
                let FastColumn { pool, hasher, .. } = &mut *reading.column;
                out.extend(&value.to_rows(&out.lane, pool, hasher)?, 0, 1);
                row += 1;
            }
            while row < end {
                let source = reading.source(input)?;
                if row >= source.slice_end() {
                    reading.read(input)?;
                    continue;
                }
                let slice_end = source.slice_end();
                let (slice, start) = source.slice();
                if row < start {
                    return Err(usage(format!("row {row} of input {input} is behind its reader")).into());
                }
                let count = end.min(slice_end) - row;
                out.extend(slice, (row - start) as usize, count as usize);
                row += count;
            }
        }
        // What follows the last run of an input was dropped or carried.
        for (input, range) in window.ranges.iter().enumerate() {
            while reading.source(input)?.row() < range.end {
                reading.read(input)?;
            }
        }
        let carried_out = reading.carried_out;
        // A row that is carried through a window keeps the value it came with.
        self.carried_next = if window.carried_out == window.carried_in { carried_in.cloned() } else { carried_out };
        if window.carried_out.is_some() != self.carried_next.is_some() {
            let detail = format!("the carried row {:?} was not among the rows read", window.carried_out);
            return Err(usage(detail).into());
        }
        Ok(())
    }

    fn hash_output(&self, out: &Rows, scratch: &mut Scratch, sink: &dyn HashSink) -> Result<(), ColumnarError> {
        let mut from = 0;
        while from < out.len() {
            let range = from..(from + HASHED_AT_ONCE).min(out.len());
            let hashes = match &out.lane {
                Lane::Ids(ids) => RowHashes::Numbered(&ids[range.clone()], self.pool.hashes()),
                Lane::Narrow(words) => RowHashes::Narrow(&words[range.clone()], self.kind, &self.hasher),
                Lane::Wide(words) => RowHashes::Wide(&words[range.clone()], self.kind, &self.hasher),
            };
            let present = out.present.as_ref().map(|present| &present[range.clone()]);
            sink.went_out(from, hashes.with_nulls(present, &mut scratch.row_hashes))?;
            from = range.end;
        }
        Ok(())
    }
}

struct Reading<'a> {
    column: &'a mut FastColumn,
    window: &'a Window,
    release: bool,
    scratch: &'a mut Scratch,
    sink: &'a dyn HashSink,
    carried_out: Option<Value>,
}

impl Reading<'_> {
    #[inline]
    fn source(&self, input: usize) -> Result<&FastSource, ColumnarError> {
        self.column.sources.get(input).ok_or_else(|| usage(format!("there is no input {input}")))
    }

    /// Reads the next rows of an input, never beyond the window.
    fn read(&mut self, input: usize) -> Result<(), Stop> {
        let range = &self.window.ranges[input];
        let FastColumn { kind, required, path, files, numbered, pool, hasher, sources, .. } = &mut *self.column;
        let source = &mut sources[input];
        let first_row = source.row();
        if first_row < range.start || first_row >= range.end {
            return Err(usage(format!("input {input} is at row {first_row}, the window reads rows {range:?}")).into());
        }
        let mut shared = Shared { kind: *kind, numbered: *numbered, pool, hasher, scratch: self.scratch };
        let sink = self.sink;
        source.read(range.end, &mut shared, &mut |first_row, hashes| sink.came_in(input, first_row, hashes))?;
        let (slice, _) = source.slice();
        if slice.len() == 0 {
            let detail = format!("column `{path}` ends at row {first_row} of {}", range.end);
            return Err(ColumnarError::corrupt_file(&files[input], detail).into());
        }
        if *required && let Some(null) = slice.present.as_ref().and_then(|rows| rows.iter().position(|row| *row == 0)) {
            let (file, column) = (files[input].clone(), path.clone());
            return Err(ColumnarError::NullInRequired { file, column, row: first_row + null as u64 }.into());
        }
        if let Some(carried) = self.window.carried_out
            && carried.input as usize == input
            && (first_row..first_row + slice.len() as u64).contains(&carried.row)
        {
            self.carried_out = Value::of(slice, (carried.row - first_row) as usize, pool);
        }
        if source.row() == range.end && self.release {
            source.release();
        }
        Ok(())
    }
}

fn lane(kind: Kind, numbered: bool) -> Lane {
    match kind {
        _ if numbered => Lane::Ids(Vec::new()),
        Kind::I32 | Kind::F32 => Lane::Narrow(Vec::new()),
        Kind::I64 | Kind::F64 => Lane::Wide(Vec::new()),
        Kind::Text | Kind::Bytes => Lane::Ids(Vec::new()),
    }
}

/// Whether every chunk of the column has a small dictionary, as far as the footer tells.
fn has_small_dictionaries(input: &InputFile, column: usize) -> bool {
    let Ok(crate::resolve::ColumnPlan::Read(plan)) = input.plan(column) else { return true };
    input.metadata().row_groups().iter().all(|group| {
        plan.leaves.iter().all(|leaf| {
            let chunk = group.column(*leaf);
            chunk.dictionary_page_offset().is_some_and(|dictionary| {
                dictionary > 0
                    && (0..=SMALL_DICTIONARY_BYTES).contains(&chunk.data_page_offset().saturating_sub(dictionary))
            })
        })
    })
}

fn usage(detail: String) -> ColumnarError {
    ColumnarError::Usage { detail }
}
