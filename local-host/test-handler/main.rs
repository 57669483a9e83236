//! A custom handler without a will: it asks the test's script (`SCRIPT_URL`) how to start and what to answer.
//!
//! An instruction is a JSON object: `stdout` and `stderr` (lines to print), then `exit` (a code) or `abort`, or `silent` (stay
//! alive and never listen), or `status`, `contentType` and `body` of an answer.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's handler fails loudly")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let script = Script { url: std::env::var("SCRIPT_URL").unwrap(), client: client() };
    let environment: serde_json::Map<String, Value> =
        std::env::vars().map(|(name, value)| (name, value.into())).collect();
    let started = json!({
        "pid": std::process::id(),
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "directory": std::env::current_dir().unwrap(),
        "environment": environment,
    });
    let instruction = script.ask("start", started).await;
    obey(&instruction);
    if instruction["silent"] == true {
        return std::future::pending().await;
    }
    let port: u16 = std::env::var("FUNCTIONS_CUSTOMHANDLER_PORT").unwrap().parse().unwrap();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    axum::serve(listener, Router::new().fallback(answer).with_state(script)).await.unwrap();
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[derive(Clone)]
struct Script {
    url: String,
    client: reqwest::Client,
}

impl Script {
    async fn ask(&self, what: &str, with: Value) -> Value {
        let answer = self.client.post(format!("{}/{what}", self.url)).body(with.to_string()).send().await;
        // The test is over when its script is gone.
        let Ok(answer) = answer else { std::process::exit(1) };
        serde_json::from_slice(&answer.bytes().await.unwrap_or_default()).unwrap_or_else(|_| std::process::exit(1))
    }
}

async fn answer(State(script): State<Script>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if parts.uri.path() == "/" {
        // The readiness probe: any status will do.
        return Response::builder().status(404).body(Body::empty()).unwrap();
    }
    let headers: serde_json::Map<String, Value> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned().into()))
        .collect();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let call = json!({
        "method": parts.method.as_str(),
        "path": parts.uri.to_string(),
        "headers": headers,
        "body": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
        "pid": std::process::id(),
    });
    let instruction = script.ask("call", call).await;
    obey(&instruction);
    let status = instruction["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let mut response = Response::builder().status(status);
    if let Some(kind) = instruction["contentType"].as_str() {
        response = response.header("content-type", kind);
    }
    response.body(Body::from(instruction["body"].as_str().unwrap_or_default().to_owned())).unwrap()
}

fn obey(instruction: &Value) {
    for line in instruction["stdout"].as_array().into_iter().flatten() {
        println!("{}", line.as_str().unwrap_or_default());
    }
    for line in instruction["stderr"].as_array().into_iter().flatten() {
        eprintln!("{}", line.as_str().unwrap_or_default());
    }
    if let Some(code) = instruction["exit"].as_i64().and_then(|code| i32::try_from(code).ok()) {
        std::process::exit(code);
    }
    if instruction["abort"] == true {
        std::process::abort();
    }
}
