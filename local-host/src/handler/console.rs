//! The handler's stdout and stderr as the host logs them: line by line, tied to no invocation.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::log::{CONSOLE, Level, Log};

/// Lines with this prefix go to a log that users do not see.
const SYSTEM_PREFIX: &str = "LanguageWorkerConsoleLog";
/// Lines of stderr that are quoted when the process ends.
const QUOTED: usize = 3;

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The level that a line is logged at; None for a line that is hidden from the user.
pub fn level_of(stream: Stream, line: &str) -> Option<Level> {
    if line.starts_with(SYSTEM_PREFIX) {
        return None;
    }
    match stream {
        Stream::Stdout => Some(Level::Information),
        Stream::Stderr if line.to_ascii_lowercase().contains("warn") => Some(Level::Warning),
        Stream::Stderr => Some(Level::Error),
    }
}

/// The last lines of stderr.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == QUOTED {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

/// Logs a stream until it ends, on a thread of its own.
pub(super) fn follow(
    stream: Stream,
    source: impl Read + Send + 'static,
    log: Log,
    last: LastLines,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("handler-output".into()).spawn(move || {
        let mut source = BufReader::new(source);
        let mut bytes = Vec::new();
        while source.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(level) = level_of(stream, line) {
                log.write(level, CONSOLE, None, line);
            }
            if stream == Stream::Stderr {
                last.push(line);
            }
            bytes.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        for (stream, line, level) in [
            (Stream::Stdout, "{\"event\":\"merged\"}", Some(Level::Information)),
            (Stream::Stdout, "a warning on stdout", Some(Level::Information)),
            (Stream::Stderr, "thread panicked", Some(Level::Error)),
            (Stream::Stderr, "some WARNing", Some(Level::Warning)),
            (Stream::Stderr, "LanguageWorkerConsoleLog hidden", None),
            (Stream::Stdout, "LanguageWorkerConsoleLog hidden", None),
        ] {
            assert_eq!(level_of(stream, line), level, "{stream:?} {line}");
        }
    }
}
