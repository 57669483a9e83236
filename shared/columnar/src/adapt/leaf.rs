//! Values of one type as values of another: only where nothing can change (Iceberg spec, "Schema Evolution").

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, cast::AsArray, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::scale::{self, Scale};

/// A change of type that keeps each value, or refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeafCast {
    /// No change.
    Same,
    /// The file's column has no type because it has no values.
    Nulls(DataType),
    /// Wider integers and floats, other offsets, text from bytes: `arrow-cast` does it, and fails where it cannot.
    Arrow(DataType),
    /// A decimal of the same scale and at least the precision.
    Precision(u8, i8),
    /// A decimal that was stored wider than it needs to be.
    Narrow(u8, i8),
    /// A time or timestamp in another unit, or with another label of its zone.
    Scale(Scale, DataType),
    /// The 12 bytes of an INT96.
    Int96(DataType),
}

/// Why values could not be converted.
#[derive(Debug)]
pub(crate) enum LeafProblem {
    /// This value cannot be had exactly.
    Inexact(String),
    /// The array itself is wrong.
    Arrow(ArrowError),
}

impl From<ArrowError> for LeafProblem {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

impl LeafCast {
    /// The way from one type to the other, `None` when there is none.
    pub(crate) fn plan(from: &DataType, to: &DataType, int96: bool) -> Option<Self> {
        use DataType as T;
        if int96 {
            return matches!(to, T::Timestamp(..)).then(|| Self::Int96(to.clone()));
        }
        if from == to {
            return Some(Self::Same);
        }
        let arrow = || Some(Self::Arrow(to.clone()));
        match (from, to) {
            (T::Null, to) if !to.is_nested() => Some(Self::Nulls(to.clone())),
            (T::Int8 | T::Int16 | T::UInt8 | T::UInt16, T::Int32 | T::Int64)
            | (T::Int32 | T::UInt32, T::Int64)
            | (T::Float16, T::Float32 | T::Float64)
            | (T::Float32, T::Float64) => arrow(),
            (T::Utf8 | T::Binary, T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary) => arrow(),
            (T::Decimal128(precision, scale), T::Decimal128(wider, same)) if scale == same && precision <= wider => {
                Some(Self::Precision(*wider, *same))
            }
            (T::Decimal256(precision, scale), T::Decimal128(wider, same)) if scale == same && precision <= wider => {
                Some(Self::Narrow(*wider, *same))
            }
            (T::Time32(from), T::Time64(unit)) | (T::Time64(from), T::Time64(unit)) => {
                Some(Self::Scale(Scale::between(*from, *unit), to.clone()))
            }
            // A zone is a label of the table's type: the number in the file is the same with and without it, and so
            // readers of Iceberg take it, whatever the file says (old writers could not say).
            (T::Timestamp(from, _), T::Timestamp(unit, _)) => {
                Some(Self::Scale(Scale::between(*from, *unit), to.clone()))
            }
            _ => None,
        }
    }

    /// Whether only the label of the type changes, or the width of offsets; texts from bytes are still to be checked.
    pub(crate) fn keeps_numbers(&self) -> bool {
        match self {
            Self::Same => true,
            Self::Scale(scale, DataType::Timestamp(..)) => scale.is_one(),
            // They come from texts and bytes only.
            Self::Arrow(to) => {
                matches!(to, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
            }
            _ => false,
        }
    }

    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, LeafProblem> {
        match self {
            Self::Same => Ok(Arc::clone(array)),
            Self::Nulls(to) => Ok(new_null_array(to, array.len())),
            Self::Arrow(to) => {
                let options = CastOptions { safe: false, ..CastOptions::default() };
                Ok(cast_with_options(array, to, &options)?)
            }
            Self::Precision(precision, scale) => {
                let decimals = array.as_primitive::<Decimal128Type>().clone();
                Ok(Arc::new(decimals.with_precision_and_scale(*precision, *scale)?))
            }
            Self::Narrow(precision, scale) => {
                let narrow =
                    array.as_primitive::<Decimal256Type>().try_unary::<_, Decimal128Type, LeafProblem>(|value| {
                        value.to_i128().ok_or_else(|| LeafProblem::Inexact(format!("{value} of scale {scale}")))
                    })?;
                Ok(Arc::new(narrow.with_precision_and_scale(*precision, *scale)?))
            }
            Self::Scale(scale, to) => scale::convert(array, *scale, to),
            Self::Int96(to) => scale::from_int96(array, to),
        }
    }
}

/// The same offsets in 64 bits.
pub(crate) fn wide_offsets(offsets: &OffsetBuffer<i32>) -> OffsetBuffer<i64> {
    OffsetBuffer::new(offsets.iter().map(|offset| i64::from(*offset)).collect())
}

/// Units of a second.
pub(crate) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType as T;

    #[test]
    fn only_promotions_are_planned() {
        let refused = [
            (T::Int64, T::Int32),
            (T::Float64, T::Float32),
            (T::UInt64, T::Int64),
            (T::UInt32, T::Int32),
            (T::Int32, T::Float64),
            (T::Int32, T::Utf8),
            (T::Utf8, T::Int32),
            (T::Int32, T::Date32),
            (T::Int64, T::Timestamp(TimeUnit::Microsecond, None)),
            (T::Date32, T::Timestamp(TimeUnit::Microsecond, None)),
            (T::Decimal128(9, 2), T::Decimal128(18, 3)),
            (T::Decimal128(9, 3), T::Decimal128(18, 2)),
            (T::Decimal128(18, 2), T::Decimal128(9, 2)),
            (T::FixedSizeBinary(8), T::FixedSizeBinary(16)),
            (T::FixedSizeBinary(16), T::Binary),
            (T::Boolean, T::Int32),
        ];
        for (from, to) in refused {
            assert_eq!(LeafCast::plan(&from, &to, false), None, "{from} to {to}");
        }
        assert_eq!(LeafCast::plan(&T::Int32, &T::Int32, false), Some(LeafCast::Same));
        assert_eq!(LeafCast::plan(&T::Int32, &T::Int64, false), Some(LeafCast::Arrow(T::Int64)));
        assert_eq!(
            LeafCast::plan(&T::Decimal128(9, 2), &T::Decimal128(18, 2), false),
            Some(LeafCast::Precision(18, 2))
        );
        assert_eq!(LeafCast::plan(&T::FixedSizeBinary(12), &T::Int64, true), None);
    }

    #[test]
    fn a_decimal_stored_wide_is_narrowed_exactly() {
        use arrow_array::Decimal256Array;
        use arrow_buffer::i256;
        let cast = LeafCast::Narrow(38, 2);
        let wide = |value| {
            let array = Decimal256Array::from(vec![Some(value), None]).with_precision_and_scale(38, 2).unwrap();
            cast.apply(&(Arc::new(array) as ArrayRef))
        };
        let narrow = wide(i256::from_i128(-12345)).unwrap();
        assert_eq!(narrow.as_primitive::<Decimal128Type>().value(0), -12345);
        assert!(narrow.is_null(1));
        assert!(matches!(wide(i256::MAX), Err(LeafProblem::Inexact(_))));
    }
}
