//! From the value of a queue output to the messages that are sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The messages that the host enqueues for a value, before the message encoding. `binary`: the binding's `dataType`.
///
/// Texts that are Base64 are decoded, texts that look like JSON are parsed, printed and split: only a list of texts is sent
/// exactly. (Members of printed objects come in alphabetic order here, where the real host keeps theirs, and dates are left
/// as they are.)
///
/// # Errors
/// A text that looks like JSON and is none fails the invocation.
pub fn messages_of(value: &Value, binary: bool) -> Result<Vec<Vec<u8>>, String> {
    Ok(match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(element).collect(),
        Value::Object(_) => vec![pretty(value)],
        Value::Bool(_) | Value::Number(_) => vec![scalar(value)],
        Value::String(text) => return of_text(text, binary),
    })
}

fn of_text(text: &str, binary: bool) -> Result<Vec<Vec<u8>>, String> {
    let trimmed = text.trim();
    let encloses = |open, close| trimmed.starts_with(open) && trimmed.ends_with(close);
    if encloses('{', '}') || encloses('[', ']') {
        let parsed: Value = serde_json::from_str(trimmed)
            .map_err(|error| format!("a queue output looks like JSON and is none ({error}); send [\"text\"]"))?;
        return Ok(match parsed {
            Value::Array(items) => items.iter().map(element).collect(),
            object => vec![pretty(&object)],
        });
    }
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    match STANDARD.decode(&compact) {
        Ok(bytes) if !binary && !compact.is_empty() => Ok(vec![bytes]),
        _ => Ok(vec![text.as_bytes().to_vec()]),
    }
}

fn element(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Bool(_) | Value::Number(_) => scalar(value),
        Value::Array(_) | Value::Object(_) => pretty(value),
    }
}

/// .NET's text of a scalar.
fn scalar(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(true) => b"True".to_vec(),
        Value::Bool(false) => b"False".to_vec(),
        other => other.to_string().into_bytes(),
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_of_values() {
        for (value, messages) in [
            (json!(["{\"a\":1}"]), vec![b"{\"a\":1}".to_vec()]),
            (json!("{\"a\":1}"), vec![b"{\n  \"a\": 1\n}".to_vec()]),
            (json!("[1,2]"), vec![b"1".to_vec(), b"2".to_vec()]),
            (json!("deadbeef"), vec![vec![0x75, 0xe6, 0x9d, 0x6d, 0xe7, 0x9f]]),
            (json!("dead beef"), vec![vec![0x75, 0xe6, 0x9d, 0x6d, 0xe7, 0x9f]]),
            (json!("x!"), vec![b"x!".to_vec()]),
            (json!("next!"), vec![b"next!".to_vec()]),
            (
                json!(["abcd", null, {"b": 1}, 5]),
                vec![b"abcd".to_vec(), vec![], b"{\n  \"b\": 1\n}".to_vec(), b"5".to_vec()],
            ),
            (json!({"a": [1]}), vec![b"{\n  \"a\": [\n    1\n  ]\n}".to_vec()]),
            (json!(5), vec![b"5".to_vec()]),
            (json!(true), vec![b"True".to_vec()]),
            (json!(null), vec![]),
            (json!([]), vec![]),
        ] {
            assert_eq!(messages_of(&value, false), Ok(messages), "{value}");
        }
        assert_eq!(messages_of(&json!("abcd"), true), Ok(vec![b"abcd".to_vec()]));
        assert!(messages_of(&json!("{oops}"), false).unwrap_err().contains("looks like JSON and is none"));
    }
}
