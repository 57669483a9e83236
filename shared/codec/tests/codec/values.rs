//! Test data that is the same in every run.

use proptest::test_runner::{Config, RngSeed};

/// Counts around the sizes of groups, miniblocks and blocks.
pub(crate) const COUNTS: [usize; 12] = [0, 1, 7, 8, 9, 31, 33, 127, 128, 129, 257, 1000];

/// Cases from a fixed seed: a test that fails here fails everywhere.
pub(crate) fn cases(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(58), failure_persistence: None, ..Config::default() }
}

/// xorshift64*: numbers without a library's version in them.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// `count` numbers of up to `bits` bits, in runs of mean length `run`.
    pub(crate) fn numbers(&mut self, count: usize, bits: u32, run: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let number = if bits == 0 { 0 } else { self.next() >> (64 - bits) };
            let length = 1 + self.below(2 * run - 1) as usize;
            numbers.extend(std::iter::repeat_n(number, length.min(count - numbers.len())));
        }
        numbers
    }

    /// Validity of `count` rows, of which `percent` have a value, in runs of mean length `run`.
    pub(crate) fn validity(&mut self, count: usize, percent: u64, run: u64) -> Vec<u8> {
        let mut validity = Vec::new();
        while validity.len() < count {
            let level = u8::from(self.below(100) < percent);
            let length = 1 + self.below(2 * run - 1) as usize;
            validity.extend(std::iter::repeat_n(level, length.min(count - validity.len())));
        }
        validity
    }

    /// `count` texts of up to `longest` bytes, many of which share their start with the one before.
    pub(crate) fn texts(&mut self, count: usize, longest: u64) -> Vec<Vec<u8>> {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for _ in 0..count {
            let mut text = texts.last().cloned().unwrap_or_default();
            text.truncate(self.below(text.len() as u64 + 1) as usize);
            let more = self.below(longest + 1 - text.len() as u64);
            text.extend((0..more).map(|_| self.next() as u8));
            texts.push(text);
        }
        texts
    }
}
