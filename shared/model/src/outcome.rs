//! How one partition of a pass ended.

use std::fmt;

/// Outcome of one partition. Fixed words: JSON, events and alerts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Merged and committed.
    Done,
    /// Nothing to do; the reason says why.
    Left,
    /// Another run merged the same inputs.
    Superseded,
    /// The state of the commit is not known; nothing was deleted, a later run finds out.
    Unknown,
    /// Conflicts used up, throttled, or a service away: a later run tries again.
    Retry,
    /// Failed; the files stay as they are.
    Failed,
}

impl Outcome {
    /// The word used in JSON and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Left => "left",
            Outcome::Superseded => "superseded",
            Outcome::Unknown => "unknown",
            Outcome::Retry => "retry",
            Outcome::Failed => "failed",
        }
    }

    /// Whether a manual pass with this outcome ends with exit code 1 (design section 9).
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Unknown | Outcome::Retry | Outcome::Failed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
