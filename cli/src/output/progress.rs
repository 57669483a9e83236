//! A progress bar on stderr, only when that is a terminal. The log passes through here, so that its lines do not land
//! in the middle of the bar.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use firn_pass::PassSummary;

const BAR_WIDTH: u64 = 24;
/// Back to the first column and clear the line.
const CLEAR: &[u8] = b"\r\x1b[2K";

/// Shared by the report of a pass and by the log.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// The bar that stands on the terminal now; None while there is none.
    shown: Arc<Mutex<Option<String>>>,
    enabled: bool,
}

impl Progress {
    /// A bar for people who look at it.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { shown: Arc::default(), enabled: wanted && io::stderr().is_terminal() }
    }

    /// Draws the bar anew.
    pub(crate) fn show(&self, summary: &PassSummary) {
        if !self.enabled {
            return;
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bar(summary);
        let _ = write_over(&mut io::stderr().lock(), b"", Some(&bar));
        *shown = Some(bar);
    }

    /// Removes the bar, before the answer is written.
    pub(crate) fn clear(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.take().is_some() {
            let _ = write_over(&mut io::stderr().lock(), b"", None);
        }
    }

    /// A writer for whole lines of the log.
    pub(crate) fn lines(&self) -> LogLines {
        LogLines { progress: self.clone() }
    }
}

/// Writes lines above the bar.
#[derive(Debug)]
pub(crate) struct LogLines {
    progress: Progress,
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = self.progress.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stderr = io::stderr().lock();
        match shown.as_deref() {
            Some(bar) => write_over(&mut stderr, bytes, Some(bar))?,
            None => stderr.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Replaces the current line by `lines` and, below them, the bar.
fn write_over(out: &mut dyn Write, lines: &[u8], bar: Option<&str>) -> io::Result<()> {
    let bytes = [CLEAR, lines, bar.unwrap_or("").as_bytes()].concat();
    out.write_all(&bytes)?;
    out.flush()
}

/// How many of the selected partitions have come to their end.
fn bar(summary: &PassSummary) -> String {
    let ended = summary.done + summary.superseded + summary.failed;
    let total = summary.selected.max(ended);
    let full = (BAR_WIDTH * ended).checked_div(total).unwrap_or(0);
    let filled: String = (0..BAR_WIDTH).map(|cell| if cell < full { '#' } else { '.' }).collect();
    let failed = if summary.failed > 0 { format!(", {} failed", summary.failed) } else { String::new() };
    format!("[{filled}] {ended} of {total} partitions{failed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_how_many_have_ended() {
        let summary = PassSummary { selected: 8, done: 5, failed: 1, ..PassSummary::default() };
        assert_eq!(bar(&summary), "[##################......] 6 of 8 partitions, 1 failed");
        assert_eq!(bar(&PassSummary::default()), "[........................] 0 of 0 partitions");
        let more = PassSummary { selected: 1, done: 2, ..PassSummary::default() };
        assert_eq!(bar(&more), "[########################] 2 of 2 partitions");
    }

    #[test]
    fn log_lines_stand_above_the_bar() {
        let mut out = Vec::new();
        write_over(&mut out, b"a line\n", Some("[##]")).unwrap();
        assert_eq!(out, b"\r\x1b[2Ka line\n[##]");
    }
}
