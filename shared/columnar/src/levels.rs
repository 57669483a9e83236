//! A whole group: inputs that are unsorted are sorted first, and what does not fit at once is merged in levels.
//!
//! Parts are balanced and in commit order; they lie on temporary disk with hidden columns that say where each row comes from, so that
//! ties and deduplication are those of one merge (design section 5, "Streams").

use std::io::{self, Write};
use std::sync::Arc;

use crate::admit::balanced;
use crate::engine::{
    Hidden, MergeError, MergeInput, MergeReport, MergeRequest, OutputFactory, OutputSink, Space, Task, admission,
    check_inputs, compressed_bytes, run,
};
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::proof::RowSum;
use crate::sort_one::{disk_or, sort_one, temp_settings};
use crate::source::LocalFile;
use crate::temp::{TempFile, TempSpace, TempWriter};

/// What merging a group did.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupReport {
    /// Counts and sums over the whole group: rows in are those of its files, duplicates those of every level.
    pub merge: MergeReport,
    /// Times that a row was merged: 1 when all inputs fitted at once.
    pub levels: u32,
    /// Inputs that had to be sorted first.
    pub sorted_inputs: usize,
    /// The most temporary disk that was in use.
    pub temp_peak_bytes: u64,
}

/// Merges a group, whatever it takes: sorts inputs that are not sorted, merges in levels what does not fit at once. Blocks.
///
/// # Errors
/// [`MergeError::NeedsSpill`] when temporary disk or memory do not suffice, [`MergeError::OverBudget`] when not even two inputs fit;
/// [`MergeError::Unsorted`] never. After any error the outputs that were created, closed ones too, are void.
pub fn merge_group(
    mut request: MergeRequest,
    temp: &TempSpace,
    outputs: &mut dyn OutputFactory,
) -> Result<GroupReport, MergeError> {
    let mut inputs = std::mem::take(&mut request.inputs);
    check_inputs(&inputs)?;
    inputs.retain(|input| input.expected_rows > 0);
    let group = Group { request: &request, temp };
    let mut totals = Totals::default();
    loop {
        match admission(&group.task(&inputs, 0)) {
            Ok(_) => {}
            Err(MergeError::OverBudget { fan_in, .. }) if fan_in > 1 => {
                inputs = group.merge_level(inputs, fan_in, &mut totals)?;
                totals.levels += 1;
                continue;
            }
            Err(error) => return Err(error),
        }
        match run(&group.task(&inputs, 0), outputs) {
            Ok(report) => return totals.close(&inputs, report, temp),
            Err(MergeError::Unsorted { inputs: unsorted }) => {
                outputs.restart()?;
                group.sort(&mut inputs, &unsorted, 0, &mut totals)?;
            }
            Err(error) => return Err(error),
        }
    }
}

struct Group<'a> {
    request: &'a MergeRequest,
    temp: &'a TempSpace,
}

