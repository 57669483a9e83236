//! Between the text of a message and its bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::app::MessageEncoding;

/// The bytes of a message; None when the text is not what the encoding asks for: such a message is poison at once.
pub fn decode(encoding: MessageEncoding, text: &str) -> Option<Vec<u8>> {
    match encoding {
        MessageEncoding::Base64 => STANDARD.decode(text.trim()).ok(),
        MessageEncoding::None => Some(text.as_bytes().to_vec()),
    }
}

/// The text of a message. Without an encoding, bytes that are no text lose what is none.
pub fn encode(encoding: MessageEncoding, bytes: &[u8]) -> String {
    match encoding {
        MessageEncoding::Base64 => STANDARD.encode(bytes),
        MessageEncoding::None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (encoding, text, bytes) in [
            (MessageEncoding::Base64, "eyJhIjoxfQ==", b"{\"a\":1}".as_slice()),
            (MessageEncoding::None, "{\"a\":1}", b"{\"a\":1}"),
            (MessageEncoding::None, "eyJhIjoxfQ==", b"eyJhIjoxfQ=="),
        ] {
            assert_eq!(decode(encoding, text).as_deref(), Some(bytes));
            assert_eq!(encode(encoding, bytes), text);
        }
        assert_eq!(decode(MessageEncoding::Base64, "{\"a\":1}"), None);
    }
}
