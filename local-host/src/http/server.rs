//! The host's HTTP server on 127.0.0.1.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::answer::answer_of;
use super::keys::Keys;
use super::request::{HttpRequest, query_of};
use super::route;
use crate::app::{App, AuthLevel, FunctionSpec, OutputKind, Trigger};
use crate::host::functions_of;
use crate::invoke::request::{Payload, system};
use crate::invoke::{Invocation, Invoker, output_value};
use crate::log::Level;
use crate::manual::Manual;

/// The largest body that the real host takes.
const MAX_BODY: usize = 100 << 20;

/// What requests are answered from.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) app: App,
    pub(crate) keys: Keys,
    pub(crate) invoker: Invoker,
    pub(crate) manual: Manual,
    pub(crate) host_id: String,
    /// `http://127.0.0.1:<port>`.
    pub(crate) url: String,
}

/// Answers requests until the task is aborted.
pub(crate) async fn serve(listener: TcpListener, served: Arc<Served>) {
    let log = served.invoker.log.clone();
    let router = Router::new()
        .route("/", get(|| async { "Your Functions host is up and running." }))
        .route("/admin/host/status", get(host_status))
        .route("/admin/functions", get(list))
        .route("/admin/functions/{name}", axum::routing::post(run_now))
        .fallback(function)
        .with_state(served);
    if let Err(error) = axum::serve(listener, router).await {
        log.host(Level::Error, format!("the HTTP server ended: {error}"));
    }
}

type App_ = State<Arc<Served>>;

async fn host_status(State(served): App_, request: Request) -> Response {
    match read(&served, request).await {
        Ok(request) if served.is_admin(&request) => {
            let (state, reason) = match served.invoker.stop.why() {
                None => ("Running", None),
                Some(stopped) => ("Error", Some(stopped.reason)),
            };
            let problems = served.invoker.problems.all();
            json_answer(
                StatusCode::OK,
                &json!({"id": served.host_id, "state": state, "reason": reason, "problems": problems}),
            )
        }
        Ok(_) => StatusCode::UNAUTHORIZED.into_response(),
        Err(answer) => answer,
    }
}

async fn list(State(served): App_, request: Request) -> Response {
    match read(&served, request).await {
        Ok(request) if served.is_admin(&request) => {
            let line = |function: crate::host::FunctionLine| json!({"name": function.name, "trigger": function.trigger, "url": function.url});
            let all: Vec<Value> = functions_of(&served.app, &served.url).into_iter().map(line).collect();
            json_answer(StatusCode::OK, &Value::from(all))
        }
        Ok(_) => StatusCode::UNAUTHORIZED.into_response(),
        Err(answer) => answer,
    }
}

/// `POST /admin/functions/<name>` with `{"input": "text"}`: 202 at once, the function runs in the background. With
/// `?wait=true`, which only the local host knows, the answer is what came of it.
async fn run_now(State(served): App_, Path(name): Path<String>, request: Request) -> Response {
    let request = match read(&served, request).await {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    if !served.is_admin(&request) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let Some(function) = served.app.function(&name).cloned() else { return StatusCode::NOT_FOUND.into_response() };
    let input = match input_of(&request.body) {
        Ok(input) => input,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    let work = {
        let served = served.clone();
        async move { served.manual.invoke(&served.invoker, &function, &input).await }
    };
    if query_of(&request.url).get("wait").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return json_answer(StatusCode::OK, &told(&work.await));
    }
    tokio::spawn(work);
    StatusCode::ACCEPTED.into_response()
}

/// `input` must be a text; an object without it means an empty one.
fn input_of(body: &[u8]) -> Result<String, &'static str> {
    const WANTED: &str = "send a JSON object such as {\"input\": \"text\"}";
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => match object.iter().find(|(key, _)| key.eq_ignore_ascii_case("input")) {
            None | Some((_, Value::Null)) => Ok(String::new()),
            Some((_, Value::String(text))) => Ok(text.clone()),
            Some(_) => Err(WANTED),
        },
        _ => Err(WANTED),
    }
}

/// An invocation in JSON.
fn told(invocation: &Invocation) -> Value {
    let (ok, reason, answer) = match &invocation.result {
        Ok(answer) => (true, None, Some(answer)),
        Err(failure) => (false, Some(failure.to_string()), None),
    };
    json!({
        "ok": ok,
        "function": invocation.function,
        "invocationId": invocation.id.to_string(),
        "reason": reason,
        "outputs": answer.map(|answer| &answer.outputs),
        "returnValue": answer.map(|answer| &answer.return_value),
        "logs": answer.map(|answer| &answer.logs),
    })
}

/// Every other path: an HTTP function, or nothing.
async fn function(State(served): App_, request: Request) -> Response {
    let mut request = match read(&served, request).await {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let path = request.url.strip_prefix(&served.url).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let Some((function, level, params)) = served.find(&path, &request.method) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !served.keys.opens(level, request.key().as_deref()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    request.params = params;
    let invoker = &served.invoker;
    let payload = Payload::http(function.binding(), request.to_json(), system(&function.name, invoker.clock.now()));
    let reason = "This function was programmatically called via the host APIs.";
    let invocation = invoker.invoke(function, Ok(payload), reason).await;
    match &invocation.result {
        // The real host says nothing here; on one's own machine the reason helps.
        Err(failure) => (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()).into_response(),
        Ok(answer) => {
            let output = function.outputs.iter().find(|output| matches!(output.kind, OutputKind::Http));
            render(answer_of(output.and_then(|output| output_value(function, answer, &output.name))))
        }
    }
}

fn render(answer: super::answer::HttpAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    if let Some(kind) = answer.content_type {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn json_answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn read(served: &Served, request: Request) -> Result<HttpRequest, Response> {
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, MAX_BODY).await {
        Ok(body) => body.to_vec(),
        Err(_) => return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Ok(HttpRequest {
        method: parts.method.as_str().to_owned(),
        url: format!("{}{path}", served.url),
        headers: parts.headers.iter().map(header).collect(),
        params: Default::default(),
        body,
    })
}

impl Served {
    fn is_admin(&self, request: &HttpRequest) -> bool {
        self.keys.opens(AuthLevel::Admin, request.key().as_deref())
    }

    fn find(
        &self,
        path: &str,
        method: &str,
    ) -> Option<(&FunctionSpec, AuthLevel, std::collections::BTreeMap<String, String>)> {
        self.app.functions.iter().find_map(|function| {
            let Trigger::Http { auth_level, methods, route, .. } = &function.trigger else { return None };
            let head_of_get = method == Method::HEAD.as_str() && methods.iter().any(|known| known == "GET");
            if !methods.is_empty() && !methods.iter().any(|known| known == method) && !head_of_get {
                return None;
            }
            let params = route::matches(&format!("{}/{route}", self.app.host.route_prefix), path)?;
            Some((function, *auth_level, params))
        })
    }
}
