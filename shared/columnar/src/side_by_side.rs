//! Columns of a file that are read side by side. Each cursor gives as many rows as suits it; here all give the same.

use arrow_array::{Array, ArrayRef};

use crate::cursor::ColumnCursor;
use crate::error::ColumnarError;

/// Several columns of one file.
#[derive(Debug)]
pub struct SideBySide {
    cursors: Vec<ColumnCursor>,
    /// What was read and not given yet, a column each.
    held: Vec<ArrayRef>,
}

impl SideBySide {
    /// Reads these columns, which stand at the same row.
    pub fn new(cursors: Vec<ColumnCursor>) -> SideBySide {
        SideBySide { cursors, held: Vec::new() }
    }

    /// The next rows, `most` at most: arrays of one length, one a column; None after the last row.
    ///
    /// # Errors
    /// As [`ColumnCursor::next`].
    pub fn next(&mut self, most: usize) -> Result<Option<Vec<ArrayRef>>, ColumnarError> {
        let mut held = std::mem::take(&mut self.held).into_iter();
        let mut arrays = Vec::with_capacity(self.cursors.len());
        for cursor in &mut self.cursors {
            let left = held.next().filter(|array| !array.is_empty());
            let next = match left {
                Some(array) => Some(array),
                None => cursor.next(most)?,
            };
            let Some(array) = next else { return Ok(None) };
            arrays.push(array);
        }
        let rows = arrays.iter().map(|array| array.len()).min().unwrap_or(0);
        self.held = arrays.iter().map(|array| array.slice(rows, array.len() - rows)).collect();
        Ok((rows > 0).then(|| arrays.iter().map(|array| array.slice(0, rows)).collect()))
    }
}
