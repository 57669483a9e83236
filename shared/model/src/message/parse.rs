//! Reads a message. The text is untrusted: everything that is not exactly a message is refused with a sentence.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::bad::BadMessage;
use super::{MESSAGE_LIMIT, MESSAGE_VERSION, Message, PartitionJson};
use crate::rule::Rule;

/// Every field a message may have.
const FIELDS: [&str; 9] = ["v", "dataset", "partition", "specId", "rule", "pass", "gen", "dateRange", "dryRun"];
/// How much of a wrong text a reason quotes, in characters.
const QUOTED: usize = 40;
/// Tools write Base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads the body of a message: JSON text, or Base64 of it, with white space around.
///
/// # Errors
/// Why it is none, as a sentence for a person; [`BadMessage::NewerVersion`] is the one that is not parked.
pub fn parse_message(body: &[u8]) -> Result<Message, BadMessage> {
    let text = utf8(body).map_err(|utf16| if utf16 { BadMessage::Utf16 } else { BadMessage::NotText })?;
    if text.is_empty() {
        return Err(BadMessage::Empty);
    }
    match serde_json::from_str(text) {
        Ok(value) => of_value(value, text.len()),
        Err(error) => match decoded(text) {
            Some(bytes) => of_base64(&bytes),
            None => Err(not_json(&error, text)),
        },
    }
}

fn of_base64(bytes: &[u8]) -> Result<Message, BadMessage> {
    let text = utf8(bytes).map_err(|utf16| if utf16 { BadMessage::Utf16 } else { BadMessage::Base64OfBytes })?;
    let value = serde_json::from_str(text).map_err(|error| not_json(&error, text))?;
    of_value(value, text.len())
}

/// The text without white space around and without a byte order mark; the error says whether it looks like UTF-16.
fn utf8(bytes: &[u8]) -> Result<&str, bool> {
    // JSON has no NUL; text of ASCII characters in UTF-16 is half NULs.
    let utf16 = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) || bytes.contains(&0);
    match std::str::from_utf8(bytes) {
        Ok(text) if !utf16 => Ok(text.trim_start_matches('\u{FEFF}').trim()),
        _ => Err(utf16),
    }
}

/// Lines of 76 characters, as `base64` writes them, are one text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let one_line: String = text.split_ascii_whitespace().collect();
    BASE64.decode(one_line).ok()
}

fn not_json(error: &serde_json::Error, text: &str) -> BadMessage {
    BadMessage::NotJson { detail: error.to_string(), start: shortened(text) }
}

fn shortened(text: &str) -> String {
    let mut start: String = text.chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(QUOTED).is_some() {
        start.push('…');
    }
    start
}

fn of_value(value: Value, bytes: usize) -> Result<Message, BadMessage> {
    let kind = match value {
        Value::Object(fields) => return of_fields(fields, bytes),
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a JSON string",
        Value::Array(_) => "an array",
    };
    Err(BadMessage::NotAnObject { kind })
}

fn of_fields(mut fields: Map<String, Value>, bytes: usize) -> Result<Message, BadMessage> {
    // First of all: a newer version may have other fields and another limit.
    match given(&mut fields, "v") {
        None => {}
        Some(value) => match value.as_u64() {
            Some(MESSAGE_VERSION) => {}
            Some(v) if v > MESSAGE_VERSION => return Err(BadMessage::NewerVersion { v }),
            Some(v) => return Err(BadMessage::OlderVersion { v }),
            None => return Err(wrong("v", &value, "a whole number")),
        },
    }
    if bytes >= MESSAGE_LIMIT {
        return Err(BadMessage::TooLarge { bytes });
    }
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(BadMessage::UnknownField { field: shortened(field), hint: hint(field) });
    }
    let message = Message {
        dataset: dataset(given(&mut fields, "dataset"))?,
        partition: given(&mut fields, "partition").map(partition).transpose()?,
        spec_id: given(&mut fields, "specId").map(spec_id).transpose()?,
        rule: given(&mut fields, "rule").map(rule).transpose()?,
        pass: given(&mut fields, "pass").map(pass).transpose()?,
        generation: given(&mut fields, "gen").map(generation).transpose()?,
        date_range: given(&mut fields, "dateRange").map(date_range).transpose()?,
        dry_run: match given(&mut fields, "dryRun") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| wrong("dryRun", &value, "true or false"))?,
        },
    };
    consistent(message)
}

