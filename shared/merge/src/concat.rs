//! The merge of a table without a row order: files follow each other in commit order.

use crate::fault::MergeFault;
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
        Ok(Concat { order, rows: inputs.iter().map(|input| input.2).collect(), next: vec![0; inputs.len()], at: 0 })
    }

    /// The next window, or the end. Never asks for a batch.
    pub fn advance(&mut self, limit: &WindowLimit) -> Step {
        let mut window = Window::starting_at(self.next.iter().copied(), None);
        while let Some(&input) = self.order.get(self.at) {
            let room = limit.rows.max(1).min(limit.consumed.max(1)) - window.rows;
            if room == 0 || window.runs.len() >= limit.runs.max(1) {
                break;
            }
            let count = room.min(self.rows[input] - self.next[input]);
            if count > 0 {
                window.push(input as u32, self.next[input], count);
                self.next[input] += count;
                window.ranges[input].end = self.next[input];
            }
            if self.next[input] == self.rows[input] {
                self.at += 1;
            }
        }
        if window.rows == 0 { Step::Finished } else { Step::Window(window) }
    }
}
