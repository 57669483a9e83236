//! A data page that is read in slices, so that what is decoded at once does not grow with the page.

use bytes::Bytes;
use firn_codec::hybrid::{self, Presence, Stream};
use firn_codec::{Damage, Word, delta, split};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::Stop;
use super::dictionary::{Entries, Refusal};
use super::hashes::RowHashes;
use super::kind::Kind;
use super::lane::{Lane, Rows, Spare, spread};
use super::write::Workspace;
use crate::error::ColumnarError;
use crate::proof::ColumnHasher;

/// Pages whose levels or values are decoded whole may not have more rows.
const MOST_ROWS: usize = 1 << 20;

/// What is read next of a page.
#[derive(Debug)]
pub(crate) struct OpenPage {
    body: Bytes,
    rows_left: usize,
    /// With nulls: one byte for each row of the page, and how many rows are through.
    present: Option<(Vec<u8>, usize)>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Indices from this place of the body on.
    Indices(usize, Stream),
    /// Plain words from this place of the body on.
    Plain(usize),
    /// Words decoded at once, and the next of them.
    Narrow(Vec<u32>, usize),
    Wide(Vec<u64>, usize),
}

/// Memory that is used again from slice to slice, from column to column and from window to window: fresh memory costs a page fault every
/// 4 KiB, and merging would spend a third of its time on them.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Rows of a window.
    pub(crate) gathered: Spare,
    /// The same rows in another order.
    pub(crate) ordered: Spare,
    /// What encoding needs.
    pub(crate) encoding: Workspace,
    indices: Vec<u32>,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    hashes: Vec<u64>,
    /// Hashes of the rows of a slice, where they are written down; 0 for a null.
    pub(crate) row_hashes: Vec<u64>,
}

/// Takes the hashes of the rows that were read.
pub(crate) type TakeHashes<'a> = &'a mut dyn FnMut(RowHashes<'_>) -> Result<(), ColumnarError>;

/// What a page is read with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoding<'a> {
    pub(crate) kind: Kind,
    pub(crate) hasher: &'a ColumnHasher,
    pub(crate) dictionary: Option<&'a Entries>,
}

impl Decoding<'_> {
    /// Hands over the hashes of words.
    fn hand_over(
        self,
        lane: &Lane,
        present: Option<&[u8]>,
        row_hashes: &mut Vec<u64>,
        take: TakeHashes<'_>,
    ) -> Result<(), ColumnarError> {
        let hashes = match lane {
            Lane::Narrow(words) => RowHashes::Narrow(words, self.kind, self.hasher),
            Lane::Wide(words) => RowHashes::Wide(words, self.kind, self.hasher),
            // Numbers have their hashes in the dictionary.
            Lane::Ids(_) => return Ok(()),
        };
        take(hashes.with_nulls(present, row_hashes))
    }
}

