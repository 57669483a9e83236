//! The values of a page, and the dictionary of a chunk.

use std::borrow::Cow;
use std::ops::Range;

use firn_codec::distinct::Distinct;
use firn_codec::order::{self, Sorter, TextOrder, WordOrder};
use firn_codec::{Damage, Texts, Word, bits_for, delta, hybrid, plain, split};

use super::plan::Plan;
use crate::fast::kind::Kind;
use crate::fast::pool::PoolValues;

/// The values of a chunk, nulls left out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
    /// Numbers of these texts.
    Texts(&'a [u32], &'a Texts),
    /// The dictionary's indices say it all.
    None,
}

impl Values<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            Values::Narrow(words) => words.len(),
            Values::Wide(words) => words.len(),
            Values::Texts(ids, _) => ids.len(),
            Values::None => 0,
        }
    }

    /// The bytes of each value as they are stored.
    pub(super) fn each(self, mut what: impl FnMut(&[u8])) {
        match self {
            Values::Narrow(words) => words.iter().for_each(|word| what(&word.to_le_bytes())),
            Values::Wide(words) => words.iter().for_each(|word| what(&word.to_le_bytes())),
            Values::Texts(ids, texts) => ids.iter().for_each(|id| what(texts.get(*id as usize).unwrap_or_default())),
            Values::None => {}
        }
    }

    /// Appends the values in `range` in the encoding of `plan`.
    ///
    /// # Errors
    /// A text of more than 4 GiB.
    pub(super) fn encode(self, range: Range<usize>, plan: Plan, out: &mut Vec<u8>) -> Result<(), Damage> {
        match self {
            Values::Narrow(words) => encode_words(&words[range], plan, out),
            Values::Wide(words) => encode_words(&words[range], plan, out),
            Values::Texts(ids, texts) => {
                return plain::encode_texts(
                    ids[range].iter().map(|id| texts.get(*id as usize).unwrap_or_default()),
                    out,
                );
            }
            Values::None => {}
        }
        Ok(())
    }

    /// How many of the values from `from` on, at most `most`, take about `bytes` bytes plainly; at least 1.
    pub(super) fn fitting(self, from: usize, most: usize, bytes: usize) -> usize {
        match self {
            Values::Narrow(_) => most.min(bytes / 4).max(1),
            Values::Wide(_) => most.min(bytes / 8).max(1),
            Values::None => most,
            Values::Texts(ids, texts) => {
                let mut taken = 0;
                let fits = |id: &&u32| {
                    taken += 4 + texts.get(**id as usize).map_or(0, <[u8]>::len);
                    taken <= bytes
                };
                ids[from..].iter().take(most).take_while(fits).count().max(1)
            }
        }
    }
}

fn encode_words<W: Word>(words: &[W], plan: Plan, out: &mut Vec<u8>) {
    match plan {
        Plan::Delta => delta::encode(words, out),
        Plan::Split => split::encode(words, out),
        Plan::Plain | Plan::Dictionary => plain::encode(words, out),
    }
}

/// A sorted dictionary, its page, and the index of each value of the chunk.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    entries: Entries<'a>,
    page: Vec<u8>,
    /// For each value of the chunk its index, which is its rank.
    indices: &'a [u32],
    /// Bytes of the texts of all values, without their lengths; None when they are words.
    text_bytes: Option<u64>,
}

