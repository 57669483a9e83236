//! The typed partition tuple and its JSON form (Iceberg spec, Appendix D, "Single-value serialization": JSON).
//!
//! Partitions are compared by spec id and typed tuple, never by directory text: a path may encode two values alike, and
//! a rewrite that trusts it moves rows into the wrong partition.

use std::fmt;
use std::hash::{Hash, Hasher};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A non-null value of a partition field, after its transform.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// boolean
    Bool(bool),
    /// int; also the results of year, month, hour and bucket
    Int(i32),
    /// long
    Long(i64),
    /// float
    Float(f32),
    /// double
    Double(f64),
    /// decimal(precision, scale): unscaled value and scale
    Decimal {
        /// Unscaled value.
        unscaled: i128,
        /// Digits after the point.
        scale: u32,
    },
    /// date, days from 1970-01-01; also the result of day
    Date(i32),
    /// time, microseconds from midnight
    Time(i64),
    /// timestamp without zone, microseconds from 1970-01-01
    Timestamp(i64),
    /// timestamp with zone, microseconds from 1970-01-01 UTC
    Timestamptz(i64),
    /// timestamp without zone, nanoseconds
    TimestampNs(i64),
    /// timestamp with zone, nanoseconds
    TimestamptzNs(i64),
    /// string
    String(String),
    /// uuid
    Uuid(uuid::Uuid),
    /// fixed or binary
    Binary(Vec<u8>),
}

/// The type of a partition field, needed to read its JSON form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// boolean
    Bool,
    /// int
    Int,
    /// long
    Long,
    /// float
    Float,
    /// double
    Double,
    /// decimal of this scale
    Decimal(u32),
    /// date
    Date,
    /// time
    Time,
    /// timestamp
    Timestamp,
    /// timestamptz
    Timestamptz,
    /// timestamp_ns
    TimestampNs,
    /// timestamptz_ns
    TimestamptzNs,
    /// string
    String,
    /// uuid
    Uuid,
    /// fixed or binary
    Binary,
}

impl Scalar {
    /// The type of this value.
    pub fn scalar_type(&self) -> ScalarType {
        match self {
            Scalar::Bool(_) => ScalarType::Bool,
            Scalar::Int(_) => ScalarType::Int,
            Scalar::Long(_) => ScalarType::Long,
            Scalar::Float(_) => ScalarType::Float,
            Scalar::Double(_) => ScalarType::Double,
            Scalar::Decimal { scale, .. } => ScalarType::Decimal(*scale),
            Scalar::Date(_) => ScalarType::Date,
            Scalar::Time(_) => ScalarType::Time,
            Scalar::Timestamp(_) => ScalarType::Timestamp,
            Scalar::Timestamptz(_) => ScalarType::Timestamptz,
            Scalar::TimestampNs(_) => ScalarType::TimestampNs,
            Scalar::TimestamptzNs(_) => ScalarType::TimestamptzNs,
            Scalar::String(_) => ScalarType::String,
            Scalar::Uuid(_) => ScalarType::Uuid,
            Scalar::Binary(_) => ScalarType::Binary,
        }
    }

