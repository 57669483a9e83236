//! What the host logs: its own lines, the handler's output, the `Logs` of answers.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// Category of the handler's stdout and stderr.
pub const CONSOLE: &str = "Host.Function.Console";
/// Category of the host's own lines about the handler and the app.
pub const HOST: &str = "Host.General";

/// Weight of a line, with the real host's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For who looks closely.
    Debug,
    /// What happens.
    Information,
    /// Something a person may want to look at.
    Warning,
    /// Something went wrong.
    Error,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Weight.
    pub level: Level,
    /// `Host.Function.Console`, `Function.<name>`, `Host.…`.
    pub category: String,
    /// The invocation that it belongs to. The handler's own output belongs to none, as in Azure.
    pub invocation: Option<Uuid>,
    /// The text.
    pub message: String,
}

/// Where lines go.
pub trait LogSink: Send + Sync + Debug {
    /// Takes a line. Must not wait.
    fn write(&self, line: LogLine);
}

/// Lines become `tracing` events of target `firn_local_host`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingLog;

impl LogSink for TracingLog {
    fn write(&self, line: LogLine) {
        let LogLine { level, category, invocation, message } = line;
        let invocation = invocation.map(|id| format!(" [{id}]")).unwrap_or_default();
        match level {
            Level::Debug => tracing::debug!("{category}{invocation}: {message}"),
            Level::Information => tracing::info!("{category}{invocation}: {message}"),
            Level::Warning => tracing::warn!("{category}{invocation}: {message}"),
            Level::Error => tracing::error!("{category}{invocation}: {message}"),
        }
    }
}

/// Keeps every line, for tests. Clones share the lines.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    lines: Arc<Mutex<Vec<LogLine>>>,
}

impl MemoryLog {
    /// All lines so far.
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines whose message holds `part`.
    pub fn with(&self, part: &str) -> Vec<LogLine> {
        let mut lines = self.lines();
        lines.retain(|line| line.message.contains(part));
        lines
    }
}

impl LogSink for MemoryLog {
    fn write(&self, line: LogLine) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// Writes lines of one category.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    sink: Arc<dyn LogSink>,
}

impl Log {
    pub(crate) fn new(sink: Arc<dyn LogSink>) -> Self {
        Self { sink }
    }

    pub(crate) fn host(&self, level: Level, message: impl Into<String>) {
        self.write(level, HOST, None, message);
    }

    pub(crate) fn write(&self, level: Level, category: &str, invocation: Option<Uuid>, message: impl Into<String>) {
        self.sink.write(LogLine { level, category: category.to_owned(), invocation, message: message.into() });
    }

    /// Logs in the category of a function.
    pub(crate) fn function(&self, level: Level, function: &str, invocation: Option<Uuid>, message: impl Into<String>) {
        self.write(level, &format!("Function.{function}"), invocation, message);
    }
}
