//! A guess from a sample at how many distinct values there are.

use crate::Word;

/// How many pairs of equal values a sample should have when every value is there twice: enough that chance hardly matters.
const PAIRS: u64 = 64;

/// Whether there seem to be clearly more than `limit` distinct values in `rows`.
///
/// Of `s` rows taken at random out of `n`, with `r` the mean over the rows of how often a row's value occurs, about
/// `s² / 2n · (r - 1)` pairs are equal; and there are at least `n / r` distinct values, whatever the shape of the data. So few pairs
/// tell of many values, and values of which some are frequent are never given up wrongly.
pub(super) fn looks_distinct<W: Word>(rows: &[W], limit: usize) -> bool {
    let size = (2 * PAIRS * rows.len() as u64).isqrt() as usize;
    if size == 0 || size > rows.len() {
        return false;
    }
    // One row of each stretch, somewhere in it: data may have a period.
    let stretch = rows.len() / size;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut sample = Vec::with_capacity(size);
    for rows in rows.chunks_exact(stretch) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        sample.push(rows[(state % stretch as u64) as usize]);
    }
    sample.sort_unstable();
    let pairs: u64 =
        sample.chunk_by(|one, other| one == other).map(|same| same.len() as u64).map(|k| k * (k - 1) / 2).sum();
    let (rows, taken) = (rows.len() as f64, sample.len() as f64);
    let occurrences = 1.0 + 2.0 * rows * pairs as f64 / (taken * taken);
    rows / occurrences > 1.25 * limit as f64
}