    /// A byte form that is equal exactly when type and value are (floats by their bits).
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let (tag, bytes): (u8, Vec<u8>) = match self {
            Scalar::Bool(v) => (0, vec![u8::from(*v)]),
            Scalar::Int(v) => (1, v.to_be_bytes().to_vec()),
            Scalar::Long(v) => (2, v.to_be_bytes().to_vec()),
            Scalar::Float(v) => (3, v.to_bits().to_be_bytes().to_vec()),
            Scalar::Double(v) => (4, v.to_bits().to_be_bytes().to_vec()),
            Scalar::Decimal { unscaled, scale } => {
                (5, [scale.to_be_bytes().as_slice(), unscaled.to_be_bytes().as_slice()].concat())
            }
            Scalar::Date(v) => (6, v.to_be_bytes().to_vec()),
            Scalar::Time(v) => (7, v.to_be_bytes().to_vec()),
            Scalar::Timestamp(v) => (8, v.to_be_bytes().to_vec()),
            Scalar::Timestamptz(v) => (9, v.to_be_bytes().to_vec()),
            Scalar::TimestampNs(v) => (10, v.to_be_bytes().to_vec()),
            Scalar::TimestamptzNs(v) => (11, v.to_be_bytes().to_vec()),
            Scalar::String(v) => (12, v.as_bytes().to_vec()),
            Scalar::Uuid(v) => (13, v.as_bytes().to_vec()),
            Scalar::Binary(v) => (14, v.clone()),
        };
        let mut out = vec![tag];
        out.extend((bytes.len() as u64).to_be_bytes());
        out.extend(bytes);
        out
    }

    /// Iceberg's JSON single-value form.
    pub fn to_json(&self) -> Value {
        match self {
            Scalar::Bool(v) => json!(v),
            Scalar::Int(v) => json!(v),
            Scalar::Long(v) => json!(v),
            Scalar::Float(v) if v.is_finite() => json!(v),
            Scalar::Float(v) => json!(float_word(f64::from(*v))),
            Scalar::Double(v) if v.is_finite() => json!(v),
            Scalar::Double(v) => json!(float_word(*v)),
            Scalar::Decimal { unscaled, scale } => json!(decimal_text(*unscaled, *scale)),
            Scalar::Date(v) => json!(date_text(*v)),
            Scalar::Time(v) => json!(time_text(*v)),
            Scalar::Timestamp(v) => json!(timestamp_text(*v)),
            Scalar::Timestamptz(v) => json!(format!("{}+00:00", timestamp_text(*v))),
            Scalar::TimestampNs(v) => json!(timestamp_ns_text(*v)),
            Scalar::TimestamptzNs(v) => json!(format!("{}+00:00", timestamp_ns_text(*v))),
            Scalar::String(v) => json!(v),
            Scalar::Uuid(v) => json!(v.to_string()),
            Scalar::Binary(v) => json!(v.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        }
    }

    /// Reads Iceberg's JSON single-value form.
    ///
    /// # Errors
    /// A sentence that quotes the value and names the form expected.
    pub fn from_json(value: &Value, scalar_type: ScalarType) -> Result<Scalar, String> {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Scalar::parse(&text, scalar_type)
    }

    /// Reads a value from its text form (the JSON single-value form without quotes), as a person types it.
    ///
    /// # Errors
    /// A sentence that quotes the text and names the form expected.
    pub fn parse(text: &str, scalar_type: ScalarType) -> Result<Scalar, String> {
        let bad = |form: &str| format!("`{text}` is not {form}");
        match scalar_type {
            ScalarType::Bool => text.parse().map(Scalar::Bool).map_err(|_| bad("true or false")),
            ScalarType::Int => text.parse().map(Scalar::Int).map_err(|_| bad("a 32-bit integer")),
            ScalarType::Long => text.parse().map(Scalar::Long).map_err(|_| bad("a 64-bit integer")),
            ScalarType::Float => text.parse().map(Scalar::Float).map_err(|_| bad("a number")),
            ScalarType::Double => text.parse().map(Scalar::Double).map_err(|_| bad("a number")),
            ScalarType::Decimal(scale) => parse_decimal(text, scale)
                .ok_or_else(|| bad(&format!("a decimal with at most {scale} digits after the point"))),
            ScalarType::Date => parse_date(text).map(Scalar::Date).ok_or_else(|| bad("a date as YYYY-MM-DD")),
            ScalarType::Time => parse_time(text).map(Scalar::Time).ok_or_else(|| bad("a time as HH:MM:SS.ffffff")),
            ScalarType::Timestamp => parse_micros(text, false)
                .map(Scalar::Timestamp)
                .ok_or_else(|| bad("a timestamp as YYYY-MM-DDTHH:MM:SS.ffffff")),
            ScalarType::Timestamptz => parse_micros(text, true)
                .map(Scalar::Timestamptz)
                .ok_or_else(|| bad("a timestamp as YYYY-MM-DDTHH:MM:SS.ffffff+00:00")),
            ScalarType::TimestampNs => parse_nanos(text, false)
                .map(Scalar::TimestampNs)
                .ok_or_else(|| bad("a timestamp as YYYY-MM-DDTHH:MM:SS.fffffffff")),
            ScalarType::TimestamptzNs => parse_nanos(text, true)
                .map(Scalar::TimestamptzNs)
                .ok_or_else(|| bad("a timestamp as YYYY-MM-DDTHH:MM:SS.fffffffff+00:00")),
            ScalarType::String => Ok(Scalar::String(text.to_owned())),
            ScalarType::Uuid => text.parse().map(Scalar::Uuid).map_err(|_| bad("a UUID")),
            ScalarType::Binary => parse_hex(text).map(Scalar::Binary).ok_or_else(|| bad("hexadecimal bytes")),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.canonical_bytes() == other.canonical_bytes()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical_bytes().hash(state);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Value::String(text) => f.write_str(&text),
            other => write!(f, "{other}"),
        }
    }
}

