//! What our encoders write, headers included, read by the Parquet crate and by our own decoders.

use firn_codec::header::{Encoding, PageFacts, write_data, write_dictionary};
use firn_codec::{Texts, Word, bits_for, delta, hybrid, plain, split};
use parquet::column::page::Page;
use parquet::data_type::{BoolType, ByteArrayType, DataType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type};

use crate::pages::{parse, read};
use crate::values::{COUNTS, Random};

/// A data page with its header.
fn data_page(body: &[u8], rows: usize, encoding: Encoding, out: &mut Vec<u8>) {
    let size = body.len() as i32;
    write_data(PageFacts { uncompressed: size, compressed: size, count: rows as i32, crc: None }, encoding, out);
    out.extend_from_slice(body);
}

fn dictionary_page(body: &[u8], entries: usize, out: &mut Vec<u8>) {
    let facts = PageFacts {
        uncompressed: body.len() as i32,
        compressed: body.len() as i32,
        count: entries as i32,
        crc: Some(0xfedc_ba98),
    };
    write_dictionary(facts, true, out);
    out.extend_from_slice(body);
}

/// A chunk of one page of what `encode` writes.
fn one_page(rows: usize, encoding: Encoding, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (mut body, mut out) = (Vec::new(), Vec::new());
    encode(&mut body);
    data_page(&body, rows, encoding, &mut out);
    out
}

fn check_words<W: Word, D: DataType>(column: &str, words: &[W], bits: impl Fn(&D::T) -> W) {
    let rows = words.len();
    type Encode<W> = fn(&[W], &mut Vec<u8>);
    let delta = [(Encoding::DeltaBinaryPacked, delta::encode as Encode<W>)];
    let delta = if column.contains("int") { &delta[..] } else { &[] };
    let all = [(Encoding::Plain, plain::encode as Encode<W>), (Encoding::ByteStreamSplit, split::encode)];
    for (encoding, encode) in all.iter().chain(delta) {
        let (_, values) = read::<D>(column, one_page(rows, *encoding, |out| encode(words, out)), rows);
        assert!(values.iter().map(&bits).eq(words.iter().copied()), "{encoding:?}, {rows} rows");
    }
}

#[test]
fn words() {
    let mut random = Random::new(7);
    for count in COUNTS {
        for (bits, run) in [(64, 1), (63, 5), (33, 1), (9, 3), (0, 1)] {
            let words = random.numbers(count, bits, run);
            check_words::<u64, Int64Type>("required int64 c", &words, |value| *value as u64);
            let words: Vec<u32> = words.iter().map(|word| (word >> 9) as u32).collect();
            check_words::<u32, Int32Type>("required int32 c", &words, |value| *value as u32);
            check_words::<u32, FloatType>("required float c", &words, |value| value.to_bits());
        }
    }
}

#[test]
fn differences_of_every_width_come_back() {
    let mut random = Random::new(8);
    for bits in 0..=64 {
        for count in COUNTS {
            let values = random.numbers(count, bits, 1);
            let mut bytes = Vec::new();
            delta::encode(&values, &mut bytes);
            let mut back: Vec<u64> = Vec::new();
            delta::decode(&bytes, count, &mut back).unwrap();
            assert_eq!(back, values, "{count} of {bits} bits");
            let narrow: Vec<u32> = values.iter().map(|value| *value as u32).collect();
            bytes.clear();
            delta::encode(&narrow, &mut bytes);
            let mut back: Vec<u32> = Vec::new();
            delta::decode(&bytes, count, &mut back).unwrap();
            assert_eq!(back, narrow, "{count} of {bits} bits");
        }
    }
    let steps: Vec<u64> = (0..1000).map(|at| 1_700_000_000_000 + 10_000 * at).collect();
    let mut bytes = Vec::new();
    delta::encode(&steps, &mut bytes);
    assert!(bytes.len() < 80, "a steady pace takes no bits: {} bytes", bytes.len());
}

#[test]
fn booleans_with_nulls() {
    let mut random = Random::new(9);
    for count in COUNTS {
        let validity = random.validity(count, 80, 5);
        let present = validity.iter().filter(|level| **level == 1).count();
        let bools = random.validity(present, 50, 2);
        let bytes = one_page(count, Encoding::Plain, |out| {
            let mut levels = Vec::new();
            hybrid::encode_levels(&validity, &mut levels);
            out.extend((levels.len() as u32).to_le_bytes());
            out.extend(levels);
            plain::encode_bools(&bools, out);
        });
        let (found_validity, found) = read::<BoolType>("optional boolean c", bytes, count);
        assert_eq!(found_validity, validity);
        assert!(found.into_iter().map(u8::from).eq(bools));
    }
}

