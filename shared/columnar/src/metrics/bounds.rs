//! Lower and upper bound of one leaf, merged over the row groups, in Iceberg's single-value binary form.

use std::cmp::Ordering;

use arrow_schema::DataType;
use parquet::file::statistics::Statistics;

use crate::above::{bytes_above, text_above};

/// A decoded minimum or maximum. Values of one column have one variant.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(i128),
    /// Text, binary, fixed and UUID compare as unsigned bytes; for text that is the order of code points.
    Bytes(Vec<u8>),
}

/// Merges the minima and maxima of a leaf's chunks.
#[derive(Debug)]
pub(super) struct BoundsBuilder<'a> {
    data_type: &'a DataType,
    lower: Side,
    upper: Side,
}

#[derive(Debug, Clone, PartialEq)]
enum Side {
    /// No chunk with values yet.
    Empty,
    Known(Value),
    /// A chunk with values does not tell its bound: there is none for the file.
    Unknown,
}

impl<'a> BoundsBuilder<'a> {
    pub(super) fn new(data_type: &'a DataType) -> Self {
        Self { data_type, lower: Side::Empty, upper: Side::Empty }
    }

    /// Adds a chunk. `comparable` is false when it is known to hold nothing but nulls and NaN.
    pub(super) fn add(&mut self, statistics: Option<&Statistics>, comparable: bool) {
        if !comparable {
            return;
        }
        let fixed = matches!(self.data_type, DataType::FixedSizeBinary(_));
        // A cut value of a fixed length would be no value of that type.
        let lower = statistics
            .filter(|statistics| !fixed || statistics.min_is_exact())
            .and_then(|statistics| decode(self.data_type, statistics, Statistics::min_bytes_opt(statistics)?));
        let upper = statistics
            .filter(|statistics| !fixed || statistics.max_is_exact())
            .and_then(|statistics| decode(self.data_type, statistics, Statistics::max_bytes_opt(statistics)?));
        self.lower.merge(lower, Ordering::Less);
        self.upper.merge(upper, Ordering::Greater);
    }

    /// Both bounds; those of text and binary with at most `truncate` characters or bytes.
    pub(super) fn finish(self, truncate: Option<usize>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let lower = self.lower.known().map(|value| match value {
            // Whatever the sign of the zeros in the column, none of them is excluded.
            Value::Float(0.0) => Value::Float(-0.0),
            value => value,
        });
        let upper = self.upper.known().map(|value| match value {
            Value::Float(0.0) => Value::Float(0.0),
            value => value,
        });
        (
            lower.and_then(|value| {
                encode(self.data_type, value, |value| Some(truncate_lower(self.data_type, value, truncate)))
            }),
            upper.and_then(|value| {
                encode(self.data_type, value, |value| truncate_upper(self.data_type, value, truncate))
            }),
        )
    }
}

impl Side {
    /// Takes `value` when it lies in direction `order` of the one so far.
    fn merge(&mut self, value: Option<Value>, order: Ordering) {
        let next = match (&*self, value) {
            (Side::Unknown, _) | (_, None) => Side::Unknown,
            (Side::Empty, Some(value)) => Side::Known(value),
            (Side::Known(known), Some(value)) => match value.partial_cmp(known) {
                None => Side::Unknown,
                Some(found) if found == order => Side::Known(value),
                Some(_) => return,
            },
        };
        *self = next;
    }

    fn known(self) -> Option<Value> {
        match self {
            Side::Known(value) => Some(value),
            Side::Empty | Side::Unknown => None,
        }
    }
}