impl Group<'_> {
    /// A merge of `inputs` while `held_elsewhere` bytes of memory are taken by other open files of the group.
    fn task<'t>(&'t self, inputs: &'t [MergeInput], held_elsewhere: u64) -> Task<'t> {
        let memory_bytes = self.request.memory_bytes.saturating_sub(held_elsewhere);
        Task { inputs, memory_bytes, ..Task::of(self.request) }
    }

    /// Sorts the given inputs one by one; each keeps its place.
    fn sort(
        &self,
        inputs: &mut [MergeInput],
        unsorted: &[usize],
        held_elsewhere: u64,
        totals: &mut Totals,
    ) -> Result<(), MergeError> {
        for at in unsorted {
            let others = held_bytes(inputs) - inputs[*at].file.held_bytes();
            let task = self.task(&[], held_elsewhere + others);
            if inputs[*at].hidden != Hidden::None {
                // Firn sorted or merged this file itself.
                return Err(MergeError::Proof {
                    place: format!("of `{}`", inputs[*at].file.name()),
                    detail: "a temporary file is out of order".into(),
                });
            }
            inputs[*at] = sort_one(&task, &inputs[*at], self.temp)?;
            totals.sorted += 1;
        }
        Ok(())
    }

    /// Merges `fan_in` inputs at once at most into parts on temporary disk.
    fn merge_level(
        &self,
        inputs: Vec<MergeInput>,
        fan_in: usize,
        totals: &mut Totals,
    ) -> Result<Vec<MergeInput>, MergeError> {
        let parts = inputs.len().div_ceil(fan_in.max(2));
        self.check_disk(&inputs)?;
        let ranges: Vec<_> = balanced(inputs.len(), parts).collect();
        let mut waiting = inputs.into_iter();
        let mut merged = Vec::with_capacity(parts);
        for range in ranges {
            let mut part: Vec<MergeInput> = waiting.by_ref().take(range.len()).collect();
            if part.len() == 1 {
                merged.append(&mut part);
                continue;
            }
            let held = held_bytes(waiting.as_slice()) + held_bytes(&merged);
            merged.push(self.merge_part(part, held, totals)?);
        }
        Ok(merged)
    }

    fn merge_part(
        &self,
        mut inputs: Vec<MergeInput>,
        held: u64,
        totals: &mut Totals,
    ) -> Result<MergeInput, MergeError> {
        let settings = temp_settings(&self.request.settings);
        loop {
            let mut outputs = TempOutputs { temp: self.temp, file: None };
            let task = Task {
                settings: &settings,
                hidden: true,
                target_bytes: u64::MAX,
                min_file_bytes: 0,
                // Blocks go straight to the disk.
                upload_bytes: 0,
                ..self.task(&inputs, held)
            };
            let result = run(&task, &mut outputs).map_err(|error| {
                disk_or(error, |needed_bytes| MergeError::NeedsSpill {
                    what: format!("merging {} files to a part", inputs.len()),
                    needed_bytes,
                    budget_bytes: self.temp.budget_bytes(),
                    space: Space::Disk,
                })
            });
            match result {
                Ok(report) => {
                    totals.add(&inputs, &report);
                    return self.open_part(&inputs, &report, outputs.file);
                }
                Err(MergeError::Unsorted { inputs: unsorted }) => {
                    drop(outputs);
                    self.sort(&mut inputs, &unsorted, held, totals)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn open_part(
        &self,
        inputs: &[MergeInput],
        report: &MergeReport,
        file: Option<Arc<TempFile>>,
    ) -> Result<MergeInput, MergeError> {
        let (Some(file), Some(first)) = (file, inputs.first()) else {
            return Err(ColumnarError::Usage { detail: "a part without rows was merged".into() }.into());
        };
        let source = LocalFile::open(file.path())?;
        Ok(MergeInput {
            file: InputFile::open(Arc::new(source), &self.request.schema, None)?,
            sequence_number: first.sequence_number,
            source: first.source,
            expected_rows: report.rows_out,
            hidden: Hidden::All,
            expected_sum: Some(report.sum_out),
            temp: Some(file),
        })
    }

    /// A level writes every row once, less well compressed than it is; what was written before goes as it is read.
    fn check_disk(&self, inputs: &[MergeInput]) -> Result<(), MergeError> {
        let rows: u64 = inputs.iter().map(|input| input.file.rows()).sum();
        let bytes: u64 = inputs.iter().map(compressed_bytes).sum();
        let needed = bytes * 5 / 4 + rows * 4;
        if needed > self.temp.free_bytes() {
            return Err(MergeError::NeedsSpill {
                what: format!("merging {} files in levels", inputs.len()),
                needed_bytes: self.temp.used_bytes() + needed,
                budget_bytes: self.temp.budget_bytes(),
                space: Space::Disk,
            });
        }
        Ok(())
    }
}

fn held_bytes(inputs: &[MergeInput]) -> u64 {
    inputs.iter().map(|input| input.file.held_bytes()).sum()
}

/// Sums over the levels of a group.
#[derive(Debug, Default)]
struct Totals {
    /// Rows and sum of the files of the table.
    rows_in: u64,
    sum_in: RowSum,
    dropped: u64,
    sum_dropped: RowSum,
    levels: u32,
    sorted: usize,
}

impl Totals {
    fn add(&mut self, inputs: &[MergeInput], report: &MergeReport) {
        for (input, sum) in inputs.iter().zip(&report.input_sums) {
            if input.hidden != Hidden::All {
                self.rows_in += input.expected_rows;
                self.sum_in += *sum;
            }
        }
        self.dropped += report.duplicates_dropped;
        self.sum_dropped += report.sum_dropped;
    }

    /// The report of the group, after a last look at the sums over all levels.
    fn close(
        mut self,
        inputs: &[MergeInput],
        report: MergeReport,
        temp: &TempSpace,
    ) -> Result<GroupReport, MergeError> {
        self.add(inputs, &report);
        let balanced =
            self.rows_in == report.rows_out + self.dropped && self.sum_in == report.sum_out + self.sum_dropped;
        if !balanced {
            return Err(MergeError::Proof {
                place: "over all levels".into(),
                detail: format!(
                    "rows in {}, out {}, dropped {}; row sum in {}, out {}, dropped {}",
                    self.rows_in, report.rows_out, self.dropped, self.sum_in, report.sum_out, self.sum_dropped
                ),
            });
        }
        Ok(GroupReport {
            merge: MergeReport {
                rows_in: self.rows_in,
                duplicates_dropped: self.dropped,
                sum_in: self.sum_in,
                sum_dropped: self.sum_dropped,
                ..report
            },
            levels: self.levels + 1,
            sorted_inputs: self.sorted,
            temp_peak_bytes: temp.peak_bytes(),
        })
    }
}

/// The one output of a part.
struct TempOutputs<'a> {
    temp: &'a TempSpace,
    file: Option<Arc<TempFile>>,
}

impl OutputFactory for TempOutputs<'_> {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        if self.file.is_some() {
            return Err(ColumnarError::Usage { detail: "a part has one output".into() });
        }
        let writer = self.temp.create_file("part")?;
        let file = writer.file();
        self.file = Some(Arc::clone(&file));
        Ok(Box::new(TempSink { name: file.path().display().to_string(), writer }))
    }

    fn restart(&mut self) -> Result<(), ColumnarError> {
        self.file = None;
        Ok(())
    }
}

struct TempSink {
    name: String,
    writer: TempWriter,
}

impl Write for TempSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl OutputSink for TempSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn close(self: Box<Self>) -> Result<(), ColumnarError> {
        Ok(())
    }
}
