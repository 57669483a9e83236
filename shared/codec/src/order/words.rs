//! The order of values of 4 and 8 bytes.

use crate::Word;

/// What the bits of a value mean, as far as order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordOrder {
    /// Two's complement.
    Signed,
    /// Without a sign.
    Unsigned,
    /// IEEE 754 total order: -NaN, -infinity, …, -0.0, 0.0, …, infinity, NaN.
    Float,
}

impl WordOrder {
    /// Bits that compare as unsigned numbers do.
    #[inline(always)]
    fn key<W: Word>(self, value: W) -> u64 {
        let bits = value.widen();
        let sign = 1 << (8 * W::BYTES - 1);
        match self {
            Self::Unsigned => bits,
            Self::Signed => bits ^ sign,
            // Negative ones grow towards zero.
            Self::Float if bits & sign != 0 => !bits & (sign | (sign - 1)),
            Self::Float => bits | sign,
        }
    }
}

/// Sorts values, and keeps the memory for the next ones: a hundred thousand distinct values take megabytes, each of them a page fault
/// every 4 KiB where it is fresh.
#[derive(Debug, Default)]
pub struct Sorter<W> {
    pairs: Vec<(u64, u32)>,
    spare: Vec<(u64, u32)>,
    old: Vec<W>,
    ranks: Vec<u32>,
}

impl<W: Word> Sorter<W> {
    /// Puts `values` in ascending order and gives for each old index the new one.
    ///
    /// Equal values keep their order. There must be fewer than 2^32.
    pub fn sort(&mut self, values: &mut [W], order: WordOrder) -> &[u32] {
        let Self { pairs, spare, old, ranks } = self;
        pairs.clear();
        pairs.extend((0..).zip(&*values).map(|(index, value)| (order.key(*value), index)));
        sort_pairs(pairs, spare);
        ranks.resize(values.len(), 0);
        old.clear();
        old.extend_from_slice(values);
        for (rank, (value, (_, index))) in values.iter_mut().zip(&*pairs).enumerate() {
            *value = old[*index as usize];
            ranks[*index as usize] = rank as u32;
        }
        ranks
    }
}

/// The same for once.
pub fn sort<W: Word>(values: &mut [W], order: WordOrder) -> Vec<u32> {
    let mut sorter = Sorter::default();
    sorter.sort(values, order);
    sorter.ranks
}

/// Bits of one pass: its counters fit the fastest cache.
const DIGIT: u32 = 11;
/// With more passes comparing what is still equal is quicker.
const MOST_PASSES: u32 = 4;
/// Fewer are quicker compared.
const FEWEST: usize = 1024;

/// Sorts by radix from the lowest digit up, of the highest 44 bits in which keys differ; keys equal in these are compared at last.
fn sort_pairs(pairs: &mut Vec<(u64, u32)>, sorted: &mut Vec<(u64, u32)>) {
    if pairs.len() < FEWEST {
        return pairs.sort_unstable();
    }
    let first = pairs[0].0;
    let differing = pairs.iter().fold(0, |bits, (key, _)| bits | (key ^ first));
    let highest = u64::BITS - differing.leading_zeros();
    let passes = highest.div_ceil(DIGIT).min(MOST_PASSES);
    let lowest = highest.saturating_sub(passes * DIGIT);
    sorted.resize(pairs.len(), (0, 0));
    for pass in 0..passes {
        let digit = |key: u64| (key >> (lowest + pass * DIGIT)) as usize & ((1 << DIGIT) - 1);
        let mut places = [0_u32; 1 << DIGIT];
        for (key, _) in &*pairs {
            places[digit(*key)] += 1;
        }
        if places[digit(first)] as usize == pairs.len() {
            continue;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for pair in &*pairs {
            let place = &mut places[digit(pair.0)];
            sorted[*place as usize] = *pair;
            *place += 1;
        }
        std::mem::swap(pairs, sorted);
    }
    if lowest > 0 {
        for equal in pairs.chunk_by_mut(|(one, _), (other, _)| one >> lowest == other >> lowest) {
            equal.sort_unstable();
        }
    }
}