impl OpenPage {
    /// Looks at a data page of a flat column; `optional` says whether it has definition levels.
    pub(crate) fn open(page: Page, kind: Kind, optional: bool) -> Result<OpenPage, Refusal> {
        let (body, rows, encoding, levels) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                if optional && def_level_encoding != Encoding::RLE {
                    return Err(Stop::Unfit("levels in a deprecated encoding").into());
                }
                let levels = if optional {
                    let (levels, _) = hybrid::prefixed(&buf)?;
                    4..4 + levels.len()
                } else {
                    0..0
                };
                (buf, num_values as usize, encoding, levels)
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let start = rep_levels_byte_len as usize;
                let levels = start..start.saturating_add(def_levels_byte_len as usize);
                (buf, num_values as usize, encoding, levels)
            }
            Page::DictionaryPage { .. } => return Err(Damage("a second dictionary").into()),
        };
        let at = levels.end;
        let (Some(levels), true) = (body.get(levels), at <= body.len()) else {
            return Err(Damage("levels that are longer than the page").into());
        };
        let present = if optional { presence(levels, rows)? } else { None };
        let count = present.as_ref().map_or(rows, |(_, count)| *count);
        let values = values(&body, at, count, kind, encoding)?;
        Ok(OpenPage { rows_left: rows, present: present.map(|(present, _)| (present, 0)), values, body })
    }

    pub(crate) fn rows_left(&self) -> usize {
        self.rows_left
    }

    /// Decodes the next `rows` rows into `out` and hands over their hashes, if anybody `take`s them. No more than are left.
    pub(crate) fn read(
        &mut self,
        rows: usize,
        decoding: Decoding<'_>,
        out: &mut Rows,
        scratch: &mut Scratch,
        take: Option<TakeHashes<'_>>,
    ) -> Result<(), Refusal> {
        out.clear();
        self.rows_left -= rows;
        let present = match &mut self.present {
            None => None,
            Some((present, at)) => {
                let part = present.get(*at..*at + rows).unwrap_or_default();
                *at += rows;
                if part.iter().all(|present| *present == 1) { None } else { Some(part) }
            }
        };
        out.present = present.map(<[u8]>::to_vec);
        let count = present.map_or(rows, |present| present.iter().map(|present| usize::from(*present)).sum());
        match (&mut self.values, &mut out.lane) {
            (Values::Indices(at, stream), lane) => {
                let Some(entries) = decoding.dictionary else {
                    return Err(Damage("indices without a dictionary").into());
                };
                scratch.indices.clear();
                stream.read(self.body.get(*at..).unwrap_or_default(), count, &mut scratch.indices)?;
                // One look at the largest instead of one at each: no index leads beyond the entries below.
                if scratch.indices.iter().copied().max().is_some_and(|most| most as usize >= entries.len()) {
                    return Err(Damage("an index beyond its dictionary").into());
                }
                let indices = &scratch.indices;
                match (entries, lane) {
                    (Entries::Ids(entries, hashes), Lane::Ids(lane)) => {
                        place(indices.iter().map(|index| entries[*index as usize]), present, &mut scratch.narrow, lane);
                        if let Some(take) = take {
                            hand_over_numbered(
                                indices,
                                hashes,
                                present,
                                (&mut scratch.hashes, &mut scratch.row_hashes),
                                take,
                            )?;
                        }
                        return Ok(());
                    }
                    (Entries::Narrow(entries), Lane::Narrow(lane)) => {
                        let words = indices.iter().map(|index| entries[*index as usize]);
                        place(words, present, &mut scratch.narrow, lane);
                    }
                    (Entries::Wide(entries), Lane::Wide(lane)) => {
                        let words = indices.iter().map(|index| entries[*index as usize]);
                        place(words, present, &mut scratch.wide, lane);
                    }
                    _ => return Err(Stop::Unfit("a dictionary for another sort of lane").into()),
                }
            }
            (Values::Plain(at), Lane::Narrow(lane)) => {
                place_words(&self.body, at, count, present, &mut scratch.narrow, lane)?;
            }
            (Values::Plain(at), Lane::Wide(lane)) => {
                place_words(&self.body, at, count, present, &mut scratch.wide, lane)?;
            }
            (Values::Narrow(words, at), Lane::Narrow(lane)) => {
                place_part(words, at, count, present, lane)?;
            }
            (Values::Wide(words, at), Lane::Wide(lane)) => {
                place_part(words, at, count, present, lane)?;
            }
            _ => return Err(Stop::Unfit("words where numbers were expected").into()),
        }
        if let Some(take) = take {
            decoding.hand_over(&out.lane, present, &mut scratch.row_hashes, take).map_err(Stop::from)?;
        }
        Ok(())
    }
}

/// Hands over the hashes of values of a dictionary, by their indices.
fn hand_over_numbered(
    indices: &[u32],
    of: &[u64],
    present: Option<&[u8]>,
    (hashes, row_hashes): (&mut Vec<u64>, &mut Vec<u64>),
    take: TakeHashes<'_>,
) -> Result<(), Stop> {
    if present.is_none() {
        return Ok(take(RowHashes::Numbered(indices, of))?);
    }
    row_hashes.clear();
    place(indices.iter().map(|index| of[*index as usize]), present, hashes, row_hashes);
    Ok(take(RowHashes::Each(row_hashes))?)
}

