//! The hybrid against an oracle that reads bit by bit.

use firn_codec::{Damage, bits_for, hybrid, hybrid::Presence};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::{COUNTS, Random, cases};

/// Reads as the format describes it; `None` where bytes are missing or a value is too wide.
fn oracle(mut bytes: &[u8], width: usize, count: usize) -> Option<Vec<u32>> {
    let mut values = Vec::new();
    if width == 0 {
        return Some(vec![0; count]);
    }
    while values.len() < count {
        let mut header = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = *bytes.first()?;
            bytes = &bytes[1..];
            if shift > 63 || shift == 63 && byte & 0x7f > 1 {
                return None;
            }
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        if header & 1 == 0 {
            let size = width.div_ceil(8);
            let mut raw = [0; 8];
            raw[..size].copy_from_slice(bytes.get(..size)?);
            bytes = &bytes[size..];
            let value = u64::from_le_bytes(raw);
            if value >> width != 0 {
                return None;
            }
            let length = (header >> 1).min((count - values.len()) as u64);
            values.extend(std::iter::repeat_n(value as u32, length as usize));
        } else {
            let wanted = (header >> 1).saturating_mul(8).min((count - values.len()) as u64) as usize;
            for index in 0..wanted {
                let bit = |bit: usize| bytes.get(bit / 8).map(|byte| u32::from(byte >> (bit % 8) & 1));
                let mut value = 0;
                for at in 0..width {
                    value |= bit(index * width + at)? << at;
                }
                values.push(value);
            }
            let length = usize::try_from(header >> 1).unwrap_or(usize::MAX).saturating_mul(width);
            bytes = &bytes[length.min(bytes.len())..];
        }
    }
    Some(values)
}

#[test]
fn every_width_and_count_comes_back() {
    let mut random = Random::new(1);
    for width in 0..=32_u8 {
        for count in COUNTS {
            for run in [1, 3, 20, 200] {
                let indices: Vec<u32> =
                    random.numbers(count, width.into(), run).into_iter().map(|number| number as u32).collect();
                let mut bytes = Vec::new();
                hybrid::encode(&indices, width, &mut bytes);
                let mut back = vec![7];
                hybrid::decode(&bytes, width, count, &mut back).unwrap();
                assert_eq!(back[1..], indices, "{count} of {width} bits in runs of {run}");
                assert_eq!(oracle(&bytes, width.into(), count).unwrap(), indices);

                let bound = indices.iter().max().map_or(0, |most| most.saturating_add(1));
                let mut back = Vec::new();
                hybrid::decode_indices(&bytes, width, count, bound, &mut back).unwrap();
                assert_eq!(back, indices);
                if bound > 0 {
                    assert!(hybrid::decode_indices(&bytes, width, count, bound - 1, &mut back).is_err());
                }
                if width <= 12 {
                    let table: Vec<u64> = (0..u64::from(bound)).map(|index| index * 3).collect();
                    let mut back = Vec::new();
                    hybrid::decode_mapped(&bytes, width, count, &table, &mut back).unwrap();
                    assert!(back.iter().zip(&indices).all(|(value, index)| *value == u64::from(*index) * 3));
                    assert_eq!(back.len(), count);
                    let short = &table[..table.len().saturating_sub(1)];
                    assert_eq!(hybrid::decode_mapped(&bytes, width, count, short, &mut back).is_err(), count > 0);
                }
            }
        }
    }
}

#[test]
fn runs_are_used_where_values_repeat_and_packing_where_not() {
    let encoded = |indices: &[u32], width| {
        let mut bytes = Vec::new();
        hybrid::encode(indices, width, &mut bytes);
        bytes
    };
    assert_eq!(encoded(&[5; 1000], 3), [0xd0, 0x0f, 5], "one run of 1000");
    assert_eq!(encoded(&[0; 1000], 0), [0xd0, 0x0f], "values without bits");
    let counting: Vec<u32> = (0..1024).collect();
    assert_eq!(encoded(&counting, 10).len(), 2 + 1280, "one bit-packed run");
    let mut mixed = vec![1, 2, 3, 4, 5, 6, 7, 0];
    mixed.extend([9; 100]);
    assert_eq!(encoded(&mixed, 4), [3, 0x21, 0x43, 0x65, 0x07, 0xc8, 0x01, 9], "a group, then a run");
}

