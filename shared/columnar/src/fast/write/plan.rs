//! Which encoding a chunk gets.

use firn_codec::{Word, bits_for};

use super::body::{Dictionary, Values};
use crate::fast::kind::Kind;
use crate::fast::pool::PoolValues;

/// Which encodings may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encodings {
    /// PLAIN and RLE_DICTIONARY: what every reader of Parquet has understood for a decade. Iceberg's vectorised reader for Spark, in releases
    /// that are in use everywhere, refuses to read a table with any other.
    #[default]
    Compatible,
    /// Also DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT, where they are smaller.
    Modern,
}

/// What is known of the values of a chunk before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Values, nulls not counted.
    pub(super) values: u64,
    /// Bytes of the values when they are written plainly.
    pub(super) plain_bytes: u64,
    /// Bytes of dictionary and indices; None when there are too many distinct values.
    pub(super) dictionary_bytes: Option<u64>,
    /// Bytes as DELTA_BINARY_PACKED, estimated; None where it does not apply.
    pub(super) delta_bytes: Option<u64>,
    /// Floats: BYTE_STREAM_SPLIT helps the codec.
    pub(super) float: bool,
}

/// The encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Dictionary,
    Plain,
    Delta,
    Split,
}

impl Plan {
    pub(super) fn decide(facts: &Facts, encodings: Encodings) -> Plan {
        let modern = encodings == Encodings::Modern;
        let dictionary = facts.dictionary_bytes.filter(|bytes| *bytes < facts.plain_bytes);
        if modern
            && let Some(delta) = facts.delta_bytes
            && delta < facts.plain_bytes
            && dictionary.is_none_or(|dictionary| delta <= dictionary)
        {
            return Plan::Delta;
        }
        match dictionary {
            Some(_) => Plan::Dictionary,
            None if modern && facts.float && facts.values > 0 => Plan::Split,
            None => Plan::Plain,
        }
    }
}

impl Facts {
    pub(super) fn of_words(values: Values<'_>, kind: Kind, dictionary: Option<&Dictionary<'_>>) -> Facts {
        let (count, width) = match values {
            Values::Narrow(words) => (words.len() as u64, 4),
            Values::Wide(words) => (words.len() as u64, 8),
            _ => (0, 0),
        };
        Facts {
            values: count,
            plain_bytes: count * width,
            dictionary_bytes: dictionary.map(|dictionary| dictionary.bytes(count)),
            delta_bytes: if matches!(kind, Kind::I32 | Kind::I64) { Some(delta_bytes(values)) } else { None },
            float: matches!(kind, Kind::F32 | Kind::F64),
        }
    }

    /// `used_bytes`: what the distinct values take plainly. A dictionary beyond `most_bytes` is none.
    pub(super) fn of_numbers(
        ids: &[u32],
        values: &PoolValues,
        kind: Kind,
        dictionary: &Dictionary<'_>,
        (used_bytes, most_bytes): (u64, usize),
    ) -> Facts {
        let count = ids.len() as u64;
        let plain_bytes = match values {
            PoolValues::Narrow(_) => count * 4,
            PoolValues::Wide(_) => count * 8,
            // Where each text stands four times or more, its number is shorter than it: no need to look at all of them.
            PoolValues::Texts(_) if dictionary.entries() as u64 <= count / 4 => u64::MAX,
            PoolValues::Texts(pool) => {
                ids.iter().map(|id| 4 + pool.texts().get(*id as usize).map_or(0, <[u8]>::len) as u64).sum()
            }
        };
        let fits = used_bytes <= most_bytes as u64;
        let delta_bytes = match (values, kind) {
            (PoolValues::Narrow(pool), Kind::I32) => Some(estimate(ids.len(), |at| pool.values()[ids[at] as usize])),
            (PoolValues::Wide(pool), Kind::I64) => Some(estimate(ids.len(), |at| pool.values()[ids[at] as usize])),
            _ => None,
        };
        Facts {
            values: count,
            plain_bytes,
            dictionary_bytes: fits.then(|| dictionary.bytes(count)),
            delta_bytes,
            float: false,
        }
    }
}

/// Estimates DELTA_BINARY_PACKED from a sample of blocks.
fn estimate<W: Word>(count: usize, value: impl Fn(usize) -> W) -> u64 {
    const BLOCK: usize = 128;
    const BLOCKS: usize = 64;
    let step = count.div_ceil(BLOCK).div_ceil(BLOCKS).max(1) * BLOCK;
    let (mut bytes, mut sampled) = (0_u64, 0_u64);
    for start in (0..count).step_by(step) {
        let end = (start + BLOCK + 1).min(count);
        let deltas = (start + 1..end).map(|at| value(at).delta(value(at - 1)));
        let (low, high) = deltas.fold((i64::MAX, i64::MIN), |(low, high), delta| (low.min(delta), high.max(delta)));
        let spread = if high < low { 0 } else { high.wrapping_sub(low).cast_unsigned() };
        bytes += 8 + u64::from(u64::BITS - spread.leading_zeros()) * (end - start) as u64 / 8;
        sampled += (end - start) as u64;
    }
    (bytes * count as u64).checked_div(sampled).unwrap_or(0)
}

fn delta_bytes(values: Values<'_>) -> u64 {
    match values {
        Values::Narrow(words) => estimate(words.len(), |at| words[at]),
        Values::Wide(words) => estimate(words.len(), |at| words[at]),
        _ => 0,
    }
}

impl Dictionary<'_> {
    /// Bytes of the dictionary and of `count` indices, before compression.
    pub(super) fn bytes(&self, count: u64) -> u64 {
        let width = u64::from(bits_for(self.entries().saturating_sub(1) as u32));
        self.page().len() as u64 + count * width / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_is_allowed() {
        let facts =
            Facts { values: 100, plain_bytes: 800, dictionary_bytes: Some(300), delta_bytes: Some(100), float: false };
        for (facts, compatible, modern) in [
            (facts, Plan::Dictionary, Plan::Delta),
            (Facts { delta_bytes: Some(301), ..facts }, Plan::Dictionary, Plan::Dictionary),
            (Facts { dictionary_bytes: Some(900), delta_bytes: None, ..facts }, Plan::Plain, Plan::Plain),
            (Facts { dictionary_bytes: None, delta_bytes: None, float: true, ..facts }, Plan::Plain, Plan::Split),
            (Facts { dictionary_bytes: None, delta_bytes: Some(900), ..facts }, Plan::Plain, Plan::Plain),
            (
                Facts { values: 0, plain_bytes: 0, dictionary_bytes: None, delta_bytes: None, float: true },
                Plan::Plain,
                Plan::Plain,
            ),
        ] {
            assert_eq!(Plan::decide(&facts, Encodings::Compatible), compatible, "{facts:?}");
            assert_eq!(Plan::decide(&facts, Encodings::Modern), modern, "{facts:?}");
        }
    }
}
