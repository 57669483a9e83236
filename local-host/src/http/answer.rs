//! From the output of an HTTP function to its answer.

use serde_json::{Map, Value};

/// What the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status.
    pub status: u16,
    /// Headers as the function gave them.
    pub headers: Vec<(String, String)>,
    /// Content type that goes with the body where the headers name none.
    pub content_type: Option<&'static str>,
    /// Body.
    pub body: String,
}

/// Reads `{"statusCode": …, "headers": {…}, "body": …}`, names without case; the default is an empty 200.
pub fn answer_of(output: Option<&Value>) -> HttpAnswer {
    let empty = Map::new();
    let object = output.and_then(Value::as_object).unwrap_or(&empty);
    let member = |name: &str| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let status = |value: &Value| match value {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let status = member("statusCode").or_else(|| member("status")).and_then(status);
    let status = status.filter(|status| (100..600).contains(status)).unwrap_or(200);
    let headers = member("headers")
        .and_then(Value::as_object)
        .map(|headers| headers.iter().map(|(name, value)| (name.clone(), text(value))).collect());
    let (content_type, body) = match member("body") {
        None | Some(Value::Null) => (None, String::new()),
        Some(Value::String(text)) => (Some("text/plain; charset=utf-8"), text.clone()),
        Some(other) => (Some("application/json; charset=utf-8"), other.to_string()),
    };
    HttpAnswer { status, headers: headers.unwrap_or_default(), content_type, body }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_become_answers() {
        let json = Some("application/json; charset=utf-8");
        let plain = Some("text/plain; charset=utf-8");
        for (output, status, headers, content_type, body) in [
            (
                json!({"statusCode": 202, "headers": {"x-id": "7"}, "body": {"ok": true}}),
                202,
                vec![("x-id", "7")],
                json,
                "{\"ok\":true}",
            ),
            (json!({"STATUS": "404", "Body": "gone"}), 404, vec![], plain, "gone"),
            (json!({"statusCode": 9999}), 200, vec![], None, ""),
            (json!(null), 200, vec![], None, ""),
        ] {
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let expected = HttpAnswer { status, headers, content_type, body: body.into() };
            assert_eq!(answer_of(Some(&output)), expected, "{output}");
        }
        assert_eq!(answer_of(None).status, 200);
    }
}
