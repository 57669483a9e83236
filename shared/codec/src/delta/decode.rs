//! Differences to values.

use crate::bits::{unpack_groups, unpack_wide, with_width};
use crate::{Damage, Word, varint};

/// Appends `count` values of DELTA_BINARY_PACKED.
///
/// # Errors
/// The bytes end early, their header contradicts itself or tells another count.
pub fn decode<W: Word>(bytes: &[u8], count: usize, out: &mut Vec<W>) -> Result<(), Damage> {
    if bytes.is_empty() && count == 0 {
        return Ok(());
    }
    decode_first(&mut { bytes }, count, out)
}

/// [`decode`], and steps over the bytes, as other values may follow.
pub(super) fn decode_first<W: Word>(bytes: &mut &[u8], count: usize, out: &mut Vec<W>) -> Result<(), Damage> {
    let shape = Shape::read(bytes)?;
    if varint::read(bytes)? != count as u64 {
        return Err(Damage("its differences are not as many as its values"));
    }
    let mut last = varint::read_signed(bytes)? as u64;
    if count == 0 {
        return Ok(());
    }
    out.push(W::truncate(last));
    let mut left = count - 1;
    while left > 0 {
        last = block(bytes, shape, &mut left, last, out)?;
    }
    Ok(())
}

/// How values are grouped.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Miniblocks in a block.
    miniblocks: usize,
    /// Values in a miniblock, a multiple of eight.
    values: usize,
}

impl Shape {
    fn read(bytes: &mut &[u8]) -> Result<Self, Damage> {
        let (block, miniblocks) = (varint::read(bytes)?, varint::read(bytes)?);
        if miniblocks == 0 || block == 0 || !block.is_multiple_of(miniblocks) {
            return Err(Damage("blocks of differences that are not made of whole miniblocks"));
        }
        // The format says multiples of 32; all readers take multiples of 8, which is what whole bytes need.
        let values = block / miniblocks;
        match (usize::try_from(miniblocks), usize::try_from(values)) {
            (Ok(miniblocks), Ok(values)) if values.is_multiple_of(8) => Ok(Self { miniblocks, values }),
            _ => Err(Damage("miniblocks of a number of differences that fills no bytes")),
        }
    }
}

/// Appends the values of a block, at most `left`, and returns the last one.
fn block<W: Word>(
    bytes: &mut &[u8],
    shape: Shape,
    left: &mut usize,
    mut last: u64,
    out: &mut Vec<W>,
) -> Result<u64, Damage> {
    let least = varint::read_signed(bytes)? as u64;
    let (widths, rest) = bytes.split_at_checked(shape.miniblocks).ok_or(Damage("ends within the widths of a block"))?;
    *bytes = rest;
    for width in widths {
        // The widths of miniblocks that are not there may be anything.
        if *left == 0 {
            break;
        }
        let wanted = shape.values.min(*left);
        let miniblock = Miniblock { width: *width, least, wanted };
        let size = miniblock.check(shape, bytes)?;
        last = miniblock.append(bytes, last, out);
        *bytes = &bytes[size..];
        *left -= wanted;
    }
    Ok(last)
}

#[derive(Debug, Clone, Copy)]
struct Miniblock {
    /// Bits of a difference.
    width: u8,
    /// What is added to each difference.
    least: u64,
    /// Values that are wanted; the miniblock may have more.
    wanted: usize,
}

impl Miniblock {
    /// Bytes that the miniblock takes, once it is sure that the wanted values are in them.
    fn check(self, shape: Shape, bytes: &[u8]) -> Result<usize, Damage> {
        if self.width > 64 {
            return Err(Damage("differences of more than 64 bits"));
        }
        let size = |values: usize| values.checked_mul(usize::from(self.width)).map(|bits| bits.div_ceil(8));
        match size(self.wanted) {
            // Some writers cut off the padding of the last miniblock.
            Some(needed) if needed <= bytes.len() => Ok(size(shape.values).unwrap_or(bytes.len()).min(bytes.len())),
            _ => Err(Damage("ends within a miniblock")),
        }
    }

    fn append<W: Word>(self, bytes: &[u8], last: u64, out: &mut Vec<W>) -> u64 {
        match self.width {
            0 => self.append_steps(last, out),
            1..=32 => with_width!(self.width, append_packed::<W>(self, bytes, last, out), else last),
            _ => self.append_wide(bytes, last, out),
        }
    }

    /// All differences are the least one, as of readings taken at a steady pace.
    fn append_steps<W: Word>(self, last: u64, out: &mut Vec<W>) -> u64 {
        let mut value = last;
        out.extend((0..self.wanted).map(|_| {
            value = value.wrapping_add(self.least);
            W::truncate(value)
        }));
        value
    }

    fn append_wide<W: Word>(self, bytes: &[u8], mut last: u64, out: &mut Vec<W>) -> u64 {
        out.reserve(self.wanted);
        for index in 0..self.wanted {
            last = last.wrapping_add(self.least).wrapping_add(unpack_wide(bytes, index, usize::from(self.width)));
            out.push(W::truncate(last));
        }
        last
    }
}

fn append_packed<const B: usize, W: Word>(miniblock: Miniblock, bytes: &[u8], mut last: u64, out: &mut Vec<W>) -> u64 {
    let mut left = miniblock.wanted;
    out.reserve(left);
    unpack_groups::<B>(bytes, left.div_ceil(8), |group| {
        let values = group.map(|difference| {
            last = last.wrapping_add(miniblock.least).wrapping_add(u64::from(difference));
            W::truncate(last)
        });
        let kept = left.min(8);
        out.extend_from_slice(&values[..kept]);
        left -= kept;
        true
    });
    // Only the last miniblock can be cut within a group, and after it nobody asks for the last value.
    last
}
