//! What the host sends: `{"Data": {…}, "Metadata": {…}}` and the invocation's id in a header.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::message::message_bytes;

/// One call of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// New for every call, also for another delivery of one message.
    pub id: String,
    /// The message, of a function that a queue triggers: its bytes as they lie in the queue.
    pub message: Vec<u8>,
    /// How often the message was delivered, this time included; 0 by hand.
    pub dequeue_count: u64,
    /// When the message expires, where it is known.
    pub expires: Option<DateTime<Utc>>,
}

impl Invocation {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// A sentence: the body is not what a host sends.
    pub fn parse(id: String, body: &[u8]) -> Result<Invocation, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
        let Some(Value::Object(data)) = field(&body, "Data") else {
            return Err("the body has no object Data: only the Functions host calls this".into());
        };
        let no_metadata = Map::new();
        let metadata = match field(&body, "Metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => &no_metadata,
        };
        Ok(Invocation {
            id,
            // A function has one trigger, and `Data` has nothing else.
            message: data.values().next().map(message_bytes).unwrap_or_default(),
            dequeue_count: scalar(metadata, "DequeueCount").and_then(|text| text.parse().ok()).unwrap_or(1),
            expires: scalar(metadata, "ExpirationTime").and_then(|text| text.parse().ok()),
        })
    }
}

fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A number or text of the metadata. The host sends scalars as strings that hold JSON, dates as plain strings.
fn scalar(metadata: &Map<String, Value>, name: &str) -> Option<String> {
    let value = metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)?;
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(Value::String(inner)) => Some(inner),
            _ => Some(text.clone()),
        },
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"op":"compact","n":3,"dry":true,"tags":["a"],"opt":{"x":1}}"#;

    fn parse(body: &str) -> Invocation {
        Invocation::parse("i".into(), body.as_bytes()).unwrap()
    }

    /// What a real host sends for a trigger without dataType.
    const AS_TEXT: &str = r#"{"Data":{"job":"\"{\\\"op\\\":\\\"compact\\\",\\\"n\\\":3,\\\"dry\\\":true,\\\"tags\\\":[\\\"a\\\"],\\\"opt\\\":{\\\"x\\\":1}}\""},"Metadata":{"DequeueCount":"1","ExpirationTime":"2026-12-08T08:00:00+00:00","Id":"\"b1f7a2d0-0000-4000-8000-000000000001\"","InsertionTime":"2026-12-01T08:00:00+00:00","NextVisibleTime":"2026-12-01T08:10:01+00:00","PopReceipt":"\"AgAAAAMAAAAAAAAAq83vEjRW2gE=\"","sys":{"MethodName":"process","UtcNow":"2026-12-01T08:00:01.1234567Z","RandGuid":"3d0f3c0e-6b1c-4a1e-9a55-0f6f2b1f7a11"},"op":"\"compact\"","n":"\"3\"","dry":"\"True\"","opt":{"x":1}}}"#;

    #[test]
    fn a_message_comes_out_the_same_whatever_the_data_type() {
        let text = parse(AS_TEXT);
        assert_eq!((text.message.as_slice(), text.dequeue_count), (TEXT.as_bytes(), 1));
        assert_eq!(text.expires, Some("2026-12-08T08:00:00Z".parse().unwrap()));
        let binary = parse(
            r#"{"Data":{"job":"eyJvcCI6ImNvbXBhY3QiLCJuIjozLCJkcnkiOnRydWUsInRhZ3MiOlsiYSJdLCJvcHQiOnsieCI6MX19"},
                "Metadata":{"DequeueCount":"4","ExpirationTime":"2026-12-08T08:00:00+00:00"}}"#,
        );
        assert_eq!((binary.message.as_slice(), binary.dequeue_count), (TEXT.as_bytes(), 4));
        // As the documentation shows it.
        let single = parse(r#"{"Data":{"job":"{\"op\":1}"},"Metadata":{"DequeueCount":2}}"#);
        assert_eq!((single.message.as_slice(), single.dequeue_count), (&b"{\"op\":1}"[..], 2));
    }

    #[test]
    fn timers_and_requests_need_no_message() {
        let timer = parse(
            r#"{"Data":{"timer":{"Schedule":{"AdjustForDST":true},"ScheduleStatus":null,"IsPastDue":false}},
                "Metadata":{"sys":{"MethodName":"plan"}}}"#,
        );
        assert_eq!((timer.dequeue_count, timer.expires), (1, None));
        assert_eq!(parse(r#"{"Data":{}}"#).message, b"");
        // By hand there is no count, and time has no end.
        let by_hand = parse(
            r#"{"Data":{"message":""},"Metadata":{"DequeueCount":"0","ExpirationTime":"9999-12-31T23:59:59+00:00"}}"#,
        );
        assert_eq!((by_hand.message.as_slice(), by_hand.dequeue_count), (&b""[..], 0));
        assert!(by_hand.expires.is_some());
    }

    #[test]
    fn what_no_host_sends_is_refused_with_a_sentence() {
        for body in ["", "{", "[]", "null", r#"{"Data":"x"}"#, r#"{"Metadata":{}}"#] {
            let reason = Invocation::parse("i".into(), body.as_bytes()).unwrap_err();
            assert!(reason.starts_with("the body"), "{body}: {reason}");
        }
    }
}
