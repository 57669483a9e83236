//! Values to hybrid.

use crate::bits::{pack, with_width};
use crate::varint;

/// Values that are equal for as long as this are worth a run of their own among bit-packed groups.
const SHORTEST_RUN: usize = 8;
/// Levels have one bit: eight groups of them are about as long as a run and the header of the groups after it.
const SHORTEST_LEVEL_RUN: usize = 64;

/// Appends `indices` in `width` bits (0 to 32); the byte that tells the width is the caller's.
///
/// Where neighbours seldom repeat all of them become one bit-packed run, the quickest to read; else equal ones become runs. Bits beyond
/// the width are cut off, so the width must be [`bits_for`](crate::bits_for) the largest index or more.
pub fn encode(indices: &[u32], width: u8, out: &mut Vec<u8>) {
    debug_assert!(width <= 32 && indices.iter().all(|index| u64::from(*index) >> width == 0), "{width} bits do not do");
    let repeats: usize = indices.iter().zip(indices.iter().skip(1)).map(|(one, next)| usize::from(one == next)).sum();
    if width > 0 && repeats * 2 < indices.len() {
        packed(indices, width, out);
    } else {
        runs(indices, width, SHORTEST_RUN, out);
    }
}

/// Appends the definition levels of a column that is optional and not nested, from one byte (0 or 1) a row; the length that stands
/// before them in data pages v1 is the caller's.
pub fn encode_levels(validity: &[u8], out: &mut Vec<u8>) {
    runs(validity, 1, SHORTEST_LEVEL_RUN, out);
}

/// The same for rows of which none is null: what [`encode_levels`] makes of as many ones.
///
/// ```
/// let (mut levels, mut ones) = (Vec::new(), Vec::new());
/// firn_codec::hybrid::encode_levels(&[1; 1000], &mut levels);
/// firn_codec::hybrid::encode_all_present(1000, &mut ones);
/// assert_eq!(ones, levels);
/// ```
pub fn encode_all_present(rows: usize, out: &mut Vec<u8>) {
    if rows > 0 {
        repeated(1, rows, 1, out);
    }
}

/// Runs of at least `shortest` (a multiple of 8) equal values, bit-packed groups between them.
fn runs<T: Copy + Eq + Into<u32>>(values: &[T], width: u8, shortest: usize, out: &mut Vec<u8>) {
    // Groups have eight values, so runs may only start a multiple of eight after the last one.
    let (mut at, mut written) = (0, 0);
    while at < values.len() {
        let length = equal(&values[at..]);
        let ends_all = at + length == values.len() && at == written;
        if length >= shortest || ends_all || width == 0 {
            packed(&values[written..at], width, out);
            repeated(values[at].into(), length, width, out);
            at += length;
            written = at;
        } else {
            at += 8.max(length / 8 * 8);
        }
    }
    packed(values.get(written..).unwrap_or_default(), width, out);
}

/// How many values at the start are equal.
#[inline]
fn equal<T: Copy + Eq>(values: &[T]) -> usize {
    let Some(first) = values.first() else { return 0 };
    let eights = values.as_chunks::<8>().0.iter().take_while(|group| **group == [*first; 8]).count();
    let rest = &values[eights * 8..];
    eights * 8 + rest.iter().take_while(|value| *value == first).count()
}

fn repeated(value: u32, count: usize, width: u8, out: &mut Vec<u8>) {
    varint::write((count as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..usize::from(width.div_ceil(8)).min(4)]);
}

fn packed<T: Copy + Into<u32>>(values: &[T], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint::write((values.len().div_ceil(8) as u64) << 1 | 1, out);
    with_width!(width, pack::<T>(values, out), else ());
}
