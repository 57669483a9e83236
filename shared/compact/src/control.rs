//! What a run of one partition is told from outside, and what it tells on its way.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use firn_columnar::StopFlag;
use firn_table::LoadedTable;

use crate::services::Services;
use crate::turns::CommitTurns;

/// The steps of one message, in order; those from [`Step::Merging`] to [`Step::Committed`] repeat for each group. Numbers are part of
/// records, logs and the kill points of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The record is under lease and counts this start.
    Leased,
    /// The table was loaded and the partition's files are known.
    Loaded {
        /// Hash of what there is to merge (see [`crate::naming::facts_hash`]).
        inputs_hash: String,
    },
    /// A group is being merged and uploaded.
    Merging(GroupPlace),
    /// The outputs of a group are in the store.
    Uploaded(GroupPlace),
    /// The commit of a group is being sent.
    Committing(GroupPlace),
    /// The commit of a group is in the table.
    Committed(GroupPlace),
    /// The record says how the work ended.
    OutcomeWritten,
    /// The message for what is left was sent.
    MessageSent,
}

/// Which group of a partition: `3 (20 files)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlace {
    /// Counted from 1 in the order of work.
    pub number: usize,
    /// Its input files.
    pub files: usize,
}

impl Step {
    /// The number.
    pub fn number(&self) -> u32 {
        match self {
            Step::Leased => 1,
            Step::Loaded { .. } => 2,
            Step::Merging(_) => 3,
            Step::Uploaded(_) => 4,
            Step::Committing(_) => 5,
            Step::Committed(_) => 6,
            Step::OutcomeWritten => 7,
            Step::MessageSent => 8,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.number())?;
        let (word, place) = match self {
            Step::Leased => ("leased", None),
            Step::Loaded { .. } => ("loaded", None),
            Step::Merging(place) => ("merging", Some(place)),
            Step::Uploaded(place) => ("uploaded", Some(place)),
            Step::Committing(place) => ("committing", Some(place)),
            Step::Committed(place) => ("committed", Some(place)),
            Step::OutcomeWritten => ("outcome written", None),
            Step::MessageSent => ("message sent", None),
        };
        f.write_str(word)?;
        match place {
            Some(GroupPlace { number, files }) => write!(f, ", group {number} ({files} files)"),
            None => Ok(()),
        }
    }
}

/// Hears of each step before its work begins.
#[async_trait]
pub trait StepSink: Send + Sync + Debug {
    /// The work of `step` begins when this returns.
    ///
    /// # Errors
    /// A sentence that says why the run must end here; nothing more is written or committed by it.
    async fn step(&self, step: Step) -> Result<(), String>;

    /// Outputs that are in the store and for certain in no table, now or later: orphan cleanup need not wait to see them twice. Never
    /// called when nobody knows what became of a commit.
    async fn abandoned(&self, _outputs: Abandoned<'_>) {}
}

/// Outputs of a group that was not committed.
#[derive(Debug, Clone, Copy)]
pub struct Abandoned<'a> {
    /// The table that they were for.
    pub table: &'a LoadedTable,
    /// Their paths.
    pub paths: &'a [String],
    /// Why it was not committed.
    pub reason: &'a str,
}

/// For runs that keep no record.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecord;

#[async_trait]
impl StepSink for NoRecord {
    async fn step(&self, step: Step) -> Result<(), String> {
        tracing::debug!(%step, "step");
        Ok(())
    }
}

/// What one run of a partition is told, beside the services that all runs share.
#[derive(Debug, Clone)]
pub struct RunControl {
    /// Ends this run at once: merges end at their next window, nothing is committed after that.
    pub stop: StopFlag,
    /// From here on no group is started and a merge in work ends; what is merged is still committed, the rest is for another run.
    pub deadline: Option<Instant>,
    /// Input bytes after which no further group is started, but for the first: the rest is for another run. None: all of them.
    pub bytes: Option<u64>,
    /// Hears of the steps.
    pub steps: Arc<dyn StepSink>,
    /// Commits of one table take turns; None: they do not.
    pub turns: Option<Arc<dyn CommitTurns>>,
}

impl RunControl {
    /// For a run that keeps no record and ends only with the process.
    pub fn unwatched(services: &Services) -> Self {
        Self { stop: services.stop.clone(), deadline: None, bytes: None, steps: Arc::new(NoRecord), turns: None }
    }

    /// Whether the deadline has passed.
    pub fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether a group of `bytes` is too much for a run that has replaced `replaced` bytes already.
    pub(crate) fn is_past_budget(&self, replaced: u64, bytes: u64) -> bool {
        replaced > 0 && self.bytes.is_some_and(|budget| replaced.saturating_add(bytes) > budget)
    }

    /// The flag that ends a merge.
    pub(crate) fn merge_stop(&self) -> StopFlag {
        match self.deadline {
            Some(deadline) => self.stop.clone().until(deadline),
            None => self.stop.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_as_number_and_name() {
        let place = GroupPlace { number: 2, files: 20 };
        let steps = [
            Step::Leased,
            Step::Loaded { inputs_hash: "ab".into() },
            Step::Merging(place),
            Step::Uploaded(place),
            Step::Committing(place),
            Step::Committed(place),
            Step::OutcomeWritten,
            Step::MessageSent,
        ];
        let texts: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "1 leased",
                "2 loaded",
                "3 merging, group 2 (20 files)",
                "4 uploaded, group 2 (20 files)",
                "5 committing, group 2 (20 files)",
                "6 committed, group 2 (20 files)",
                "7 outcome written",
                "8 message sent"
            ]
        );
    }
}