/// The value of a field; null is as good as absent.
fn given(fields: &mut Map<String, Value>, field: &str) -> Option<Value> {
    fields.remove(field).filter(|value| !value.is_null())
}

fn dataset(value: Option<Value>) -> Result<String, BadMessage> {
    match value {
        None => Err(BadMessage::MissingDataset),
        Some(Value::String(name)) if name.trim().is_empty() => Err(BadMessage::MissingDataset),
        Some(Value::String(name)) => Ok(name),
        Some(other) => Err(wrong("dataset", &other, "the name of a dataset")),
    }
}

fn partition(value: Value) -> Result<PartitionJson, BadMessage> {
    let fields = match value {
        Value::Object(fields) => fields,
        other => return Err(wrong("partition", &other, "an object such as {\"day\":\"2026-11-01\"}")),
    };
    match fields.iter().find(|(_, value)| value.is_object() || value.is_array()) {
        Some((name, value)) => {
            Err(wrong(&format!("partition.{}", shortened(name)), value, "a text, a number, true, false or null"))
        }
        None => Ok(fields),
    }
}

fn spec_id(value: Value) -> Result<i32, BadMessage> {
    let id = value.as_i64().and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0);
    id.ok_or_else(|| wrong("specId", &value, "the number of a partition spec"))
}

fn rule(value: Value) -> Result<Rule, BadMessage> {
    let known = value.as_str().and_then(|word| word.parse().ok());
    known.ok_or_else(|| wrong("rule", &value, "backlog, tier, cold, backfill, schedule, manual or full"))
}

/// It becomes part of the names of blobs.
fn pass(value: Value) -> Result<String, BadMessage> {
    let safe = |text: &str| {
        (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match value {
        Value::String(text) if safe(&text) => Ok(text),
        other => Err(wrong("pass", &other, "a UUID")),
    }
}

fn generation(value: Value) -> Result<Uuid, BadMessage> {
    let uuid = value.as_str().and_then(|text| Uuid::try_parse(text).ok());
    uuid.ok_or_else(|| wrong("gen", &value, "a UUID; leave it out in a message by hand"))
}

fn date_range(value: Value) -> Result<String, BadMessage> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong("dateRange", &other, "a text such as \"2026-11-01:2026-11-30\"")),
    }
}

fn consistent(message: Message) -> Result<Message, BadMessage> {
    let contradiction = |text: &str| Err(BadMessage::Contradiction(text.to_owned()));
    let by_hand = message.generation.is_none();
    match (&message.partition, message.rule) {
        (None, _) if !by_hand => contradiction("`gen` without `partition`: a message by hand has no gen, leave it out"),
        _ if !by_hand && message.dry_run => contradiction("`dryRun` beside `gen`: only messages by hand are dry runs"),
        (Some(_), _) if message.date_range.is_some() => {
            contradiction("`dateRange` beside `partition`: it takes a whole dataset, leave one of the two out")
        }
        (None, _) if message.spec_id.is_some() => {
            contradiction("`specId` without `partition`: it says which spec the partition belongs to, leave it out")
        }
        (None, Some(rule)) if !matches!(rule, Rule::Manual | Rule::Full) => {
            contradiction(&format!("rule `{rule}` of a whole dataset: by hand it is manual or full"))
        }
        _ => Ok(message),
    }
}

fn wrong(field: &str, value: &Value, expected: &str) -> BadMessage {
    BadMessage::WrongValue {
        field: field.to_owned(),
        value: shortened(&value.to_string()),
        expected: expected.to_owned(),
    }
}

/// The field that was meant, when only case, `_` or `-` differ.
fn hint(field: &str) -> String {
    let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let meant = FIELDS.iter().find(|known| plain(known) == plain(field));
    meant.map(|known| format!("; did you mean {known}?")).unwrap_or_default()
}
