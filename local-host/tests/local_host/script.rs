//! The will of the scripted handler: a server in the test's process that it asks.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use futures::future::BoxFuture;
use serde_json::{Value, json};

type OnStart = dyn Fn(usize) -> BoxFuture<'static, Value> + Send + Sync;
type OnCall = dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync;

/// A running script. Dropping it ends its server.
pub(crate) struct Script {
    shared: Arc<Shared>,
    pub(crate) url: String,
    server: tokio::task::JoinHandle<()>,
}

struct Shared {
    starts: Mutex<Vec<Value>>,
    calls: Mutex<Vec<Value>>,
    on_start: Box<OnStart>,
    on_call: Box<OnCall>,
}

/// An answer that the host takes.
pub(crate) fn good(body: Value) -> Value {
    json!({"status": 200, "contentType": "application/json", "body": body.to_string()})
}

/// An answer with a status and a JSON type.
pub(crate) fn raw(status: u16, body: &str) -> Value {
    json!({"status": status, "contentType": "application/json; charset=utf-8", "body": body})
}

/// A future that is there already.
pub(crate) fn now(value: Value) -> BoxFuture<'static, Value> {
    Box::pin(std::future::ready(value))
}

impl Script {
    /// `on_start` gets the number of the process, from 1 on; `on_call` the call.
    pub(crate) async fn new(
        on_start: impl Fn(usize) -> BoxFuture<'static, Value> + Send + Sync + 'static,
        on_call: impl Fn(Value) -> BoxFuture<'static, Value> + Send + Sync + 'static,
    ) -> Script {
        let shared = Arc::new(Shared {
            starts: Mutex::default(),
            calls: Mutex::default(),
            on_start: Box::new(on_start),
            on_call: Box::new(on_call),
        });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Script { shared, url, server }
    }

    /// Starts at once and answers every call with `answer`.
    pub(crate) async fn answering(answer: Value) -> Script {
        Self::calls_with(move |_| now(answer.clone())).await
    }

    /// Starts at once.
    pub(crate) async fn calls_with(
        on_call: impl Fn(Value) -> BoxFuture<'static, Value> + Send + Sync + 'static,
    ) -> Script {
        Self::new(|_| now(json!({})), on_call).await
    }

    /// What processes said when they started.
    pub(crate) fn starts(&self) -> Vec<Value> {
        self.shared.starts.lock().unwrap().clone()
    }

    /// All calls so far, those that are not answered yet too.
    pub(crate) fn calls(&self) -> Vec<Value> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// The bodies of all calls.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.calls().into_iter().map(|mut call| call["body"].take()).collect()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> String {
    let (parts, body) = request.into_parts();
    let said: Value = serde_json::from_slice(&to_bytes(Body::new(body), usize::MAX).await.unwrap()).unwrap();
    let instruction = if parts.uri.path() == "/start" {
        let number = {
            let mut starts = shared.starts.lock().unwrap();
            starts.push(said);
            starts.len()
        };
        (shared.on_start)(number).await
    } else {
        shared.calls.lock().unwrap().push(said.clone());
        (shared.on_call)(said).await
    };
    instruction.to_string()
}
