//! The arithmetic of the row hash. All of it is fixed by [`ROW_SUM_VERSION`](super::ROW_SUM_VERSION).

/// Start of a struct's sum: a struct of nulls is not a null struct.
pub(super) const STRUCT_START: u64 = 0x5354_5255_4354_0001;
/// Start of the fold of a list or map: an empty list is not a null list.
pub(super) const LIST_START: u64 = 0x4C49_5354_0000_0002;
/// Bits of the one NaN.
const NAN: u64 = 0x7FF8_0000_0000_0000;

/// A bijection of 64 bits in which every input bit moves every output bit (the finaliser of SplitMix64).
#[inline]
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// What makes f of one field another function than f of every other field.
pub(super) fn seed(field_id: i32) -> u64 {
    mix((u64::from(field_id.cast_unsigned())).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// f(field id, value) for the 64 bits that stand for a value.
#[inline]
pub(super) fn field_value(seed: u64, content: u64) -> u64 {
    mix(content ^ seed)
}

/// A signed integer of any width.
#[inline]
pub(super) fn of_i64(value: i64) -> u64 {
    value.cast_unsigned()
}

/// A float; `f32` widens exactly. NaN of any sign and payload are one, -0.0 is not 0.0.
#[inline]
pub(super) fn of_f64(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// An unscaled decimal: those that fit 64 bits stand for themselves, so that wider types do not change them.
#[inline]
pub(super) fn of_i128(value: i128) -> u64 {
    let low = value as u64;
    let high = (value >> 64) as u64;
    let sign = (low.cast_signed() >> 63).cast_unsigned();
    // XOR with the sign extension is 0 exactly where the value fits 64 bits.
    low.wrapping_add(mix(high ^ sign))
}

/// Text or bytes.
#[inline]
pub(super) fn of_bytes(value: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(value)
}

/// The next state of the fold over the elements of a list: order and number of elements count, also of null ones (0).
#[inline]
pub(super) fn fold(state: u64, element: u64) -> u64 {
    mix(state.rotate_left(29) ^ element).wrapping_add(LIST_START)
}

/// The 128-bit hash of a row from the sum of its columns.
#[inline]
pub(super) fn finish_row(state: u64) -> u128 {
    let high = mix(state ^ 0xA076_1D64_78BD_642F);
    let low = mix(state.wrapping_add(0xE703_7ED1_A0B4_28DB));
    (u128::from(high) << 64) | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_that_fit_64_bits_stand_for_themselves() {
        for value in [0, 1, -1, i64::MIN, i64::MAX] {
            assert_eq!(of_i128(i128::from(value)), of_i64(value));
        }
        let beyond = [i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1, 1 << 64, -(1 << 64), i128::MAX, i128::MIN];
        for (at, value) in beyond.iter().enumerate() {
            assert_ne!(of_i128(*value), *value as u64);
            assert!(beyond[..at].iter().all(|other| of_i128(*other) != of_i128(*value)));
        }
    }

    #[test]
    fn nan_is_one_and_the_zeros_are_two() {
        assert_eq!(of_f64(f64::NAN), of_f64(-f64::NAN));
        assert_eq!(of_f64(f64::from(f32::NAN)), of_f64(f64::from_bits(0x7FF0_0000_0000_0001)));
        assert_ne!(of_f64(0.0), of_f64(-0.0));
    }

    #[test]
    fn the_fold_counts_nulls_and_order() {
        assert_ne!(fold(LIST_START, 0), LIST_START);
        assert_ne!(fold(fold(LIST_START, 0), 7), fold(fold(LIST_START, 7), 0));
    }
}
