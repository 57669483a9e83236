//! A query answered by looking at every row.

use std::collections::HashMap;

use super::{Expression, Query};
use crate::text::words::{Next, Words};

/// Place of a word that the query does not have.
const OTHER: u32 = u32::MAX;

/// Looks at rows for one query.
#[derive(Debug)]
pub struct Scanner<'q> {
    query: &'q Query,
    /// The query's words, numbered.
    numbers: HashMap<&'q str, u32>,
    /// The leaves, in numbers.
    leaves: Vec<Vec<u32>>,
    /// The words of the row in work, one list a column.
    row: Vec<Vec<u32>>,
    word: String,
}

impl<'q> Scanner<'q> {
    /// A scanner for `query`.
    pub fn new(query: &'q Query) -> Scanner<'q> {
        let mut numbers = HashMap::new();
        let mut number = |word: &'q String| {
            let next = numbers.len() as u32;
            *numbers.entry(word.as_str()).or_insert(next)
        };
        let leaves = query.leaves.iter().map(|leaf| leaf.words.iter().map(&mut number).collect()).collect();
        Scanner { query, numbers, leaves, row: vec![Vec::new(); query.columns.len()], word: String::new() }
    }

    /// Whether a row matches: one value a column, in the order of [`Query::columns`].
    pub fn matches(&mut self, row: &[Option<&str>]) -> bool {
        for (text, found) in row.iter().zip(&mut self.row) {
            found.clear();
            let mut words = Words::of(text.unwrap_or_default());
            while words.next_into(&mut self.word, usize::MAX) == Next::Word {
                found.push(self.numbers.get(self.word.as_str()).copied().unwrap_or(OTHER));
            }
        }
        self.holds(&self.query.expression)
    }

    fn holds(&self, expression: &Expression) -> bool {
        match expression {
            Expression::All(parts) => parts.iter().all(|part| self.holds(part)),
            Expression::Any(parts) => parts.iter().any(|part| self.holds(part)),
            Expression::Not(part) => !self.holds(part),
            Expression::Leaf(leaf) => {
                let wanted = &self.leaves[*leaf];
                let has = |words: &Vec<u32>| words.windows(wanted.len()).any(|window| window == &wanted[..]);
                match self.query.leaves[*leaf].column {
                    Some(column) => has(&self.row[column]),
                    None => self.row.iter().any(has),
                }
            }
        }
    }
}
