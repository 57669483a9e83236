//! Reading the host's JSON files: keys without case, as its configuration binder reads them.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::error::AppError;

pub(super) fn read(file: &Path) -> Result<Map<String, Value>, AppError> {
    let text = std::fs::read_to_string(file).map_err(|source| AppError::Read { file: file.to_path_buf(), source })?;
    let json = |message: String| AppError::Json { file: file.to_path_buf(), message };
    // Editors of Windows write a byte order mark.
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(json("is not a JSON object".into())),
        Err(error) => Err(json(format!("is not JSON: {error}"))),
    }
}

/// The value of a key without case; null counts as absent.
pub(super) fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let found = object.get(key).or_else(|| object.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v));
    found.filter(|value| !value.is_null())
}

/// The value at a path of keys.
pub(super) fn at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let mut value = get(object, keys.next()?)?;
    for key in keys {
        value = get(value.as_object()?, key)?;
    }
    Some(value)
}

/// Puts a text at a path of keys, over what is there: an app setting such as `AzureFunctionsJobHost__a__b`.
pub(super) fn put(object: &mut Map<String, Value>, path: &[&str], text: &str) {
    let Some((first, rest)) = path.split_first() else { return };
    let key = object.keys().find(|key| key.eq_ignore_ascii_case(first)).cloned().unwrap_or_else(|| (*first).into());
    if rest.is_empty() {
        object.insert(key, Value::String(text.into()));
        return;
    }
    let inner = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        put(inner, rest, text);
    }
}

/// Typed reads of one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) file: &'a Path,
    pub(super) object: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn wrong(&self, path: &str, message: impl Into<String>) -> AppError {
        AppError::wrong(self.file, path, message)
    }

    pub(super) fn value(&self, path: &str) -> Option<&'a Value> {
        at(self.object, path)
    }

    pub(super) fn text(&self, path: &str) -> Result<Option<&'a str>, AppError> {
        match self.value(path) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(path, format!("{other} is not a text"))),
        }
    }

    pub(super) fn boolean(&self, path: &str, default: bool) -> Result<bool, AppError> {
        match self.value(path) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(*value),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(self.wrong(path, format!("{other} is neither true nor false"))),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn number(&self, path: &str, default: u64, least: u64, most: u64) -> Result<u64, AppError> {
        let Some(value) = self.value(path) else { return Ok(default) };
        let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(number),
            None if most == u64::MAX => Err(self.wrong(path, format!("{value} is not a whole number from {least} on"))),
            None => Err(self.wrong(path, format!("{value} is not a whole number from {least} to {most}"))),
        }
    }

    /// A TimeSpan.
    pub(super) fn duration(&self, path: &str) -> Result<Option<Duration>, AppError> {
        let Some(value) = self.value(path) else { return Ok(None) };
        match value.as_str().and_then(time_span) {
            Some(duration) => Ok(Some(duration)),
            None => {
                Err(self.wrong(path, format!("{value} is not a time span; write hh:mm:ss, for example \"00:02:00\"")))
            }
        }
    }
}

/// `hh:mm:ss`, `hh:mm`, `d.hh:mm:ss`, with fractions of a second: what .NET calls a TimeSpan.
pub(crate) fn time_span(text: &str) -> Option<Duration> {
    let (days, clock) = match text.trim().split_once(':')?.0.split_once('.') {
        Some((days, _)) => (days.parse().ok()?, text.trim().split_once('.')?.1),
        None => (0u64, text.trim()),
    };
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let below = |text: &str, limit: u64| text.parse::<u64>().ok().filter(|number| *number < limit);
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if parts.next().is_some() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = days * 86_400 + below(hours, 24)? * 3_600 + below(minutes, 60)? * 60 + below(whole, 60)?;
    Some(Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans() {
        for (text, millis) in [
            ("00:00:30", Some(30_000)),
            ("00:30:00", Some(1_800_000)),
            ("1.02:03:04", Some(93_784_000)),
            ("00:00:00.1", Some(100)),
            ("00:05", Some(300_000)),
            ("-1", None),
            ("30", None),
            ("24:00:00", None),
            ("00:00:60", None),
            ("a:b:c", None),
            ("0:0:0:0:0", None),
        ] {
            assert_eq!(time_span(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn settings_are_put_over_a_file() {
        let Value::Object(mut file) = serde_json::json!({"customHandler": {"description": {"a": "x"}}}) else {
            unreachable!()
        };
        put(&mut file, &["CUSTOMHANDLER", "description", "A"], "y");
        put(&mut file, &["extensions", "queues", "batchSize"], "2");
        assert_eq!(at(&file, "customhandler.Description.a"), Some(&"y".into()));
        assert_eq!(at(&file, "extensions.queues.batchSize"), Some(&"2".into()));
        assert_eq!(at(&file, "extensions.queues.none"), None);
    }
}
