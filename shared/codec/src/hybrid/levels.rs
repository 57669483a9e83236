//! Definition levels of flat columns: 1 for a value, 0 for a null.

use super::runs::{Run, Runs};
use crate::Damage;

/// What the definition levels of a page say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Every row has a value. Nothing was appended.
    All,
    /// One byte a row was appended, 1 for a row with a value.
    Mixed {
        /// Rows with a value; maybe none, never all.
        present: usize,
    },
}

/// Reads the definition levels of `count` rows of a column that is optional and not nested (highest level 1). Rows that are all
/// present, as most pages are, cost a look at the bytes and no memory.
///
/// # Errors
/// As [`decode`](super::decode).
pub fn validity(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<Presence, Damage> {
    if all_present(bytes, count)? {
        return Ok(Presence::All);
    }
    let start = out.len();
    let mut runs = Runs::new(bytes, 1, count)?;
    while let Some(run) = runs.next()? {
        match run {
            Run::Repeated { value, count } => out.resize(out.len() + count, value as u8),
            Run::Packed { bytes, count } => unpack_bits(bytes, count, out),
        }
    }
    let present = out[start..].iter().map(|level| usize::from(*level)).sum();
    Ok(Presence::Mixed { present })
}

fn all_present(bytes: &[u8], count: usize) -> Result<bool, Damage> {
    let mut runs = Runs::new(bytes, 1, count)?;
    while let Some(run) = runs.next()? {
        let all = match run {
            Run::Repeated { value, .. } => value == 1,
            Run::Packed { bytes, count } => {
                let last = (1_u8 << (count % 8)) - 1;
                let (whole, rest) = bytes.split_at(count / 8);
                whole.iter().all(|byte| *byte == u8::MAX) && (last == 0 || rest[0] & last == last)
            }
        };
        if !all {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the first `count` bits of `bytes`, least significant first, as one byte each. `bytes` has that many.
pub(crate) fn unpack_bits(bytes: &[u8], count: usize, out: &mut Vec<u8>) {
    let end = out.len() + count;
    out.reserve(count.next_multiple_of(8));
    for byte in &bytes[..count.div_ceil(8)] {
        out.extend_from_slice(&spread(*byte));
    }
    out.truncate(end);
}

/// The bits of a byte as one byte (0 or 1) each.
#[inline]
fn spread(byte: u8) -> [u8; 8] {
    // Eight copies, of each of which another bit is left; what is not 0 is carried into the top bit of its byte, and from there down.
    let bits = (u64::from(byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    ((bits + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101).to_le_bytes()
}