/// The value that a statistic of a chunk holds, read at the type of the target schema.
fn decode(data_type: &DataType, statistics: &Statistics, bytes: &[u8]) -> Option<Value> {
    let int32 = || Some(i32::from_le_bytes(bytes.try_into().ok()?));
    let int64 = || Some(i64::from_le_bytes(bytes.try_into().ok()?));
    match data_type {
        DataType::Boolean => bytes.first().map(|byte| Value::Bool(*byte != 0)),
        DataType::Int32 | DataType::Date32 => Some(Value::Int(int32()?.into())),
        DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..) => Some(Value::Int(int64()?)),
        DataType::Float32 => float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        DataType::Float64 => float(f64::from_le_bytes(bytes.try_into().ok()?)),
        DataType::Decimal128(..) => Some(Value::Decimal(match statistics {
            Statistics::Int32(_) => int32()?.into(),
            Statistics::Int64(_) => int64()?.into(),
            _ => big_endian(bytes)?,
        })),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            std::str::from_utf8(bytes).ok().map(|text| Value::Bytes(text.into()))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(Value::Bytes(bytes.to_vec()))
        }
        _ => None,
    }
}

fn float(value: f64) -> Option<Value> {
    (!value.is_nan()).then_some(Value::Float(value))
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xFF };
    let mut wide = [sign; 16];
    wide[16_usize.checked_sub(bytes.len())?..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// Iceberg's single-value binary form (spec, Appendix D).
fn encode(data_type: &DataType, value: Value, cut: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    Some(match (data_type, value) {
        (_, Value::Bool(value)) => vec![u8::from(value)],
        (DataType::Int32 | DataType::Date32, Value::Int(value)) => i32::try_from(value).ok()?.to_le_bytes().to_vec(),
        (_, Value::Int(value)) => value.to_le_bytes().to_vec(),
        // Exact: the value was one of this width.
        (DataType::Float32, Value::Float(value)) => (value as f32).to_le_bytes().to_vec(),
        (_, Value::Float(value)) => value.to_le_bytes().to_vec(),
        (_, Value::Decimal(value)) => minimal_big_endian(value),
        (_, Value::Bytes(value)) => cut(value)?,
    })
}

/// Two's complement with as few bytes as hold the value and its sign.
fn minimal_big_endian(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xFF } else { 0 };
    let start = (0..15).find(|at| bytes[*at] != sign || (bytes[at + 1] ^ sign) & 0x80 != 0).unwrap_or(15);
    bytes[start..].to_vec()
}

fn truncate_lower(data_type: &DataType, mut value: Vec<u8>, length: Option<usize>) -> Vec<u8> {
    if let Some(end) = cut_at(data_type, &value, length) {
        value.truncate(end);
    }
    value
}

fn truncate_upper(data_type: &DataType, mut value: Vec<u8>, length: Option<usize>) -> Option<Vec<u8>> {
    let Some(end) = cut_at(data_type, &value, length) else { return Some(value) };
    value.truncate(end);
    if is_text(data_type) { text_above(std::str::from_utf8(&value).ok()?, |_, _| true) } else { bytes_above(value) }
}

