//! Chosen rows of a column: runs of neighbours, each read as the pieces that suit the cursor.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};

use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;

/// Rows of a run at most.
const ROWS: u64 = 8192;

/// Ascending rows as runs of neighbours, none longer than is read at once.
pub fn runs(rows: &[u64]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for row in rows {
        match runs.last_mut() {
            Some(run) if run.end == *row && run.end - run.start < ROWS => run.end += 1,
            _ => runs.push(*row..row + 1),
        }
    }
    runs
}

/// The rows of a run, which does not begin behind the cursor. Each cursor gives as many rows as suits it: a column comes in pieces of its own.
///
/// # Errors
/// [`ColumnarError::Usage`] when the column ends before; what reading says.
pub fn read_run(column: &mut ColumnCursor, run: &Range<u64>) -> Result<Vec<ArrayRef>, ColumnarError> {
    column.skip(run.start - column.row())?;
    let mut pieces = Vec::new();
    let mut left = run.end - run.start;
    while left > 0 {
        let piece = column.next(usize::try_from(left).unwrap_or(usize::MAX))?;
        let early = || ColumnarError::Usage { detail: format!("a column ends {left} rows too early") };
        let piece = piece.ok_or_else(early)?;
        left -= piece.len() as u64;
        pieces.push(piece);
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_together() {
        assert_eq!(runs(&[]), Vec::<Range<u64>>::new());
        assert_eq!(runs(&[0, 1, 2, 7, 9, 10]), [0..3, 7..8, 9..11]);
        let many: Vec<u64> = (0..ROWS + 2).collect();
        assert_eq!(runs(&many), [0..ROWS, ROWS..ROWS + 2]);
    }
}
