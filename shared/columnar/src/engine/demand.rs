//! What a task takes, from the footers of its inputs.

use super::Task;
use super::error::MergeError;
use super::keys::key_columns;
use super::request::{Hidden, MergeInput};
use crate::admit::{InputDemand, JobDemand, KeyBatchDemand, LEAN_AHEAD_BYTES, LEAN_READ_BYTES, OpenCost};
use crate::error::ColumnarError;
use crate::fast::kind::common_kind;
use crate::input::InputFile;
use crate::limits::BatchLimit;

/// Read-ahead where memory is no concern.
const AHEAD_BYTES: usize = 256 << 10;
/// A row of the column in work: its value, once more without the nulls, and its index.
const GATHERED_ROW_BYTES: u64 = 20;
/// How often a dictionary is in memory, in its bytes, while it is found and sorted: values, slots of the table (twice as many as there
/// may be values, half of them in vain), ranks, the page. Not counted: pairs and old order while a full one is
/// sorted, five times more; measured peaks stay below what is admitted.
const DICTIONARY_FORMS: usize = 6;
/// What reading one hidden column takes: sequence numbers and sources are runs, positions a page of 8-byte values.
const HIDDEN_OPEN_BYTES: u64 = 512 << 10;
/// Start and length of an encoded key, and what its bytes take more than the values.
const KEY_OVERHEAD_BYTES: u64 = 24;

/// How keys of a file are read when memory is scarce. The merge asks for them input by input, so far ones are read ahead as ever: else it
/// would wait for one request after the other.
pub(super) fn key_limit(file: &InputFile, limit: BatchLimit) -> BatchLimit {
    if file.is_far() { BatchLimit { read_ahead: limit.read_ahead.max(AHEAD_BYTES), ..limit } } else { limit }
}

/// The same with small batches and little read-ahead.
pub(crate) fn lean(limit: BatchLimit) -> BatchLimit {
    BatchLimit {
        rows: limit.rows,
        bytes: limit.bytes.min(LEAN_READ_BYTES),
        read_ahead: limit.read_ahead.min(LEAN_AHEAD_BYTES),
    }
}

/// The task as the formula sees it.
pub(crate) fn job_demand(task: &Task<'_>) -> JobDemand {
    let rows: u64 = task.inputs.iter().map(|input| input.file.rows()).sum();
    let compressed: u64 = task.inputs.iter().map(compressed_bytes).sum();
    let hidden = if task.hidden { 4 } else { 0 };
    JobDemand {
        ordered: !task.order.is_unordered(),
        upload_bytes: task.upload_bytes,
        row_group_bytes: task.settings.row_group_bytes,
        max_row_group_rows: task.settings.max_row_group_rows.max(1) as u64,
        encoded_row_bytes: compressed.div_ceil(rows.max(1)) + hidden,
        // The dictionary as values, as hash table and in order, a page uncompressed and compressed.
        encoder_bytes: (DICTIONARY_FORMS * task.settings.dictionary_bytes + 2 * task.settings.page_bytes) as u64,
        gathered_row_bytes: if task.limits.fast_path { GATHERED_ROW_BYTES } else { 0 },
        chunk_bytes: task.limits.chunk_bytes as u64,
        key_rows: task.limits.key_rows.max(1) as u64,
        read_bytes: task.limits.read_bytes,
        ahead_bytes: AHEAD_BYTES,
        far: task.inputs.iter().any(|input| input.file.is_far()),
    }
}

/// One demand an input.
///
/// # Errors
/// A row order whose columns the schema does not have.
pub(crate) fn input_demands(task: &Task<'_>) -> Result<Vec<InputDemand>, MergeError> {
    let keys = key_columns(task.order, task.schema)?;
    let files = || task.inputs.iter().map(|input| &input.file);
    let fields = task.schema.fields().iter().enumerate();
    let fast: Vec<bool> =
        fields.map(|(column, field)| task.limits.fast_path && common_kind(field, column, files()).is_some()).collect();
    let demands = task.inputs.iter().map(|input| input_demand(task, input, &keys, &fast));
    Ok(demands.collect::<Result<_, _>>()?)
}

fn input_demand(
    task: &Task<'_>,
    input: &MergeInput,
    keys: &[usize],
    fast: &[bool],
) -> Result<InputDemand, ColumnarError> {
    let ordinary = BatchLimit { rows: task.limits.read_rows, bytes: task.limits.read_bytes, read_ahead: AHEAD_BYTES };
    let leaner = lean(ordinary);
    let cost = |column: usize, rows: usize, fast: bool, lean: BatchLimit| -> Result<OpenCost, ColumnarError> {
        let of = |limit: BatchLimit| {
            let limit = BatchLimit { rows, ..limit };
            if fast { input.file.fast_column_cost(column, &limit) } else { input.file.column_cost(column, &limit) }
        };
        let (open, lean) = (of(ordinary)?, of(lean)?);
        let opening = open.open_bytes.saturating_sub(open.held_bytes);
        Ok(OpenCost { open: open.held_bytes, lean: lean.held_bytes, opening })
    };
    let columns = fast.iter().enumerate().map(|(column, fast)| cost(column, ordinary.rows, *fast, leaner));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    let hidden_open = OpenCost { open: HIDDEN_OPEN_BYTES, lean: HIDDEN_OPEN_BYTES, opening: 0 };
    if task.hidden {
        columns.extend([hidden_open; 3]);
    }
    let hidden_keys = match input.hidden {
        Hidden::None => 0,
        Hidden::Position => 1,
        Hidden::All => 3,
    };
    let mut key_batch = KeyBatchDemand { row_bytes: KEY_OVERHEAD_BYTES + 8 * hidden_keys, value_bytes: Vec::new() };
    let mut key_cost =
        OpenCost { open: HIDDEN_OPEN_BYTES * hidden_keys, lean: HIDDEN_OPEN_BYTES * hidden_keys, opening: 0 };
    for key in keys {
        let open = cost(*key, task.limits.key_rows, false, key_limit(&input.file, leaner))?;
        key_cost.open += open.open;
        key_cost.lean += open.lean;
        key_cost.opening = key_cost.opening.max(open.opening);
        key_batch.value_bytes.push(input.file.column_cost(*key, &ordinary)?.bytes_per_row_decoded);
    }
    Ok(InputDemand {
        rows: input.file.rows(),
        footer_bytes: input.file.held_bytes(),
        columns,
        keys: key_cost,
        key_batch,
    })
}

/// Bytes of all column chunks as they stand in the file.
pub(crate) fn compressed_bytes(input: &MergeInput) -> u64 {
    let groups = input.file.metadata().row_groups();
    groups.iter().map(|group| u64::try_from(group.compressed_size()).unwrap_or(0)).sum()
}
