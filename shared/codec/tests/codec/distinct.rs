//! Distinct values against a hash map, and values made to collide.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use firn_codec::distinct::{Distinct, TextInterner};
use firn_codec::{Texts, Word};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::{Random, cases};

fn check<W: Word>(distinct: &mut Distinct<W>, rows: &[W]) {
    let mut known = HashMap::new();
    let mut values = Vec::new();
    let indices: Vec<u32> = rows
        .iter()
        .map(|row| {
            *known.entry(*row).or_insert_with(|| {
                values.push(*row);
                values.len() as u32 - 1
            })
        })
        .collect();
    assert!(distinct.find(rows, values.len()), "exactly as many as the limit");
    assert_eq!((distinct.values(), distinct.indices()), (&values[..], &indices[..]));
    if !values.is_empty() {
        assert!(!distinct.find(rows, values.len() - 1), "one more than the limit");
        assert!(distinct.values().is_empty() && distinct.indices().is_empty());
    }
}

#[test]
fn columns_of_all_sizes() {
    let mut random = Random::new(4);
    let (mut words, mut narrow) = (Distinct::new(), Distinct::new());
    for (count, different) in
        [(0, 1), (1, 1), (15, 9), (16, 16), (17, 3), (511, 511), (513, 9), (40_000, 20), (40_000, 9_000)]
    {
        let rows: Vec<u64> = (0..count).map(|_| (random.below(different) as f64 * 0.1).to_bits()).collect();
        check(&mut words, &rows);
        check(&mut narrow, &rows.iter().map(|row| (row >> 20) as u32).collect::<Vec<_>>());
    }
    check(&mut words, &[0, 0, u64::MAX, 0]);
    assert!(words.heap_bytes() > 0);
}

#[test]
fn a_sample_gives_up_on_many_values_and_never_on_frequent_ones() {
    let mut random = Random::new(5);
    let count = 100_000;
    let mut distinct = Distinct::new();
    let all_different: Vec<u64> = (0..count).map(|_| random.next()).collect();
    assert!(!distinct.find(&all_different, count / 2));
    assert!(distinct.find(&all_different, count));
    // New values first and few later: what the first rows promise is not what counts.
    let misleading: Vec<u64> = (0..count as u64).map(|at| if at < 20_000 { at } else { random.below(5) }).collect();
    assert!(distinct.find(&misleading, 25_000));
    // At the limit, each value twice.
    let twice: Vec<u64> = (0..count as u64).map(|at| at % 50_000).collect();
    assert!(distinct.find(&twice, 50_000));
}

/// The word that [`firn_codec::distinct::Distinct`] hashes to `hash`: its steps backwards.
fn word_of_hash(hash: u64) -> u64 {
    let inverse =
        |odd: u64| (0..6).fold(odd, |found: u64, _| found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found))));
    let unmixed = hash.wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
    let unmixed = unmixed ^ unmixed >> 29 ^ unmixed >> 58;
    let bits = unmixed.wrapping_mul(inverse(0x9e37_79b9_7f4a_7c15));
    bits ^ bits >> 32
}

#[test]
fn values_made_to_collide_are_given_up_quickly() {
    let rows: Vec<u64> = (0..200_000).map(word_of_hash).collect();
    let mut distinct = Distinct::new();
    let start = Instant::now();
    assert!(!distinct.find(&rows, rows.len()));
    // Comparing each with all before it takes minutes.
    assert!(start.elapsed() < Duration::from_secs(10));
    check(&mut distinct, &rows[..100]);
}

#[test]
fn texts_are_numbered_as_they_come() {
    let mut random = Random::new(6);
    let mut interner = TextInterner::new();
    for _ in 0..2 {
        let mut known = HashMap::new();
        for _ in 0..20_000 {
            let text = format!("text {}", random.below(3000));
            let next = known.len() as u32;
            let expected = *known.entry(text.clone()).or_insert(next);
            assert_eq!(interner.intern(text.as_bytes()), Some(expected));
            assert_eq!(interner.texts().get(expected as usize), Some(text.as_bytes()));
        }
        assert_eq!((interner.len(), interner.is_empty()), (known.len(), false));
        assert!(interner.heap_bytes() > 0);
        interner.clear();
        assert!(interner.is_empty());
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_rows(rows in vec(prop_oneof![any::<u64>(), 0..8_u64], 0..700)) {
        check(&mut Distinct::new(), &rows);
    }

    #[test]
    fn any_texts(texts in vec(vec(0..3_u8, 0..5), 0..200)) {
        let mut interner = TextInterner::new();
        for text in &texts {
            let number = interner.intern(text).unwrap();
            prop_assert_eq!(interner.texts().get(number as usize), Some(&text[..]));
        }
        let mut all = Texts::new();
        texts.iter().for_each(|text| all.push(text).unwrap());
        let (mut at_once, mut numbers) = (TextInterner::new(), vec![7]);
        prop_assert!(at_once.intern_all(&all, &mut numbers));
        prop_assert_eq!(at_once.texts(), interner.texts());
        let one_by_one: Vec<u32> = texts.iter().map(|text| interner.intern(text).unwrap()).collect();
        prop_assert_eq!(&numbers[1..], one_by_one);
        let mut unique = texts.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(interner.len(), unique.len());
    }
}
