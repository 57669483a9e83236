//! Any bytes into every decoder: `Ok` or `Damage`, no panic, and no more values than were asked for.
//!
//! `tests/damaged` holds pages made by hand, one way to be damaged each; proptest makes the others, and each page that is sound
//! is cut at every byte.

use std::fs;
use std::path::Path;

use firn_codec::{Damage, Texts, delta, hybrid, plain, split};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::{Random, cases};

/// What the texts of one page may take in these tests.
const LIMIT: usize = 1 << 16;

/// The values got, or what is wrong.
type Outcome = Result<usize, Damage>;

/// A decoder, given the bytes and how many values they should have.
type Decoder = fn(&[u8], usize) -> Outcome;

macro_rules! into {
    ($new:expr, |$bytes:ident, $count:ident, $out:ident| $decode:expr) => {
        |$bytes, $count| {
            let mut $out = $new;
            let result = $decode;
            assert!($out.len() <= $count + 8, "more values than were asked for");
            result.map(|_| $out.len())
        }
    };
}

/// Every decoder by name. Those of bit-packed values take the width from the first byte, as a dictionary page does.
const DECODERS: [(&str, Decoder); 18] = [
    ("hybrid", into!(Vec::new(), |b, n, out| with_width(b, |b, width| hybrid::decode(b, width, n, &mut out)))),
    (
        "indices",
        into!(Vec::new(), |b, n, out| with_width(b, |b, width| { hybrid::decode_indices(b, width, n, 300, &mut out) })),
    ),
    (
        "mapped",
        into!(Vec::<u64>::new(), |b, n, out| with_width(b, |b, width| {
            hybrid::decode_mapped(b, width, n, &[7; 300], &mut out)
        })),
    ),
    ("validity", into!(Vec::new(), |b, n, out| hybrid::validity(b, n, &mut out))),
    (
        "bools",
        into!(Vec::new(), |b, n, out| {
            hybrid::prefixed(b).and_then(|(stream, _)| hybrid::decode_bools(stream, n, &mut out))
        }),
    ),
    ("plain32", into!(Vec::<u32>::new(), |b, n, out| plain::decode(b, n, &mut out))),
    ("plain64", into!(Vec::<u64>::new(), |b, n, out| plain::decode(b, n, &mut out))),
    ("plain_bools", into!(Vec::new(), |b, n, out| plain::decode_bools(b, n, &mut out))),
    ("plain_texts", into!(Texts::new(), |b, n, out| plain::decode_texts(b, n, &mut out))),
    ("plain_fixed", into!(Texts::new(), |b, n, out| plain::decode_fixed(b, 3, n, &mut out))),
    ("delta32", into!(Vec::<u32>::new(), |b, n, out| delta::decode(b, n, &mut out))),
    ("delta64", into!(Vec::<u64>::new(), |b, n, out| delta::decode(b, n, &mut out))),
    ("delta_texts", into!(Texts::new(), |b, n, out| delta::decode_texts(b, n, &mut out))),
    (
        "delta_shared",
        into!(Texts::new(), |b, n, out| {
            let result = delta::decode_shared(b, n, LIMIT, &mut out);
            assert!(out.data().len() <= LIMIT);
            result
        }),
    ),
    ("delta_fixed", into!(Texts::new(), |b, n, out| delta::decode_shared_fixed(b, 3, n, &mut out))),
    ("split32", into!(Vec::<u32>::new(), |b, n, out| split::decode(b, n, &mut out))),
    ("split64", into!(Vec::<u64>::new(), |b, n, out| split::decode(b, n, &mut out))),
    ("split_fixed", into!(Texts::new(), |b, n, out| split::decode_fixed(b, 3, n, &mut out))),
];

fn with_width(bytes: &[u8], decode: impl FnOnce(&[u8], u8) -> Result<(), Damage>) -> Result<(), Damage> {
    let (width, bytes) = bytes.split_first().ok_or(Damage("no width"))?;
    decode(bytes, *width)
}

fn decoder(name: &str) -> Decoder {
    DECODERS.iter().find(|(known, _)| *known == name).map(|(_, decoder)| *decoder).unwrap()
}

/// Each decoder on the bytes: what is decoded has the right count.
fn check_all(bytes: &[u8], count: usize) {
    for (name, decoder) in DECODERS {
        if let Ok(values) = decoder(bytes, count) {
            // Levels that are all present are not written down.
            assert!(values == count || name == "validity" && values == 0, "{name}: {values} instead of {count}");
        }
    }
}

#[test]
fn the_corpus_is_damage_told_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damaged");
    let mut found = 0;
    let index = fs::read_to_string(folder.join("index.txt")).unwrap();
    for line in index.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [file, name, count, damage] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = fs::read(folder.join(file)).unwrap();
        let count = count.parse().unwrap();
        let told = decoder(name)(&bytes, count).map_err(|damage| damage.to_string());
        assert_eq!(told, Err(damage.to_owned()), "{file}");
        check_all(&bytes, count);
        found += 1;
    }
    let files = fs::read_dir(&folder).unwrap().count();
    assert_eq!(found, files - 1, "every file has its line");
}

