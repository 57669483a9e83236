//! The loop over windows.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use firn_merge::{Window, WindowLimit};

use super::Task;
use super::columns::{Column, WindowWork, WorkDone};
use super::demand::{input_demands, job_demand};
use super::error::MergeError;
use super::gather::ChunkLimit;
use super::keys::{KeyReading, Windows};
use super::ledger::{Ledger, SpareStates, WindowStates};
use super::output::Outputs;
use super::request::{Hidden, MergeInput, MergeReport, OutputFactory, POSITION_COLUMN, SEQUENCE_COLUMN, SOURCE_COLUMN};
use super::source::ColumnSource;
use crate::admit::{Admission, CONSUMED_PER_ROW, admit, window_runs};
use crate::copy::CopyPlan;
use crate::error::ColumnarError;
use crate::fast::column::FastColumn;
use crate::fast::page::Scratch;
use crate::limits::BatchLimit;
use crate::proof::RowHasher;

/// Runs one merge.
pub(crate) fn run(task: &Task<'_>, outputs: &mut dyn OutputFactory) -> Result<MergeReport, MergeError> {
    check_inputs(task.inputs)?;
    let admission = admission(task)?;
    let limit = BatchLimit {
        rows: task.limits.read_rows.max(1),
        bytes: admission.read_bytes,
        read_ahead: admission.ahead_bytes,
    };
    let key_rows = usize::try_from(admission.key_rows).unwrap_or(usize::MAX);
    let reading = KeyReading { limit: BatchLimit { rows: key_rows, ..limit }, reopen: admission.reopen_keys };
    let copies = CopyPlan::new(task, &admission, copying(task))?;
    let mut windows = Windows::new(task.inputs, task.order, task.schema, reading, copies.stretches())?;
    let schema = output_schema(task.schema, task.hidden);
    let mut job = Job {
        task,
        admission,
        hasher: RowHasher::new(task.schema)?,
        columns: columns(task, limit)?,
        ledger: Ledger::new(task.inputs.len()),
        copies,
        bytes_copied: 0,
        outputs: Outputs::new(task, schema, windows.key_signature(), outputs),
        scratches: Mutex::default(),
        spare_states: SpareStates::default(),
        windows: 0,
        largest_window: u64::MAX,
    };
    let mut next = windows.next(&job.window_limit())?;
    while let Some(window) = next {
        next = job.move_and_look_ahead(window, &mut windows)?;
    }
    job.finish()
}

/// Footers must agree with the table's metadata before anything is read, and files must be told apart: ties are decided by their places.
pub(crate) fn check_inputs(inputs: &[MergeInput]) -> Result<(), MergeError> {
    if let Some(input) = inputs.iter().find(|input| input.file.rows() != input.expected_rows) {
        return Err(MergeError::RowCount {
            file: input.file.name().to_owned(),
            expected: input.expected_rows,
            found: input.file.rows(),
        });
    }
    let mut places = HashMap::new();
    for input in inputs.iter().filter(|input| input.hidden != Hidden::All) {
        if let Some(other) = places.insert((input.sequence_number, input.source), input.file.name()) {
            let detail = format!("`{other}` and `{}` have the same place in commit order", input.file.name());
            return Err(ColumnarError::Usage { detail }.into());
        }
    }
    Ok(())
}

/// Lays the task out in memory.
pub(crate) fn admission(task: &Task<'_>) -> Result<Admission, MergeError> {
    let demands = input_demands(task)?;
    let job = job_demand(task);
    let over = |needed_bytes, fan_in| MergeError::OverBudget {
        inputs: task.inputs.len(),
        needed_bytes,
        budget_bytes: task.memory_bytes,
        fan_in,
    };
    match admit(&job, &demands, task.memory_bytes, task.threads) {
        Ok(admission) if job.ordered && task.inputs.len() > task.limits.fan_in => {
            Err(over(admission.needed_bytes, task.limits.fan_in))
        }
        Ok(admission) => Ok(admission),
        Err(refusal) => Err(over(refusal.needed_bytes, refusal.fan_in.min(task.limits.fan_in))),
    }
}

/// The target schema, with the hidden columns of temporary files behind it.
pub(crate) fn output_schema(schema: &SchemaRef, hidden: bool) -> SchemaRef {
    if !hidden {
        return Arc::clone(schema);
    }
    let names = [SEQUENCE_COLUMN, SOURCE_COLUMN, POSITION_COLUMN];
    let hidden = names.map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
    let fields: Vec<_> = schema.fields().iter().cloned().chain(hidden).collect();
    Arc::new(Schema::new_with_metadata(fields, HashMap::new()))
}

