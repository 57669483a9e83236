//! What goes back to the host.
//!
//! An answer is never empty: a host that gets a 2xx without a body waits until `functionTimeout` and then kills the process.
//! Lines in `Logs` reach the log only with a 2xx, so those of a fault are written by the server as well.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The host shall deliver the message again, or count the run as failed: status 500. Else 200, and the message is gone.
    pub fault: bool,
    /// Lines for the log of this invocation.
    pub logs: Vec<String>,
    /// What came of it.
    pub value: Value,
    /// Values for output bindings by name.
    pub outputs: Value,
}

impl Answer {
    /// It went through; the message is gone.
    pub fn done(value: Value) -> Self {
        Self { fault: false, logs: Vec::new(), value, outputs: json!({}) }
    }

    /// It did not.
    pub fn fault(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            fault: true,
            logs: vec![reason.clone()],
            value: json!({ "outcome": "failed", "reason": reason }),
            outputs: json!({}),
        }
    }

    /// The answer to somebody's HTTP request, by the output binding `response` of the function's `function.json`. The host
    /// takes it only from an invocation that went through, so a problem is told by `status` inside it.
    pub fn http(status: StatusCode, body: Value) -> Self {
        let response = json!({
            "statusCode": status.as_u16(),
            "headers": { "content-type": "application/json", "cache-control": "no-store" },
            "body": body,
        });
        Self { outputs: json!({ "response": response }), ..Self::done(Value::Null) }
    }

    /// With a line for the log.
    #[must_use]
    pub fn log(mut self, line: impl Into<String>) -> Self {
        self.logs.push(line.into());
        self
    }

    /// The response to the host.
    pub fn into_response(self) -> Response<Body> {
        let status = if self.fault { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        respond(status, &self.logs, self.value, self.outputs)
    }
}

/// A request that is none of the host's.
pub(crate) fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    respond(status, &[reason.to_owned()], Value::Null, json!({}))
}

fn respond(status: StatusCode, logs: &[String], value: Value, outputs: Value) -> Response<Body> {
    let body = json!({ "Outputs": outputs, "Logs": logs, "ReturnValue": value });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