/// A sound page for each decoder.
fn sound(name: &str, count: usize) -> Vec<u8> {
    let mut random = Random::new(count as u64 + 1);
    let texts = random.texts(count, 9);
    let words = random.numbers(count, 30, 2);
    let narrow: Vec<u32> = words.iter().map(|word| *word as u32).collect();
    let levels = random.validity(count, 50, 2);
    let mut out = Vec::new();
    let lengths = |out: &mut Vec<u8>, length: &dyn Fn(&[u8]) -> usize| {
        delta::encode(&texts.iter().map(|text| length(text) as u32).collect::<Vec<_>>(), out);
    };
    match name {
        "hybrid" | "indices" | "mapped" => {
            out.push(8);
            hybrid::encode(&narrow.iter().map(|value| value & 0xff).collect::<Vec<_>>(), 8, &mut out);
        }
        "validity" => hybrid::encode_levels(&levels, &mut out),
        "bools" => {
            let mut stream = Vec::new();
            hybrid::encode_levels(&levels, &mut stream);
            out.extend((stream.len() as u32).to_le_bytes());
            out.extend(stream);
        }
        "plain32" => plain::encode(&narrow, &mut out),
        "plain64" => plain::encode(&words, &mut out),
        "plain_bools" => plain::encode_bools(&levels, &mut out),
        "plain_texts" => plain::encode_texts(texts.iter().map(Vec::as_slice), &mut out).unwrap(),
        "plain_fixed" | "split_fixed" => out.extend((0..3 * count).map(|byte| byte as u8)),
        "delta32" => delta::encode(&narrow, &mut out),
        "delta64" => delta::encode(&words, &mut out),
        "delta_texts" => {
            lengths(&mut out, &|text| text.len());
            out.extend(texts.concat());
        }
        "delta_shared" => {
            lengths(&mut out, &|_| 0);
            lengths(&mut out, &|text| text.len());
            out.extend(texts.concat());
        }
        "delta_fixed" => {
            lengths(&mut out, &|_| 0);
            lengths(&mut out, &|_| 3);
            out.extend((0..3 * count).map(|byte| byte as u8));
        }
        "split32" => split::encode(&narrow, &mut out),
        "split64" => split::encode(&words, &mut out),
        other => panic!("{other}"),
    }
    out
}

#[test]
fn a_page_cut_anywhere_is_never_taken_for_whole() {
    for (name, decoder) in DECODERS {
        for count in [1, 8, 100, 130] {
            let bytes = sound(name, count);
            let whole = decoder(&bytes, count);
            assert!(whole.is_ok(), "{name}: {whole:?}");
            // The padding of what was packed last may be cut off.
            let padding = match name {
                "hybrid" | "indices" | "mapped" => 7,
                "delta32" | "delta64" => 31 * 8,
                _ => 0,
            };
            for cut in 0..bytes.len() {
                let found = decoder(&bytes[..cut], count);
                match found {
                    Err(_) => {}
                    Ok(_) => assert!(bytes.len() - cut <= padding, "{name}: {cut} of {} bytes", bytes.len()),
                }
            }
        }
    }
}

#[test]
fn a_few_bytes_cannot_claim_gigabytes() {
    // 65,536 texts that each share all 65,535 bytes of the first: 4 GiB from 66 kB.
    let (count, length) = (65_536, 65_535_u32);
    let mut bytes = Vec::new();
    let mut lengths = vec![length; count];
    lengths[0] = 0;
    delta::encode(&lengths, &mut bytes);
    lengths.fill(0);
    lengths[0] = length;
    delta::encode(&lengths, &mut bytes);
    bytes.extend(vec![1; length as usize]);
    let mut texts = Texts::new();
    let told = delta::decode_shared(&bytes, count, 1 << 30, &mut texts);
    assert_eq!(told, Err(Damage("texts that take more than they may")));
    assert_eq!(texts.heap_bytes(), Texts::new().heap_bytes());
    // Counts that no bytes back.
    for (name, decoder) in DECODERS.into_iter().filter(|(name, _)| !name.starts_with("delta") && *name != "validity") {
        assert!(decoder(&[8, 3, 1, 1], usize::MAX / 2).is_err(), "{name}");
    }
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn any_bytes(bytes in vec(prop_oneof![any::<u8>(), 0..5_u8, Just(128)], 0..80), count in 0..300_usize) {
        check_all(&bytes, count);
    }

    #[test]
    fn sound_pages_with_changed_bytes(
        which in 0..DECODERS.len(),
        count in 1..200_usize,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        asked in 0..300_usize,
    ) {
        let mut bytes = sound(DECODERS[which].0, count);
        for (at, value) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        check_all(&bytes, count);
        check_all(&bytes, asked);
    }
}
