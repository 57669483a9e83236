//! Values as they are (parquet-format, Encodings, "Plain (PLAIN = 0)"): pages without a dictionary, and dictionary pages.
//!
//! Bytes after the last value are not looked at.

use crate::bits::pack;
use crate::hybrid::unpack_bits;
use crate::{Damage, Texts, Word};

const ENDS_EARLY: Damage = Damage("ends before its last value");

/// Appends `count` values of 4 or 8 bytes.
///
/// # Errors
/// The bytes end early.
pub fn decode<W: Word>(bytes: &[u8], count: usize, out: &mut Vec<W>) -> Result<(), Damage> {
    let length = count.checked_mul(W::BYTES).ok_or(ENDS_EARLY)?;
    W::append_le(bytes.get(..length).ok_or(ENDS_EARLY)?, out);
    Ok(())
}

/// Appends `count` booleans, one byte (0 or 1) each; in the page they are bits, the least significant first.
///
/// # Errors
/// The bytes end early.
pub fn decode_bools(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<(), Damage> {
    let bytes = bytes.get(..count.div_ceil(8)).ok_or(ENDS_EARLY)?;
    unpack_bits(bytes, count, out);
    Ok(())
}

/// Appends `count` values of BYTE_ARRAY: each has its length before it.
///
/// # Errors
/// The bytes end early, or `out` would hold more than 4 GiB.
pub fn decode_texts(bytes: &[u8], count: usize, out: &mut Texts) -> Result<(), Damage> {
    // Each text has 4 bytes of length, so no count that passes asks for more memory than the page has bytes.
    let payload = count.checked_mul(4).and_then(|lengths| bytes.len().checked_sub(lengths)).ok_or(ENDS_EARLY)?;
    out.reserve(count, payload);
    let mut rest = bytes;
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk().ok_or(ENDS_EARLY)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, after) = after.split_at_checked(length).ok_or(Damage("a text longer than its page"))?;
        out.push(text)?;
        rest = after;
    }
    Ok(())
}

/// Appends `count` values of FIXED_LEN_BYTE_ARRAY (or INT96, of 12 bytes) of `width` bytes.
///
/// # Errors
/// The bytes end early, or `out` would hold more than 4 GiB.
pub fn decode_fixed(bytes: &[u8], width: usize, count: usize, out: &mut Texts) -> Result<(), Damage> {
    let length = count.checked_mul(width).ok_or(ENDS_EARLY)?;
    out.push_fixed(bytes.get(..length).ok_or(ENDS_EARLY)?, width, count)
}

/// Appends values of 4 or 8 bytes.
pub fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    W::append_bytes(values, out);
}

/// Appends booleans from one byte (0 or 1) each.
pub fn encode_bools(values: &[u8], out: &mut Vec<u8>) {
    pack::<1, u8>(values, out);
}

/// Appends values of BYTE_ARRAY.
///
/// # Errors
/// A text has more than 4 GiB, which no length of 4 bytes can say.
pub fn encode_texts<'a>(texts: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> Result<(), Damage> {
    for text in texts {
        let length = u32::try_from(text.len()).map_err(|_| Damage("a text of more than 4 GiB"))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(text);
    }
    Ok(())
}

/// Appends values of FIXED_LEN_BYTE_ARRAY, which are all of the column's width.
pub fn encode_fixed<'a>(texts: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for text in texts {
        out.extend_from_slice(text);
    }
}
