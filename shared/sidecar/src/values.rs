//! The bytes of a value that are hashed: Iceberg's single-value form for sketches, what Parquet stores for bloom filters.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use crate::error::SidecarError;
use crate::identity::SidecarColumn;

/// Which bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Iceberg spec, Appendix D, "Binary single-value serialization".
    Iceberg,
    /// What is written into a Parquet page by plain encoding, without the length (parquet-format, "Bloom Filter").
    Parquet,
}

impl Form {
    /// Whether values of `data_type` have this form here.
    pub(crate) fn supports(self, data_type: &DataType) -> bool {
        match data_type {
            // Two values: a filter would say nothing.
            DataType::Boolean => self == Form::Iceberg,
            DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => true,
            _ => false,
        }
    }

    /// Refuses a column whose values have no such form.
    pub(crate) fn check(self, column: &SidecarColumn) -> Result<(), SidecarError> {
        if self.supports(&column.data_type) {
            return Ok(());
        }
        Err(SidecarError::Unsupported {
            column: column.name.clone(),
            what: match self {
                Form::Iceberg => "counted",
                Form::Parquet => "filtered",
            },
            data_type: column.data_type.to_string(),
        })
    }
}

/// Gives the bytes of every value of `array` that is not null to `take`.
pub(crate) fn each_value(array: &ArrayRef, form: Form, mut take: impl FnMut(&[u8])) -> Result<(), SidecarError> {
    macro_rules! numbers {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().flatten().for_each(|value| take(&value.to_le_bytes()))
        };
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().iter().flatten().for_each(|value| take(&[u8::from(value)])),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Time64(TimeUnit::Microsecond) => numbers!(Time64MicrosecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().for_each(|value| take(value.as_bytes())),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().for_each(|value| take(value.as_bytes())),
        DataType::Utf8View => array.as_string_view().iter().flatten().for_each(|value| take(value.as_bytes())),
        DataType::Binary => array.as_binary::<i32>().iter().flatten().for_each(take),
        DataType::LargeBinary => array.as_binary::<i64>().iter().flatten().for_each(take),
        DataType::BinaryView => array.as_binary_view().iter().flatten().for_each(take),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().flatten().for_each(take),
        DataType::Decimal128(precision, _) => {
            let precision = *precision;
            let values = array.as_primitive::<Decimal128Type>();
            values.iter().flatten().for_each(|value| decimal(value, precision, form, &mut take));
        }
        other => return Err(SidecarError::Failed(format!("values of type {other} have no bytes to hash"))),
    }
    Ok(())
}

fn decimal(value: i128, precision: u8, form: Form, take: &mut impl FnMut(&[u8])) {
    let bytes = value.to_be_bytes();
    match form {
        Form::Parquet if precision <= 9 => take(&(value as i32).to_le_bytes()),
        Form::Parquet if precision <= 18 => take(&(value as i64).to_le_bytes()),
        Form::Parquet => take(&bytes[16 - fixed_length(precision)..]),
        // As few bytes of two's complement as hold the value.
        Form::Iceberg => {
            let sign = if value < 0 { 0xff } else { 0 };
            let needless = |at: usize| bytes[at] == sign && (bytes[at + 1] ^ sign) < 0x80;
            let start = (0..15).take_while(|at| needless(*at)).count();
            take(&bytes[start..]);
        }
    }
}

/// Bytes of a decimal of `precision` digits as Parquet's fixed-length array (Iceberg spec, Appendix A, "Parquet").
fn fixed_length(precision: u8) -> usize {
    let largest = 10_u128.checked_pow(precision.into()).map_or(u128::MAX, |power| power - 1);
    (1..16).find(|bytes| largest < 1_u128 << (8 * bytes - 1)).unwrap_or(16)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Date32Array, Decimal128Array, Int32Array, StringArray, StringViewArray};

    use super::*;

    fn bytes(array: impl Array + 'static, form: Form) -> Vec<Vec<u8>> {
        let array: ArrayRef = Arc::new(array);
        let mut found = Vec::new();
        each_value(&array, form, |value| found.push(value.to_vec())).unwrap();
        found
    }

    #[test]
    fn values_have_the_bytes_that_the_specifications_say() {
        assert_eq!(bytes(Int32Array::from(vec![Some(34), None]), Form::Iceberg), [[34, 0, 0, 0]]);
        assert_eq!(bytes(Date32Array::from(vec![-1]), Form::Parquet), [[255; 4]]);
        assert_eq!(bytes(BooleanArray::from(vec![true, false]), Form::Iceberg), [[1], [0]]);
        let texts = vec![Some("iceberg"), Some(""), None];
        assert_eq!(bytes(StringArray::from(texts.clone()), Form::Parquet), [b"iceberg".to_vec(), vec![]]);
        assert_eq!(bytes(StringViewArray::from(texts), Form::Iceberg), [b"iceberg".to_vec(), vec![]]);
    }

    #[test]
    fn decimals_are_as_short_as_iceberg_wants_and_as_parquet_stores_them() {
        let of = |value, precision, form| {
            let array = Decimal128Array::from(vec![value]).with_precision_and_scale(precision, 2).unwrap();
            bytes(array, form).remove(0)
        };
        // The example of the specification: 14.20 is the unscaled value 1420.
        assert_eq!(of(1420, 9, Form::Iceberg), [0x05, 0x8c]);
        assert_eq!(of(-1, 9, Form::Iceberg), [0xff]);
        assert_eq!(of(0, 9, Form::Iceberg), [0]);
        assert_eq!(of(128, 9, Form::Iceberg), [0, 128]);
        assert_eq!(of(-128, 9, Form::Iceberg), [128]);
        assert_eq!(of(i128::MAX, 38, Form::Iceberg).len(), 16);
        assert_eq!(of(1420, 9, Form::Parquet), [0x8c, 5, 0, 0]);
        assert_eq!(of(1420, 18, Form::Parquet), [0x8c, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!(of(-2, 19, Form::Parquet), [255, 255, 255, 255, 255, 255, 255, 255, 254]);
        assert_eq!([10, 18, 19, 20, 38].map(fixed_length), [5, 8, 9, 9, 16]);
    }
}
