//! Order against comparing sorts.

use std::cmp::Ordering;

use firn_codec::order::{TextOrder, WordOrder, sort, sort_texts};
use firn_codec::{Texts, Word};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::{Random, cases};

fn check<W: Word>(values: &[W], order: WordOrder, compare: impl Fn(W, W) -> Ordering) {
    let mut sorted = values.to_vec();
    let ranks = sort(&mut sorted, order);
    assert!(sorted.windows(2).all(|pair| compare(pair[0], pair[1]).is_le()));
    for (value, rank) in values.iter().zip(&ranks) {
        assert_eq!(sorted[*rank as usize], *value);
    }
    let mut places = ranks;
    places.sort_unstable();
    assert!(places.into_iter().eq(0..values.len() as u32), "ranks are a permutation");
}

fn check_all(values: &[u64]) {
    check(values, WordOrder::Unsigned, |one, other| one.cmp(&other));
    check(values, WordOrder::Signed, |one, other| (one as i64).cmp(&(other as i64)));
    check(values, WordOrder::Float, |one, other| f64::from_bits(one).total_cmp(&f64::from_bits(other)));
    let values: Vec<u32> = values.iter().map(|value| (*value ^ value >> 32) as u32).collect();
    check(&values, WordOrder::Unsigned, |one, other| one.cmp(&other));
    check(&values, WordOrder::Signed, |one, other| (one as i32).cmp(&(other as i32)));
    check(&values, WordOrder::Float, |one, other| f32::from_bits(one).total_cmp(&f32::from_bits(other)));
}

#[test]
fn small_and_large_dictionaries_of_all_shapes() {
    let mut random = Random::new(3);
    for count in [0, 1, 2, 1023, 1024, 1025, 5000] {
        check_all(&(0..count).map(|_| random.next()).collect::<Vec<_>>());
        check_all(&(0..count).map(|_| random.next() >> 30).collect::<Vec<_>>());
        // The differences lie below the bits that are sorted by radix.
        check_all(&(0..count).map(|_| random.next() & 0x8000_0000_0000_00ff).collect::<Vec<_>>());
        check_all(&(0..count).map(|at| (at as f64 * 0.37 - 500.0).to_bits()).collect::<Vec<_>>());
        check_all(&vec![5; count]);
    }
}

#[test]
fn floats_are_in_total_order() {
    let sorted = [-f64::NAN, f64::NEG_INFINITY, -1.0, -f64::MIN_POSITIVE, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
    let mut values: Vec<u64> = sorted.iter().rev().map(|value| value.to_bits()).collect();
    sort(&mut values, WordOrder::Float);
    assert_eq!(values, sorted.map(f64::to_bits));
}

fn texts_of(texts: &[Vec<u8>]) -> Texts {
    let mut all = Texts::new();
    texts.iter().for_each(|text| all.push(text).unwrap());
    all
}

/// The number that a decimal of at most 15 bytes stands for.
fn number(text: &[u8]) -> i128 {
    let start = if text.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    text.iter().fold(start, |number, byte| number << 8 | i128::from(*byte))
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn texts_are_sorted_by_bytes(
        start in vec(any::<u8>(), 0..20),
        ends in vec(vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..12), 0..60),
    ) {
        let texts: Vec<Vec<u8>> = ends.iter().map(|end| [&start[..], end].concat()).collect();
        let (sorted, ranks) = sort_texts(&texts_of(&texts), TextOrder::Bytes).unwrap();
        let mut expected = texts.clone();
        expected.sort();
        prop_assert!(sorted.iter().eq(expected.iter().map(Vec::as_slice)));
        for (text, rank) in texts.iter().zip(ranks) {
            prop_assert_eq!(sorted.get(rank as usize).unwrap(), &text[..]);
        }
    }

    #[test]
    fn decimals_are_sorted_by_number(texts in vec(vec(prop_oneof![Just(0), Just(255), Just(128), any::<u8>()], 0..6), 0..60)) {
        let (sorted, _) = sort_texts(&texts_of(&texts), TextOrder::Decimal).unwrap();
        let numbers: Vec<i128> = sorted.iter().map(number).collect();
        prop_assert!(numbers.is_sorted());
    }
}
