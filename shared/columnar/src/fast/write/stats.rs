//! Minima and maxima of pages and chunks (parquet-format, `Statistics` and `ColumnIndex`).

use std::cmp::Ordering;
use std::ops::Range;

use firn_codec::stats;
use parquet::data_type::ByteArray;
use parquet::file::statistics::{Statistics, ValueStatistics};

use super::body::{Dictionary, Values};
use crate::above::{bytes_above, text_above};
use crate::fast::kind::Kind;

/// A smallest or largest value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Bytes(Vec<u8>),
}

impl Bound {
    /// As statistics store it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Bound::I32(value) => value.to_le_bytes().to_vec(),
            Bound::I64(value) => value.to_le_bytes().to_vec(),
            Bound::F32(value) => value.to_le_bytes().to_vec(),
            Bound::F64(value) => value.to_le_bytes().to_vec(),
            Bound::Bytes(bytes) => bytes.clone(),
        }
    }

    /// Bounds of one column have one variant, and NaN is no bound: there is an order.
    pub(super) fn order(&self, other: &Bound) -> Ordering {
        match (self, other) {
            (Bound::I32(a), Bound::I32(b)) => a.cmp(b),
            (Bound::I64(a), Bound::I64(b)) => a.cmp(b),
            (Bound::F32(a), Bound::F32(b)) => a.total_cmp(b),
            (Bound::F64(a), Bound::F64(b)) => a.total_cmp(b),
            (Bound::Bytes(a), Bound::Bytes(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// Both bounds of some values, NaN left out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    pub(super) min: Bound,
    pub(super) max: Bound,
}

/// What is known of some values.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Summary {
    /// None when there is no value, or nothing but NaN.
    pub(super) bounds: Option<Bounds>,
    pub(super) nans: u64,
}

impl Summary {
    /// Of the values in `range`.
    pub(super) fn of_values(values: Values<'_>, range: Range<usize>, kind: Kind) -> Summary {
        match (values, kind) {
            (Values::Narrow(words), Kind::F32) => float32(&words[range]),
            (Values::Narrow(words), _) => {
                exact(stats::range_i32(&words[range]).map(|(min, max)| (Bound::I32(min), Bound::I32(max))))
            }
            (Values::Wide(words), Kind::F64) => float64(&words[range]),
            (Values::Wide(words), _) => {
                exact(stats::range_i64(&words[range]).map(|(min, max)| (Bound::I64(min), Bound::I64(max))))
            }
            (Values::Texts(ids, texts), _) => {
                let all = || ids[range.clone()].iter().map(|id| texts.get(*id as usize).unwrap_or_default());
                let bound = |text: &[u8]| Bound::Bytes(text.to_vec());
                exact(all().min().zip(all().max()).map(|(min, max)| (bound(min), bound(max))))
            }
            (Values::None, _) => Summary::default(),
        }
    }

    /// Of the values in `range` that a sorted dictionary stands for: the order of indices is the order of values.
    pub(super) fn of_indices(dictionary: &Dictionary<'_>, range: Range<usize>, kind: Kind) -> Summary {
        let indices = dictionary.indices(range);
        match kind {
            // NaN lie at both ends of the order: without one there, the order of indices is that of values.
            Kind::F32 | Kind::F64 if !dictionary.has_nan() => {
                let range = stats::range_u32(indices);
                let bounds = range.and_then(|(min, max)| dictionary.float(min).zip(dictionary.float(max)));
                exact(bounds.map(|(min, max)| zeros(min, max, kind)))
            }
            Kind::F32 => float32(&indices.iter().filter_map(|index| dictionary.narrow(*index)).collect::<Vec<_>>()),
            Kind::F64 => float64(&indices.iter().filter_map(|index| dictionary.wide(*index)).collect::<Vec<_>>()),
            Kind::I32 | Kind::I64 | Kind::Text | Kind::Bytes => {
                let bound = |index: u32| {
                    let narrow = dictionary.narrow(index).map(|word| Bound::I32(word.cast_signed()));
                    let wide = || dictionary.wide(index).map(|word| Bound::I64(word.cast_signed()));
                    narrow.or_else(wide).or_else(|| dictionary.text(index).map(|text| Bound::Bytes(text.to_vec())))
                };
                let range = stats::range_u32(indices);
                exact(range.and_then(|(min, max)| bound(min).zip(bound(max))))
            }
        }
    }

    /// Adds what is known of other values.
    pub(super) fn add(&mut self, other: Summary) {
        self.nans += other.nans;
        match (&mut self.bounds, other.bounds) {
            (_, None) => {}
            (bounds @ None, other) => *bounds = other,
            (Some(bounds), Some(other)) => {
                if other.min.order(&bounds.min) == Ordering::Less {
                    bounds.min = other.min;
                }
                if other.max.order(&bounds.max) == Ordering::Greater {
                    bounds.max = other.max;
                }
            }
        }
    }
}

fn exact(range: Option<(Bound, Bound)>) -> Summary {
    Summary { bounds: range.map(|(min, max)| Bounds { min, max }), nans: 0 }
}

/// A zero stands for both zeros (parquet-format, `ColumnOrder`): as a minimum it is -0.0, as a maximum 0.0.
fn zeros(min: f64, max: f64, kind: Kind) -> (Bound, Bound) {
    let min = if min == 0.0 { -0.0 } else { min };
    let max = if max == 0.0 { 0.0 } else { max };
    match kind {
        // They were 4 bytes wide before: nothing is lost.
        Kind::F32 => (Bound::F32(min as f32), Bound::F32(max as f32)),
        _ => (Bound::F64(min), Bound::F64(max)),
    }
}

fn float32(words: &[u32]) -> Summary {
    let found = stats::range_f32(words);
    let bounds = found.range.map(|(min, max)| Bounds { min: Bound::F32(min), max: Bound::F32(max) });
    Summary { bounds, nans: found.nans }
}

fn float64(words: &[u64]) -> Summary {
    let found = stats::range_f64(words);
    let bounds = found.range.map(|(min, max)| Bounds { min: Bound::F64(min), max: Bound::F64(max) });
    Summary { bounds, nans: found.nans }
}

/// The statistics of a chunk. Texts longer than `most_bytes` are cut so that no value is excluded.
pub(super) fn statistics(bounds: Option<&Bounds>, nulls: u64, kind: Kind, most_bytes: Option<usize>) -> Statistics {
    let nulls = Some(nulls);
    match (bounds.map(|bounds| (&bounds.min, &bounds.max)), kind) {
        (Some((Bound::I32(min), Bound::I32(max))), _) => Statistics::int32(Some(*min), Some(*max), None, nulls, false),
        (Some((Bound::I64(min), Bound::I64(max))), _) => Statistics::int64(Some(*min), Some(*max), None, nulls, false),
        (Some((Bound::F32(min), Bound::F32(max))), _) => Statistics::float(Some(*min), Some(*max), None, nulls, false),
        (Some((Bound::F64(min), Bound::F64(max))), _) => Statistics::double(Some(*min), Some(*max), None, nulls, false),
        (Some((Bound::Bytes(min), Bound::Bytes(max))), _) => {
            let (min, min_exact) = cut_min(min, kind, most_bytes);
            let (max, max_exact) = cut_max(max, kind, most_bytes);
            let values =
                ValueStatistics::new(Some(ByteArray::from(min)), Some(ByteArray::from(max)), None, nulls, false);
            Statistics::ByteArray(values.with_min_is_exact(min_exact).with_max_is_exact(max_exact))
        }
        (_, Kind::I32) => Statistics::int32(None, None, None, nulls, false),
        (_, Kind::I64) => Statistics::int64(None, None, None, nulls, false),
        (_, Kind::F32) => Statistics::float(None, None, None, nulls, false),
        (_, Kind::F64) => Statistics::double(None, None, None, nulls, false),
        (_, Kind::Text | Kind::Bytes) => Statistics::byte_array(None, None, None, nulls, false),
    }
}

/// Cuts the bounds of a page.
pub(super) fn cut(bounds: &Bounds, kind: Kind, most_bytes: Option<usize>) -> Bounds {
    match (&bounds.min, &bounds.max) {
        (Bound::Bytes(min), Bound::Bytes(max)) => Bounds {
            min: Bound::Bytes(cut_min(min, kind, most_bytes).0),
            max: Bound::Bytes(cut_max(max, kind, most_bytes).0),
        },
        _ => bounds.clone(),
    }
}

/// The beginning of a value, which is never above it; and whether it is all of it.
fn cut_min(value: &[u8], kind: Kind, most_bytes: Option<usize>) -> (Vec<u8>, bool) {
    let Some(most) = most_bytes.filter(|most| *most < value.len()) else { return (value.to_vec(), true) };
    (value[..char_border(value, kind, most)].to_vec(), false)
}

/// A value of at most `most_bytes` bytes that is not below this one; the whole one where there is none.
fn cut_max(value: &[u8], kind: Kind, most_bytes: Option<usize>) -> (Vec<u8>, bool) {
    let Some(most) = most_bytes.filter(|most| *most < value.len()) else { return (value.to_vec(), true) };
    let start = &value[..char_border(value, kind, most)];
    let raised = match (kind, std::str::from_utf8(start)) {
        // As many bytes as the character that is replaced: no longer than what was cut.
        (Kind::Text, Ok(text)) => text_above(text, |last, next| next.len_utf8() == last.len_utf8()),
        _ => bytes_above(start.to_vec()),
    };
    raised.map_or_else(|| (value.to_vec(), true), |raised| (raised, false))
}

/// The last border of characters at or before `most`; a text's characters stay whole.
fn char_border(value: &[u8], kind: Kind, most: usize) -> usize {
    if kind != Kind::Text {
        return most;
    }
    // Bytes 10xxxxxx go on a character.
    (0..=most).rev().find(|at| value.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_cut_between_characters_and_raised() {
        let cut = |text: &str, most| cut_max(text.as_bytes(), Kind::Text, Some(most));
        assert_eq!(cut("abcdef", 3), (b"abd".to_vec(), false));
        assert_eq!(cut("aé", 2), (b"b".to_vec(), false));
        assert_eq!(cut("ab", 2), (b"ab".to_vec(), true));
        let last = "\u{10FFFF}\u{10FFFF}";
        assert_eq!(cut(last, 4), (last.as_bytes().to_vec(), true), "nothing shorter is above it");
        assert_eq!(cut_max(&[255, 255], Kind::Bytes, Some(1)), (vec![255, 255], true));
        assert_eq!(cut_max(&[1, 255, 7], Kind::Bytes, Some(2)), (vec![2], false));
        assert_eq!(cut_min("aé".as_bytes(), Kind::Text, Some(2)), (b"a".to_vec(), false));
    }

    proptest! {
        #[test]
        fn no_value_is_excluded(text in "\\PC{0,12}", most in 1_usize..8) {
            let bytes = text.as_bytes();
            for kind in [Kind::Text, Kind::Bytes] {
                let (min, _) = cut_min(bytes, kind, Some(most));
                let (max, exact) = cut_max(bytes, kind, Some(most));
                prop_assert!(min.as_slice() <= bytes && bytes <= max.as_slice());
                prop_assert!(exact || max.len() <= most);
                prop_assert!(kind == Kind::Bytes || std::str::from_utf8(&min).is_ok() && std::str::from_utf8(&max).is_ok());
            }
        }
    }
}
