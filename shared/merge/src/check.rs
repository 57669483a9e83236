//! Whether one input is in row order, checked as its keys come in.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::fault::MergeFault;
use crate::order::{KeyBatch, compare};

/// Checks the batches of one input, within and across their borders. A writer's claim is never taken for granted.
#[derive(Debug)]
pub struct SortCheck {
    input: usize,
    dedup: bool,
    last: Option<Arc<KeyBatch>>,
    rows: u64,
}

impl SortCheck {
    /// A check for `input`; with `dedup` rows that repeat the key before them are reported too.
    pub fn new(input: usize, dedup: bool) -> SortCheck {
        SortCheck { input, dedup, last: None, rows: 0 }
    }

    /// Rows checked so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the next batch. Returns, with dedup, the rows of the batch (from its second on) that have the key of the row before.
    ///
    /// # Errors
    /// [`MergeFault::Unsorted`] with the first row out of order; [`MergeFault::Protocol`] when rows are missing between batches.
    pub fn take(&mut self, batch: &Arc<KeyBatch>) -> Result<Vec<u32>, MergeFault> {
        if batch.first_row() != self.rows {
            return Err(MergeFault::Protocol(format!(
                "input {}: batch starts at row {}, expected {}",
                self.input,
                batch.first_row(),
                self.rows
            )));
        }
        if batch.rows() == 0 {
            return Ok(Vec::new());
        }
        if let Some(last) = &self.last
            && compare(last, last.rows() - 1, batch, 0) == Ordering::Greater
        {
            return Err(self.unsorted(batch, 0));
        }
        let mut repeats = Vec::new();
        let mut keys = batch.keys();
        let mut before = keys.next();
        for (row, key) in (1..).zip(keys) {
            // One comparison a row: only rows of equal keys need another look.
            match before.cmp(&Some(key)) {
                Ordering::Less => {}
                Ordering::Greater => return Err(self.unsorted(batch, row)),
                Ordering::Equal => {
                    if compare(batch, row - 1, batch, row) == Ordering::Greater {
                        return Err(self.unsorted(batch, row));
                    }
                    if self.dedup {
                        repeats.push(row as u32);
                    }
                }
            }
            before = Some(key);
        }
        self.rows += batch.rows() as u64;
        self.last = Some(Arc::clone(batch));
        Ok(repeats)
    }

    fn unsorted(&self, batch: &KeyBatch, row: usize) -> MergeFault {
        MergeFault::Unsorted { input: self.input, row: batch.first_row() + row as u64 }
    }
}
