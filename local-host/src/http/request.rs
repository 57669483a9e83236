//! The object that stands for an HTTP request in an invocation.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// An HTTP request as it came in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method in upper case.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// Headers; a name may come more than once.
    pub headers: Vec<(String, String)>,
    /// Values of the route's parts.
    pub params: BTreeMap<String, String>,
    /// Body.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// `Data.<name>`: `{Url, Method, Query, Headers, Params, Identities, Body}`. `Body` is absent for an empty one, Base64 for
    /// bytes and forms of several parts, else the text as it was received.
    pub fn to_json(&self) -> Value {
        let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, value) in &self.headers {
            headers.entry(name).or_default().push(value);
        }
        let mut object = json!({
            "Url": self.url,
            "Method": self.method,
            "Query": query_of(&self.url),
            "Headers": headers,
            "Params": self.params,
            "Identities": [],
        });
        if !self.body.is_empty() {
            let kind = self.header("content-type").unwrap_or_default().to_ascii_lowercase();
            let bytes = kind.starts_with("application/octet-stream") || kind.starts_with("multipart/");
            let body =
                if bytes { STANDARD.encode(&self.body) } else { String::from_utf8_lossy(&self.body).into_owned() };
            object["Body"] = Value::from(body);
        }
        object
    }

    /// The first value of a header; names without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The key that the caller gave: header `x-functions-key`, or `code` of the query.
    pub fn key(&self) -> Option<String> {
        let header = self.header("x-functions-key").map(str::to_owned);
        header.or_else(|| query_of(&self.url).remove("code"))
    }
}

/// The values of a URL's query; those of one name joined by commas.
pub fn query_of(url: &str) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let query = url.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let (name, value) = (decode(name), decode(value));
        match values.get_mut(&name) {
            Some(known) => *known = format!("{known},{value}"),
            None => {
                values.insert(name, value);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_as_the_handler_sees_it() {
        let request = HttpRequest {
            method: "POST".into(),
            url: "http://localhost:7071/api/submit?x=1".into(),
            headers: vec![("Content-Type".into(), "application/json".into())],
            params: BTreeMap::new(),
            body: br#"{"table":"t"}"#.to_vec(),
        };
        let expected = json!({
            "Url": "http://localhost:7071/api/submit?x=1", "Method": "POST", "Query": {"x": "1"},
            "Headers": {"Content-Type": ["application/json"]}, "Params": {}, "Identities": [], "Body": "{\"table\":\"t\"}",
        });
        assert_eq!(request.to_json(), expected);
        let empty = HttpRequest { body: Vec::new(), ..request.clone() };
        assert_eq!(empty.to_json().get("Body"), None);
        let headers = vec![("content-type".into(), "application/octet-stream".into())];
        assert_eq!(HttpRequest { headers, body: vec![0, 255], ..request }.to_json()["Body"], "AP8=");
    }

    #[test]
    fn queries_and_keys() {
        let url = "http://h/p?a=1&a=2&b=x%20y+z&c&code=k%3D";
        let expected = [("a", "1,2"), ("b", "x y z"), ("c", ""), ("code", "k=")];
        assert_eq!(query_of(url), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let mut request = HttpRequest { url: url.into(), ..HttpRequest::default() };
        assert_eq!(request.key().as_deref(), Some("k="));
        request.headers.push(("X-Functions-Key".into(), "h".into()));
        assert_eq!(request.key().as_deref(), Some("h"));
        assert_eq!(HttpRequest::default().key(), None);
    }
}
