//! Distinct values of 4 and 8 bytes.

use super::sample::looks_distinct;
use super::slots::{Found, Slots};
use crate::Word;

/// The distinct values of a column in order of first appearance, and for each row the index of its value. Keeps its memory from one
/// column to the next.
#[derive(Debug, Default)]
pub struct Distinct<W> {
    slots: Slots<W>,
    values: Vec<W>,
    indices: Vec<u32>,
}

/// Rows between two checks of the table's size and the limit.
const STRETCH: usize = 512;
/// Rows whose slots are loaded together, so that their cache misses overlap.
const BLOCK: usize = 16;
/// Part of the rows after which a sample may tell the rest.
const PREVIEW: usize = 16;
/// Fewer rows are sooner read than sampled.
const FEWEST_TO_SAMPLE: usize = 16_384;

impl<W: Word> Distinct<W> {
    /// Nothing found yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the distinct values of `rows`.
    ///
    /// Returns false, with nothing to read here, when there are more than `limit`. It gives up early when a sample shows that there
    /// will be (at more than 1.25 times the limit; the odds of being wrong are below one in a thousand, and the same rows
    /// always give the same answer), or when values collide so often that they must be made to.
    #[must_use]
    pub fn find(&mut self, rows: &[W], limit: usize) -> bool {
        let found = self.try_find(rows, limit);
        if !found {
            self.values.clear();
            self.indices.clear();
        }
        found
    }

    /// The distinct values in order of first appearance.
    pub fn values(&self) -> &[W] {
        &self.values
    }

    /// The distinct values, to be put in another order: see [`order::sort`](crate::order::sort).
    pub fn values_mut(&mut self) -> &mut Vec<W> {
        &mut self.values
    }

    /// For each row the index of its value.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The same, to be changed to the ranks of sorted values.
    pub fn indices_mut(&mut self) -> &mut [u32] {
        &mut self.indices
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes() + self.values.capacity() * W::BYTES + self.indices.capacity() * size_of::<u32>()
    }

    fn try_find(&mut self, rows: &[W], limit: usize) -> bool {
        self.slots.clear();
        self.values.clear();
        self.indices.clear();
        if u32::try_from(rows.len()).is_err() {
            return false;
        }
        self.indices.reserve(rows.len());
        let mut may_sample = rows.len() >= FEWEST_TO_SAMPLE;
        for stretch in rows.chunks(STRETCH) {
            self.slots.fit(self.values.len() + stretch.len(), self.values.iter().map(|value| (hash(*value), *value)));
            self.slots.grant(stretch.len());
            let (blocks, rest) = stretch.as_chunks::<BLOCK>();
            for block in blocks {
                self.block(block);
            }
            for value in rest {
                let index = self.slow(*value, hash(*value));
                self.indices.push(index);
            }
            if self.values.len() > limit || self.slots.is_exhausted() {
                return false;
            }
            let done = self.indices.len();
            if may_sample && done >= rows.len() / PREVIEW {
                may_sample = false;
                // Only worth it when the first rows have more than their share of the limit.
                let over = self.values.len() as u128 * rows.len() as u128 > limit as u128 * done as u128;
                if over && looks_distinct(rows, limit) {
                    return false;
                }
            }
        }
        true
    }

    fn block(&mut self, rows: &[W; BLOCK]) {
        let hashes = rows.map(hash);
        let slots = hashes.map(|hash| self.slots.first(hash));
        let mut indices = [0; BLOCK];
        for ((index, value), (hash, slot)) in indices.iter_mut().zip(rows).zip(hashes.iter().zip(slots)) {
            *index = match slot {
                (found, number @ 1..) if found == *value => number - 1,
                _ => self.slow(*value, *hash),
            };
        }
        self.indices.extend_from_slice(&indices);
    }

    #[inline]
    fn slow(&mut self, value: W, hash: u64) -> u32 {
        match self.slots.probe(hash, value, |_| true) {
            Found::Number(number) => number,
            Found::Free(place) => {
                let number = self.values.len() as u32;
                self.slots.take(place, value, number);
                self.values.push(value);
                number
            }
        }
    }
}

/// Different for different words; the high bits, which give the place, depend on all bits.
#[inline(always)]
fn hash<W: Word>(value: W) -> u64 {
    let bits = value.widen();
    let mixed = (bits ^ bits >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
