//! Smallest and largest values for the statistics of chunks and pages (parquet-format, `parquet.thrift`, `ColumnOrder` and
//! `Statistics`).
//!
//! Every function returns `None` where there is no value to name. Values of a dictionary give the same answer as the rows that
//! use them, and are fewer.

use crate::Texts;
use crate::order::TextOrder;

/// Values that are compared side by side: as many as the widest vectors hold, and enough to hide how long a comparison takes.
const LANES: usize = 8;

/// What statistics say of floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatRange<F> {
    /// The smallest and the largest value that is not NaN, or `None` if there is none. A smallest zero is -0.0 and a largest one
    /// is +0.0, as readers may compare them either way.
    pub range: Option<(F, F)>,
    /// How many values are NaN.
    pub nans: u64,
}

/// Smallest and largest with one accumulator a lane. `lesser(a, b)` and `greater(a, b)` keep `b` unless `a` is beyond it.
#[inline(always)]
fn fold<B: Copy, V: Copy>(
    bits: &[B],
    value: impl Fn(B) -> V,
    (start, end): (V, V),
    lesser: impl Fn(V, V) -> V,
    greater: impl Fn(V, V) -> V,
) -> (V, V) {
    let (mut least, mut most) = ([start; LANES], [end; LANES]);
    let (groups, rest) = bits.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            let value = value(group[lane]);
            least[lane] = lesser(value, least[lane]);
            most[lane] = greater(value, most[lane]);
        }
    }
    for bits in rest {
        least[0] = lesser(value(*bits), least[0]);
        most[0] = greater(value(*bits), most[0]);
    }
    let least = least.into_iter().fold(start, |least, value| lesser(value, least));
    (least, most.into_iter().fold(end, |most, value| greater(value, most)))
}

macro_rules! integers {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $value:ty) => {
        $(#[$doc])*
        pub fn $name(values: &[$bits]) -> Option<($value, $value)> {
            let range = fold(values, |bits| bits as $value, (<$value>::MAX, <$value>::MIN), Ord::min, Ord::max);
            (!values.is_empty()).then_some(range)
        }
    };
}

integers!(
    /// INT64.
    range_i64, u64, i64
);
integers!(
    /// INT32.
    range_i32, u32, i32
);
integers!(
    /// INT64 of the logical type of unsigned integers.
    range_u64, u64, u64
);
integers!(
    /// INT32 of the logical type of unsigned integers; also places in a sorted dictionary.
    range_u32, u32, u32
);

macro_rules! floats {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $value:ty) => {
        $(#[$doc])*
        pub fn $name(values: &[$bits]) -> FloatRange<$value> {
            // NaN is never beyond anything, so it is never kept.
            let (least, most) = fold(
                values,
                <$value>::from_bits,
                (<$value>::INFINITY, <$value>::NEG_INFINITY),
                |value, least| if value < least { value } else { least },
                |value, most| if value > most { value } else { most },
            );
            let nans: u64 = values.iter().map(|bits| u64::from(<$value>::from_bits(*bits).is_nan())).sum();
            let least = if least == 0.0 { -0.0 } else { least };
            let most = if most == 0.0 { 0.0 } else { most };
            FloatRange { range: ((values.len() as u64) > nans).then_some((least, most)), nans }
        }
    };
}

floats!(
    /// DOUBLE.
    range_f64, u64, f64
);
floats!(
    /// FLOAT.
    range_f32, u32, f32
);

/// BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY in the order of their logical type.
pub fn range_texts(texts: &Texts, order: TextOrder) -> Option<(&[u8], &[u8])> {
    let mut texts = texts.iter();
    let first = texts.next()?;
    Some(texts.fold((first, first), |(least, most), text| {
        if order.compare(text, least).is_lt() {
            (text, most)
        } else if order.compare(text, most).is_gt() {
            (least, text)
        } else {
            (least, most)
        }
    }))
}
