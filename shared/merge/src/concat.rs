//! The merge of a table without a row order: files follow each other in commit order.

use std::ops::Range;

use crate::fault::MergeFault;
use crate::stretch::Stretches;
use crate::window::{Step, Window, WindowLimit};

/// Concatenates inputs by (data sequence number, source), whatever order they were given in. Needs no keys.
#[derive(Debug)]
pub struct Concat {
    /// Input numbers in commit order.
    order: Vec<usize>,
    rows: Vec<u64>,
    /// Next row of each input.
    next: Vec<u64>,
    /// Index into `order`.
    at: usize,
    stretches: Stretches,
}

impl Concat {
    /// One (data sequence number, source, rows) an input.
    ///
    /// # Errors
    /// [`MergeFault::Protocol`] when two inputs have the same sequence number and source.
    pub fn new(inputs: &[(i64, u32, u64)]) -> Result<Concat, MergeFault> {
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        let place = |input: &usize| (inputs[*input].0, inputs[*input].1);
        order.sort_by_key(place);
        if let Some(pair) = order.windows(2).find(|pair| place(&pair[0]) == place(&pair[1])) {
            return Err(MergeFault::Protocol(format!(
                "inputs {} and {} have the same place in commit order",
                pair[0], pair[1]
            )));
        }
        let rows = inputs.iter().map(|input| input.2).collect();
        Ok(Concat { order, rows, next: vec![0; inputs.len()], at: 0, stretches: Stretches::default() })
    }

    /// As [`Merge::with_stretches`](crate::Merge::with_stretches): nothing ever comes between rows here.
    pub fn with_stretches(mut self, stretches: Vec<Vec<Range<u64>>>) -> Concat {
        self.stretches = Stretches::new(stretches);
        self
    }

    /// The next window, or the end. Never asks for a batch.
    pub fn advance(&mut self, limit: &WindowLimit) -> Step {
        let mut window = Window::starting_at(self.next.iter().copied(), None);
        while let Some(&input) = self.order.get(self.at) {
            let row = self.next[input];
            let stretch = self.stretches.next(input, row).filter(|rows| rows.end <= self.rows[input]);
            let whole = stretch.as_ref().is_some_and(|rows| rows.start == row);
            let room = limit.rows.max(1).min(limit.consumed.max(1)) - window.rows;
            if room == 0 || window.runs.len() >= limit.runs.max(1) || whole && window.rows > 0 {
                break;
            }
            let count = match stretch {
                Some(rows) if whole => rows.end - rows.start,
                Some(rows) => room.min(rows.start - row),
                None => room.min(self.rows[input] - row),
            };
            if count > 0 {
                window.push(input as u32, self.next[input], count);
                self.next[input] += count;
                window.ranges[input].end = self.next[input];
            }
            if self.next[input] == self.rows[input] {
                self.at += 1;
            }
            if whole {
                window.whole = true;
                break;
            }
        }
        if window.rows == 0 { Step::Finished } else { Step::Window(window) }
    }
}
