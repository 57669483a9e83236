//! Bit packing as parquet-format lays it out: values from the least significant bit on, eight of them in as many bytes as each has
//! bits.

/// Bits that every index up to `max_index` fits in: the width of dictionary indices and levels.
///
/// ```
/// assert_eq!([0, 1, 2, 255, 256].map(firn_codec::bits_for), [0, 1, 2, 8, 9]);
/// ```
pub fn bits_for(max_index: u32) -> u8 {
    (u32::BITS - max_index.leading_zeros()) as u8
}

/// Calls a function that has the width as its first constant parameter, for widths of 0 to 32. Constant widths turn unpacking into
/// straight code without a variable shift.
macro_rules! with_width {
    ($width:expr, $function:ident $(:: <$($kind:ty),*>)? ($($argument:expr),*), else $other:expr) => {
        with_width!(@ $width, $function, [$($($kind),*)?], ($($argument),*), $other,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@ $width:expr, $function:ident, $kinds:tt, $arguments:tt, $other:expr, $($known:literal)*) => {
        match $width {
            $($known => with_width!(@call $known, $function, $kinds, $arguments),)*
            _ => $other,
        }
    };
    (@call $known:literal, $function:ident, [$($kind:ty),*], ($($argument:expr),*)) => {
        $function::<$known $(, $kind)*>($($argument),*)
    };
}
pub(crate) use with_width;

/// Eight little-endian bytes from `at` on. The callers' lengths are constant where this is used in loops, so the check costs nothing.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => 0,
    }
}

/// Bytes that [`unpack8`] looks at, which is more than the group takes.
const fn reach(width: usize) -> usize {
    match width {
        0..=8 => 8,
        9..=16 => width / 2 + 8,
        17..=28 => width * 6 / 8 + 8,
        _ => width * 7 / 8 + 8,
    }
}

/// More than any group reaches.
const LONGEST_REACH: usize = 40;

/// The eight values at the start of `bytes`, which must have [`reach`] bytes (missing ones count as zeros). Loads as many values at once
/// as fit 64 bits together with the bits that a group's part may start with.
#[inline(always)]
fn unpack8<const W: usize>(bytes: &[u8]) -> [u32; 8] {
    let mask = (1_u64 << W) - 1;
    let per_load = match W {
        0..=8 => 8,
        9..=16 => 4,
        17..=28 => 2,
        _ => 1,
    };
    std::array::from_fn(|index| {
        let start = index / per_load * per_load * W;
        let shift = start % 8 + index % per_load * W;
        (load(bytes, start / 8) >> shift & mask) as u32
    })
}

/// Hands over `groups` groups of eight values of `W` bits; stops and returns false when `each` does. Where `bytes` end too early
/// zeros are read: the caller has checked that the values it will keep are there.
#[inline(always)]
pub(crate) fn unpack_groups<const W: usize>(
    bytes: &[u8],
    groups: usize,
    mut each: impl FnMut([u32; 8]) -> bool,
) -> bool {
    let mut rest = bytes;
    let mut left = groups;
    while left > 0 && rest.len() >= reach(W) {
        if !each(unpack8::<W>(&rest[..reach(W)])) {
            return false;
        }
        rest = &rest[W..];
        left -= 1;
    }
    while left > 0 {
        let mut padded = [0; LONGEST_REACH];
        let known = rest.len().min(W);
        padded[..known].copy_from_slice(&rest[..known]);
        if !each(unpack8::<W>(&padded)) {
            return false;
        }
        rest = &rest[known..];
        left -= 1;
    }
    true
}

/// Eight values of `W` bits in the low bits of two words, the second of which starts four values later. Higher bits are cut off.
#[inline(always)]
fn join4<const W: usize>(values: &[u32; 8], from: usize) -> u128 {
    let mask = ((1_u64 << W) - 1) as u32;
    let pair = |at: usize| u64::from(values[at] & mask) | u64::from(values[at + 1] & mask) << W;
    if W <= 16 {
        u128::from(pair(from) | pair(from + 2) << (2 * W))
    } else {
        u128::from(pair(from)) | u128::from(pair(from + 2)) << (2 * W)
    }
}

