//! What the host makes of the handler's answer.

use serde_json::{Map, Value};

/// An answer that ends the invocation well, if its outputs can be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HandlerAnswer {
    /// `Outputs`: values by the name of the output binding.
    pub outputs: Map<String, Value>,
    /// `Logs`: lines at level Information.
    pub logs: Vec<String>,
    /// `ReturnValue`.
    pub return_value: Value,
}

/// What the host makes of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The invocation succeeds, if its outputs can be written.
    Answered(HandlerAnswer),
    /// The invocation fails; logs and outputs are ignored.
    Failed(String),
    /// The real host never ends this invocation: it hangs until functionTimeout, and then the handler is killed.
    Hangs(String),
}

/// Judges an answer by status, `Content-Type` and body.
pub fn judge(status: u16, content_type: Option<&str>, body: &[u8]) -> Verdict {
    if !(200..300).contains(&status) {
        return Verdict::Failed(format!("the handler answered {status}"));
    }
    let media_type = content_type.map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match media_type.as_deref() {
        None | Some("") if body.is_empty() => {
            return Verdict::Hangs(format!(
                "the handler answered {status} without a body; answer {{}} as application/json"
            ));
        }
        Some("application/json" | "text/json") => {}
        other => {
            let given = other.filter(|kind| !kind.is_empty()).unwrap_or("missing");
            return Verdict::Failed(format!("UnsupportedMediaType: Content-Type is {given}; answer application/json"));
        }
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Verdict::Hangs(format!("the handler answered {status} with an empty body; answer {{}}"));
    }
    let failed = |why: &str| {
        let quoted: String = String::from_utf8_lossy(body).chars().take(1000).collect();
        Verdict::Failed(format!("the handler's answer {why}: {quoted}"))
    };
    match serde_json::from_slice(body) {
        Ok(Value::Null) => Verdict::Hangs(format!("the handler answered {status} with null; answer {{}}")),
        Ok(Value::Object(object)) => match read(&object) {
            Ok(answer) => Verdict::Answered(answer),
            Err(why) => failed(why),
        },
        Ok(_) => failed("is no JSON object"),
        Err(error) => failed(&format!("is not JSON ({error})")),
    }
}

/// Members are found without case; unknown ones are ignored.
fn read(object: &Map<String, Value>) -> Result<HandlerAnswer, &'static str> {
    let member = |name: &str| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let outputs = match member("Outputs") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(outputs)) => outputs.clone(),
        Some(_) => return Err("has Outputs that are no object"),
    };
    let logs = match member("Logs") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(lines)) => {
            lines.iter().map(line).collect::<Option<_>>().ok_or("has Logs that are no texts")?
        }
        Some(_) => return Err("has Logs that are no list"),
    };
    Ok(HandlerAnswer { outputs, logs, return_value: member("ReturnValue").cloned().unwrap_or_default() })
}

fn line(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JSON: Option<&str> = Some("application/json; charset=utf-8");

    #[test]
    fn good_answers() {
        let plain = judge(200, JSON, b"{}");
        assert_eq!(plain, Verdict::Answered(HandlerAnswer::default()));
        assert_eq!(judge(299, Some("Text/JSON"), b"{\"unknown\":1}"), plain);
        assert_eq!(judge(200, JSON, br#"{"outputs":null,"logs":null,"returnValue":null}"#), plain);
        let full = judge(200, JSON, br#"{"OUTPUTS":{"out":["x"]},"Logs":["a",1,true],"ReturnValue":"r"}"#);
        let Value::Object(outputs) = json!({"out": ["x"]}) else { unreachable!() };
        let logs = vec!["a".into(), "1".into(), "true".into()];
        assert_eq!(full, Verdict::Answered(HandlerAnswer { outputs, logs, return_value: "r".into() }));
    }

    #[test]
    fn answers_that_hang_the_real_host() {
        for (status, kind, body) in
            [(200, JSON, ""), (200, JSON, "  "), (200, JSON, "null"), (204, None, ""), (200, None, ""), (204, JSON, "")]
        {
            let verdict = judge(status, kind, body.as_bytes());
            assert!(matches!(verdict, Verdict::Hangs(_)), "{status} {kind:?} {body:?}: {verdict:?}");
        }
    }

    #[test]
    fn answers_that_fail() {
        for (status, kind, body, part) in [
            (500, JSON, r#"{"Logs":["x"]}"#, "answered 500"),
            (404, JSON, "{}", "answered 404"),
            (302, JSON, "{}", "answered 302"),
            (200, Some("text/plain"), "ok", "UnsupportedMediaType: Content-Type is text/plain"),
            (200, Some("text/plain"), "", "UnsupportedMediaType"),
            (200, None, "{}", "Content-Type is missing"),
            (200, JSON, "[]", "is no JSON object: []"),
            (200, JSON, "{oops", "is not JSON"),
            (200, JSON, r#"{"Logs":"x"}"#, "Logs that are no list"),
            (200, JSON, r#"{"Logs":[{}]}"#, "Logs that are no texts"),
            (200, JSON, r#"{"Outputs":[]}"#, "Outputs that are no object"),
        ] {
            match judge(status, kind, body.as_bytes()) {
                Verdict::Failed(why) => assert!(why.contains(part), "{status} {body}: {why}"),
                other => panic!("{status} {body}: {other:?}"),
            }
        }
    }
}