/// The columns of the output, none of them open.
fn columns<'a>(task: &Task<'a>, limit: BatchLimit) -> Result<Vec<Column<'a>>, ColumnarError> {
    let mut columns = Vec::new();
    for at in 0..task.schema.fields().len() {
        let sources = task.inputs.iter().map(|input| ColumnSource::of_column(&input.file, at, limit));
        let mut weight = 0;
        for input in task.inputs {
            weight += input.file.column_cost(at, &limit)?.uncompressed;
        }
        let fast = match fast_path(task) {
            true => FastColumn::new(&task.schema.fields()[at], at, task.inputs.iter().map(|input| &input.file), limit)?,
            false => None,
        };
        columns.push(Column::new(sources.collect::<Result<_, _>>()?, fast, true, weight));
    }
    if task.hidden {
        for name in [SEQUENCE_COLUMN, SOURCE_COLUMN, POSITION_COLUMN] {
            let sources = task.inputs.iter().map(|input| hidden_source(input, name, limit));
            columns.push(Column::new(sources.collect::<Result<_, _>>()?, None, false, 0));
        }
    }
    Ok(columns)
}

/// What a test does to rows is done to arrays.
#[cfg(test)]
pub(crate) fn fast_path(task: &Task<'_>) -> bool {
    task.limits.fast_path && task.tamper.is_none()
}

#[cfg(not(test))]
pub(crate) fn fast_path(task: &Task<'_>) -> bool {
    task.limits.fast_path
}

/// What a test does to rows is done to arrays.
fn copying(task: &Task<'_>) -> bool {
    #[cfg(test)]
    if task.tamper.is_some() {
        return false;
    }
    task.limits.copy
}

fn hidden_source<'a>(
    input: &'a MergeInput,
    name: &'static str,
    limit: BatchLimit,
) -> Result<ColumnSource<'a>, ColumnarError> {
    let rows = input.file.rows();
    match (name, input.hidden) {
        (_, Hidden::All) | (POSITION_COLUMN, Hidden::Position) => ColumnSource::of_name(&input.file, name, limit),
        (SEQUENCE_COLUMN, _) => Ok(ColumnSource::constant(input.sequence_number, rows)),
        (SOURCE_COLUMN, _) => Ok(ColumnSource::constant(input.source.into(), rows)),
        _ => Ok(ColumnSource::row_numbers(rows)),
    }
}

/// What came of a window.
enum Tried {
    Done,
    /// Nothing was done: half of it may fit.
    TooLarge,
    /// Nothing was done: the next try goes another way.
    Again,
}

/// A merge in progress.
struct Job<'a, 'o> {
    task: &'a Task<'a>,
    admission: Admission,
    hasher: RowHasher,
    columns: Vec<Column<'a>>,
    ledger: Ledger,
    copies: CopyPlan,
    bytes_copied: u64,
    outputs: Outputs<'a, 'o>,
    scratches: Mutex<Vec<Scratch>>,
    spare_states: SpareStates,
    windows: u64,
    /// Rows that a window may have after one was too large; grows again with every one that was not.
    largest_window: u64,
}

impl Job<'_, '_> {
    /// A window is a row group: by what rows have taken up to now, and by what was admitted.
    fn window_limit(&self) -> WindowLimit {
        let by_bytes = match self.outputs.row_bytes() {
            Some(row_bytes) => (self.task.settings.row_group_bytes as f64 / row_bytes) as u64,
            None => u64::MAX,
        };
        let rows = self.admission.window_rows.min(by_bytes).min(self.largest_window).max(1);
        WindowLimit {
            rows,
            consumed: rows.saturating_mul(CONSUMED_PER_ROW),
            runs: usize::try_from(window_runs(rows)).unwrap_or(usize::MAX),
        }
    }

