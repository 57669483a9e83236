//! The order of texts.

use std::cmp::Ordering;

use crate::{Damage, Texts};

/// How texts compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOrder {
    /// By unsigned bytes, a text before what it is the start of: strings, binary, UUIDs.
    Bytes,
    /// As big-endian numbers in two's complement, of any widths: decimals.
    Decimal,
}

impl TextOrder {
    /// Compares two texts. Decimals of different bytes may be equal: the shorter goes first, so that no two texts tie.
    pub fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        match self {
            Self::Bytes => one.cmp(other),
            Self::Decimal => decimal(one, other).then(one.len().cmp(&other.len())),
        }
    }

    /// The bytes after the first `shared`, which all texts share, as a number: what differs in it needs no look at the texts.
    fn prefix(self, text: &[u8], shared: usize) -> u64 {
        match self {
            Self::Bytes => {
                let text = text.get(shared..).unwrap_or_default();
                let mut start = [0; 8];
                let known = text.len().min(8);
                start[..known].copy_from_slice(&text[..known]);
                u64::from_be_bytes(start)
            }
            Self::Decimal => 0,
        }
    }
}

fn decimal(one: &[u8], other: &[u8]) -> Ordering {
    let negative = |text: &[u8]| text.first().is_some_and(|byte| *byte >= 0x80);
    match (negative(one), negative(other)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (sign, _) => {
            // Bytes that only repeat the sign; what is left of the same length compares as bytes, also when negative.
            let filler = if sign { 0xff } else { 0 };
            let digits = |text: &[u8]| text.iter().take_while(|byte| **byte == filler).count();
            let (one, other) = (&one[digits(one)..], &other[digits(other)..]);
            let by_length = one.len().cmp(&other.len());
            (if sign { by_length.reverse() } else { by_length }).then_with(|| one.cmp(other))
        }
    }
}

/// How many bytes at the start all texts share: names often begin alike.
fn shared_start(texts: &Texts) -> usize {
    let first = texts.get(0).unwrap_or_default();
    texts.iter().fold(first.len(), |shared, text| {
        first[..shared].iter().zip(text).take_while(|(one, other)| one == other).count()
    })
}

/// The texts in ascending order, and for each old index the new one. Equal texts keep their order.
///
/// # Errors
/// None in practice: the same bytes fit again, but appending to [`Texts`] has an error and nothing here is to panic.
pub fn sort_texts(texts: &Texts, order: TextOrder) -> Result<(Texts, Vec<u32>), Damage> {
    let shared = shared_start(texts);
    let mut entries: Vec<(u64, u32, &[u8])> =
        (0..).zip(texts.iter()).map(|(index, text)| (order.prefix(text, shared), index, text)).collect();
    entries.sort_unstable_by(|(prefix, index, text), (other_prefix, other_index, other)| {
        prefix.cmp(other_prefix).then_with(|| order.compare(text, other)).then(index.cmp(other_index))
    });
    let mut sorted = Texts::with_capacity(texts.len(), texts.data().len());
    let mut ranks = vec![0; texts.len()];
    for (rank, (_, index, text)) in (0..).zip(&entries) {
        sorted.push(text)?;
        ranks[*index as usize] = rank;
    }
    Ok((sorted, ranks))
}
