//! The runs that a hybrid consists of.

use crate::{Damage, varint};

/// One run, cut to the values that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// One value, `count` times.
    Repeated { value: u32, count: usize },
    /// Bit-packed values in groups of eight; all bits of the first `count` are there.
    Packed { bytes: &'a [u8], count: usize },
}

/// The runs of `bytes` until they have as many values as are wanted.
#[derive(Debug, Clone)]
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: u8,
    left: usize,
}

impl<'a> Runs<'a> {
    pub(super) fn new(bytes: &'a [u8], width: u8, count: usize) -> Result<Self, Damage> {
        if width > 32 {
            return Err(Damage("values of more than 32 bits"));
        }
        Ok(Self { bytes, width, left: count })
    }

    /// The next run, or `None` when all values were handed out. What follows the last value is not looked at.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Run<'a>>, Damage> {
        // Values of no bits are zeros, however many runs a writer made of them (or none).
        if self.width == 0 && self.left > 0 {
            let count = std::mem::take(&mut self.left);
            return Ok(Some(Run::Repeated { value: 0, count }));
        }
        while self.left > 0 {
            let header = varint::read(&mut self.bytes)?;
            let length = usize::try_from(header >> 1).map_err(|_| Damage("a run of more values than there can be"))?;
            let run = if header & 1 == 0 { self.repeated(length)? } else { self.packed(length)? };
            // An empty run took a byte, so this ends.
            if let Run::Repeated { count: 1.., .. } | Run::Packed { count: 1.., .. } = run {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    fn repeated(&mut self, length: usize) -> Result<Run<'a>, Damage> {
        let size = usize::from(self.width.div_ceil(8));
        let (low, rest) = self.bytes.split_at_checked(size).ok_or(Damage("ends within a repeated value"))?;
        self.bytes = rest;
        let value = low.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        if u64::from(value) >> self.width != 0 {
            return Err(Damage("a repeated value of more bits than values have"));
        }
        let count = length.min(self.left);
        self.left -= count;
        Ok(Run::Repeated { value, count })
    }

    fn packed(&mut self, groups: usize) -> Result<Run<'a>, Damage> {
        let width = usize::from(self.width);
        let count = groups.saturating_mul(8).min(self.left);
        // Some writers cut off the padding of the last group.
        let needed = count.checked_mul(width).ok_or(Damage("a run of more bits than there can be"))?.div_ceil(8);
        if needed > self.bytes.len() {
            return Err(Damage("ends within bit-packed values"));
        }
        let (bytes, rest) = self.bytes.split_at(groups.saturating_mul(width).min(self.bytes.len()));
        self.bytes = rest;
        self.left -= count;
        Ok(Run::Packed { bytes, count })
    }
}
