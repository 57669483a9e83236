//! Hashes of neighbouring rows on their way to the proof. They are added to the states of the rows where they are computed or looked up:
//! writing them down first would cost as much again.

use super::kind::Kind;
use super::lane::hide_nulls;
use super::pool::PooledWord;
use crate::proof::ColumnHasher;

/// The hashes of neighbouring rows of one column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowHashes<'a> {
    /// One a row.
    Each(&'a [u64]),
    /// Each row's number, and the hash of every number.
    Numbered(&'a [u32], &'a [u64]),
    /// Values of 4 bytes.
    Narrow(&'a [u32], Kind, &'a ColumnHasher),
    /// Values of 8 bytes.
    Wide(&'a [u64], Kind, &'a ColumnHasher),
}

impl<'a> RowHashes<'a> {
    /// The same where only the rows that are `present`, one byte each, have a value: a null adds nothing. They are written down in `written`.
    pub(crate) fn with_nulls(self, present: Option<&[u8]>, written: &'a mut Vec<u64>) -> RowHashes<'a> {
        let Some(present) = present else { return self };
        written.clear();
        written.resize(self.len(), 0);
        self.add_to(written);
        hide_nulls(written, present);
        RowHashes::Each(written)
    }

    /// Number of rows.
    pub(crate) fn len(self) -> usize {
        match self {
            RowHashes::Each(hashes) => hashes.len(),
            RowHashes::Numbered(numbers, _) => numbers.len(),
            RowHashes::Narrow(words, ..) => words.len(),
            RowHashes::Wide(words, ..) => words.len(),
        }
    }

    /// Adds each to the state of its row; there are as many states as rows.
    pub(crate) fn add_to(self, states: &mut [u64]) {
        match self {
            RowHashes::Each(hashes) => add(states, hashes.iter().copied()),
            // A number without a value is that of a null: it has no hash.
            RowHashes::Numbered(numbers, of) => {
                add(states, numbers.iter().map(|number| of.get(*number as usize).copied().unwrap_or(0)));
            }
            RowHashes::Narrow(words, kind, hasher) => add_words(states, words, kind, hasher),
            RowHashes::Wide(words, kind, hasher) => add_words(states, words, kind, hasher),
        }
    }
}

fn add_words<W: PooledWord>(states: &mut [u64], words: &[W], kind: Kind, hasher: &ColumnHasher) {
    add(states, words.iter().map(|word| word.proof_hash(kind, hasher)));
}

#[inline(always)]
fn add(states: &mut [u64], hashes: impl Iterator<Item = u64>) {
    for (state, hash) in states.iter_mut().zip(hashes) {
        *state = state.wrapping_add(hash);
    }
}
