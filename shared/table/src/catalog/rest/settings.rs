//! What a REST server says of itself before anything else: defaults and overrides of the client's settings.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Properties as servers write them: null is as good as absent, and a number or a flag is its text.
pub(super) type Properties = BTreeMap<String, Value>;

/// The text of a property; None where there is none.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads properties that are texts.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<String, String>, D::Error> {
    let all = Option::<HashMap<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(all.into_iter().filter_map(|(key, value)| Some((key, text(&value)?))).collect())
}

/// Reads null as what is absent.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads the answer of `GET /v1/config`.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    defaults: Option<Properties>,
    #[serde(default)]
    overrides: Option<Properties>,
    /// Routes that the server has; absent or empty: those of the specification's first version.
    #[serde(default)]
    endpoints: Option<Vec<Option<String>>>,
    #[serde(default, rename = "idempotency-key-lifetime")]
    idempotency_key_lifetime: Option<Value>,
}

/// The route of a commit, as servers announce it.
const COMMIT: &str = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}";

/// How a server wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// Another address than the configured one.
    pub(super) uri: Option<String>,
    /// Stands between `/v1` and the rest of each path; without slashes at its ends.
    pub(super) prefix: Option<String>,
    /// Between the levels of a namespace, decoded.
    pub(super) separator: String,
    /// Headers of every request.
    pub(super) headers: Vec<(String, String)>,
    /// A commit may be sent again under the same `Idempotency-Key`.
    pub(super) idempotency: bool,
    /// The server takes commits.
    pub(super) commits: bool,
}

/// The separator of the specification.
const UNIT_SEPARATOR: &str = "\u{1f}";

impl ServerSettings {
    /// Settings of a client are below the overrides and above the defaults; `headers` are those of the client.
    pub(super) fn read(body: &[u8], headers: &[(String, String)]) -> Result<Self, serde_json::Error> {
        let answer: Answer = serde_json::from_slice(body)?;
        let Answer { defaults, overrides, endpoints, idempotency_key_lifetime } = answer;
        let (defaults, overrides) = (defaults.unwrap_or_default(), overrides.unwrap_or_default());
        let of =
            |properties: &Properties, key: &str| properties.get(key).and_then(text).filter(|value| !value.is_empty());
        let value = |key: &str| of(&overrides, key).or_else(|| of(&defaults, key));
        let mut merged: BTreeMap<String, (String, String)> = BTreeMap::new();
        let header = |(key, value): (&String, &Value)| {
            let name = key.strip_prefix("header.")?;
            Some((name.to_owned(), text(value)?))
        };
        let of_client = headers.iter().cloned();
        for (name, value) in
            defaults.iter().filter_map(header).chain(of_client).chain(overrides.iter().filter_map(header))
        {
            merged.insert(name.to_ascii_lowercase(), (name, value));
        }
        let routes: Vec<String> = endpoints.into_iter().flatten().flatten().collect();
        let prefix = value("prefix").map(|prefix| prefix.trim_matches('/').to_owned());
        Ok(Self {
            uri: of(&overrides, "uri").map(|uri| uri.trim_end_matches('/').to_owned()),
            prefix: prefix.filter(|prefix| !prefix.is_empty()),
            separator: value("namespace-separator").map_or_else(|| UNIT_SEPARATOR.to_owned(), |text| decode(&text)),
            headers: merged.into_values().collect(),
            idempotency: idempotency_key_lifetime.is_some_and(|lifetime| !lifetime.is_null()),
            commits: routes.is_empty() || routes.iter().any(|route| route == COMMIT),
        })
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, headers: &[(&str, &str)]) -> ServerSettings {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerSettings::read(body.as_bytes(), &headers).unwrap()
    }

    fn plain() -> ServerSettings {
        ServerSettings {
            uri: None,
            prefix: None,
            separator: "\u{1f}".into(),
            headers: vec![],
            idempotency: false,
            commits: true,
        }
    }

    #[test]
    fn overrides_win_over_the_client_and_it_over_defaults() {
        assert_eq!(read("{}", &[]), plain());
        assert_eq!(read(r#"{"defaults":{},"overrides":{},"endpoints":null}"#, &[]), plain());
        let body = r#"{"defaults":{"prefix":"a","header.X-One":"d","header.X-Two":"d","header.X-Three":"d"},
                       "overrides":{"prefix":"/ws/b/","header.x-two":"o","uri":"https://other/api/","namespace-separator":"%2E"}}"#;
        let found = read(body, &[("X-TWO", "c"), ("X-Three", "c")]);
        let headers = [("X-One", "d"), ("X-Three", "c"), ("x-two", "o")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let expected = ServerSettings {
            uri: Some("https://other/api".into()),
            prefix: Some("ws/b".into()),
            separator: ".".into(),
            headers,
            ..plain()
        };
        assert_eq!(found, expected);
        // Only an override moves the client elsewhere.
        assert_eq!(read(r#"{"defaults":{"uri":"https://other"}}"#, &[]).uri, None);
    }

    #[test]
    fn null_is_absent_wherever_it_stands() {
        for body in [
            r#"{"defaults":null,"overrides":null}"#,
            r#"{"defaults":{"prefix":null,"header.X-One":null,"clients":4},"overrides":{"uri":null,"prefix":null,"x":{}}}"#,
            r#"{"endpoints":[null]}"#,
        ] {
            assert_eq!(read(body, &[]), plain(), "{body}");
        }
        // An override of null does not take away what stands below it.
        let below = read(r#"{"defaults":{"prefix":"a"},"overrides":{"prefix":null}}"#, &[]);
        assert_eq!(below.prefix.as_deref(), Some("a"));
        assert_eq!(read(r#"{"overrides":{"prefix":7}}"#, &[]).prefix.as_deref(), Some("7"));
        let kept = read(r#"{"overrides":{"header.X-One":null}}"#, &[("X-One", "c")]);
        assert_eq!(kept.headers, vec![("X-One".to_owned(), "c".to_owned())]);
    }

    #[test]
    fn what_the_server_can_is_as_it_announces() {
        let reads = r#"{"endpoints":["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]}"#;
        assert!(!read(reads, &[]).commits);
        assert!(read(r#"{"endpoints":[]}"#, &[]).commits, "nothing announced is nothing denied");
        let commits = r#"{"endpoints":["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"],"idempotency-key-lifetime":"PT30M"}"#;
        let found = read(commits, &[]);
        assert!(found.commits && found.idempotency);
        assert!(!read(r#"{"idempotency-key-lifetime":null}"#, &[]).idempotency);
        assert!(ServerSettings::read(b"<html>", &[]).is_err());
    }
}