/// One field of a partition tuple.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionValue {
    /// Partition field name in its spec.
    pub name: String,
    /// Value after the transform; None is null.
    pub value: Option<Scalar>,
}

/// Partition spec id and typed tuple: what groups files. Nulls are equal to each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// Partition spec id.
    pub spec_id: i32,
    /// Values in the order of the spec's fields.
    pub values: Vec<PartitionValue>,
    /// True when the spec has no field that partitions (none, or only void transforms).
    unpartitioned: bool,
}

impl PartitionKey {
    /// A tuple of a partitioned spec. A spec without fields is unpartitioned.
    pub fn new(spec_id: i32, values: Vec<PartitionValue>) -> Self {
        let unpartitioned = values.is_empty();
        Self { spec_id, values, unpartitioned }
    }

    /// The only partition of an unpartitioned spec.
    pub fn unpartitioned(spec_id: i32) -> Self {
        Self { spec_id, values: Vec::new(), unpartitioned: true }
    }

    /// A tuple of a spec whose fields are all void: one partition, though the tuple has nulls in it.
    pub fn all_void(spec_id: i32, names: impl IntoIterator<Item = String>) -> Self {
        let values = names.into_iter().map(|name| PartitionValue { name, value: None }).collect();
        Self { spec_id, values, unpartitioned: true }
    }

    /// Whether the spec partitions nothing.
    pub fn is_unpartitioned(&self) -> bool {
        self.unpartitioned
    }

    /// JSON object from partition field name to single-value form, null as null; `{}` when unpartitioned.
    pub fn to_json(&self) -> Value {
        Value::Object(self.json_fields())
    }

    /// The fields of [`PartitionKey::to_json`], as messages and records have them.
    pub fn json_fields(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if !self.unpartitioned {
            for PartitionValue { name, value } in &self.values {
                map.insert(name.clone(), value.as_ref().map_or(Value::Null, Scalar::to_json));
            }
        }
        map
    }

    /// SHA-256 (hex) of table UUID, spec id and canonical tuple: the name of the partition in state blobs.
    pub fn fingerprint(&self, table_uuid: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(table_uuid.as_bytes());
        hasher.update([0]);
        hasher.update(self.canonical_bytes());
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Bytes that are equal exactly when spec id and tuple are.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let mut out = self.spec_id.to_be_bytes().to_vec();
        for value in &self.values {
            match &value.value {
                None => out.push(0),
                Some(scalar) => {
                    out.push(1);
                    out.extend(scalar.canonical_bytes());
                }
            }
        }
        out
    }
}

impl fmt::Display for PartitionKey {
    /// `day=2026-11-01, region=null`, or `(unpartitioned)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unpartitioned {
            return f.write_str("(unpartitioned)");
        }
        for (index, PartitionValue { name, value }) in self.values.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match value {
                Some(value) => write!(f, "{name}={value}")?,
                None => write!(f, "{name}=null")?,
            }
        }
        Ok(())
    }
}

fn float_word(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn decimal_text(unscaled: i128, scale: u32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn parse_decimal(text: &str, scale: u32) -> Option<Scalar> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale_digits = scale as usize;
    if fraction.len() > scale_digits || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = format!("{whole}{fraction:0<scale_digits$}").parse().ok()?;
    Some(Scalar::Decimal { unscaled, scale })
}

fn epoch() -> NaiveDate {
    DateTime::UNIX_EPOCH.date_naive()
}

fn date_text(days: i32) -> String {
    match epoch().checked_add_signed(TimeDelta::days(i64::from(days))) {
        Some(date) => date.format("%Y-%m-%d").to_string(),
        None => days.to_string(),
    }
}

fn parse_date(text: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(epoch()).num_days()).ok()
}

fn time_text(micros: i64) -> String {
    let seconds = u32::try_from(micros.div_euclid(1_000_000)).ok();
    let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1000).ok();
    match seconds.zip(nanos).and_then(|(s, n)| NaiveTime::from_num_seconds_from_midnight_opt(s, n)) {
        Some(time) => time.format("%H:%M:%S%.6f").to_string(),
        None => micros.to_string(),
    }
}

