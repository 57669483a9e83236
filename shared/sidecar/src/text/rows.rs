//! Sets of rows of a file.

/// A set of row numbers below a number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    rows: u64,
    words: Vec<u64>,
}

impl RowSet {
    /// No row of `rows`.
    pub fn none(rows: u64) -> RowSet {
        RowSet { rows, words: vec![0; rows.div_ceil(64) as usize] }
    }

    /// How many rows there are, in the set or not.
    pub fn of_rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row. One that is not below the number of rows changes nothing.
    pub fn insert(&mut self, row: u64) {
        if row < self.rows {
            self.words[(row / 64) as usize] |= 1 << (row % 64);
        }
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: u64) -> bool {
        row < self.rows && self.words[(row / 64) as usize] & (1 << (row % 64)) != 0
    }

    /// How many rows are in the set.
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// True when no row is.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Keeps the rows that are in both.
    pub fn intersect(&mut self, other: &RowSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Adds the rows of the other.
    pub fn unite(&mut self, other: &RowSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// The rows that are not in the set.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        let spare = self.rows % 64;
        if let Some(last) = self.words.last_mut().filter(|_| spare > 0) {
            *last &= (1 << spare) - 1;
        }
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let base = at as u64 * 64;
            std::iter::successors(Some(*word).filter(|word| *word != 0), |word| {
                Some(word & (word - 1)).filter(|word| *word != 0)
            })
            .map(move |word| base + u64::from(word.trailing_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(rows: u64, members: &BTreeSet<u64>) -> RowSet {
        let mut set = RowSet::none(rows);
        members.iter().for_each(|row| set.insert(*row));
        set
    }

    proptest! {
        #[test]
        fn sets_are_as_those_of_the_standard_library(
            rows in 0_u64..200,
            a in proptest::collection::btree_set(0_u64..200, 0..60),
            b in proptest::collection::btree_set(0_u64..200, 0..60),
        ) {
            let below = |set: &BTreeSet<u64>| set.iter().copied().filter(|row| *row < rows).collect::<BTreeSet<_>>();
            let (left, right) = (below(&a), below(&b));
            let (mut both, mut either, mut others) = (set(rows, &a), set(rows, &a), set(rows, &a));
            let listed = |set: &RowSet| set.iter().collect::<Vec<_>>();
            prop_assert_eq!(listed(&both), left.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(both.len(), left.len() as u64);
            both.intersect(&set(rows, &b));
            either.unite(&set(rows, &b));
            others.invert();
            prop_assert_eq!(listed(&both), left.intersection(&right).copied().collect::<Vec<_>>());
            prop_assert_eq!(listed(&either), left.union(&right).copied().collect::<Vec<_>>());
            prop_assert_eq!(listed(&others), (0..rows).filter(|row| !left.contains(row)).collect::<Vec<_>>());
            prop_assert!((0..200).all(|row| others.contains(row) == (row < rows && !left.contains(&row))));
            prop_assert_eq!(both.is_empty(), both.iter().next().is_none());
        }
    }
}
