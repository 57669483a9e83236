//! Reads a written file again, with nothing in hand but its bytes (`verify: reread`, design section 5, "Rows and proof").

use arrow_schema::SchemaRef;
use firn_merge::order::{compare_keys, same_key};
use firn_merge::{KeyBatch, KeyOrder};
use firn_model::{KeyRange, RowOrder};

use crate::engine::{GroupProof, Hidden, KeyReader, KeyReading, MergeError, MergeInput, MergedFile, lean};
use crate::error::ColumnarError;
use crate::footer::chunk_range;
use crate::input::InputFile;
use crate::limits::BatchLimit;
use crate::proof::{RowHasher, RowSum, finish};
use crate::writer::copied_digest;

/// Rows whose hash states are held at once.
const BLOCK_ROWS: u64 = 1 << 20;
/// Bytes that are read at once for a checksum.
const CRC_BYTES: u64 = 1 << 20;

/// What a file was found to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reread {
    /// Rows.
    pub rows: u64,
    /// Sum of their hashes.
    pub row_sum: RowSum,
    /// The same of each row group.
    pub group_sums: Vec<RowSum>,
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
    let group_sums = group_sums(file, schema)?;
    let mut found = Reread {
        rows: file.rows(),
        row_sum: group_sums.iter().copied().sum(),
        group_sums,
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
    if found.group_sums.len() != expected.groups.len() {
        let (found, expected) = (found.group_sums.len(), expected.groups.len());
        return Err(broken(format!("it has {found} row groups, {expected} were written")));
    }
    for (group, (found, expected)) in found.group_sums.iter().zip(&expected.groups).enumerate() {
        match expected {
            GroupProof::Rows(sum) if found != sum => {
                return Err(broken(format!("the rows of row group {group} sum up to {found}, {sum} was written")));
            }
            GroupProof::Rows(_) => {}
            GroupProof::Bytes { crc } => {
                let found = encoded_crc(file, group)?;
                if found != *crc {
                    let detail = format!("row group {group} has CRC {found:016x}, {crc:016x} was copied");
                    return Err(broken(detail));
                }
            }
        }
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

/// CRC-64 of the encoded columns of a row group, one after the other.
fn encoded_crc(file: &InputFile, group: usize) -> Result<u64, ColumnarError> {
    let inner = file.inner();
    let mut digest = copied_digest();
    for chunk in inner.footer.metadata.row_group(group).columns() {
        let mut range = chunk_range(chunk).unwrap_or(0..0);
        while !range.is_empty() {
            let end = range.end.min(range.start + CRC_BYTES);
            digest.update(&inner.source.read(range.start..end)?);
            range.start = end;
        }
    }
    Ok(digest.finalize())
}

fn group_sums(file: &InputFile, schema: &SchemaRef) -> Result<Vec<RowSum>, ColumnarError> {
    let hasher = RowHasher::new(schema)?;
    let columns = (0..schema.fields().len()).map(|column| file.cursor(column, read_limit()));
    let mut cursors = columns.collect::<Result<Vec<_>, _>>()?;
    let starts = file.inner().footer.group_starts.clone();
    let mut sums = Vec::with_capacity(starts.len().saturating_sub(1));
    for group in starts.windows(2) {
        let mut sum = RowSum::ZERO;
        let mut start = group[0];
        while start < group[1] {
            let end = group[1].min(start + BLOCK_ROWS);
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
        sums.push(sum);
    }
    Ok(sums)
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
