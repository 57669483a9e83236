//! The body of an invocation: `{"Data": {...}, "Metadata": {...}}`, with the double encoding of the real host.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A time far ahead: what "never" becomes for a message that does not expire.
pub(crate) const FAR: &str = "9999-12-31T23:59:59+00:00";

/// What a function is called with.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    data: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// What the queue says of a message. Absent values are left out of `Metadata`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageFacts {
    /// Id; None for a message that was never in a queue.
    pub id: Option<String>,
    /// Receipt, as the id.
    pub pop_receipt: Option<String>,
    /// Deliveries so far, this one included.
    pub dequeue_count: u32,
    /// When it was sent.
    pub inserted: DateTime<Utc>,
    /// When it expires; None: never.
    pub expires: Option<DateTime<Utc>>,
    /// When it is seen again; None: far ahead.
    pub next_visible: Option<DateTime<Utc>>,
}

/// `sys` of `Metadata`: the function, the time and a fresh number.
pub(crate) fn system(function: &str, now: DateTime<Utc>) -> Value {
    json!({"MethodName": function, "UtcNow": ticks(now), "RandGuid": Uuid::new_v4().to_string()})
}

impl Payload {
    /// Of a queue message whose bytes are text: the text as a JSON string in a JSON string, and the fields of a JSON object
    /// copied over the facts of the message.
    pub fn queue_text(binding: &str, text: &str, facts: &MessageFacts, sys: Value) -> Payload {
        let mut metadata = facts.metadata(sys);
        for (name, value) in fields_of(text) {
            // The dictionary of the real host ignores case, and keeps the spelling that it had.
            let known = metadata.keys().find(|key| key.to_lowercase() == name.to_lowercase()).cloned();
            metadata.insert(known.unwrap_or(name), value);
        }
        Payload::of(binding, encoded(&Value::from(text)), metadata)
    }

    /// Of a queue message whose trigger has `dataType` `binary`: Base64 of the bytes, no fields copied.
    pub fn queue_bytes(binding: &str, bytes: &[u8], facts: &MessageFacts, sys: Value) -> Payload {
        Payload::of(binding, Value::from(STANDARD.encode(bytes)), facts.metadata(sys))
    }

    /// Of a timer. `status` is null where runs are not remembered.
    pub fn timer(binding: &str, adjusts_for_dst: bool, status: Value, past_due: bool, sys: Value) -> Payload {
        let info = json!({
            "Schedule": {"AdjustForDST": adjusts_for_dst},
            "ScheduleStatus": status,
            "IsPastDue": past_due,
        });
        Payload::of(binding, info, Map::from_iter([("sys".to_owned(), sys)]))
    }

    /// Of an HTTP request, given as the object that stands for it.
    pub fn http(binding: &str, request: Value, sys: Value) -> Payload {
        Payload::of(binding, request, Map::from_iter([("sys".to_owned(), sys)]))
    }

    fn of(binding: &str, value: Value, mut metadata: Map<String, Value>) -> Payload {
        metadata.retain(|name, value| !value.is_null() && !name.to_lowercase().ends_with("trigger"));
        Payload { data: Map::from_iter([(binding.to_owned(), value)]), metadata }
    }

    /// An extra entry of `Metadata`, which an invocation by the admin endpoint has.
    #[must_use]
    pub fn with_metadata(mut self, name: &str, value: Value) -> Payload {
        self.metadata.insert(name.to_owned(), value);
        self
    }

    /// The body.
    pub fn to_json(&self) -> Value {
        json!({"Data": self.data, "Metadata": self.metadata})
    }
}

