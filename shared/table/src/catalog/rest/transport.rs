//! Requests over HTTP, each sent once; a failure says whether it can have arrived.

use std::time::Duration;

use bytes::Bytes;
use firn_config::Secret;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder};

use super::answer::retry_after;
use crate::error::Source;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A commit of a table with much history takes a server a while; an answer that comes later is a lost one.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum TransportError {
    /// There was no connection, so nothing was sent.
    NotSent(Source),
    /// It may have arrived.
    Lost(Source),
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    /// The wait that the server asks for.
    pub(super) retry_after: Option<Duration>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) token: Option<&'a Secret>,
    pub(super) headers: &'a HeaderMap,
    /// JSON.
    pub(super) body: Option<Bytes>,
}

/// Connections to one server.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    client: Client,
}

impl Transport {
    /// Nothing is sent yet. `loopback`: the server is on this machine, and no proxy stands before it.
    pub(super) fn new(loopback: bool) -> Result<Self, Source> {
        // One TLS provider in the process. An error says that another part has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .timeout(ANSWER_LIMIT)
            .user_agent(concat!("firn/", env!("CARGO_PKG_VERSION")))
            // Following would carry the token along.
            .redirect(reqwest::redirect::Policy::none());
        if loopback {
            builder = builder.no_proxy();
        }
        Ok(Self { client: builder.build()? })
    }

    pub(super) async fn send(&self, request: &Request<'_>) -> Result<Answer, TransportError> {
        let mut builder = self.client.request(request.method.clone(), request.url).headers(request.headers.clone());
        if let Some(token) = request.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| TransportError::NotSent("the token has characters that no header can carry".into()))?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        answered(builder).await
    }

    pub(super) async fn post_form(&self, url: &str, form: String) -> Result<Answer, TransportError> {
        answered(self.client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)).await
    }
}

async fn answered(builder: RequestBuilder) -> Result<Answer, TransportError> {
    // The address is in the message of whoever asked; here it could hold a secret of the query.
    let failed = |error: reqwest::Error| {
        let error = error.without_url();
        match error.is_connect() || error.is_builder() {
            true => TransportError::NotSent(chain(&error).into()),
            false => TransportError::Lost(chain(&error).into()),
        }
    };
    let response = builder.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()));
    // A status without its body says what it says, but the body of a success is part of the answer.
    match response.bytes().await {
        Ok(body) => Ok(Answer { status, body, retry_after }),
        Err(_) if status >= 300 => Ok(Answer { status, body: Bytes::new(), retry_after }),
        Err(error) => Err(TransportError::Lost(chain(&error.without_url()).into())),
    }
}

/// An error with its causes, which say more than it does.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Headers by name and value; a pair that no header can be is named.
pub(super) fn headers(pairs: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let key: HeaderName = name.parse().map_err(|_| format!("`{name}` is not the name of a header"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| format!("header `{name}` has a value that cannot be sent"))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// Whether an address is on this machine.
pub(super) fn is_loopback(uri: &str) -> bool {
    let host = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let host = host.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    // What stands before `@` is a login, not the host.
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
    matches!(name, Some("127.0.0.1" | "localhost" | "[::1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for (uri, expected) in [
            ("http://127.0.0.1:8181/api", true),
            ("http://localhost", true),
            ("http://[::1]:80/", true),
            ("http://u:p@localhost:1/x", true),
            ("http://localhost:1@example.com/", false),
            ("http://127.0.0.1.example.com", false),
            ("http://catalog?localhost", false),
        ] {
            assert_eq!(is_loopback(uri), expected, "{uri}");
        }
    }
}
