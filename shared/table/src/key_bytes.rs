//! Values as bytes: Iceberg's binary single-value form in, an encoding whose byte order is value order out.

use firn_model::{Bounds, Scalar};
use iceberg::spec::PrimitiveType;
use uuid::Uuid;

/// Reads Iceberg's binary single-value form (spec, Appendix D) as a value of `primitive`. A value that was written before the
/// column's type was promoted (int to long, float to double) is read at the current type. None when the bytes are no value
/// of the type, as after a promotion that changes the meaning (date to timestamp).
pub fn scalar_from_bytes(bytes: &[u8], primitive: &PrimitiveType) -> Option<Scalar> {
    let int = || bytes.try_into().ok().map(i32::from_le_bytes);
    let long = || bytes.try_into().ok().map(i64::from_le_bytes);
    let float = || bytes.try_into().ok().map(f32::from_le_bytes);
    Some(match primitive {
        PrimitiveType::Boolean => match bytes {
            [0] => Scalar::Bool(false),
            [_] => Scalar::Bool(true),
            _ => return None,
        },
        PrimitiveType::Int => Scalar::Int(int()?),
        PrimitiveType::Long => Scalar::Long(long().or_else(|| int().map(i64::from))?),
        PrimitiveType::Float => Scalar::Float(float()?),
        PrimitiveType::Double => {
            Scalar::Double(bytes.try_into().ok().map(f64::from_le_bytes).or_else(|| float().map(f64::from))?)
        }
        PrimitiveType::Decimal { scale, .. } => Scalar::Decimal { unscaled: signed_big_endian(bytes)?, scale: *scale },
        PrimitiveType::Date => Scalar::Date(int()?),
        PrimitiveType::Time => Scalar::Time(long()?),
        PrimitiveType::Timestamp => Scalar::Timestamp(long()?),
        PrimitiveType::Timestamptz => Scalar::Timestamptz(long()?),
        PrimitiveType::TimestampNs => Scalar::TimestampNs(long()?),
        PrimitiveType::TimestamptzNs => Scalar::TimestamptzNs(long()?),
        PrimitiveType::String => Scalar::String(std::str::from_utf8(bytes).ok()?.to_owned()),
        PrimitiveType::Uuid => Scalar::Uuid(Uuid::from_slice(bytes).ok()?),
        PrimitiveType::Fixed(_) | PrimitiveType::Binary => Scalar::Binary(bytes.to_vec()),
    })
}

/// The number of a big-endian two's complement of any length up to 16 bytes.
fn signed_big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let mut padded = [if first & 0x80 == 0 { 0 } else { 0xff }; 16];
    padded.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(padded))
}

/// Bytes whose lexicographic order is the order of values of one type, ascending, in the one total order of Firn (floats:
/// -NaN < -Inf < … < -0.0 < 0.0 < … < NaN).
pub fn memcmp(value: &Scalar) -> Vec<u8> {
    match value {
        Scalar::Bool(v) => vec![u8::from(*v)],
        Scalar::Int(v) | Scalar::Date(v) => (v ^ i32::MIN).to_be_bytes().to_vec(),
        Scalar::Long(v)
        | Scalar::Time(v)
        | Scalar::Timestamp(v)
        | Scalar::Timestamptz(v)
        | Scalar::TimestampNs(v)
        | Scalar::TimestamptzNs(v) => (v ^ i64::MIN).to_be_bytes().to_vec(),
        Scalar::Float(v) => {
            let bits = v.to_bits();
            let flip = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
            (bits ^ flip).to_be_bytes().to_vec()
        }
        Scalar::Double(v) => {
            let bits = v.to_bits();
            let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
            (bits ^ flip).to_be_bytes().to_vec()
        }
        Scalar::Decimal { unscaled, .. } => (unscaled ^ i128::MIN).to_be_bytes().to_vec(),
        Scalar::String(v) => v.as_bytes().to_vec(),
        Scalar::Uuid(v) => v.as_bytes().to_vec(),
        Scalar::Binary(v) => v.clone(),
    }
}

/// Smallest and largest value of a column over a file or manifest as key bounds: no value outside, whatever the writer's idea
/// of zero. Writers may truncate text and binary bounds; that only widens them.
///
/// None when the bounds prove nothing: not of the type, lower above upper, NaN, or a UUID (Java writers compared UUIDs as
/// signed numbers, other writers as bytes, and no bound tells which).
pub fn bounds(lower: &[u8], upper: &[u8], primitive: &PrimitiveType) -> Option<Bounds> {
    if matches!(primitive, PrimitiveType::Uuid) {
        return None;
    }
    let lower = memcmp(&widen_zero(scalar_from_bytes(lower, primitive).filter(is_number)?, -0.0));
    let upper = memcmp(&widen_zero(scalar_from_bytes(upper, primitive).filter(is_number)?, 0.0));
    (lower <= upper).then_some(Bounds { lower, upper })
}

fn is_number(value: &Scalar) -> bool {
    match value {
        Scalar::Float(v) => !v.is_nan(),
        Scalar::Double(v) => !v.is_nan(),
        _ => true,
    }
}

