//! Values to differences.

use crate::bits::{pack, pack_wide, with_width};
use crate::{Word, varint};

/// Values of a block and miniblocks in it, as every writer has them.
const BLOCK: usize = 128;
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends `values` as DELTA_BINARY_PACKED. Differences wrap around, so any values can be written; in 32 bits none takes more than 32.
pub fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    for number in [BLOCK, MINIBLOCKS, values.len()] {
        varint::write(number as u64, out);
    }
    let first = values.first().copied().unwrap_or_default();
    varint::write_signed(first.delta(W::default()), out);
    for from in (1..values.len()).step_by(BLOCK) {
        let end = values.len().min(from + BLOCK);
        block(&values[from - 1..end], out);
    }
}

/// Writes the differences between 2 to [`BLOCK`] + 1 values.
fn block<W: Word>(values: &[W], out: &mut Vec<u8>) {
    let mut differences = [0; BLOCK];
    let count = values.len() - 1;
    for (difference, pair) in differences.iter_mut().zip(values.windows(2)) {
        *difference = pair[1].delta(pair[0]);
    }
    let least = differences[..count].iter().copied().min().unwrap_or(0);
    varint::write_signed(least, out);
    // What fills up the last miniblock is written as zeros.
    let mut excess = [0; BLOCK];
    for (excess, difference) in excess.iter_mut().zip(&differences[..count]) {
        *excess = difference.wrapping_sub(least) as u64;
    }
    let miniblocks = || excess.chunks_exact(MINIBLOCK);
    let width = |values: &[u64]| u64::BITS - values.iter().fold(0, |bits, value| bits | value).leading_zeros();
    out.extend(miniblocks().map(|values| width(values) as u8));
    // Miniblocks without values have no bytes: their width is 0.
    for values in miniblocks() {
        let width = width(values);
        if width <= 32 {
            let mut narrow = [0; MINIBLOCK];
            for (narrow, value) in narrow.iter_mut().zip(values) {
                *narrow = *value as u32;
            }
            with_width!(width, pack::<u32>(&narrow, out), else ());
        } else {
            pack_wide(values, width as usize, out);
        }
    }
}
