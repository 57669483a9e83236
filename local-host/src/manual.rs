//! Functions run by hand: what the admin endpoint gives them instead of a message, a time or a request.

use std::collections::HashMap;

use serde_json::Value;

use crate::app::{FunctionSpec, Trigger};
use crate::http::request::HttpRequest;
use crate::invoke::request::{MessageFacts, Payload, system};
use crate::invoke::{Invocation, Invoker};
use crate::queue::payload_of;
use crate::timer::StatusBlob;
use crate::timer::status::TimerStatus;

/// What is needed beside the invoker.
#[derive(Debug, Default)]
pub(crate) struct Manual {
    /// Status blobs of timers by function; none for those that are not remembered.
    pub(crate) statuses: HashMap<String, StatusBlob>,
}

impl Manual {
    /// Runs `function` over `input`: a message that was never in a queue (so nothing is renewed, released or poisoned), a
    /// tick outside the schedule (input ignored, status and lease untouched), or the body of an HTTP request.
    pub(crate) async fn invoke(&self, invoker: &Invoker, function: &FunctionSpec, input: &str) -> Invocation {
        let payload = self.payload(invoker, function, input).await;
        invoker.invoke(function, payload, "This function was programmatically called via the host APIs.").await
    }

    async fn payload(&self, invoker: &Invoker, function: &FunctionSpec, input: &str) -> Result<Payload, String> {
        let (name, now) = (&function.name, invoker.clock.now());
        match &function.trigger {
            Trigger::Queue { binding, binary, .. } => {
                let facts = MessageFacts {
                    id: None,
                    pop_receipt: None,
                    dequeue_count: 0,
                    inserted: now,
                    expires: None,
                    next_visible: None,
                };
                let payload = payload_of(name, binding, *binary, input.as_bytes(), &facts, now)?;
                Ok(payload.with_metadata(binding, Value::from(Value::from(input).to_string())))
            }
            Trigger::Timer { binding, schedule, .. } => {
                let stored = match self.statuses.get(name) {
                    Some(status) => status.read().await.map_err(|error| error.to_string())?,
                    None => None,
                };
                let stored = stored.as_ref().map_or(Value::Null, TimerStatus::to_json);
                Ok(Payload::timer(binding, schedule.adjusts_for_dst(), stored, false, system(name, now)))
            }
            Trigger::Http { binding, methods, route, .. } => {
                let request = HttpRequest {
                    method: methods.first().cloned().unwrap_or_else(|| "POST".into()),
                    url: format!("http://localhost/{route}"),
                    body: input.as_bytes().to_vec(),
                    ..HttpRequest::default()
                };
                Ok(Payload::http(binding, request.to_json(), system(name, now)))
            }
        }
    }
}