/// A bound of zero may stand for either zero, because writers compare the two as equal.
fn widen_zero(value: Scalar, widest: f64) -> Scalar {
    match value {
        Scalar::Float(0.0) => Scalar::Float(widest as f32),
        Scalar::Double(0.0) => Scalar::Double(widest),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::Datum;
    use proptest::prelude::*;

    #[test]
    fn every_type_reads_back_from_icebergs_bytes() {
        let uuid = Uuid::from_u128(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        for (datum, scalar) in [
            (Datum::bool(true), Scalar::Bool(true)),
            (Datum::int(-7), Scalar::Int(-7)),
            (Datum::long(1i64 << 40), Scalar::Long(1 << 40)),
            (Datum::float(1.5), Scalar::Float(1.5)),
            (Datum::double(-2.5), Scalar::Double(-2.5)),
            (Datum::date(20_000), Scalar::Date(20_000)),
            (Datum::time_micros(5).unwrap(), Scalar::Time(5)),
            (Datum::timestamp_micros(-1), Scalar::Timestamp(-1)),
            (Datum::timestamptz_micros(1), Scalar::Timestamptz(1)),
            (Datum::timestamp_nanos(3), Scalar::TimestampNs(3)),
            (Datum::timestamptz_nanos(4), Scalar::TimestamptzNs(4)),
            (Datum::string("é/x"), Scalar::String("é/x".into())),
            (Datum::uuid(uuid), Scalar::Uuid(uuid)),
            (Datum::binary([0u8, 255]), Scalar::Binary(vec![0, 255])),
            (Datum::fixed([1u8, 2]), Scalar::Binary(vec![1, 2])),
        ] {
            let bytes = datum.to_bytes().unwrap();
            assert_eq!(scalar_from_bytes(&bytes, datum.data_type()), Some(scalar), "{datum}");
        }
        let decimal = PrimitiveType::Decimal { precision: 38, scale: 2 };
        for unscaled in [0, 1, -1, 127, 128, -128, -129, -200, i128::MAX, i128::MIN] {
            for skip in 0..16 {
                let bytes = &i128::to_be_bytes(unscaled)[skip..];
                let read = scalar_from_bytes(bytes, &decimal).unwrap();
                let fits = unscaled >> (8 * (16 - skip) - 1) == 0 || unscaled >> (8 * (16 - skip) - 1) == -1;
                assert_eq!(read == Scalar::Decimal { unscaled, scale: 2 }, fits, "{unscaled} in {bytes:?}");
            }
        }
        assert_eq!(scalar_from_bytes(&[], &decimal), None);
        assert_eq!(scalar_from_bytes(&[0; 17], &decimal), None);
    }

    #[test]
    fn promoted_columns_are_read_at_the_current_type_and_others_not_at_all() {
        assert_eq!(scalar_from_bytes(&(-5i32).to_le_bytes(), &PrimitiveType::Long), Some(Scalar::Long(-5)));
        assert_eq!(scalar_from_bytes(&1.5f32.to_le_bytes(), &PrimitiveType::Double), Some(Scalar::Double(1.5)));
        assert_eq!(scalar_from_bytes(&5i32.to_le_bytes(), &PrimitiveType::Timestamp), None);
        assert_eq!(scalar_from_bytes(&5i64.to_le_bytes(), &PrimitiveType::Int), None);
        assert_eq!(scalar_from_bytes(&[0xff], &PrimitiveType::String), None);
        assert_eq!(scalar_from_bytes(&[], &PrimitiveType::Boolean), None);
    }

    #[test]
    fn bounds_that_prove_nothing_are_none() {
        let double = |v: f64| v.to_le_bytes();
        assert_eq!(bounds(&double(f64::NAN), &double(1.0), &PrimitiveType::Double), None);
        assert_eq!(bounds(&double(2.0), &double(1.0), &PrimitiveType::Double), None);
        assert_eq!(bounds(&[1; 16], &[2; 16], &PrimitiveType::Uuid), None);
        assert_eq!(bounds(b"b", b"a", &PrimitiveType::String), None);
    }

    #[test]
    fn zero_bounds_take_in_both_zeros() {
        let zero = bounds(&0.0f64.to_le_bytes(), &(-0.0f64).to_le_bytes(), &PrimitiveType::Double).unwrap();
        assert_eq!(zero.lower, memcmp(&Scalar::Double(-0.0)));
        assert_eq!(zero.upper, memcmp(&Scalar::Double(0.0)));
        let single = bounds(&0.0f32.to_le_bytes(), &0.0f32.to_le_bytes(), &PrimitiveType::Float).unwrap();
        assert!(single.lower < single.upper);
    }

    #[test]
    fn the_total_order_of_floats() {
        let values = [-f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, f64::INFINITY, f64::NAN];
        for pair in values.windows(2) {
            assert!(memcmp(&Scalar::Double(pair[0])) < memcmp(&Scalar::Double(pair[1])), "{pair:?}");
            let (a, b) = (pair[0] as f32, pair[1] as f32);
            assert!(memcmp(&Scalar::Float(a)) <= memcmp(&Scalar::Float(b)), "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn byte_order_is_value_order(
            (a, b) in any::<(i64, i64)>(), (x, y) in any::<(f64, f64)>(), (s, t) in any::<(String, String)>(),
            (m, n) in any::<(i128, i128)>(),
        ) {
            let by_bytes = |left: Scalar, right: Scalar| memcmp(&left).cmp(&memcmp(&right));
            let decimal = |unscaled| Scalar::Decimal { unscaled, scale: 2 };
            prop_assert_eq!(by_bytes(Scalar::Long(a), Scalar::Long(b)), a.cmp(&b));
            prop_assert_eq!(by_bytes(Scalar::Int(a as i32), Scalar::Int(b as i32)), (a as i32).cmp(&(b as i32)));
            prop_assert_eq!(by_bytes(Scalar::Double(x), Scalar::Double(y)), x.total_cmp(&y));
            prop_assert_eq!(by_bytes(Scalar::Float(x as f32), Scalar::Float(y as f32)), (x as f32).total_cmp(&(y as f32)));
            let texts = s.as_bytes().cmp(t.as_bytes());
            prop_assert_eq!(by_bytes(Scalar::String(s), Scalar::String(t)), texts);
            prop_assert_eq!(by_bytes(decimal(m), decimal(n)), m.cmp(&n));
        }
    }
}
