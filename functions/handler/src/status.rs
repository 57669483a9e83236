//! `status`, by HTTP with a function key: ticks, in-flight and parked partitions, and the depth of the queue and of its poison queue as
//! JSON.

use axum::http::StatusCode;
use chrono::SecondsFormat;
use firn_compact::HostServices;
use firn_state::{COMPACT_TICKS, Document, Listed, StateError};
use firn_storage::{Queue, QueueError};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::answer::Answer;

/// Records shown; the counts are of all.
const SHOWN: usize = 500;
/// Records read at the same time.
const READS: usize = 16;

/// Answers with what is known.
pub async fn run(services: &HostServices) -> Answer {
    match collect(services).await {
        Ok(status) => Answer::http(StatusCode::OK, status),
        Err(reason) => unavailable(&reason),
    }
}

/// The answer when nothing can be known.
pub(crate) fn unavailable(reason: &str) -> Answer {
    Answer::http(StatusCode::SERVICE_UNAVAILABLE, json!({ "ok": false, "reason": reason })).log(reason)
}

async fn collect(services: &HostServices) -> Result<Value, String> {
    let said = |error: StateError| error.to_string();
    let state = &services.state;
    let tick = state.read(&state.root().tick(COMPACT_TICKS)).await.map_err(said)?;
    let inflight = state.list_inflight(None).await.map_err(said)?;
    let parked = state.list_parked().await.map_err(said)?;
    let (queue, poison) = tokio::join!(depth(&*services.queue), depth(&*services.poison));
    Ok(json!({
        "ok": true,
        "version": env!("CARGO_PKG_VERSION"),
        "time": services.clock.now().to_rfc3339_opts(SecondsFormat::Secs, true),
        "tick": tick.map(|read| shown(&read.value)),
        "queue": queue?,
        "poison": poison?,
        "inflight": { "count": inflight.len(), "records": records(services, &inflight).await.map_err(said)? },
        "parked": { "count": parked.len(), "records": records(services, &parked).await.map_err(said)? },
    }))
}

/// A queue with its messages, hidden ones included. One that is not there has none: the host creates the poison queue when it needs it.
async fn depth(queue: &dyn Queue) -> Result<Value, String> {
    let length = match queue.length().await {
        Err(QueueError::NotFound { .. }) => 0,
        counted => counted.map_err(|error| error.to_string())?,
    };
    Ok(json!({ "name": queue.name(), "length": length }))
}

/// The first of the listed documents, each with its name. One that cannot be read is shown with the reason.
async fn records<T: Document + Clone>(services: &HostServices, listed: &[Listed<T>]) -> Result<Vec<Value>, StateError> {
    let read = |listed: Listed<T>| async move {
        let name = listed.address.name().to_owned();
        let mut record = match services.state.read_listed(&listed).await {
            Ok(Some(read)) => shown(&read.value),
            // Done since it was listed.
            Ok(None) => return Ok(None),
            Err(error @ (StateError::Newer { .. } | StateError::Unreadable { .. })) => {
                json!({ "unreadable": error.to_string() })
            }
            Err(error) => return Err(error),
        };
        record["id"] = name.into();
        Ok(Some(record))
    };
    let first: Vec<Listed<T>> = listed.iter().take(SHOWN).cloned().collect();
    let read: Vec<Option<Value>> = stream::iter(first).map(read).buffered(READS).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}

/// A document as JSON, without the text of messages: it may hold what is nobody's business here.
fn shown<T: Document>(document: &T) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.remove("body");
    }
    match value {
        Value::Object(_) => value,
        other => json!({ "value": other }),
    }
}
