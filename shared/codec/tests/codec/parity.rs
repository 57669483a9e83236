//! What the Parquet crate writes, read by our decoders: every type, encoding and version of data pages, with and without nulls.

use firn_codec::hybrid;
use firn_codec::plain;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};

use crate::pages::{DataPage, Way, read_texts, read_words, take_apart, write};
use crate::values::{COUNTS, Random};

/// Calls `check` with the count of rows, their validity if the column is optional, and the count of values.
fn shapes(mut check: impl FnMut(&mut Random, Option<&[u8]>, usize)) {
    for (seed, count) in (0..).zip(COUNTS) {
        let mut random = Random::new(seed);
        check(&mut random, None, count);
        for (percent, run) in [(100, 1), (0, 1), (70, 1), (70, 50)] {
            let validity = random.validity(count, percent, run);
            let present = validity.iter().filter(|level| **level == 1).count();
            check(&mut random, Some(&validity), present);
        }
    }
}

fn column(kind: &str, optional: bool) -> String {
    let (kind, width) = kind.split_once('(').map_or((kind, String::new()), |(kind, width)| (kind, format!("({width}")));
    format!("{} {kind}{width} c", if optional { "optional" } else { "required" })
}

fn expected_validity(validity: Option<&[u8]>, count: usize) -> Vec<u8> {
    validity.map_or_else(|| vec![1; count], <[u8]>::to_vec)
}

macro_rules! words {
    ($name:ident, $kind:literal, $data:ty, $word:ty, $from:expr, $encodings:expr) => {
        #[test]
        fn $name() {
            shapes(|random, validity, count| {
                for way in Way::all(&$encodings) {
                    for (bits, run) in [(64, 1), (9, 4), (40, 1), (0, 1)] {
                        let words: Vec<$word> =
                            random.numbers(count, bits, run).into_iter().map(|number| number as $word).collect();
                        let values: Vec<_> = words.iter().map(|word| $from(*word)).collect();
                        let pages = write::<$data>(&column($kind, validity.is_some()), way, &values, validity);
                        let (found_validity, found) = read_words::<$word>(&pages, validity.is_some());
                        assert_eq!(found_validity, expected_validity(validity, count), "{way:?}");
                        assert_eq!(found, words, "{way:?}");
                    }
                }
            });
        }
    };
}

const INTEGERS: [Encoding; 3] = [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT];
const FLOATS: [Encoding; 2] = [Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT];

words!(int32, "int32", Int32Type, u32, |word| word as i32, INTEGERS);
words!(int64, "int64", Int64Type, u64, |word| word as i64, INTEGERS);
words!(float, "float", FloatType, u32, f32::from_bits, FLOATS);
words!(double, "double", DoubleType, u64, f64::from_bits, FLOATS);

#[test]
fn booleans() {
    shapes(|random, validity, count| {
        for encoding in [Encoding::PLAIN, Encoding::RLE] {
            for way in Way::all(&[encoding]).into_iter().filter(|way| !way.dictionary) {
                let bools = random.validity(count, 50, 10);
                let values: Vec<bool> = bools.iter().map(|value| *value == 1).collect();
                let pages = write::<BoolType>(&column("boolean", validity.is_some()), way, &values, validity);
                let (mut found_validity, mut found) = (Vec::new(), Vec::new());
                for page in &pages {
                    let page: &Page = page;
                    let DataPage { encoding, present, values } =
                        take_apart(page, validity.is_some(), &mut found_validity).unwrap();
                    if encoding == Encoding::RLE {
                        let (stream, _) = hybrid::prefixed(values).unwrap();
                        hybrid::decode_bools(stream, present, &mut found).unwrap();
                    } else {
                        plain::decode_bools(values, present, &mut found).unwrap();
                    }
                }
                assert_eq!(found_validity, expected_validity(validity, count), "{way:?}");
                assert_eq!(found, bools, "{way:?}");
            }
        }
    });
}

#[test]
fn byte_arrays() {
    let encodings = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
    shapes(|random, validity, count| {
        for way in Way::all(&encodings) {
            let texts = random.texts(count, 20);
            let values: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(text.clone())).collect();
            let pages = write::<ByteArrayType>(&column("binary", validity.is_some()), way, &values, validity);
            let (found_validity, found) = read_texts(&pages, validity.is_some(), None);
            assert_eq!(found_validity, expected_validity(validity, count), "{way:?}");
            assert!(found.iter().eq(texts.iter().map(Vec::as_slice)), "{way:?}");
        }
    });
}

#[test]
fn byte_arrays_of_fixed_length() {
    let encodings = [Encoding::PLAIN, Encoding::DELTA_BYTE_ARRAY, Encoding::BYTE_STREAM_SPLIT];
    shapes(|random, validity, count| {
        for way in Way::all(&encodings) {
            for width in [1, 3, 16] {
                let texts: Vec<Vec<u8>> =
                    (0..count).map(|_| (0..width).map(|_| random.below(4) as u8).collect()).collect();
                let values: Vec<FixedLenByteArray> =
                    texts.iter().map(|text| FixedLenByteArray::from(text.clone())).collect();
                let kind = format!("fixed_len_byte_array({width})");
                let pages = write::<FixedLenByteArrayType>(&column(&kind, validity.is_some()), way, &values, validity);
                let (found_validity, found) = read_texts(&pages, validity.is_some(), Some(width));
                assert_eq!(found_validity, expected_validity(validity, count), "{way:?}");
                assert!(found.iter().eq(texts.iter().map(Vec::as_slice)), "{way:?}");
            }
        }
    });
}
