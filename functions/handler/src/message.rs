//! The text of a message, out of the value under which the host hands it over.
//!
//! With `dataType: binary`, as `function.json` says, the value is Base64 of the message's bytes. Without it a host sends a
//! JSON string inside a string; its documentation shows a plain string. All three are understood, so that a `function.json`
//! of one's own does no harm.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The bytes of the message as they lie in the queue.
pub fn message_bytes(value: &Value) -> Vec<u8> {
    let Value::String(text) = value else {
        // A host that parsed the message itself.
        return value.to_string().into_bytes();
    };
    // A JSON string begins with a quotation mark, which Base64 never has.
    if let Ok(Value::String(inner)) = serde_json::from_str(text) {
        return inner.into_bytes();
    }
    // A message that is Base64 itself and was not encoded again loses one layer here; it may have one or none.
    STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_three_encodings_give_the_same_bytes() {
        for text in
            ["", r#"{"v":1}"#, "hello \"world\"", "Ærø\n", "eyJ2IjoxfQ==", "eyJ2IjoxfQ==\n", "5", "\"quoted\"", "null"]
        {
            let doubled = Value::String(serde_json::to_string(text).unwrap());
            assert_eq!(message_bytes(&doubled), text.as_bytes(), "in a string: {text}");
            let binary = Value::String(STANDARD.encode(text));
            assert_eq!(message_bytes(&binary), text.as_bytes(), "binary: {text}");
        }
        for text in ["", r#"{"v":1}"#, "hello world", "Ærø\n", "eyJ2IjoxfQ==\n"] {
            assert_eq!(message_bytes(&json!(text)), text.as_bytes(), "plain: {text}");
        }
        assert_eq!(message_bytes(&json!("eyJ2IjoxfQ==")), br#"{"v":1}"#, "plain Base64 loses its layer");
        assert_eq!(message_bytes(&json!({"v": 1})), br#"{"v":1}"#, "parsed by the host");
    }

    #[test]
    fn bytes_that_are_no_text_go_through() {
        let bytes = [0xff, 0xfe, b'{', 0, b'"', 0];
        assert_eq!(message_bytes(&Value::String(STANDARD.encode(bytes))), bytes);
    }
}
