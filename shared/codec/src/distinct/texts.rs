//! Distinct texts.

use xxhash_rust::xxh3::xxh3_64;

use super::slots::{Found, Slots};
use crate::Texts;

/// Texts that are looked up together.
const BLOCK: usize = 16;

/// Texts numbered in order of first appearance.
#[derive(Debug, Default)]
pub struct TextInterner {
    slots: Slots<u64>,
    texts: Texts,
    /// By number, so that a growing table need not read the texts again.
    hashes: Vec<u64>,
}

impl TextInterner {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `text`: a new one if it was not seen before.
    ///
    /// `None`, with nothing changed, when it cannot be taken: the texts would have more than 4 GiB, or texts collide so often
    /// that they must be made to. The column is then better written without a dictionary.
    #[must_use]
    pub fn intern(&mut self, text: &[u8]) -> Option<u32> {
        self.intern_hashed(text, xxh3_64(text))
    }

    /// Appends the numbers of all `texts`, quicker than one by one where there are many different ones.
    ///
    /// Returns false when one of them cannot be taken; `numbers` then has those before it.
    #[must_use]
    pub fn intern_all(&mut self, texts: &Texts, numbers: &mut Vec<u32>) -> bool {
        numbers.reserve(texts.len());
        for from in (0..texts.len()).step_by(BLOCK) {
            // The same steps for all texts of a block, one after the other: their cache misses overlap.
            let block: [&[u8]; BLOCK] = std::array::from_fn(|at| texts.get(from + at).unwrap_or_default());
            let hashes = block.map(xxh3_64);
            let slots = hashes.map(|hash| self.slots.first(hash));
            let candidates = slots.map(|(_, number)| self.texts.get((number as usize).wrapping_sub(1)));
            let known: [bool; BLOCK] = std::array::from_fn(|at| candidates[at] == Some(block[at]));
            for at in 0..BLOCK.min(texts.len() - from) {
                let number = match known[at] {
                    true => slots[at].1 - 1,
                    false => match self.intern_hashed(block[at], hashes[at]) {
                        Some(number) => number,
                        None => return false,
                    },
                };
                numbers.push(number);
            }
        }
        true
    }

    fn intern_hashed(&mut self, text: &[u8], hash: u64) -> Option<u32> {
        self.slots.grant(1);
        self.slots.fit(self.hashes.len() + 1, self.hashes.iter().map(|hash| (*hash, *hash)));
        if self.slots.is_exhausted() {
            return None;
        }
        let mut in_vain = 0;
        let found = self.slots.probe(hash, hash, |number| {
            let is = self.texts.get(number as usize) == Some(text);
            in_vain += if is { 0 } else { text.len() };
            is
        });
        self.slots.charge(in_vain);
        match found {
            Found::Number(number) => Some(number),
            Found::Free(place) => {
                let number = u32::try_from(self.hashes.len()).ok().filter(|number| *number < u32::MAX)?;
                self.texts.push(text).ok()?;
                self.slots.take(place, hash, number);
                self.hashes.push(hash);
                Some(number)
            }
        }
    }

    /// The texts by number.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Forgets all texts and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.texts.clear();
        self.hashes.clear();
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes() + self.texts.heap_bytes() + self.hashes.capacity() * size_of::<u64>()
    }
}