/// Bytes that one step of [`pack`] writes at most: two overlapping words.
const SPILL: usize = 32;

/// Appends `values` in `W` bits each, filled up with zeros to a multiple of eight values.
pub(crate) fn pack<const W: usize, T: Copy + Into<u32>>(values: &[T], out: &mut Vec<u8>) {
    let (groups, last) = values.as_chunks::<8>();
    let start = out.len();
    let end = start + values.len().div_ceil(8) * W;
    out.resize(end + SPILL, 0);
    let mut place = &mut out[start..];
    for group in groups {
        place = pack8::<W>(&group.map(Into::into), place);
    }
    if !last.is_empty() {
        let mut group = [0; 8];
        for (slot, value) in group.iter_mut().zip(last) {
            *slot = (*value).into();
        }
        pack8::<W>(&group, place);
    }
    out.truncate(end);
}

/// Writes eight values and returns the place after them. Bytes beyond are overwritten; they belong to the next group.
#[inline(always)]
fn pack8<'a, const W: usize>(values: &[u32; 8], place: &'a mut [u8]) -> &'a mut [u8] {
    let (low, high) = (join4::<W>(values, 0), join4::<W>(values, 4));
    if W <= 16 {
        write16(place, 0, low | high << (4 * W));
    } else {
        // Four values of an odd width end within a byte, which the second half begins with.
        let shift = 4 * W % 8;
        write16(place, 0, low);
        let carried = if shift == 0 { 0 } else { low >> (4 * W - shift) };
        write16(place, W / 2, high << shift | carried);
    }
    &mut place[W..]
}

#[inline(always)]
fn write16(place: &mut [u8], at: usize, word: u128) {
    if let Some(chunk) = place.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *chunk = word.to_le_bytes();
    }
}

/// The value at `index` of bit-packed values of up to 64 bits, missing bytes being zeros.
#[inline]
pub(crate) fn unpack_wide(bytes: &[u8], index: usize, width: usize) -> u64 {
    let start = index * width;
    let from = bytes.get(start / 8..).unwrap_or_default();
    let word = match from.first_chunk() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => from.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)),
    };
    (word >> (start % 8)) as u64 & (u64::MAX >> (64 - width.clamp(1, 64)))
}

/// Appends a multiple of eight values in `width` bits each, up to 64.
pub(crate) fn pack_wide(values: &[u64], width: usize, out: &mut Vec<u8>) {
    let (mut word, mut bits) = (0_u128, 0);
    for value in values {
        word |= u128::from(*value) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= 64;
            bits -= 64;
        }
    }
    // Whole bytes, as there are eight values or a multiple.
    out.extend_from_slice(&word.to_le_bytes()[..bits / 8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit.
    fn packed_slowly(values: &[u32], width: usize) -> Vec<u8> {
        let mut out = vec![0; values.len().div_ceil(8) * width];
        for (index, value) in values.iter().enumerate() {
            for bit in 0..width {
                let at = index * width + bit;
                out[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        out
    }

    #[test]
    fn every_width_packs_as_the_format_says_and_comes_back() {
        let mut state = 1_u64;
        for width in 0..=32_usize {
            for count in [0, 1, 7, 8, 9, 31, 64, 100] {
                let mut values = vec![0; count];
                for value in &mut values {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *value = ((state >> 20) & ((1 << width) - 1)) as u32;
                }
                let mut packed = vec![7];
                with_width!(width, pack::<u32>(&values, &mut packed), else unreachable!());
                assert_eq!(packed[1..], packed_slowly(&values, width), "{count} of {width} bits");
                let mut back: Vec<u32> = Vec::new();
                let each = |group: [u32; 8]| {
                    back.extend_from_slice(&group);
                    true
                };
                // One type for all widths, as `impl Trait` arguments cannot be named beside a constant.
                fn unpack<const W: usize>(bytes: &[u8], groups: usize, each: impl FnMut([u32; 8]) -> bool) -> bool {
                    unpack_groups::<W>(bytes, groups, each)
                }
                let groups = values.len().div_ceil(8);
                assert!(with_width!(width, unpack(&packed[1..], groups, each), else false));
                assert_eq!(back[..count], values, "{count} of {width} bits");
            }
        }
    }
}
