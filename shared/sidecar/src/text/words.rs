//! The default tokenizer: a word is a run of letters and digits, in lower case. No stemming, no stop words.
//!
//! "Letter or digit" is Unicode's `Alphabetic` or `Numeric` (`char::is_alphanumeric`); lower case is Unicode's mapping of each character on
//! its own. The index and the scan of a file without one both take words from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Name of the tokenizer in an index.
pub const TOKENIZER: &str = "firn_words";
/// Bytes of a word in lower case that an index takes; longer ones are counted, and a reader who looks for one reads the data file.
pub const MAX_WORD_BYTES: usize = 255;

/// The words of a text, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
}

/// What the next word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The text has no more.
    End,
    /// It is in the buffer, whole.
    Word,
    /// It is longer than the limit; the buffer has its beginning.
    TooLong,
}

impl<'a> Words<'a> {
    pub(crate) fn of(text: &'a str) -> Words<'a> {
        Words { text, at: 0 }
    }

    /// Where the reading stands, in bytes.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Puts the next word into `word`, of which at most a few bytes more than `limit` are kept.
    pub(crate) fn next_into(&mut self, word: &mut String, limit: usize) -> Next {
        word.clear();
        let bytes = self.text.as_bytes();
        let mut inside = false;
        while let Some(&byte) = bytes.get(self.at) {
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() {
                    inside = true;
                    if word.len() <= limit {
                        word.push(char::from(byte.to_ascii_lowercase()));
                    }
                } else if inside {
                    break;
                }
                self.at += 1;
                continue;
            }
            let Some(character) = self.text[self.at..].chars().next() else { break };
            if character.is_alphanumeric() {
                inside = true;
                if word.len() <= limit {
                    word.extend(character.to_lowercase());
                }
            } else if inside {
                break;
            }
            self.at += character.len_utf8();
        }
        match inside {
            false => Next::End,
            true if word.len() > limit => Next::TooLong,
            true => Next::Word,
        }
    }
}

/// All words of `text`, however long.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut words, mut found, mut word) = (Words::of(text), Vec::new(), String::new());
    while words.next_into(&mut word, usize::MAX) == Next::Word {
        found.push(std::mem::take(&mut word));
    }
    found
}

/// The tokenizer as tantivy wants it. A word that is too long keeps its position, so that phrases around it stay what they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordTokenizer {
    token: Token,
    dropped: Arc<AtomicU64>,
}

impl WordTokenizer {
    /// Counts words that were too long in `dropped`.
    pub(crate) fn counting(dropped: Arc<AtomicU64>) -> WordTokenizer {
        WordTokenizer { token: Token::default(), dropped }
    }
}

/// See [`WordTokenizer`].
#[derive(Debug)]
pub(crate) struct WordStream<'a> {
    words: Words<'a>,
    token: &'a mut Token,
    dropped: &'a AtomicU64,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { words: Words::of(text), token: &mut self.token, dropped: &self.dropped }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        loop {
            // A token that was reset stands before the first position.
            self.token.position = self.token.position.wrapping_add(1);
            match self.words.next_into(&mut self.token.text, MAX_WORD_BYTES) {
                Next::End => return false,
                Next::TooLong => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                Next::Word => {
                    self.token.offset_to = self.words.offset();
                    return true;
                }
            }
        }
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(words("GET /index.html?a=1 200\n"), ["get", "index", "html", "a", "1", "200"]);
        assert_eq!(words("Ärger über ÉTÉ, 東京 x\u{0}y 😀 ½"), ["ärger", "über", "été", "東京", "x", "y", "½"]);
        assert_eq!(words(""), Vec::<String>::new());
        assert_eq!(words("😀 -- \u{0}"), Vec::<String>::new());
    }

    #[test]
    fn long_words_are_dropped_and_counted_and_keep_their_position() {
        let dropped = Arc::new(AtomicU64::new(0));
        let mut tokenizer = WordTokenizer::counting(Arc::clone(&dropped));
        let text = format!("a {} b {} c", "x".repeat(MAX_WORD_BYTES), "Y".repeat(MAX_WORD_BYTES + 1));
        let mut stream = tokenizer.token_stream(&text);
        let mut found = Vec::new();
        while stream.advance() {
            found.push((stream.token().position, stream.token().text.len()));
        }
        assert_eq!(found, [(0, 1), (1, MAX_WORD_BYTES), (2, 1), (4, 1)]);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        assert_eq!(words(&"x".repeat(1_000_000))[0].len(), 1_000_000);
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_plain_definition(text in "\\PC{0,60}") {
            let plain: Vec<String> = text
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(|word| word.chars().flat_map(char::to_lowercase).collect())
                .collect();
            prop_assert_eq!(words(&text), plain);
        }
    }
}
