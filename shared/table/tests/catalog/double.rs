//! A server that answers as a test says and keeps what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use serde_json::Value;

/// One request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// With the query.
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The answer to a request, given those before it.
pub type Script = dyn Fn(&Seen, &[Seen]) -> (u16, Value) + Send + Sync;

/// A running server on 127.0.0.1; it ends with the test's runtime.
pub struct Double {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Double {
    pub async fn start(script: impl Fn(&Seen, &[Seen]) -> (u16, Value) + Send + Sync + 'static) -> Double {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (script, kept): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let answer = move |request: Request<Body>| {
            let (script, kept) = (Arc::clone(&script), Arc::clone(&kept));
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
                let request = Seen {
                    method: parts.method.to_string(),
                    path: parts.uri.path_and_query().unwrap().to_string(),
                    headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
                    body: String::from_utf8_lossy(&body).into_owned(),
                };
                let mut kept = kept.lock().unwrap();
                let (status, answer) = script(&request, &kept);
                kept.push(request);
                let body = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
                Response::builder().status(status).body(Body::from(body)).unwrap()
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
        Double { port, seen }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests with this method and path.
    pub fn count(&self, method: &str, path: &str) -> usize {
        self.seen().iter().filter(|seen| seen.is(method, path)).count()
    }
}
