//! Byte strings whose lengths are differences (parquet-format, Encodings, "Delta-length byte array (DELTA_LENGTH_BYTE_ARRAY = 6)" and
//! "Delta Strings (DELTA_BYTE_ARRAY = 7)").

use super::decode::decode_first;
use crate::{Damage, Texts};

const TOO_SHORT: Damage = Damage("lengths beyond the end of the page");

/// Appends `count` texts of DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
///
/// # Errors
/// The bytes end early, a length is negative, or `out` would hold more than 4 GiB.
pub fn decode_texts(bytes: &[u8], count: usize, out: &mut Texts) -> Result<(), Damage> {
    if bytes.is_empty() && count == 0 {
        return Ok(());
    }
    let mut rest = bytes;
    let lengths = lengths(&mut rest, count)?;
    let text_bytes = usize::try_from(sum(&lengths)).ok().and_then(|total| rest.get(..total)).ok_or(TOO_SHORT)?;
    out.push_all(text_bytes, &lengths)
}

/// Appends `count` texts of DELTA_BYTE_ARRAY: of each text its end and how many bytes it shares with the start of the one before.
///
/// A few bytes can claim gigabytes in this encoding, so the caller gives the `limit` of what the texts of the page may take.
///
/// # Errors
/// The bytes end early, a length is negative, a text shares more than the one before it has, the texts take more than `limit`, or
/// `out` would hold more than 4 GiB.
pub fn decode_shared(bytes: &[u8], count: usize, limit: usize, out: &mut Texts) -> Result<(), Damage> {
    let Some(parts) = Parts::read(bytes, count)? else { return Ok(()) };
    if sum(&parts.shared) + sum(&parts.own) > limit as u64 {
        return Err(Damage("texts that take more than they may"));
    }
    parts.append(out)
}

/// Appends `count` values of FIXED_LEN_BYTE_ARRAY of `width` bytes from DELTA_BYTE_ARRAY.
///
/// # Errors
/// As [`decode_shared`], or a value has another width.
pub fn decode_shared_fixed(bytes: &[u8], width: usize, count: usize, out: &mut Texts) -> Result<(), Damage> {
    let Some(parts) = Parts::read(bytes, count)? else { return Ok(()) };
    if parts.shared.iter().zip(&parts.own).any(|(shared, own)| *shared as usize + *own as usize != width) {
        return Err(Damage("a value that has not the width of its column"));
    }
    parts.append(out)
}

/// A page of DELTA_BYTE_ARRAY taken apart.
struct Parts<'a> {
    /// Bytes that each text shares with the one before.
    shared: Vec<u32>,
    /// Bytes of its own.
    own: Vec<u32>,
    /// The own bytes of all texts, as long as the lengths say.
    own_bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None`: nothing is there, and nothing should be.
    fn read(bytes: &'a [u8], count: usize) -> Result<Option<Self>, Damage> {
        if bytes.is_empty() && count == 0 {
            return Ok(None);
        }
        let mut rest = bytes;
        let shared = lengths(&mut rest, count)?;
        let own = lengths(&mut rest, count)?;
        let own_bytes = usize::try_from(sum(&own)).ok().and_then(|total| rest.get(..total)).ok_or(TOO_SHORT)?;
        let mut before = 0;
        for (shared, own) in shared.iter().zip(&own) {
            if *shared > before {
                return Err(Damage("a text that shares more than the one before it has"));
            }
            before = shared.checked_add(*own).ok_or(Damage("a text of more than 4 GiB"))?;
        }
        Ok(Some(Self { shared, own, own_bytes }))
    }

    fn append(&self, out: &mut Texts) -> Result<(), Damage> {
        out.reserve_checked(self.shared.len(), sum(&self.shared) + sum(&self.own))?;
        let mut own_bytes = self.own_bytes;
        for (shared, own) in self.shared.iter().zip(&self.own) {
            let (own, rest) = own_bytes.split_at_checked(*own as usize).ok_or(TOO_SHORT)?;
            own_bytes = rest;
            // The first text shares nothing, so what `out` held before is not looked at.
            out.push_shared(*shared, own)?;
        }
        Ok(())
    }
}

/// Reads `count` lengths and steps over them.
fn lengths(bytes: &mut &[u8], count: usize) -> Result<Vec<u32>, Damage> {
    let mut lengths = Vec::new();
    decode_first(bytes, count, &mut lengths)?;
    match lengths.iter().all(|length| *length <= i32::MAX as u32) {
        true => Ok(lengths),
        false => Err(Damage("a text of a negative length")),
    }
}

fn sum(lengths: &[u32]) -> u64 {
    lengths.iter().map(|length| u64::from(*length)).sum()
}
