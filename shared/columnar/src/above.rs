//! Upper bounds that are shorter than the value they bound.

/// The smallest text of at most as many characters that is above every text that starts with `text`, among those in which `may` the
/// raised character follow the one it replaces. None when there is none.
pub(crate) fn text_above(text: &str, may: impl Fn(char, char) -> bool) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(at, last)| {
        let code = u32::from(last) + 1;
        // Surrogates are no characters: after U+D7FF comes U+E000.
        let next = char::from_u32(if code == 0xD800 { 0xE000 } else { code })?;
        may(last, next).then(|| format!("{}{next}", &text[..at]).into_bytes())
    })
}

/// The smallest binary of at most as many bytes that is above every binary that starts with `bytes`.
pub(crate) fn bytes_above(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if last < 0xFF {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}
