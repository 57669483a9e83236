//! Times in documents: RFC 3339 in UTC with milliseconds, so that people can read them and texts sort as times do.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match DateTime::parse_from_rfc3339(&text) {
        Ok(time) => Ok(time.to_utc()),
        Err(error) => Err(serde::de::Error::custom(format!("`{text}` is not a time ({error})"))),
    }
}

/// The same for a time that may be missing.
pub(crate) mod option {
    use super::{DateTime, Deserialize, Deserializer, SecondsFormat, Serializer, Utc};

    pub(crate) fn serialize<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_some(&time.to_rfc3339_opts(SecondsFormat::Millis, true)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
        #[derive(Deserialize)]
        struct Time(#[serde(with = "super")] DateTime<Utc>);
        Ok(Option::<Time>::deserialize(deserializer)?.map(|Time(time)| time))
    }
}