#[derive(Debug)]
enum Entries<'a> {
    Narrow(Cow<'a, [u32]>),
    Wide(Cow<'a, [u64]>),
    Texts(Texts),
}

impl<'a> Dictionary<'a> {
    /// Of 4-byte values; None when the distinct ones take more than `most_bytes`, or are more than half of all.
    pub(super) fn of_narrow(
        words: &[u32],
        kind: Kind,
        most_bytes: usize,
        (distinct, sorter): (&'a mut Distinct<u32>, &mut Sorter<u32>),
    ) -> Option<Dictionary<'a>> {
        let (values, indices, page) = sorted(words, kind, most_bytes, (distinct, sorter))?;
        Some(Dictionary { entries: Entries::Narrow(values.into()), page, indices, text_bytes: None })
    }

    /// The same for 8-byte values.
    pub(super) fn of_wide(
        words: &[u64],
        kind: Kind,
        most_bytes: usize,
        (distinct, sorter): (&'a mut Distinct<u64>, &mut Sorter<u64>),
    ) -> Option<Dictionary<'a>> {
        let (values, indices, page) = sorted(words, kind, most_bytes, (distinct, sorter))?;
        Some(Dictionary { entries: Entries::Wide(values.into()), page, indices, text_bytes: None })
    }

    /// Of numbered values; with the bytes that the distinct ones take.
    ///
    /// # Errors
    /// Texts that are too long for a page.
    pub(super) fn of_numbers(
        ids: &[u32],
        values: &PoolValues,
        kind: Kind,
        indices: &'a mut Vec<u32>,
    ) -> Result<(Dictionary<'a>, u64), Damage> {
        let (used, mut places) = used(ids, values.len());
        // Bytes of the text of each number that occurs.
        let mut lengths = None;
        let order = word_order(kind);
        let mut page = Vec::new();
        let (entries, ranks) = match values {
            PoolValues::Narrow(pool) => {
                let mut words: Vec<u32> = used.iter().map(|id| pool.values()[*id as usize]).collect();
                let ranks = order::sort(&mut words, order);
                plain::encode(&words, &mut page);
                (Entries::Narrow(words.into()), ranks)
            }
            PoolValues::Wide(pool) => {
                let mut words: Vec<u64> = used.iter().map(|id| pool.values()[*id as usize]).collect();
                let ranks = order::sort(&mut words, order);
                plain::encode(&words, &mut page);
                (Entries::Wide(words.into()), ranks)
            }
            PoolValues::Texts(pool) => {
                let mut texts = Texts::new();
                let lengths = lengths.insert(vec![0_u32; places.len()]);
                for id in &used {
                    let text = pool.texts().get(*id as usize).unwrap_or_default();
                    lengths[*id as usize] = text.len() as u32;
                    texts.push(text)?;
                }
                let (sorted, ranks) = order::sort_texts(&texts, TextOrder::Bytes)?;
                plain::encode_texts(sorted.iter(), &mut page)?;
                (Entries::Texts(sorted), ranks)
            }
        };
        // From the place among those that occur to the rank among them.
        for id in &used {
            let place = &mut places[*id as usize];
            *place = ranks[*place as usize];
        }
        indices.clear();
        let mut text_bytes = None;
        match lengths {
            None => indices.extend(ids.iter().map(|id| places[*id as usize])),
            Some(lengths) => {
                let bytes = text_bytes.insert(0);
                indices.extend(ids.iter().map(|id| {
                    *bytes += u64::from(lengths[*id as usize]);
                    places[*id as usize]
                }));
            }
        }
        let bytes = page.len() as u64;
        Ok((Dictionary { entries, page, indices, text_bytes }, bytes))
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> usize {
        match &self.entries {
            Entries::Narrow(words) => words.len(),
            Entries::Wide(words) => words.len(),
            Entries::Texts(texts) => texts.len(),
        }
    }

    /// The bytes of each entry as they are stored.
    pub(super) fn each(&self, mut what: impl FnMut(&[u8])) {
        match &self.entries {
            Entries::Narrow(words) => words.iter().for_each(|word| what(&word.to_le_bytes())),
            Entries::Wide(words) => words.iter().for_each(|word| what(&word.to_le_bytes())),
            Entries::Texts(texts) => texts.iter().for_each(what),
        }
    }

    /// The entries as they stand in the dictionary page.
    pub(super) fn page(&self) -> &[u8] {
        &self.page
    }

    /// The indices of the values in `range`.
    pub(super) fn indices(&self, range: Range<usize>) -> &[u32] {
        &self.indices[range]
    }

    /// Appends the indices of the values in `range`.
    pub(super) fn encode(&self, range: Range<usize>, out: &mut Vec<u8>) {
        let width = bits_for(self.entries().saturating_sub(1) as u32);
        out.push(width);
        hybrid::encode(self.indices(range), width, out);
    }

    pub(super) fn narrow(&self, index: u32) -> Option<u32> {
        if let Entries::Narrow(words) = &self.entries { words.get(index as usize).copied() } else { None }
    }

    pub(super) fn wide(&self, index: u32) -> Option<u64> {
        if let Entries::Wide(words) = &self.entries { words.get(index as usize).copied() } else { None }
    }

    /// The float or double of an index, widened.
    pub(super) fn float(&self, index: u32) -> Option<f64> {
        let narrow = self.narrow(index).map(|bits| f64::from(f32::from_bits(bits)));
        narrow.or_else(|| self.wide(index).map(f64::from_bits))
    }

    /// Whether a NaN is among the entries, which are floats or doubles in total order: the first or the last one is it then.
    pub(super) fn has_nan(&self) -> bool {
        let ends = [0, (self.entries() as u32).saturating_sub(1)];
        ends.into_iter().filter_map(|index| self.float(index)).any(f64::is_nan)
    }

    pub(super) fn text(&self, index: u32) -> Option<&[u8]> {
        if let Entries::Texts(texts) = &self.entries { texts.get(index as usize) } else { None }
    }

    /// Bytes of the texts of all values, without their lengths; None when they are words.
    pub(super) fn text_bytes(&self) -> Option<u64> {
        self.text_bytes
    }
}

type Sorted<'a, W> = (&'a [W], &'a [u32], Vec<u8>);

fn sorted<'a, W: Word>(
    words: &[W],
    kind: Kind,
    most_bytes: usize,
    (distinct, sorter): (&'a mut Distinct<W>, &mut Sorter<W>),
) -> Option<Sorted<'a, W>> {
    let limit = (most_bytes / W::BYTES).min(words.len() / 2 + 1);
    if !distinct.find(words, limit) {
        return None;
    }
    let ranks = sorter.sort(distinct.values_mut(), word_order(kind));
    for index in distinct.indices_mut() {
        *index = ranks[*index as usize];
    }
    let mut page = Vec::new();
    plain::encode(distinct.values(), &mut page);
    Some((distinct.values(), distinct.indices(), page))
}

fn word_order(kind: Kind) -> WordOrder {
    match kind {
        Kind::F32 | Kind::F64 => WordOrder::Float,
        _ => WordOrder::Signed,
    }
}

/// The numbers that occur of `count`, ascending, and the place of each among them.
fn used(ids: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    // Notes without a question: numbers of values come in no order that a processor could guess.
    let mut seen = vec![false; count];
    for id in ids {
        if let Some(seen) = seen.get_mut(*id as usize) {
            *seen = true;
        }
    }
    let used: Vec<u32> = (0..).zip(seen).filter(|(_, seen)| *seen).map(|(id, _)| id).collect();
    let mut places = vec![0; count];
    for (place, id) in (0..).zip(&used) {
        places[*id as usize] = place;
    }
    (used, places)
}
