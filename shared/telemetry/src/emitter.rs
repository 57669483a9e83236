//! Writes events, one line each.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{SecondsFormat, Utc};
use serde::Serialize;

use crate::event::Event;

/// Where events go. Clones share one lock, so lines never mix.
#[derive(Clone)]
pub struct Emitter {
    sink: Arc<Mutex<Box<dyn Write + Send>>>,
}

impl Emitter {
    /// For commands: stdout belongs to their answer.
    pub fn stderr() -> Self {
        Self::to(std::io::stderr())
    }

    /// For the handler and the long-running compactor, whose stdout the host carries on.
    pub fn stdout() -> Self {
        Self::to(std::io::stdout())
    }

    /// To any writer.
    pub fn to(sink: impl Write + Send + 'static) -> Self {
        Self { sink: Arc::new(Mutex::new(Box::new(sink))) }
    }

    /// Writes one event as one line. An event that cannot be written is dropped: work on data never stops because
    /// nobody listens.
    pub fn emit<E: Event>(&self, event: &E) {
        let line = Line {
            event: E::NAME,
            outcome: event.outcome(),
            time: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            fields: event,
        };
        let Ok(mut bytes) = serde_json::to_vec(&line) else { return };
        bytes.push(b'\n');
        // A panic while another thread held the lock leaves a whole line behind: each is written in one call.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sink.write_all(&bytes).and_then(|()| sink.flush());
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").finish_non_exhaustive()
    }
}

/// The line: first what every event has, then its own fields.
#[derive(Serialize)]
struct Line<'a, E> {
    event: &'static str,
    outcome: &'static str,
    time: String,
    #[serde(flatten)]
    fields: &'a E,
}
