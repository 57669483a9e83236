//! Distinct values of a column over all its inputs, numbered: rows are moved as numbers, and values are looked at once.

use std::collections::HashMap;

use firn_codec::distinct::TextInterner;
use firn_codec::{Texts, Word};

use super::Stop;
use super::kind::Kind;
use crate::proof::ColumnHasher;

/// Distinct words.
#[derive(Debug, Default)]
pub(crate) struct WordPool<W> {
    ids: HashMap<W, u32>,
    values: Vec<W>,
}

impl<W: Word> WordPool<W> {
    fn intern(&mut self, value: W) -> (u32, bool) {
        let next = self.values.len() as u32;
        match self.ids.entry(value) {
            std::collections::hash_map::Entry::Occupied(entry) => (*entry.get(), false),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(next);
                self.values.push(value);
                (next, true)
            }
        }
    }

    pub(crate) fn values(&self) -> &[W] {
        &self.values
    }
}

/// The values themselves.
#[derive(Debug)]
pub(crate) enum PoolValues {
    Narrow(WordPool<u32>),
    Wide(WordPool<u64>),
    Texts(TextInterner),
}

impl PoolValues {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            PoolValues::Narrow(pool) => pool.values.len(),
            PoolValues::Wide(pool) => pool.values.len(),
            PoolValues::Texts(pool) => pool.texts().len(),
        }
    }
}

/// Distinct values and their hashes for the output side of the proof: computed from what will be written.
#[derive(Debug)]
pub(crate) struct Pool {
    kind: Kind,
    pub(crate) values: PoolValues,
    hashes: Vec<u64>,
    /// Counts how often it was emptied: numbers given before mean nothing any more.
    pub(crate) generation: u64,
}

/// A pool of more values is emptied between windows.
const MOST_VALUES: usize = 1 << 18;
const MOST_TEXT_BYTES: usize = 16 << 20;

impl Pool {
    pub(crate) fn new(kind: Kind) -> Pool {
        let values = match kind {
            Kind::I32 | Kind::F32 => PoolValues::Narrow(WordPool::default()),
            Kind::I64 | Kind::F64 => PoolValues::Wide(WordPool::default()),
            Kind::Text | Kind::Bytes => PoolValues::Texts(TextInterner::new()),
        };
        Pool { kind, values, hashes: Vec::new(), generation: 0 }
    }

    /// The numbers of words.
    pub(crate) fn words<W: PooledWord>(&mut self, words: &[W], hasher: &ColumnHasher) -> Result<Vec<u32>, Stop> {
        let pool = W::pool(&mut self.values).ok_or(Stop::Unfit("words of another width"))?;
        let number = |word: &W| {
            let (id, new) = pool.intern(*word);
            if new {
                self.hashes.push(word.proof_hash(self.kind, hasher));
            }
            id
        };
        Ok(words.iter().map(number).collect())
    }

    /// The numbers of texts.
    pub(crate) fn texts(&mut self, texts: &Texts, hasher: &ColumnHasher) -> Result<Vec<u32>, Stop> {
        let PoolValues::Texts(pool) = &mut self.values else { return Err(Stop::Unfit("texts in a pool of words")) };
        let mut ids = Vec::with_capacity(texts.len());
        if !pool.intern_all(texts, &mut ids) {
            return Err(Stop::Unfit("texts that cannot be numbered"));
        }
        let known = self.hashes.len();
        self.hashes.extend(pool.texts().iter().skip(known).map(|text| hasher.of_bytes(text)));
        Ok(ids)
    }

    /// Hash of each value by its number.
    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Between windows, when no number of it is in use: empties it if it has become large.
    pub(crate) fn tidy(&mut self) {
        let large = match &self.values {
            PoolValues::Texts(texts) => texts.texts().heap_bytes() > MOST_TEXT_BYTES,
            _ => false,
        };
        if large || self.len() > MOST_VALUES {
            self.clear();
        }
    }

    /// Gives back its memory.
    pub(crate) fn clear(&mut self) {
        let generation = self.generation + 1;
        *self = Pool { generation, ..Pool::new(self.kind) };
    }
}

/// A word that stands for a value of some kind.
pub(crate) trait PooledWord: Word {
    /// f of the value for the proof.
    fn proof_hash(self, kind: Kind, hasher: &ColumnHasher) -> u64;

    /// The pool of words of this width, if it is one.
    fn pool(values: &mut PoolValues) -> Option<&mut WordPool<Self>>;
}

impl PooledWord for u32 {
    #[inline]
    fn proof_hash(self, kind: Kind, hasher: &ColumnHasher) -> u64 {
        match kind {
            Kind::F32 => hasher.of_float(f32::from_bits(self).into()),
            _ => hasher.of_integer(i64::from(self.cast_signed())),
        }
    }

    fn pool(values: &mut PoolValues) -> Option<&mut WordPool<u32>> {
        if let PoolValues::Narrow(pool) = values { Some(pool) } else { None }
    }
}

impl PooledWord for u64 {
    #[inline]
    fn proof_hash(self, kind: Kind, hasher: &ColumnHasher) -> u64 {
        match kind {
            Kind::F64 => hasher.of_float(f64::from_bits(self)),
            _ => hasher.of_integer(self.cast_signed()),
        }
    }

    fn pool(values: &mut PoolValues) -> Option<&mut WordPool<u64>> {
        if let PoolValues::Wide(pool) = values { Some(pool) } else { None }
    }
}

/// Appends f of each word.
pub(crate) fn hash_words<W: PooledWord>(words: &[W], kind: Kind, hasher: &ColumnHasher, out: &mut Vec<u64>) {
    out.extend(words.iter().map(|word| word.proof_hash(kind, hasher)));
}