#[test]
fn texts() {
    let mut random = Random::new(10);
    for count in COUNTS {
        let texts = random.texts(count, 30);
        let slices = || texts.iter().map(Vec::as_slice);
        let bytes = one_page(count, Encoding::Plain, |out| plain::encode_texts(slices(), out).unwrap());
        let (_, found) = read::<ByteArrayType>("required binary c", bytes, count);
        assert!(found.iter().map(|text| text.data()).eq(slices()));

        let texts: Vec<Vec<u8>> = texts.into_iter().map(|text| [text, vec![0; 30]].concat()[..30].to_vec()).collect();
        let bytes = one_page(count, Encoding::Plain, |out| plain::encode_fixed(texts.iter().map(Vec::as_slice), out));
        let (_, found) = read::<FixedLenByteArrayType>("required fixed_len_byte_array(30) c", bytes, count);
        assert!(found.iter().map(|text| text.data()).eq(texts.iter().map(Vec::as_slice)));
    }
}

#[test]
fn a_dictionary_with_indices_of_every_width() {
    let mut random = Random::new(11);
    for width in 0..=14 {
        for run in [1, 40] {
            let dictionary: Vec<u64> = (0..1 << width).map(|entry| entry * 7).collect();
            let indices: Vec<u32> = random.numbers(1000, width, run).into_iter().map(|index| index as u32).collect();
            let mut bytes = Vec::new();
            let mut body = Vec::new();
            plain::encode(&dictionary, &mut body);
            dictionary_page(&body, dictionary.len(), &mut bytes);
            for rows in [&indices[..300], &indices[300..]] {
                let width = bits_for(dictionary.len() as u32 - 1);
                let mut body = vec![width];
                hybrid::encode(rows, width, &mut body);
                data_page(&body, rows.len(), Encoding::RleDictionary, &mut bytes);
            }
            let (_, found) = read::<Int64Type>("required int64 c", bytes, indices.len());
            assert!(found.iter().zip(&indices).all(|(value, index)| *value as u64 == dictionary[*index as usize]));
            assert_eq!(found.len(), indices.len());
        }
    }
}

#[test]
fn headers_say_what_they_were_told() {
    let mut bytes = Vec::new();
    dictionary_page(&[1, 0, 0, 0], 1, &mut bytes);
    data_page(&[5, 0, 0, 0, 6, 0, 0, 0], 2, Encoding::Plain, &mut bytes);
    let pages = parse("required int32 c", bytes, 2);
    assert_eq!(pages.len(), 2);
    let Page::DictionaryPage { buf, num_values: 1, encoding, is_sorted: true } = &pages[0] else {
        panic!("{:?}", pages[0])
    };
    assert_eq!((&buf[..], *encoding), (&[1, 0, 0, 0][..], parquet::basic::Encoding::PLAIN));
    let Page::DataPage { buf, num_values: 2, encoding, def_level_encoding, rep_level_encoding, statistics: None } =
        &pages[1]
    else {
        panic!("{:?}", pages[1])
    };
    assert_eq!((buf.len(), *encoding), (8, parquet::basic::Encoding::PLAIN));
    let rle = parquet::basic::Encoding::RLE;
    assert_eq!((*def_level_encoding, *rep_level_encoding), (rle, rle));

    // Field by field: type, sizes, checksum, then the struct of data pages v1 in field 5.
    let mut header = Vec::new();
    let facts = PageFacts { uncompressed: 300, compressed: 2, count: 1, crc: Some(u32::MAX) };
    write_data(facts, Encoding::ByteStreamSplit, &mut header);
    let expected = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 4, 0x15, 1, 0x1c, 0x15, 2, 0x15, 18, 0x15, 6, 0x15, 6, 0, 0];
    assert_eq!(header, expected);
}

#[test]
fn texts_are_joined_by_ranges() {
    let mut all = Texts::new();
    for text in ["a", "", "bcd", "ef"] {
        all.push(text.as_bytes()).unwrap();
    }
    let mut some = Texts::with_capacity(4, 8);
    some.push(b"x").unwrap();
    some.extend_from(&all, 1..3).unwrap();
    some.extend_from(&all, 3..9).unwrap();
    some.extend_from(&all, 7..9).unwrap();
    assert!(some.iter().eq([&b"x"[..], b"", b"bcd", b"ef"]));
    assert_eq!((some.get(2), some.get(4), some.get(usize::MAX)), (Some(&b"bcd"[..]), None, None));
    assert_eq!((some.offsets(), some.data(), some.len()), (&[0, 1, 1, 4, 6][..], &b"xbcdef"[..], 4));
    some.clear();
    assert!(some.is_empty() && some.heap_bytes() >= 8);
}