fn parse_time(text: &str) -> Option<i64> {
    let time = NaiveTime::parse_from_str(text, "%H:%M:%S%.f").ok()?;
    time.signed_duration_since(NaiveTime::MIN).num_microseconds()
}

fn timestamp_text(micros: i64) -> String {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        None => micros.to_string(),
    }
}

fn timestamp_ns_text(nanos: i64) -> String {
    DateTime::from_timestamp_nanos(nanos).format("%Y-%m-%dT%H:%M:%S%.9f").to_string()
}

fn parse_timestamp(text: &str, with_zone: bool) -> Option<DateTime<chrono::Utc>> {
    if with_zone {
        return DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    }
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    Some(time.and_utc())
}

fn parse_micros(text: &str, with_zone: bool) -> Option<i64> {
    parse_timestamp(text, with_zone).map(|time| time.timestamp_micros())
}

fn parse_nanos(text: &str, with_zone: bool) -> Option<i64> {
    parse_timestamp(text, with_zone)?.timestamp_nanos_opt()
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_forms_are_those_of_the_iceberg_spec() {
        let cases = [
            (Scalar::Bool(true), json!(true)),
            (Scalar::Int(34), json!(34)),
            (Scalar::Decimal { unscaled: 1420, scale: 2 }, json!("14.20")),
            (Scalar::Decimal { unscaled: -5, scale: 2 }, json!("-0.05")),
            (Scalar::Date(17_486), json!("2017-11-16")),
            (Scalar::Time(81_068_123_456), json!("22:31:08.123456")),
            (Scalar::Timestamp(1_510_871_468_123_456), json!("2017-11-16T22:31:08.123456")),
            (Scalar::Timestamptz(1_510_871_468_123_456), json!("2017-11-16T22:31:08.123456+00:00")),
            (Scalar::TimestampNs(1_510_871_468_123_456_789), json!("2017-11-16T22:31:08.123456789")),
            (Scalar::String("11/12/13".into()), json!("11/12/13")),
            (Scalar::Binary(vec![0, 1, 255]), json!("0001ff")),
        ];
        for (scalar, expected) in cases {
            assert_eq!(scalar.to_json(), expected);
            assert_eq!(Scalar::from_json(&expected, scalar.scalar_type()), Ok(scalar));
        }
    }

    #[test]
    fn a_wrong_text_is_quoted() {
        assert_eq!(
            Scalar::parse("2026-13-01", ScalarType::Date),
            Err("`2026-13-01` is not a date as YYYY-MM-DD".into())
        );
        assert!(Scalar::parse("1.234", ScalarType::Decimal(2)).is_err());
    }

    #[test]
    fn keys_compare_by_spec_and_typed_tuple() {
        let key = |spec_id, value| PartitionKey::new(spec_id, vec![PartitionValue { name: "s".into(), value }]);
        assert_ne!(key(0, Some(Scalar::String("1".into()))), key(0, Some(Scalar::Int(1))));
        assert_ne!(key(0, None), key(1, None));
        assert_eq!(key(0, None), key(0, None));
        assert_ne!(key(0, Some(Scalar::String("null".into()))), key(0, None));
        assert_eq!(key(0, None).to_string(), "s=null");
        assert_eq!(PartitionKey::all_void(2, ["a".to_owned()]).to_json(), json!({}));
        assert_eq!(key(0, None).fingerprint("t").len(), 64);
        assert_ne!(key(0, None).fingerprint("t"), key(0, None).fingerprint("u"));
    }

    proptest! {
        #[test]
        fn any_scalar_survives_its_json(v in any::<i64>(), u in any::<i32>(), d in -99_999_999_999i128..99_999_999_999, s in ".*", b in any::<Vec<u8>>()) {
            let days = u % 1_000_000;
            let micros = v % 8_000_000_000_000_000;
            for scalar in [
                Scalar::Long(v), Scalar::Int(u), Scalar::Decimal { unscaled: d, scale: 3 }, Scalar::Date(days % 2_000_000),
                Scalar::Timestamp(micros), Scalar::Timestamptz(micros), Scalar::TimestampNs(v), Scalar::String(s), Scalar::Binary(b),
                Scalar::Double(f64::from(u) / 7.0),
            ] {
                let json = scalar.to_json();
                prop_assert_eq!(Scalar::from_json(&json, scalar.scalar_type()), Ok(scalar.clone()));
            }
        }
    }
}