    /// Moves a window while the keys of the next one are merged, where there is more than one thread.
    fn move_and_look_ahead(&mut self, window: Window, windows: &mut Windows<'_>) -> Result<Option<Window>, MergeError> {
        let limit = self.window_limit();
        if self.admission.threads == 1 {
            self.move_window(window)?;
            return windows.next(&limit);
        }
        let (moved, next) = thread::scope(|scope| {
            let keys = scope.spawn(|| windows.next(&limit));
            let moved = self.move_window(window);
            (moved, keys.join())
        });
        moved?;
        match next {
            Ok(next) => next,
            // Keys are bytes of others: a panic of the thread goes on here, where whoever called contains it.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Moves a window, in halves where its rows turn out to be larger than those before.
    fn move_window(&mut self, window: Window) -> Result<(), MergeError> {
        if window.whole {
            return self.copy_window(&window);
        }
        let most = self.window_limit().rows;
        let mut waiting = vec![window];
        let mut may_roll = true;
        while let Some(window) = waiting.pop() {
            if self.task.stop.is_set() {
                return Err(MergeError::Stopped);
            }
            // A row group that was to be copied and has turned out not to be whole makes its window longer than others.
            let window = match window.clone().split(most).filter(|_| window.rows > most) {
                Some((first, rest)) => {
                    waiting.push(rest);
                    first
                }
                None => window,
            };
            match self.try_window(&window, may_roll)? {
                Tried::Done => {
                    self.largest_window = self.largest_window.saturating_mul(2);
                    // Halves have one file: the keys between them are not known.
                    may_roll = false;
                    continue;
                }
                Tried::Again => {
                    may_roll = false;
                    waiting.push(window);
                    continue;
                }
                Tried::TooLarge => {}
            }
            let half = window.rows / 2;
            self.largest_window = half.max(1);
            match window.split(half) {
                Some((first, second)) => waiting.extend([second, first]),
                None => return Err(ColumnarError::Usage { detail: "a window of one row was too large".into() }.into()),
            }
        }
        Ok(())
    }

    /// Moves a window.
    fn try_window(&mut self, window: &Window, may_roll: bool) -> Result<Tried, MergeError> {
        let states = WindowStates::new(window, std::mem::take(&mut self.spare_states));
        let output = match window.rows {
            0 => None,
            _ => Some(self.outputs.open_next(self.ledger.rows_in, may_roll)?),
        };
        let limits = &self.task.limits;
        let work = WindowWork {
            window,
            limit: ChunkLimit {
                rows: limits.chunk_rows.max(1),
                bytes: limits.chunk_bytes,
                read_rows: limits.read_rows.max(1),
            },
            release: !self.admission.keep_open,
            hasher: &self.hasher,
            states: &states,
            output: output.as_ref().map(|(encoders, rows)| (encoders, *rows)),
            threads: self.admission.threads,
            scratches: &self.scratches,
            encoded_limit: self.admission.encoded_bytes,
            encoded: AtomicU64::new(0),
            #[cfg(test)]
            tamper: self.task.tamper,
        };
        let encoded = match work.run(&mut self.columns)? {
            WorkDone::Encoded(encoded) => encoded,
            WorkDone::TooLarge => return Ok(Tried::TooLarge),
            WorkDone::Again => return Ok(Tried::Again),
        };
        // The proof before the append: what does not add up never reaches the sink as a row group.
        let (sum, spare) = self.ledger.enter(window, states)?;
        self.spare_states = spare;
        self.columns.iter_mut().for_each(Column::settle);
        if window.rows > 0 {
            self.outputs.append(window, encoded, Some(sum))?;
        }
        self.windows += 1;
        Ok(Tried::Done)
    }

    /// Copies a window that is a row group.
    fn copy_window(&mut self, window: &Window) -> Result<(), MergeError> {
        if self.task.stop.is_set() {
            return Err(MergeError::Stopped);
        }
        let group = self.copies.group(window)?;
        self.outputs.open_next(self.ledger.rows_in, true)?;
        self.ledger.copy(window, group.sum)?;
        self.columns.iter_mut().try_for_each(|column| column.skip(window))?;
        self.bytes_copied += group.bytes;
        self.outputs.append(window, group.columns, group.sum)?;
        self.windows += 1;
        Ok(())
    }

    fn finish(self) -> Result<MergeReport, MergeError> {
        self.ledger.close()?;
        for (input, (rows, sum)) in
            self.task.inputs.iter().zip(self.ledger.input_rows.iter().zip(&self.ledger.input_sums))
        {
            if *rows != input.expected_rows {
                let file = input.file.name().to_owned();
                return Err(MergeError::RowCount { file, expected: input.expected_rows, found: *rows });
            }
            if let Some(expected) = input.expected_sum
                && expected != *sum
            {
                return Err(MergeError::Proof {
                    place: format!("of `{}`", input.file.name()),
                    detail: format!("its rows sum up to {sum}, {expected} was written"),
                });
            }
        }
        let (outputs, in_files) = self.outputs.finish()?;
        if in_files != self.ledger.sum_out {
            return Err(MergeError::Proof {
                place: "over all outputs".into(),
                detail: format!("they sum up to {in_files}, {} went out", self.ledger.sum_out),
            });
        }
        Ok(MergeReport {
            rows_in: self.ledger.rows_in,
            rows_out: self.ledger.rows_out,
            duplicates_dropped: self.ledger.dropped,
            outputs,
            sum_in: self.ledger.sum_in(),
            sum_out: self.ledger.sum_out,
            sum_dropped: self.ledger.sum_dropped,
            input_sums: self.ledger.input_sums,
            windows: self.windows,
            row_groups_copied: self.ledger.groups_copied,
            bytes_copied: self.bytes_copied,
            rows_by_bytes: self.ledger.rows_by_bytes,
            admission: self.admission,
        })
    }
}
