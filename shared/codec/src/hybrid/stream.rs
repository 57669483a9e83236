//! A hybrid that is read a part at a time.

use crate::bits::{unpack_groups, with_width};
use crate::{Damage, varint};

/// Where reading stands in a hybrid: for pages with more values than should be decoded at once. The bytes are handed in at every read.
#[derive(Debug, Clone)]
pub struct Stream {
    width: u8,
    /// The next byte to look at; within a packed run the first of the group in work.
    at: usize,
    run: Current,
}

#[derive(Debug, Clone)]
enum Current {
    None,
    Repeated {
        value: u32,
        left: usize,
    },
    /// `skip` values of the group at hand were read.
    Packed {
        left: usize,
        skip: usize,
    },
}

const EARLY: Damage = Damage("ends within bit-packed values");

impl Stream {
    /// At the start of a hybrid of values of `width` bits.
    ///
    /// # Errors
    /// The width is more than 32.
    pub fn new(width: u8) -> Result<Self, Damage> {
        if width > 32 {
            return Err(Damage("values of more than 32 bits"));
        }
        Ok(Self { width, at: 0, run: Current::None })
    }

    /// Appends the next `count` values of the hybrid in `bytes`, the same at every call.
    ///
    /// # Errors
    /// As [`decode`](super::decode). The stream is of no use then.
    pub fn read(&mut self, bytes: &[u8], count: usize, out: &mut Vec<u32>) -> Result<(), Damage> {
        let end = out.len() + count;
        // Values of no bits are zeros, however many runs a writer made of them (or none).
        if self.width == 0 {
            out.resize(end, 0);
            return Ok(());
        }
        out.reserve(count);
        while out.len() < end {
            let wanted = end - out.len();
            match &mut self.run {
                Current::None => self.next_run(bytes)?,
                Current::Repeated { value, left } => {
                    let taken = wanted.min(*left);
                    out.resize(out.len() + taken, *value);
                    *left -= taken;
                    if *left == 0 {
                        self.run = Current::None;
                    }
                }
                Current::Packed { left, skip } => {
                    let taken = wanted.min(*left);
                    let (done, skipped) = packed(bytes, self.at, self.width, *skip, taken, out)?;
                    (self.at, *skip) = (done, skipped);
                    *left -= taken;
                    if *left == 0 {
                        self.run = Current::None;
                    }
                }
            }
        }
        Ok(())
    }

    fn next_run(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let mut rest = bytes.get(self.at..).ok_or(EARLY)?;
        let header = varint::read(&mut rest)?;
        let length = usize::try_from(header >> 1).map_err(|_| Damage("a run of more values than there can be"))?;
        if header & 1 == 1 {
            let left = length.checked_mul(8).ok_or(Damage("a run of more values than there can be"))?;
            self.run = if left == 0 { Current::None } else { Current::Packed { left, skip: 0 } };
        } else {
            let size = usize::from(self.width.div_ceil(8));
            let (low, after) = rest.split_at_checked(size).ok_or(Damage("ends within a repeated value"))?;
            rest = after;
            let value = low.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            if u64::from(value) >> self.width != 0 {
                return Err(Damage("a repeated value of more bits than values have"));
            }
            self.run = if length == 0 { Current::None } else { Current::Repeated { value, left: length } };
        }
        self.at = bytes.len() - rest.len();
        Ok(())
    }
}

/// Appends `count` values of a packed run; `skip` values of the group at `at` were read before. Returns the same two for the next time.
fn packed(
    bytes: &[u8],
    at: usize,
    width: u8,
    skip: usize,
    count: usize,
    out: &mut Vec<u32>,
) -> Result<(usize, usize), Damage> {
    let group = usize::from(width);
    let bits = (skip + count).checked_mul(group).ok_or(EARLY)?;
    let bytes = bytes.get(at..).filter(|bytes| bytes.len() >= bits.div_ceil(8)).ok_or(EARLY)?;
    let groups = (skip + count) / 8;
    let start = out.len();
    // Whole groups, then the part of another; what was read before or is not wanted yet is taken out again.
    with_width!(width, append(bytes, groups, out), else ());
    let rest = (skip + count) % 8;
    if rest > 0 {
        with_width!(width, append(bytes.get(groups * group..).unwrap_or_default(), 1, out), else ());
        out.truncate(start + groups * 8 + rest);
    }
    if skip > 0 {
        out.drain(start..start + skip);
    }
    Ok((at + groups * group, rest))
}

fn append<const W: usize>(bytes: &[u8], groups: usize, out: &mut Vec<u32>) {
    unpack_groups::<W>(bytes, groups, |group| {
        out.extend_from_slice(&group);
        true
    });
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_whole(
            width in 0_u8..=32,
            runs in prop::collection::vec((any::<u32>(), 1_usize..40), 0..20),
            parts in prop::collection::vec(0_usize..50, 1..60),
        ) {
            let mask = ((1_u64 << width) - 1) as u32;
            let values: Vec<u32> = runs.iter().flat_map(|(value, count)| {
                let alternate = count % 3 == 0;
                (0..*count).map(move |at| if alternate { value.wrapping_add(at as u32) & mask } else { value & mask })
            }).collect();
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            let mut stream = Stream::new(width).unwrap();
            let mut out = Vec::new();
            for part in parts.iter().cycle().take(200) {
                let count = (*part).min(values.len() - out.len());
                stream.read(&bytes, count, &mut out).unwrap();
            }
            prop_assert_eq!(&out[..], &values[..out.len()]);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            width in 0_u8..=40,
            parts in prop::collection::vec(0_usize..30, 1..20),
        ) {
            let total = parts.iter().sum();
            let mut whole = Vec::new();
            let read = decode(&bytes, width, total, &mut whole);
            let mut out = Vec::new();
            let streamed = Stream::new(width).and_then(|mut stream| {
                parts.iter().try_for_each(|part| stream.read(&bytes, *part, &mut out))
            });
            prop_assert!(out.len() <= total + 8);
            if read.is_ok() {
                prop_assert_eq!(streamed, Ok(()));
                prop_assert_eq!(out, whole);
            } else {
                prop_assert!(streamed.is_err());
            }
        }
    }
}
