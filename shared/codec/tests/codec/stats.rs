//! Statistics against the plainest way to get them.

use firn_codec::Texts;
use firn_codec::order::TextOrder;
use firn_codec::stats::{FloatRange, range_f32, range_f64, range_i32, range_i64, range_texts, range_u32, range_u64};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::cases;

fn float() -> impl Strategy<Value = f64> {
    let special = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
    prop_oneof![4 => -10.0..10.0_f64, 1 => proptest::sample::select(special.to_vec())]
}

#[test]
fn zeros_are_written_so_that_no_reader_misses_one() {
    let range = |values: &[f64]| {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        range_f64(&bits).range.map(|(least, most)| (least.to_bits(), most.to_bits()))
    };
    let bits = |least: f64, most: f64| Some((least.to_bits(), most.to_bits()));
    assert_eq!(range(&[0.0, 1.0]), bits(-0.0, 1.0));
    assert_eq!(range(&[-1.0, -0.0]), bits(-1.0, 0.0));
    assert_eq!(range(&[0.0]), bits(-0.0, 0.0));
    assert_eq!(range(&[f64::INFINITY, f64::NAN]), bits(f64::INFINITY, f64::INFINITY));
    let none = FloatRange { range: None, nans: 2 };
    assert_eq!(range_f64(&[f64::NAN.to_bits(); 2]), none);
    assert_eq!(range_f32(&[f32::NAN.to_bits(); 2]).range, None);
    assert_eq!((range_i64(&[]), range_i32(&[]), range_u64(&[]), range_u32(&[])), (None, None, None, None));
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn integers(values in vec(any::<u64>(), 1..50)) {
        let least_and_most = |values: Vec<i128>| (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        let narrow: Vec<u32> = values.iter().map(|value| *value as u32).collect();
        let (least, most) = range_i64(&values).unwrap();
        let expected = least_and_most(values.iter().map(|value| i128::from(*value as i64)).collect());
        prop_assert_eq!((i128::from(least), i128::from(most)), expected);
        let (least, most) = range_u64(&values).unwrap();
        let expected = least_and_most(values.iter().map(|value| i128::from(*value)).collect());
        prop_assert_eq!((i128::from(least), i128::from(most)), expected);
        let (least, most) = range_i32(&narrow).unwrap();
        let expected = least_and_most(narrow.iter().map(|value| i128::from(*value as i32)).collect());
        prop_assert_eq!((i128::from(least), i128::from(most)), expected);
        let (least, most) = range_u32(&narrow).unwrap();
        let expected = least_and_most(narrow.iter().map(|value| i128::from(*value)).collect());
        prop_assert_eq!((i128::from(least), i128::from(most)), expected);
    }

    #[test]
    fn floats(values in vec(float(), 0..50)) {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let found = range_f64(&bits);
        prop_assert_eq!(found.nans as usize, values.len() - numbers.len());
        let expected = (!numbers.is_empty()).then(|| {
            (numbers.iter().copied().fold(f64::INFINITY, f64::min), numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        });
        prop_assert_eq!(found.range, expected);

        let bits: Vec<u32> = values.iter().map(|value| (*value as f32).to_bits()).collect();
        let found = range_f32(&bits);
        let expected = expected.map(|(least, most)| (least as f32, most as f32));
        prop_assert_eq!(found.range, expected);
    }

    #[test]
    fn texts(texts in vec(vec(any::<u8>(), 0..4), 0..20)) {
        let mut all = Texts::new();
        texts.iter().for_each(|text| all.push(text).unwrap());
        let expected = texts.iter().min().zip(texts.iter().max()).map(|(least, most)| (&least[..], &most[..]));
        prop_assert_eq!(range_texts(&all, TextOrder::Bytes), expected);
        let found = range_texts(&all, TextOrder::Decimal);
        prop_assert_eq!(found.is_some(), !texts.is_empty());
        if let Some((least, most)) = found {
            for text in &texts {
                prop_assert!(TextOrder::Decimal.compare(least, text).is_le());
                prop_assert!(TextOrder::Decimal.compare(text, most).is_le());
            }
        }
    }
}
