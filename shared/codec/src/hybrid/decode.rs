//! Hybrid to values.

use super::runs::{Run, Runs};
use crate::Damage;
use crate::bits::{unpack_groups, with_width};

/// Splits off a stream whose length stands before it in 4 bytes: the levels of data pages v1, RLE booleans. Returns the stream and
/// what follows it.
///
/// # Errors
/// The bytes are fewer than the length says.
pub fn prefixed(bytes: &[u8]) -> Result<(&[u8], &[u8]), Damage> {
    let (length, rest) = bytes.split_first_chunk().ok_or(Damage("ends within the length of a stream"))?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| Damage("a stream longer than its page"))?;
    rest.split_at_checked(length).ok_or(Damage("a stream longer than its page"))
}

/// Appends `count` values of `width` bits.
///
/// # Errors
/// The bytes end early, a run contradicts the width, or the width is more than 32.
pub fn decode(bytes: &[u8], width: u8, count: usize, out: &mut Vec<u32>) -> Result<(), Damage> {
    decode_with(bytes, width, count, out, Some)
}

/// Appends `count` indices of `width` bits, each of them below `bound`.
///
/// # Errors
/// As [`decode`], or an index is not below `bound`.
pub fn decode_indices(bytes: &[u8], width: u8, count: usize, bound: u32, out: &mut Vec<u32>) -> Result<(), Damage> {
    decode_with(bytes, width, count, out, |index| (index < bound).then_some(index))
}

/// Appends for each of `count` indices of `width` bits what `table` has there: the values of a dictionary, or other numbers for them.
///
/// # Errors
/// As [`decode`], or an index is beyond the table.
pub fn decode_mapped<T: Copy>(
    bytes: &[u8],
    width: u8,
    count: usize,
    table: &[T],
    out: &mut Vec<T>,
) -> Result<(), Damage> {
    decode_with(bytes, width, count, out, |index| table.get(index as usize).copied())
}

/// Appends `count` booleans of encoding RLE, one byte (0 or 1) each. The length that stands before them is not part of `bytes`.
///
/// # Errors
/// As [`decode`].
pub fn decode_bools(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<(), Damage> {
    decode_mapped(bytes, 1, count, &[0, 1], out)
}

#[inline(always)]
fn decode_with<T: Copy>(
    bytes: &[u8],
    width: u8,
    count: usize,
    out: &mut Vec<T>,
    look_up: impl Fn(u32) -> Option<T> + Copy,
) -> Result<(), Damage> {
    let mut runs = Runs::new(bytes, width, count)?;
    while let Some(run) = runs.next()? {
        match run {
            Run::Repeated { value, count } => {
                let value = look_up(value).ok_or(BEYOND)?;
                out.resize(out.len() + count, value);
            }
            Run::Packed { bytes, count } => {
                // Not for all values at once: only those that the bytes were found to hold.
                out.reserve(count);
                if !with_width!(width, packed::<T>(bytes, count, out, look_up), else false) {
                    return Err(BEYOND);
                }
            }
        }
    }
    Ok(())
}

const BEYOND: Damage = Damage("an index beyond the dictionary");

/// Appends the first `count` values of a bit-packed run; false when one of them cannot be looked up.
fn packed<const W: usize, T: Copy>(
    bytes: &[u8],
    count: usize,
    out: &mut Vec<T>,
    look_up: impl Fn(u32) -> Option<T>,
) -> bool {
    let look_up8 = |group: [u32; 8]| -> Option<[T; 8]> {
        let first = look_up(group[0])?;
        let mut values = [first; 8];
        for (value, index) in values[1..].iter_mut().zip(&group[1..]) {
            *value = look_up(*index)?;
        }
        Some(values)
    };
    let whole = unpack_groups::<W>(bytes, count / 8, |group| match look_up8(group) {
        Some(values) => {
            out.extend_from_slice(&values);
            true
        }
        None => false,
    });
    // What fills up the last group may be anything, also beyond a table.
    let rest = bytes.get(count / 8 * W..).unwrap_or_default();
    let mut kept = count % 8;
    whole
        && unpack_groups::<W>(rest, usize::from(kept > 0), |group| {
            let before = out.len();
            out.extend(group[..kept].iter().map_while(|index| look_up(*index)));
            kept = before + kept - out.len();
            kept == 0
        })
}