/// Where a longer value is cut; None when it stays whole. Values of fixed length are never cut.
fn cut_at(data_type: &DataType, value: &[u8], length: Option<usize>) -> Option<usize> {
    let length = length?;
    if is_text(data_type) {
        std::str::from_utf8(value).ok()?.char_indices().nth(length).map(|(at, _)| at)
    } else {
        let fixed = matches!(data_type, DataType::FixedSizeBinary(_));
        (!fixed && value.len() > length).then_some(length)
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_minimal_two_s_complement() {
        let cases: [(i128, &[u8]); 9] = [
            (0, &[0]),
            (127, &[0x7F]),
            (128, &[0, 0x80]),
            (-128, &[0x80]),
            (-129, &[0xFF, 0x7F]),
            (1420, &[0x05, 0x8C]),
            (-1, &[0xFF]),
            (i128::MAX, &[0x7F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
            (i128::MIN, &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (value, expected) in cases {
            assert_eq!(minimal_big_endian(value), expected, "{value}");
            assert_eq!(big_endian(expected), Some(value));
        }
    }

    #[test]
    fn an_upper_bound_that_cannot_be_rounded_up_is_none() {
        let cut = |text: &str, length| truncate_upper(&DataType::Utf8, text.into(), Some(length));
        assert_eq!(cut("abc", 3), Some("abc".into()));
        assert_eq!(cut("abcd", 3), Some("abd".into()));
        assert_eq!(cut("ab\u{10FFFF}d", 3), Some("ac".into()));
        assert_eq!(cut("\u{10FFFF}\u{10FFFF}d", 2), None);
        assert_eq!(cut("\u{D7FF}x", 1), Some("\u{E000}".into()));
        assert_eq!(cut("\u{7F}x", 1), Some("\u{80}".into()));
        assert_eq!(cut("\u{FFFF}x", 1), Some("\u{10000}".into()));
        let cut = |bytes: &[u8], length| truncate_upper(&DataType::Binary, bytes.into(), Some(length));
        assert_eq!(cut(&[1, 255, 9], 2), Some(vec![2]));
        assert_eq!(cut(&[255, 255, 9], 2), None);
        assert_eq!(cut(&[255, 255], 2), Some(vec![255, 255]));
        let fixed = truncate_upper(&DataType::FixedSizeBinary(3), vec![255, 255, 255], Some(2));
        assert_eq!(fixed, Some(vec![255; 3]));
    }

    #[test]
    fn one_chunk_without_a_bound_leaves_the_file_without_one() {
        let with = Statistics::int32(Some(3), Some(5), None, Some(0), false);
        let without = Statistics::int32(None, None, None, Some(0), false);
        let mut bounds = BoundsBuilder::new(&DataType::Int32);
        bounds.add(Some(&with), true);
        bounds.add(Some(&without), false);
        bounds.add(None, false);
        let known = (Some(3_i32.to_le_bytes().to_vec()), Some(5_i32.to_le_bytes().to_vec()));
        assert_eq!(bounds.finish(None), known);
        let mut bounds = BoundsBuilder::new(&DataType::Int32);
        bounds.add(Some(&without), true);
        bounds.add(Some(&with), true);
        assert_eq!(bounds.finish(None), (None, None));
        assert_eq!(BoundsBuilder::new(&DataType::Int32).finish(None), (None, None));
    }

    #[test]
    fn zeros_of_either_sign_stay_inside() {
        for (min, max) in [(0.0, 0.0), (-0.0, -0.0), (0.0, -0.0)] {
            let mut bounds = BoundsBuilder::new(&DataType::Float64);
            bounds.add(Some(&Statistics::double(Some(min), Some(max), None, Some(0), false)), true);
            let expected = ((-0.0_f64).to_le_bytes().to_vec(), 0.0_f64.to_le_bytes().to_vec());
            assert_eq!(bounds.finish(None), (Some(expected.0), Some(expected.1)));
        }
    }

    proptest! {
        #[test]
        fn text_bounds_exclude_no_value_and_are_short(text in "\\PC{0,6}|[\u{10FFFE}\u{10FFFF}]{0,6}", length in 1_usize..4) {
            let bytes = text.clone().into_bytes();
            let lower = truncate_lower(&DataType::Utf8, bytes.clone(), Some(length));
            prop_assert!(lower <= bytes);
            prop_assert!(std::str::from_utf8(&lower).unwrap().chars().count() <= length);
            match truncate_upper(&DataType::Utf8, bytes.clone(), Some(length)) {
                Some(upper) => {
                    prop_assert!(upper >= bytes);
                    prop_assert!(std::str::from_utf8(&upper).unwrap().chars().count() <= length);
                }
                None => prop_assert!(text.chars().take(length).all(|char| char == char::MAX)),
            }
        }

        #[test]
        fn binary_bounds_exclude_no_value_and_are_short(bytes in proptest::collection::vec(250_u8..=255, 0..6), length in 1_usize..4) {
            prop_assert!(truncate_lower(&DataType::Binary, bytes.clone(), Some(length)) <= bytes);
            match truncate_upper(&DataType::Binary, bytes.clone(), Some(length)) {
                Some(upper) => prop_assert!(upper >= bytes && upper.len() <= length),
                None => prop_assert!(bytes.iter().take(length).all(|byte| *byte == 255)),
            }
        }
    }
}
