//! The dictionary of one chunk: what its indices stand for.

use bytes::Bytes;
use firn_codec::{Damage, Texts, Word, plain};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::Stop;
use super::kind::Kind;
use super::pool::{Pool, PooledWord, hash_words};
use crate::proof::ColumnHasher;

/// Words of larger dictionaries are moved as they are: numbering them would cost more than it saves.
const MOST_NUMBERED: usize = 8192;

/// What each index stands for.
#[derive(Debug)]
pub(crate) enum Entries {
    /// Numbers of the pool, and the hashes of this dictionary's own values for the input side of the proof.
    Ids(Vec<u32>, Vec<u64>),
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        match self {
            Entries::Ids(entries, _) | Entries::Narrow(entries) => entries.len(),
            Entries::Wide(entries) => entries.len(),
        }
    }
}

/// Why a dictionary is not taken.
pub(crate) enum Refusal {
    Damage(Damage),
    Stop(Stop),
}

impl From<Damage> for Refusal {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// Reads a dictionary page; `numbered` asks for numbers of the pool instead of words.
pub(crate) fn entries(
    page: &Page,
    kind: Kind,
    numbered: bool,
    pool: &mut Pool,
    hasher: &ColumnHasher,
) -> Result<Entries, Refusal> {
    let Page::DictionaryPage { buf, num_values, encoding, .. } = page else {
        return Err(Damage("a page that is no dictionary").into());
    };
    // Version 1 writers call the plain encoding of a dictionary PLAIN_DICTIONARY.
    #[allow(deprecated)]
    let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
    if !plain {
        return Err(Stop::Unfit("a dictionary that is not plain").into());
    }
    let count = *num_values as usize;
    match kind {
        Kind::I32 | Kind::F32 if numbered => numbers::<u32>(buf, count, kind, pool, hasher),
        Kind::I64 | Kind::F64 if numbered => numbers::<u64>(buf, count, kind, pool, hasher),
        Kind::I32 | Kind::F32 => Ok(Entries::Narrow(words(buf, count)?)),
        Kind::I64 | Kind::F64 => Ok(Entries::Wide(words(buf, count)?)),
        Kind::Text | Kind::Bytes => texts(buf, count, kind, pool, hasher),
    }
}

fn words<W: Word>(buf: &Bytes, count: usize) -> Result<Vec<W>, Damage> {
    let mut words = Vec::new();
    plain::decode(buf, count, &mut words)?;
    Ok(words)
}

fn numbers<W: PooledWord>(
    buf: &Bytes,
    count: usize,
    kind: Kind,
    pool: &mut Pool,
    hasher: &ColumnHasher,
) -> Result<Entries, Refusal> {
    if count > MOST_NUMBERED {
        return Err(Stop::Unfit("a large dictionary of words").into());
    }
    let words = words::<W>(buf, count)?;
    let mut hashes = Vec::with_capacity(count);
    hash_words(&words, kind, hasher, &mut hashes);
    Ok(Entries::Ids(pool.words(&words, hasher)?, hashes))
}

fn texts(buf: &Bytes, count: usize, kind: Kind, pool: &mut Pool, hasher: &ColumnHasher) -> Result<Entries, Refusal> {
    let mut texts = Texts::new();
    plain::decode_texts(buf, count, &mut texts)?;
    if kind == Kind::Text && texts.iter().any(|text| std::str::from_utf8(text).is_err()) {
        return Err(Damage("text that is not UTF-8").into());
    }
    let hashes = texts.iter().map(|text| hasher.of_bytes(text)).collect();
    Ok(Entries::Ids(pool.texts(&texts, hasher)?, hashes))
}
