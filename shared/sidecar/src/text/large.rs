//! What a large value takes in a segment. tantivy looks at its limit between documents, and a document is a row: a value of many different
//! words would take many times its own size beyond the limit.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::words::{MAX_WORD_BYTES, Next, Words};

/// Texts of a row below this size are not looked at: their words fit beyond the limit of any segment.
pub(super) const LARGE_BYTES: usize = 256 << 10;
/// Memory of a word that a segment does not have yet, beside its own bytes: key, recorder, first block, and its place in a table that may
/// have doubled a moment ago.
const WORD_BYTES: u64 = 128;
/// Memory of a word's position.
const POSITION_BYTES: u64 = 6;

/// Memory that a row takes at most, as far as `most`: the rest of the words is not counted then.
pub(super) fn row_bytes<'a>(texts: impl Iterator<Item = &'a str>, most: u64) -> u64 {
    let hasher = RandomState::new();
    let (mut known, mut word, mut bytes) = (HashSet::new(), String::new(), 0);
    for text in texts {
        let mut words = Words::of(text);
        loop {
            match words.next_into(&mut word, MAX_WORD_BYTES) {
                Next::End => break,
                Next::TooLong => continue,
                Next::Word if known.insert(hasher.hash_one(&word)) => bytes += WORD_BYTES + word.len() as u64,
                Next::Word => {}
            }
            bytes += POSITION_BYTES;
            if bytes > most {
                return bytes;
            }
        }
        // The same word of another column is another term.
        known.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_words_count_and_repeated_ones_hardly() {
        let most = u64::MAX;
        assert_eq!(row_bytes(["a b a", "a"].into_iter(), most), 3 * (WORD_BYTES + 1) + 4 * POSITION_BYTES);
        assert_eq!(row_bytes(["", "-- 😀"].into_iter(), most), 0);
        let repeated = "word ".repeat(100_000);
        assert_eq!(row_bytes([repeated.as_str()].into_iter(), most), WORD_BYTES + 4 + 100_000 * POSITION_BYTES);
        let different: Vec<String> = (0..100_000).map(|n| format!("w{n}")).collect();
        let different = different.join(" ");
        assert!(row_bytes([different.as_str()].into_iter(), most) > 100_000 * WORD_BYTES);
        assert!(row_bytes([different.as_str()].into_iter(), 1000) < 1200, "as far as it matters");
    }
}
