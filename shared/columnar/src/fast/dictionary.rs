//! The dictionary of one chunk: what its indices stand for.

use bytes::Bytes;
use firn_codec::{Damage, Texts, plain};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::Stop;
use super::kind::Kind;
use super::pool::{Pool, hash_narrow, hash_wide};
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
        Kind::I32 | Kind::F32 => narrow(buf, count, kind, numbered, pool, hasher),
        Kind::I64 | Kind::F64 => wide(buf, count, kind, numbered, pool, hasher),
        Kind::Text | Kind::Bytes => texts(buf, count, kind, pool, hasher),
    }
}

fn narrow(
    buf: &Bytes,
    count: usize,
    kind: Kind,
    numbered: bool,
    pool: &mut Pool,
    hasher: &ColumnHasher,
) -> Result<Entries, Refusal> {
    let mut words = Vec::new();
    plain::decode::<u32>(buf, count, &mut words)?;
    if !numbered {
        return Ok(Entries::Narrow(words));
    }
    check_size(count)?;
    let ids = words.iter().map(|word| pool.narrow(*word, hasher)).collect::<Result<_, _>>()?;
    Ok(Entries::Ids(ids, words.iter().map(|word| hash_narrow(kind, *word, hasher)).collect()))
}

fn wide(
    buf: &Bytes,
    count: usize,
    kind: Kind,
    numbered: bool,
    pool: &mut Pool,
    hasher: &ColumnHasher,
) -> Result<Entries, Refusal> {
    let mut words = Vec::new();
    plain::decode::<u64>(buf, count, &mut words)?;
    if !numbered {
        return Ok(Entries::Wide(words));
    }
    check_size(count)?;
    let ids = words.iter().map(|word| pool.wide(*word, hasher)).collect::<Result<_, _>>()?;
    Ok(Entries::Ids(ids, words.iter().map(|word| hash_wide(kind, *word, hasher)).collect()))
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

fn check_size(count: usize) -> Result<(), Stop> {
    if count > MOST_NUMBERED { Err(Stop::Unfit("a large dictionary of words")) } else { Ok(()) }
}
