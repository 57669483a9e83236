//! The bytes of values by their place: all first bytes, then all second ones, and so on (parquet-format, Encodings,
//! "Byte Stream Split (BYTE_STREAM_SPLIT = 9)"). The page is not smaller, but easier to compress.

use crate::{Damage, Texts, Word};

const WRONG_SIZE: Damage = Damage("its streams of bytes do not fit its values");

/// Appends `count` values of 4 or 8 bytes.
///
/// # Errors
/// `bytes` is not as long as `count` values.
pub fn decode<W: Word>(bytes: &[u8], count: usize, out: &mut Vec<W>) -> Result<(), Damage> {
    if count.checked_mul(W::BYTES) != Some(bytes.len()) {
        return Err(WRONG_SIZE);
    }
    if count > 0 {
        let streams: Vec<&[u8]> = bytes.chunks_exact(count).collect();
        out.reserve(count);
        W::append_joined(&streams, out);
    }
    Ok(())
}

/// Appends `count` values of FIXED_LEN_BYTE_ARRAY of `width` bytes.
///
/// # Errors
/// `bytes` is not as long as `count` values, or `out` would hold more than 4 GiB.
pub fn decode_fixed(bytes: &[u8], width: usize, count: usize, out: &mut Texts) -> Result<(), Damage> {
    if count.checked_mul(width) != Some(bytes.len()) {
        return Err(WRONG_SIZE);
    }
    let mut joined = vec![0; bytes.len()];
    if count > 0 && width > 0 {
        for (place, stream) in bytes.chunks_exact(count).enumerate() {
            for (value, byte) in joined.chunks_exact_mut(width).zip(stream) {
                value[place] = *byte;
            }
        }
    }
    out.push_fixed(&joined, width, count)
}

/// Appends values of 4 or 8 bytes.
pub fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + size_of_val(values), 0);
    if values.is_empty() {
        return;
    }
    for (place, stream) in out[start..].chunks_exact_mut(values.len()).enumerate() {
        for (byte, value) in stream.iter_mut().zip(values) {
            *byte = (value.widen() >> (8 * place)) as u8;
        }
    }
}
