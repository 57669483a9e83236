//! What a sweep says of each file to whoever asked.

use chrono::{DateTime, Utc};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// The dataset.
    pub dataset: String,
    /// The file, as the table would name it.
    pub path: String,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// How old it is; None without a usable time.
    pub age_hours: Option<i64>,
    /// Its bytes.
    pub bytes: u64,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A dry run would have it deleted.
    Delete,
    /// It was deleted.
    Deleted,
    /// It stays.
    Keep,
}

impl Verdict {
    /// The word of answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Delete => "delete",
            Verdict::Deleted => "deleted",
            Verdict::Keep => "keep",
        }
    }
}

/// Who hears of files.
pub trait SweepReport: Send {
    /// Whether files that stay are of interest, other than those that the table refers to. They cost a second listing.
    fn wants_kept(&self) -> bool {
        true
    }

    /// One file that the table does not refer to.
    fn file(&mut self, line: &FileLine);
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unheard;

impl SweepReport for Unheard {
    fn wants_kept(&self) -> bool {
        false
    }

    fn file(&mut self, _: &FileLine) {}
}

/// Whole hours from one time to another.
pub fn age_hours(modified: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    (now - modified).num_hours()
}
