//! The HTTP side: readiness, dispatch, and one task per invocation.

use std::fmt::Debug;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::answer::{Answer, refusal};
use crate::function::Function;
use crate::invocation::Invocation;

const INVOCATION_ID: &str = "x-azure-functions-invocationid";
/// A message has at most 64 KB; an HTTP request to `status` may be larger, but nobody reads it.
const BODY_LIMIT: usize = 1 << 20;

/// What answers invocations.
#[async_trait]
pub trait Functions: Send + Sync + Debug {
    /// Runs a function once. Several may run at the same time.
    async fn run(&self, function: Function, invocation: Invocation) -> Answer;
}

/// Binds the port that the host chose. Only this machine can reach it: a request's headers are no proof that it comes from
/// the host.
///
/// # Errors
/// The port is taken.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Answers requests until the process ends.
///
/// # Errors
/// What ended it: nothing does on purpose.
pub async fn serve(listener: TcpListener, functions: Arc<dyn Functions>) -> io::Result<()> {
    axum::serve(listener, router(functions)).await
}

fn router(functions: Arc<dyn Functions>) -> Router {
    Router::new()
        .route("/", get(ready))
        .route("/{function}", post(invoke))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(functions)
}

/// The host asks until it gets any answer, and later for its health.
async fn ready() -> Response<Body> {
    Answer::done(Value::String("ready".into())).into_response()
}

async fn unknown() -> Response<Body> {
    refusal(
        StatusCode::NOT_FOUND,
        "no such function: the host posts to /plan, /compact, /compact-poison, /expire-snapshots, /clean-orphans and /status",
    )
}

/// An answer without a body would leave the host waiting.
async fn wrong_method() -> Response<Body> {
    refusal(StatusCode::METHOD_NOT_ALLOWED, "the host posts to functions, and only asks GET /")
}

async fn invoke(
    State(functions): State<Arc<dyn Functions>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let Some(function) = Function::of(&name) else { return unknown().await };
    let id = headers.get(INVOCATION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
    let body = match to_bytes(body, BODY_LIMIT).await {
        Ok(body) => body,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, &format!("the body cannot be read: {error}")),
    };
    let invocation = match Invocation::parse(id.clone(), &body) {
        Ok(invocation) => invocation,
        Err(reason) => {
            tracing::error!(function = name, invocation = id, "{reason}");
            return refusal(StatusCode::BAD_REQUEST, &reason);
        }
    };
    let answer = run(functions, function, invocation).await;
    if answer.fault {
        // The host shows neither body nor logs of a fault.
        for line in &answer.logs {
            tracing::error!(function = name, invocation = id, "{line}");
        }
    }
    answer.into_response()
}

/// Runs on a task of its own: a panic ends this invocation alone, and a host that hangs up does not stop the work half way.
async fn run(functions: Arc<dyn Functions>, function: Function, invocation: Invocation) -> Answer {
    let task = tokio::spawn(async move { functions.run(function, invocation).await });
    match task.await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => Answer::fault("internal error: the invocation panicked; please report it"),
        Err(_) => Answer::fault("the invocation was stopped"),
    }
}