#[test]
fn levels_come_back() {
    let mut random = Random::new(2);
    for count in COUNTS {
        for (percent, run) in [(100, 1), (0, 1), (50, 1), (90, 1), (90, 100), (50, 300), (99, 1)] {
            let validity = random.validity(count, percent, run);
            let mut bytes = Vec::new();
            hybrid::encode_levels(&validity, &mut bytes);
            let mut back = vec![7];
            let present = validity.iter().map(|level| usize::from(*level)).sum();
            if present == count {
                assert_eq!(hybrid::validity(&bytes, count, &mut back), Ok(Presence::All));
                assert_eq!(back, [7]);
                assert!(bytes.len() <= 4, "levels that are all the same are one run");
            } else {
                assert_eq!(hybrid::validity(&bytes, count, &mut back), Ok(Presence::Mixed { present }));
                assert_eq!(back[1..], validity);
            }
            let mut bools = Vec::new();
            hybrid::decode_bools(&bytes, count, &mut bools).unwrap();
            assert_eq!(bools, validity);
        }
    }
}

#[test]
fn contradictions_are_told() {
    let decode = |bytes: &[u8], width, count| hybrid::decode(bytes, width, count, &mut Vec::new());
    assert_eq!(decode(&[], 33, 1), Err(Damage("values of more than 32 bits")));
    assert_eq!(decode(&[], 3, 1), Err(Damage("ends within a number")));
    assert_eq!(decode(&[2, 8], 3, 1), Err(Damage("a repeated value of more bits than values have")));
    assert_eq!(decode(&[2], 3, 1), Err(Damage("ends within a repeated value")));
    assert_eq!(decode(&[3, 1, 2], 3, 8), Err(Damage("ends within bit-packed values")));
    assert_eq!(decode(&[3, 1, 2], 3, 5), Ok(()), "padding may be cut off");
    assert_eq!(decode(&[0, 0, 0, 1, 1, 4, 2], 3, 2), Ok(()), "empty runs are stepped over");
    assert_eq!(hybrid::prefixed(&[1, 0, 0]), Err(Damage("ends within the length of a stream")));
    assert_eq!(hybrid::prefixed(&[2, 0, 0, 0, 9]), Err(Damage("a stream longer than its page")));
    assert_eq!(hybrid::prefixed(&[1, 0, 0, 0, 9, 8]), Ok((&[9][..], &[8][..])));
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn any_bytes_read_as_the_oracle_reads_them(
        bytes in vec(prop_oneof![any::<u8>(), 0..12_u8], 0..60),
        width in 0..=32_u8,
        count in 0..200_usize,
    ) {
        let mut values = Vec::new();
        let decoded = hybrid::decode(&bytes, width, count, &mut values);
        match oracle(&bytes, width.into(), count) {
            Some(expected) => {
                prop_assert_eq!(decoded, Ok(()));
                prop_assert_eq!(values, expected);
            }
            None => prop_assert!(decoded.is_err()),
        }
        let mut levels = Vec::new();
        match (hybrid::validity(&bytes, count, &mut levels), oracle(&bytes, 1, count)) {
            (Ok(Presence::All), Some(expected)) => prop_assert!(expected.iter().all(|level| *level == 1)),
            (Ok(Presence::Mixed { present }), Some(expected)) => {
                prop_assert_eq!(present, expected.iter().filter(|level| **level == 1).count());
                prop_assert!(present < count && levels.iter().map(|level| u32::from(*level)).eq(expected));
            }
            (Err(_), None) => {}
            // The first level that is not 1 ends the quick look, which may be before the damage; then the damage is found.
            (found, expected) => prop_assert!(false, "{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn any_indices_come_back(runs in vec((0..5000_u32, 1..40_usize), 0..40)) {
        let indices: Vec<u32> = runs.iter().flat_map(|(index, length)| std::iter::repeat_n(*index, *length)).collect();
        let width = bits_for(indices.iter().copied().max().unwrap_or(0));
        let mut bytes = Vec::new();
        hybrid::encode(&indices, width, &mut bytes);
        let mut back = Vec::new();
        hybrid::decode(&bytes, width, indices.len(), &mut back).unwrap();
        prop_assert_eq!(back, indices);
    }
}
