//! Reads a written file again, with nothing in hand but its bytes (`verify: reread`, design section 5, "Rows and proof").

use arrow_schema::SchemaRef;
use firn_merge::order::{compare_keys, same_key};
use firn_merge::{KeyBatch, KeyOrder};
use firn_model::{KeyRange, RowOrder};

use crate::engine::{Hidden, KeyReader, KeyReading, MergeError, MergeInput, MergedFile, lean};
use crate::error::ColumnarError;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::proof::{RowHasher, RowSum, finish};

/// Rows whose hash states are held at once.
const BLOCK_ROWS: u64 = 1 << 20;

/// What a file was found to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reread {
    /// Rows.
    pub rows: u64,
    /// Sum of their hashes.
    pub row_sum: RowSum,
    /// Whether they follow the row order; true without one.
    pub sorted: bool,
    /// With dedup: whether no two rows share the key; false without.
    pub unique: bool,
    /// First and last key; None without an order or without rows.
    pub key_range: Option<KeyRange>,
}

/// Decodes every value of `file`, one column at a time, and looks at the order of its rows.
///
/// # Errors
/// What reading says, and a row order that does not fit `schema`.
pub fn reread(file: &InputFile, schema: &SchemaRef, order: &RowOrder) -> Result<Reread, MergeError> {
    let mut found = Reread {
        rows: file.rows(),
        row_sum: row_sum(file, schema)?,
        sorted: true,
        unique: order.dedup_columns.is_some(),
        key_range: None,
    };
    if !order.is_unordered() {
        look_at_keys(file, schema, order, &mut found)?;
    }
    Ok(found)
}

/// Compares a file that was read again with what the merge says of it.
///
/// # Errors
/// [`MergeError::Proof`] with the first difference; nothing of the merge may be used then.
pub fn verify_file(
    file: &InputFile,
    expected: &MergedFile,
    schema: &SchemaRef,
    order: &RowOrder,
) -> Result<Reread, MergeError> {
    let found = reread(file, schema, order)?;
    let broken = |detail: String| MergeError::Proof { place: format!("of `{}`, read again", file.name()), detail };
    if found.rows != expected.finished.rows {
        return Err(broken(format!("it has {} rows, {} were written", found.rows, expected.finished.rows)));
    }
    if found.row_sum != expected.row_sum {
        return Err(broken(format!("its rows sum up to {}, {} was written", found.row_sum, expected.row_sum)));
    }
    if !found.sorted {
        return Err(broken("its rows are not in row order".into()));
    }
    if order.dedup_columns.is_some() && !found.unique {
        return Err(broken("two of its rows have the same key".into()));
    }
    if found.key_range != expected.key_range {
        return Err(broken(format!("its keys are {:?}, {:?} was written", found.key_range, expected.key_range)));
    }
    Ok(found)
}

fn read_limit() -> BatchLimit {
    lean(BatchLimit::default())
}

fn row_sum(file: &InputFile, schema: &SchemaRef) -> Result<RowSum, ColumnarError> {
    let hasher = RowHasher::new(schema)?;
    let columns = (0..schema.fields().len()).map(|column| file.cursor(column, read_limit()));
    let mut cursors = columns.collect::<Result<Vec<_>, _>>()?;
    let mut sum = RowSum::ZERO;
    let mut start = 0;
    while start < file.rows() {
        let end = file.rows().min(start + BLOCK_ROWS);
        let mut states = vec![0; (end - start) as usize];
        for (column, cursor) in cursors.iter_mut().enumerate() {
            cursor.expect(end - start);
            while cursor.row() < end {
                let from = cursor.row();
                let Some(rows) = cursor.next((end - from) as usize)? else {
                    let detail = format!("column {column} ends at row {from} of {}", file.rows());
                    return Err(ColumnarError::corrupt_file(file.name(), detail));
                };
                let from = (from - start) as usize;
                hasher.add_column(column, rows.as_ref(), &mut states[from..from + rows.len()])?;
            }
            cursor.release();
        }
        sum += finish(&states);
        start = end;
    }
    Ok(sum)
}

fn look_at_keys(file: &InputFile, schema: &SchemaRef, order: &RowOrder, found: &mut Reread) -> Result<(), MergeError> {
    let (order, columns) = crate::engine::key_order(order, schema)?;
    let input = MergeInput { hidden: Hidden::None, ..MergeInput::of_table(file.clone(), 0, 0, file.rows()) };
    let mut reader = KeyReader::open(&input, &columns, KeyReading { limit: read_limit(), reopen: false })?;
    let mut last: Option<KeyBatch> = None;
    while let Some(batch) = reader.next(&order)? {
        if let Some(last) = &last {
            look_at_pair(&order, (last, last.rows() - 1), (&batch, 0), found);
        }
        for row in 1..batch.rows() {
            look_at_pair(&order, (&batch, row - 1), (&batch, row), found);
        }
        let keys = found.key_range.get_or_insert_with(|| {
            let first = batch.key_bytes(0).to_vec();
            KeyRange { last: first.clone(), first }
        });
        keys.last = batch.key_bytes(batch.rows() - 1).to_vec();
        last = Some(batch);
    }
    Ok(())
}

fn look_at_pair(order: &KeyOrder, left: (&KeyBatch, usize), right: (&KeyBatch, usize), found: &mut Reread) {
    found.sorted &= compare_keys(left.0, left.1, right.0, right.1).is_le();
    found.unique &= order.dedup() && !same_key(left.0, left.1, right.0, right.1);
}
