//! Values of 4 and 8 bytes, taken as bits.

use std::fmt::Debug;
use std::hash::Hash;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The bits of a fixed-width value: `u32` (INT32, FLOAT) or `u64` (INT64, DOUBLE).
pub trait Word: sealed::Sealed + Copy + Ord + Hash + Debug + Default + Send + Sync + 'static {
    /// Bytes of one value.
    const BYTES: usize;

    /// The value in the low bits, zeros above.
    fn widen(self) -> u64;

    /// The low bits of `bits`.
    fn truncate(bits: u64) -> Self;

    /// The signed difference from `before`, with wrap-around in the width of the word.
    fn delta(self, before: Self) -> i64;

    /// Appends little-endian values; bytes beyond the last whole value are left.
    fn append_le(bytes: &[u8], out: &mut Vec<Self>);

    /// Appends the little-endian bytes of `values`.
    fn append_bytes(values: &[Self], out: &mut Vec<u8>);

    /// Appends values whose first bytes are in the first of `streams`, the second ones in the second, and so on. Streams are equally
    /// long, and as many as a value has bytes.
    fn append_joined(streams: &[&[u8]], out: &mut Vec<Self>);
}

macro_rules! word {
    ($word:ty, $signed:ty, $join:expr) => {
        impl Word for $word {
            const BYTES: usize = size_of::<$word>();

            #[inline]
            fn widen(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn truncate(bits: u64) -> Self {
                bits as $word
            }

            #[inline]
            fn delta(self, before: Self) -> i64 {
                i64::from(self.wrapping_sub(before) as $signed)
            }

            fn append_le(bytes: &[u8], out: &mut Vec<Self>) {
                let (values, _) = bytes.as_chunks::<{ size_of::<$word>() }>();
                out.extend(values.iter().map(|value| <$word>::from_le_bytes(*value)));
            }

            fn append_bytes(values: &[Self], out: &mut Vec<u8>) {
                let start = out.len();
                out.resize(start + size_of_val(values), 0);
                let (places, _) = out[start..].as_chunks_mut::<{ size_of::<$word>() }>();
                for (place, value) in places.iter_mut().zip(values) {
                    *place = value.to_le_bytes();
                }
            }

            fn append_joined(streams: &[&[u8]], out: &mut Vec<Self>) {
                const WIDTH: usize = size_of::<$word>();
                let Some(streams) = streams.first_chunk::<WIDTH>() else { return };
                let parts = streams.map(|stream| stream.as_chunks::<8>());
                let blocks = parts.map(|(blocks, _)| blocks);
                let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or(0);
                // Cut to one length, which spares most checks.
                let blocks = blocks.map(|blocks| &blocks[..count]);
                for index in 0..count {
                    out.extend_from_slice(&$join(blocks.map(|blocks| u64::from_le_bytes(blocks[index]))));
                }
                let rests = parts.map(|(_, rest)| rest);
                let left = rests.iter().map(|rest| rest.len()).min().unwrap_or(0);
                out.extend((0..left).map(|index| <$word>::from_le_bytes(rests.map(|rest| rest[index]))));
            }
        }
    };
}

word!(u32, i32, join4);
word!(u64, i64, join8);

/// Swaps the high parts of `rows[at]` with the low parts of `rows[at + distance]`; parts have eight times `distance` bits.
#[inline(always)]
fn swap<const ROWS: usize>(rows: &mut [u64; ROWS], distance: usize, low: u64) {
    for at in (0..ROWS).filter(|at| at & distance == 0) {
        let changed = (rows[at] >> (8 * distance) ^ rows[at + distance]) & low;
        rows[at + distance] ^= changed;
        rows[at] ^= changed << (8 * distance);
    }
}

/// Eight values from eight bytes of each stream: bytes transposed in squares of 4, 2 and 1.
#[inline(always)]
fn join8(mut rows: [u64; 8]) -> [u64; 8] {
    swap(&mut rows, 4, 0x0000_0000_ffff_ffff);
    swap(&mut rows, 2, 0x0000_ffff_0000_ffff);
    swap(&mut rows, 1, 0x00ff_00ff_00ff_00ff);
    rows
}

/// The same for values of four bytes: the low halves of the rows become the first four values, the high halves the others.
#[inline(always)]
fn join4(mut rows: [u64; 4]) -> [u32; 8] {
    swap(&mut rows, 2, 0x0000_ffff_0000_ffff);
    swap(&mut rows, 1, 0x00ff_00ff_00ff_00ff);
    std::array::from_fn(|index| (rows[index % 4] >> (index / 4 * 32)) as u32)
}