impl MessageFacts {
    fn metadata(&self, sys: Value) -> Map<String, Value> {
        let text = |text: &Option<String>| text.as_ref().map(|text| encoded(&Value::from(text.as_str())));
        let time = |time: Option<DateTime<Utc>>| Value::from(time.map_or_else(|| FAR.to_owned(), whole_seconds));
        let entries = [
            ("DequeueCount", Some(Value::from(self.dequeue_count.to_string()))),
            ("ExpirationTime", Some(time(self.expires))),
            ("Id", text(&self.id)),
            ("InsertionTime", Some(time(Some(self.inserted)))),
            ("NextVisibleTime", Some(time(self.next_visible))),
            ("PopReceipt", text(&self.pop_receipt)),
            ("sys", Some(sys)),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The fields of a text that is a JSON object: objects as they are, scalars as .NET's text in a JSON string; lists and nulls
/// are left out.
fn fields_of(text: &str) -> Vec<(String, Value)> {
    let trimmed = text.trim();
    if !trimmed.starts_with('{') || !trimmed.ends_with('}') {
        return Vec::new();
    }
    let Ok(Value::Object(object)) = serde_json::from_str(trimmed) else { return Vec::new() };
    let field = |value: Value| match value {
        Value::Null | Value::Array(_) => None,
        Value::Object(_) => Some(value),
        Value::Bool(true) => Some(encoded(&Value::from("True"))),
        Value::Bool(false) => Some(encoded(&Value::from("False"))),
        Value::Number(number) => Some(encoded(&Value::from(number.to_string()))),
        Value::String(_) => Some(encoded(&value)),
    };
    object.into_iter().filter_map(|(name, value)| Some((name, field(value)?))).collect()
}

/// A JSON string that holds the JSON text of a value.
fn encoded(value: &Value) -> Value {
    Value::from(value.to_string())
}

/// ISO text, cut to whole seconds.
fn whole_seconds(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// ISO text in units of 100 ns, trailing zeros cut, as .NET writes a UTC time.
fn ticks(time: DateTime<Utc>) -> String {
    let fraction = format!("{:07}", time.timestamp_subsec_nanos() / 100);
    let whole = time.format("%Y-%m-%dT%H:%M:%S");
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}Z"),
        fraction => format!("{whole}.{fraction}Z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn facts(dequeue_count: u32) -> MessageFacts {
        MessageFacts {
            id: Some("b1f7a2d0-0000-4000-8000-000000000001".into()),
            pop_receipt: Some("AgAAAAMAAAAAAAAAq83vEjRW2gE=".into()),
            dequeue_count,
            inserted: at("2026-12-01T08:00:00.9Z"),
            expires: Some(at("2026-12-08T08:00:00.9Z")),
            next_visible: Some(at("2026-12-01T08:10:01Z")),
        }
    }

    fn sys() -> Value {
        json!({"MethodName": "process"})
    }

    fn common(dequeue_count: &str) -> Value {
        json!({
            "DequeueCount": dequeue_count,
            "ExpirationTime": "2026-12-08T08:00:00+00:00",
            "Id": "\"b1f7a2d0-0000-4000-8000-000000000001\"",
            "InsertionTime": "2026-12-01T08:00:00+00:00",
            "NextVisibleTime": "2026-12-01T08:10:01+00:00",
            "PopReceipt": "\"AgAAAAMAAAAAAAAAq83vEjRW2gE=\"",
            "sys": {"MethodName": "process"},
        })
    }

    const V1: &str = r#"{"op":"compact","n":3,"dry":true,"tags":["a"],"opt":{"x":1}}"#;

    #[test]
    fn json_text_is_encoded_twice_and_its_fields_are_copied() {
        let mut metadata = common("1");
        metadata["op"] = "\"compact\"".into();
        metadata["n"] = "\"3\"".into();
        metadata["dry"] = "\"True\"".into();
        metadata["opt"] = json!({"x": 1});
        let job = "\"{\\\"op\\\":\\\"compact\\\",\\\"n\\\":3,\\\"dry\\\":true,\\\"tags\\\":[\\\"a\\\"],\\\"opt\\\":{\\\"x\\\":1}}\"";
        let expected = json!({"Data": {"job": job}, "Metadata": metadata});
        assert_eq!(Payload::queue_text("job", V1, &facts(1), sys()).to_json(), expected);
    }

    #[test]
    fn plain_text_is_encoded_twice_too() {
        let payload = Payload::queue_text("job", "hello \"world\"", &facts(2), sys()).to_json();
        assert_eq!(payload, json!({"Data": {"job": "\"hello \\\"world\\\"\""}, "Metadata": common("2")}));
    }

    #[test]
    fn binary_is_plain_base64_without_copied_fields() {
        let payload = Payload::queue_bytes("job", V1.as_bytes(), &facts(1), sys()).to_json();
        let data = "eyJvcCI6ImNvbXBhY3QiLCJuIjozLCJkcnkiOnRydWUsInRhZ3MiOlsiYSJdLCJvcHQiOnsieCI6MX19";
        assert_eq!(payload, json!({"Data": {"job": data}, "Metadata": common("1")}));
    }

    #[test]
    fn fields_overwrite_the_facts_without_case() {
        let text = r#"{"id":"j-1","DEQUEUECOUNT":7,"none":null,"myTrigger":"x"}"#;
        let metadata = &Payload::queue_text("job", text, &facts(1), sys()).to_json()["Metadata"];
        let mut expected = common("\"7\"");
        expected["Id"] = "\"j-1\"".into();
        assert_eq!(metadata, &expected);
    }

    #[test]
    fn a_message_of_the_admin_endpoint_has_no_id() {
        let facts = MessageFacts {
            id: None,
            pop_receipt: None,
            dequeue_count: 0,
            expires: None,
            next_visible: None,
            ..facts(0)
        };
        let payload = Payload::queue_text("job", "x", &facts, sys()).with_metadata("job", "\"x\"".into()).to_json();
        let expected = json!({
            "DequeueCount": "0", "ExpirationTime": FAR, "NextVisibleTime": FAR,
            "InsertionTime": "2026-12-01T08:00:00+00:00", "job": "\"x\"", "sys": {"MethodName": "process"},
        });
        assert_eq!(payload["Metadata"], expected);
    }

    #[test]
    fn timers_are_real_objects() {
        let status = json!({"Next": "2026-12-01T08:00:00+00:00"});
        let payload = Payload::timer("tick", true, status.clone(), true, sys()).to_json();
        let tick = json!({"Schedule": {"AdjustForDST": true}, "ScheduleStatus": status, "IsPastDue": true});
        assert_eq!(payload, json!({"Data": {"tick": tick}, "Metadata": {"sys": sys()}}));
        let unmonitored = Payload::timer("tick", true, Value::Null, false, sys()).to_json();
        assert_eq!(unmonitored["Data"]["tick"]["ScheduleStatus"], Value::Null);
    }

    #[test]
    fn the_time_of_sys() {
        for (time, text) in [
            ("2026-12-01T08:00:01.1234567Z", "2026-12-01T08:00:01.1234567Z"),
            ("2026-12-01T08:00:00.0154Z", "2026-12-01T08:00:00.0154Z"),
            ("2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"),
        ] {
            let sys = system("sweep", at(time));
            assert_eq!((&sys["UtcNow"], &sys["MethodName"]), (&text.into(), &"sweep".into()));
        }
    }
}