/// Which rows are there and how many; None when all are.
fn presence(levels: &[u8], rows: usize) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    if rows > MOST_ROWS {
        return Err(Stop::Unfit("a very long page with levels").into());
    }
    let mut present = Vec::new();
    match hybrid::validity(levels, rows, &mut present)? {
        Presence::All => Ok(None),
        Presence::Mixed { present: count } => Ok(Some((present, count))),
    }
}

fn values(body: &Bytes, at: usize, count: usize, kind: Kind, encoding: Encoding) -> Result<Values, Refusal> {
    let bytes = body.get(at..).unwrap_or_default();
    #[allow(deprecated)]
    let indices = matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    if indices {
        // A page of nulls only may be empty.
        let width = match (bytes.first(), count) {
            (Some(width), _) => *width,
            (None, 0) => 0,
            (None, _) => return Err(Damage("indices without a width").into()),
        };
        return Ok(Values::Indices((at + 1).min(body.len()), Stream::new(width)?));
    }
    if !kind.is_word() {
        return Err(Stop::Unfit("texts that are in no dictionary").into());
    }
    let narrow = matches!(kind, Kind::I32 | Kind::F32);
    match encoding {
        Encoding::PLAIN => Ok(Values::Plain(at)),
        Encoding::DELTA_BINARY_PACKED | Encoding::BYTE_STREAM_SPLIT if count > MOST_ROWS => {
            Err(Stop::Unfit("a very long page").into())
        }
        Encoding::DELTA_BINARY_PACKED if narrow => whole(|out| delta::decode(bytes, count, out), Values::Narrow),
        Encoding::DELTA_BINARY_PACKED => whole(|out| delta::decode(bytes, count, out), Values::Wide),
        Encoding::BYTE_STREAM_SPLIT if narrow => whole(|out| split::decode(bytes, count, out), Values::Narrow),
        Encoding::BYTE_STREAM_SPLIT => whole(|out| split::decode(bytes, count, out), Values::Wide),
        _ => Err(Stop::Unfit("a rare encoding").into()),
    }
}

fn whole<W>(
    decode: impl FnOnce(&mut Vec<W>) -> Result<(), Damage>,
    values: impl FnOnce(Vec<W>, usize) -> Values,
) -> Result<Values, Refusal> {
    let mut words = Vec::new();
    decode(&mut words)?;
    Ok(values(words, 0))
}

/// Appends values with a 0 for each null.
fn place<W: Word>(values: impl Iterator<Item = W>, present: Option<&[u8]>, scratch: &mut Vec<W>, out: &mut Vec<W>) {
    match present {
        None => out.extend(values),
        Some(present) => {
            scratch.clear();
            scratch.extend(values);
            spread(scratch, present, out);
        }
    }
}

fn place_words<W: Word>(
    body: &Bytes,
    at: &mut usize,
    count: usize,
    present: Option<&[u8]>,
    scratch: &mut Vec<W>,
    out: &mut Vec<W>,
) -> Result<(), Damage> {
    let bytes = body.get(*at..).and_then(|bytes| bytes.get(..count * W::BYTES));
    let bytes = bytes.ok_or(Damage("fewer values than its header says"))?;
    *at += bytes.len();
    match present {
        None => W::append_le(bytes, out),
        Some(present) => {
            scratch.clear();
            W::append_le(bytes, scratch);
            spread(scratch, present, out);
        }
    }
    Ok(())
}

fn place_part<W: Word>(
    words: &[W],
    at: &mut usize,
    count: usize,
    present: Option<&[u8]>,
    out: &mut Vec<W>,
) -> Result<(), Damage> {
    let part = words.get(*at..*at + count).ok_or(Damage("fewer values than its header says"))?;
    *at += count;
    match present {
        None => out.extend_from_slice(part),
        Some(present) => spread(part, present, out),
    }
    Ok(())
}
