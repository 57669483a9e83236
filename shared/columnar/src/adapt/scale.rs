//! Times and timestamps in another unit: exactly, or not at all.

use std::sync::Arc;

use arrow_array::types::{
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, cast::AsArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::leaf::{LeafProblem, per_second};

/// A factor between two units; one of the two is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    multiply: i64,
    divide: i64,
}

impl Scale {
    pub(crate) fn between(from: TimeUnit, to: TimeUnit) -> Self {
        let (from, to) = (per_second(from), per_second(to));
        Self { multiply: (to / from).max(1), divide: (from / to).max(1) }
    }

    /// Whether numbers stay as they are.
    pub(crate) fn is_one(self) -> bool {
        self.multiply == 1 && self.divide == 1
    }

    fn apply(self, value: i64) -> Option<i64> {
        if value % self.divide == 0 { (value / self.divide).checked_mul(self.multiply) } else { None }
    }
}

/// A time or timestamp array as `to`.
pub(crate) fn convert(array: &ArrayRef, scale: Scale, to: &DataType) -> Result<ArrayRef, LeafProblem> {
    let numbers = match array.data_type() {
        // 32-bit times only become numbers of their own width.
        DataType::Time32(_) => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(array, &DataType::Int64)?,
    };
    let numbers = numbers.as_primitive::<Int64Type>();
    let from = array.data_type();
    let scaled: Int64Array = match scale {
        Scale { multiply: 1, divide: 1 } => numbers.clone(),
        _ => numbers
            .try_unary(|value| scale.apply(value).ok_or_else(|| LeafProblem::Inexact(format!("{value} as {from}"))))?,
    };
    label(scaled, to)
}

/// Milliseconds, microseconds or nanoseconds since 1970 of the 12 bytes of an INT96: nanoseconds of the day and Julian
/// day, both little-endian.
pub(crate) fn from_int96(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, LeafProblem> {
    const JULIAN_DAY_OF_EPOCH: i128 = 2_440_588;
    const NANOS_PER_SECOND: i128 = 1_000_000_000;
    let DataType::Timestamp(unit, _) = to else {
        return Err(ArrowError::CastError(format!("INT96 is no {to}")).into());
    };
    let nanos_per_unit = NANOS_PER_SECOND / i128::from(per_second(*unit));
    let read = |bytes: &[u8]| {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *<&[u8; 12]>::try_from(bytes).ok()?;
        let of_day = i128::from(i64::from_le_bytes([a, b, c, d, e, f, g, h]));
        let day = i128::from(u32::from_le_bytes([i, j, k, l]));
        Some((day - JULIAN_DAY_OF_EPOCH) * 86_400 * NANOS_PER_SECOND + of_day)
    };
    let bytes = array.as_fixed_size_binary();
    let mut values = Vec::with_capacity(bytes.len());
    for index in 0..bytes.len() {
        if bytes.is_null(index) {
            values.push(0);
            continue;
        }
        let nanos = read(bytes.value(index)).ok_or_else(|| ArrowError::CastError("INT96 has 12 bytes".into()))?;
        let exact = (nanos % nanos_per_unit == 0).then(|| i64::try_from(nanos / nanos_per_unit).ok()).flatten();
        values.push(exact.ok_or_else(|| LeafProblem::Inexact(format!("{nanos} nanoseconds since 1970")))?);
    }
    label(Int64Array::new(values.into(), bytes.nulls().cloned()), to)
}

/// Numbers as times or timestamps of the unit they already have.
fn label(numbers: Int64Array, to: &DataType) -> Result<ArrayRef, LeafProblem> {
    let (_, values, nulls) = numbers.into_parts();
    Ok(match to {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            Arc::new(PrimitiveArray::<TimestampSecondType>::new(values, nulls).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, nulls).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, nulls).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Arc::new(PrimitiveArray::<TimestampNanosecondType>::new(values, nulls).with_timezone_opt(zone.clone()))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            Arc::new(PrimitiveArray::<Time64MicrosecondType>::new(values, nulls))
        }
        DataType::Time64(TimeUnit::Nanosecond) => Arc::new(PrimitiveArray::<Time64NanosecondType>::new(values, nulls)),
        other => return Err(ArrowError::CastError(format!("a number is no {other}")).into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        FixedSizeBinaryArray, Time32MillisecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    };

    fn micros(zone: Option<&str>) -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))
    }

    fn numbers(array: &ArrayRef) -> Vec<Option<i64>> {
        array.as_primitive::<TimestampMicrosecondType>().iter().collect()
    }

    #[test]
    fn milliseconds_become_microseconds_unless_they_overflow() {
        let scale = Scale::between(TimeUnit::Millisecond, TimeUnit::Microsecond);
        let array: ArrayRef =
            Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None, Some(253_402_300_799_999)]));
        let converted = convert(&array, scale, &micros(Some("+00:00"))).unwrap();
        assert_eq!(converted.data_type(), &micros(Some("+00:00")));
        assert_eq!(numbers(&converted), [Some(-1000), None, Some(253_402_300_799_999_000)]);
        let array: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]));
        assert!(matches!(convert(&array, scale, &micros(None)), Err(LeafProblem::Inexact(_))));
    }

    #[test]
    fn nanoseconds_become_microseconds_only_when_nothing_is_cut() {
        let scale = Scale::between(TimeUnit::Nanosecond, TimeUnit::Microsecond);
        let array: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-3000, 0, 5_000]));
        assert_eq!(numbers(&convert(&array, scale, &micros(None)).unwrap()), [Some(-3), Some(0), Some(5)]);
        for value in [1, -1, 1_500] {
            let array: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![value]));
            assert!(matches!(convert(&array, scale, &micros(None)), Err(LeafProblem::Inexact(_))), "{value}");
        }
    }

    #[test]
    fn a_time_in_milliseconds() {
        let array: ArrayRef = Arc::new(Time32MillisecondArray::from(vec![Some(86_399_999), None]));
        let scale = Scale::between(TimeUnit::Millisecond, TimeUnit::Microsecond);
        let converted = convert(&array, scale, &DataType::Time64(TimeUnit::Microsecond)).unwrap();
        let values: Vec<_> = converted.as_primitive::<Time64MicrosecondType>().iter().collect();
        assert_eq!(values, [Some(86_399_999_000), None]);
    }

    #[test]
    fn int96_reaches_from_year_1000_to_9999() {
        let bytes = |day: u32, nanos: i64| [nanos.to_le_bytes().as_slice(), &day.to_le_bytes()].concat();
        // 1000-01-01 (proleptic Gregorian), 1970-01-01 00:00:00.000001, 9999-12-31.
        let rows = [Some(bytes(2_086_303, 0)), None, Some(bytes(2_440_588, 1000)), Some(bytes(5_373_484, 0))];
        let array: ArrayRef =
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(rows.into_iter(), 12).unwrap());
        let converted = from_int96(&array, &micros(None)).unwrap();
        let expected = [Some(-30_610_224_000_000_000), None, Some(1), Some(253_402_214_400_000_000)];
        assert_eq!(numbers(&converted), expected);
        // In nanoseconds the same values do not fit, and a part of a microsecond is not cut.
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        assert!(matches!(from_int96(&array, &nanos), Err(LeafProblem::Inexact(_))));
        let odd: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([bytes(2_440_588, 1)].into_iter()).unwrap());
        assert!(matches!(from_int96(&odd, &micros(None)), Err(LeafProblem::Inexact(_))));
    }
}
