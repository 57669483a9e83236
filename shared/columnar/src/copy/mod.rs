//! Row groups that go to an output as they stand in their file (`docs/decisions/copying.md`).
//!
//! - [`decide`]: which row groups may, from footers alone; [`group_claims`]: what Firn's own files say of each of their row groups;
//! - [`chunk`]: the encoded bytes of a column chunk, walked and checked before they go anywhere; [`index`]: what stands elsewhere in the file.
//!
//! That nothing comes between the rows of a row group is seen by the merge, from the keys.

pub(crate) mod chunk;
mod decide;
pub(crate) mod group_claims;
mod index;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_merge::Window;
use parquet::schema::types::SchemaDescriptor;

use crate::admit::Admission;
use crate::engine::{EngineLimits, Hidden, MergeInput, Task};
use crate::error::ColumnarError;
use crate::input::FileInner;
use crate::proof::RowSum;
use crate::writer::schema::parquet_schema;
use crate::writer::{EncodedColumn, WriterSettings};
use chunk::CopiedChunk;
use decide::{Copy, FileColumns, Rules, decide};
use group_claims::{GroupClaims, GroupNans};
use index::GroupIndex;

/// The row groups of a merge's inputs that are copied where nothing comes between their rows.
pub(crate) struct CopyPlan {
    inputs: Vec<Option<InputPlan>>,
}

struct InputPlan {
    file: Arc<FileInner>,
    columns: FileColumns,
    claims: GroupClaims,
    /// The file has the columns of the table and no others: sums of its rows hold.
    same_columns: bool,
    /// Which row groups may be copied.
    copied: Vec<bool>,
}

/// A row group on its way.
pub(crate) struct CopiedGroup {
    /// One a column of the output; nothing of them has been read.
    pub(crate) columns: Vec<EncodedColumn>,
    pub(crate) bytes: u64,
    /// The sum of its rows by the footer, when Firn wrote it.
    pub(crate) sum: Option<RowSum>,
}

impl CopyPlan {
    /// Looks at every row group of every input; none of them is copied where `wanted` is false.
    pub(crate) fn new(task: &Task<'_>, admission: &Admission, wanted: bool) -> Result<CopyPlan, ColumnarError> {
        if !wanted || task.hidden {
            return Ok(CopyPlan { inputs: task.inputs.iter().map(|_| None).collect() });
        }
        let output = Arc::new(SchemaDescriptor::new(parquet_schema("output", task.schema)?));
        let rules = rules(task.settings, &task.limits, admission);
        let inputs = task.inputs.iter().map(|input| InputPlan::new(input, task.schema, &output, &rules));
        Ok(CopyPlan { inputs: inputs.collect() })
    }

    /// Rows of the row groups that may be copied, an input each.
    pub(crate) fn stretches(&self) -> Vec<Vec<Range<u64>>> {
        let of = |plan: &InputPlan| {
            let groups = plan.copied.iter().enumerate().filter(|(_, copied)| **copied);
            groups.map(|(group, _)| plan.rows(group)).collect()
        };
        self.inputs.iter().map(|plan| plan.as_ref().map(of).unwrap_or_default()).collect()
    }

    /// The row group whose rows make a whole window.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when there is none, or what reading its indexes says.
    pub(crate) fn group(&self, window: &Window) -> Result<CopiedGroup, ColumnarError> {
        let found = match window.runs.as_slice() {
            [run] => self.inputs.get(run.input as usize).and_then(Option::as_ref).and_then(|plan| {
                let group = plan.file.footer.group_starts.binary_search(&run.first_row).ok()?;
                let whole = plan.rows(group).end == run.first_row + u64::from(run.count);
                (whole && plan.copied.get(group) == Some(&true)).then_some((plan, group))
            }),
            _ => None,
        };
        match found {
            Some((plan, group)) => plan.open(group),
            None => Err(ColumnarError::Usage { detail: "a window is no row group that may be copied".into() }),
        }
    }
}

fn rules(settings: &WriterSettings, limits: &EngineLimits, admission: &Admission) -> Rules {
    Rules {
        codec: settings.compression,
        encodings: settings.encodings,
        bloom_filters: settings.bloom_filters.clone(),
        statistics_bytes: settings.statistics_bytes(),
        least_bytes: (settings.row_group_bytes / 2).max(limits.copy_least_bytes),
        least_rows: (settings.max_row_group_rows as u64).div_ceil(2).max(1),
        floor_bytes: limits.copy_least_bytes,
        most_bytes: limits.copy_most_bytes,
        // Nothing is encoded meanwhile: its memory holds the chunk that is written and the one that is read.
        most_chunk_bytes: admission.encoded_bytes / 2,
    }
}

impl InputPlan {
    fn new(input: &MergeInput, schema: &SchemaRef, output: &Arc<SchemaDescriptor>, rules: &Rules) -> Option<InputPlan> {
        let file = input.file.inner();
        let decoded = |group: Option<usize>, reason: &dyn std::fmt::Display| {
            tracing::debug!(file = %file.name, group, %reason, "not copied");
        };
        if input.hidden != Hidden::None {
            return None;
        }
        let columns = match FileColumns::of(&input.file, schema.fields().len(), output) {
            Ok(columns) => columns,
            Err(reason) => {
                decoded(None, &reason);
                return None;
            }
        };
        let metadata = &file.footer.metadata;
        let copied: Vec<bool> = (0..metadata.num_row_groups())
            .map(|group| match decide(metadata, group, &columns, rules) {
                Copy::Yes => true,
                Copy::No(reason) => {
                    decoded(Some(group), &reason);
                    false
                }
            })
            .collect();
        if !copied.contains(&true) {
            return None;
        }
        let same_columns = metadata.file_metadata().schema().get_fields().len() == schema.fields().len();
        let claims = GroupClaims::read(metadata);
        Some(InputPlan { columns, claims, same_columns, copied, file })
    }

    fn rows(&self, group: usize) -> Range<u64> {
        let starts = &self.file.footer.group_starts;
        starts.get(group).copied().unwrap_or(0)..starts.get(group + 1).copied().unwrap_or(0)
    }

    fn open(&self, group: usize) -> Result<CopiedGroup, ColumnarError> {
        let mut index = GroupIndex::read(&self.file, group);
        let nans = self.claims.nans(group);
        let rows = self.rows(group);
        let rows = rows.end - rows.start;
        let mut bytes = 0;
        let columns = self.columns.leaves.iter().enumerate().map(|(column, leaves)| {
            let chunks = leaves.iter().map(|(leaf, descriptor)| {
                let (column_index, offset_index) = index.take(*leaf);
                CopiedChunk::new(&self.file, group, *leaf, Arc::clone(descriptor), column_index, offset_index)
            });
            let chunks = chunks.collect::<Result<Vec<_>, _>>()?;
            bytes += chunks.iter().map(CopiedChunk::bytes).sum::<u64>();
            let nans = leaves.iter().map(|(_, descriptor)| GroupNans::of(nans, descriptor)).collect();
            Ok(EncodedColumn::copied(column, rows, nans, chunks))
        });
        let columns = columns.collect::<Result<Vec<_>, ColumnarError>>()?;
        let sum = if self.same_columns { self.claims.sum(group) } else { None };
        Ok(CopiedGroup { columns, bytes, sum })
    }
}
