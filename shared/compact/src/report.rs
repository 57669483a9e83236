//! What became of one partition.

use firn_model::{LeftReason, Outcome};
use firn_telemetry::{PartitionResult, SidecarCounts};

/// What kind of failure an outcome `failed` is, by what follows from it (design section 4, "Outcomes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Trying again changes nothing: a person must look.
    Permanent,
    /// Other writers changed the partition under the work twice: later it may go well.
    Moving,
    /// A fault of the program or of the machine: panic, failed row proof.
    Fault,
}

/// Figures and outcome of one partition's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionReport {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, for a person.
    pub reason: String,
    /// With outcome `failed`: what kind.
    pub failure: Option<Failure>,
    /// What was left though the rule selected it: the next run would be at the same place again, until the inputs change.
    pub stuck: Option<LeftReason>,
    /// Groups that were selected and not worked on before the deadline.
    pub waiting_groups: usize,
    /// Live data files before.
    pub files_before: u64,
    /// Live data files after.
    pub files_after: u64,
    /// Rows read from replaced files.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
    /// Bytes of replaced files.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Row groups of them that were copied without decoding.
    pub row_groups_copied: u64,
    /// Encoded bytes of those.
    pub bytes_copied: u64,
    /// The last snapshot committed for it.
    pub snapshot_id: Option<i64>,
    /// Commit conflicts met.
    pub conflicts: u32,
    /// Commits sent.
    pub tries: u32,
    /// Sidecars of what was written; None when the dataset asks for none.
    pub sidecars: Option<SidecarCounts>,
}

impl PartitionReport {
    /// A report without work done.
    pub fn idle(outcome: Outcome, reason: impl Into<String>, files: u64) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            failure: None,
            stuck: None,
            waiting_groups: 0,
            files_before: files,
            files_after: files,
            rows_in: 0,
            rows_out: 0,
            duplicates_dropped: 0,
            bytes_in: 0,
            bytes_out: 0,
            row_groups_copied: 0,
            bytes_copied: 0,
            snapshot_id: None,
            conflicts: 0,
            tries: 0,
            sidecars: None,
        }
    }

    /// Left for a reason that is no failure.
    pub fn left(reason: &LeftReason, files: u64) -> Self {
        Self::idle(Outcome::Left, reason.to_string(), files)
    }

    /// Ends as failed.
    pub(crate) fn fail(&mut self, failure: Failure, reason: impl Into<String>) {
        self.end(Outcome::Failed, reason);
        self.failure = Some(failure);
    }

    /// Ends with this outcome; the figures stay.
    pub(crate) fn end(&mut self, outcome: Outcome, reason: impl Into<String>) {
        self.outcome = outcome;
        self.reason = reason.into();
    }

    /// Adds a committed group.
    pub fn add(&mut self, group: &GroupReport) {
        self.files_after = (self.files_after + group.files_out).saturating_sub(group.files_in);
        self.rows_in += group.rows_in;
        self.rows_out += group.rows_out;
        self.duplicates_dropped += group.duplicates_dropped;
        self.bytes_in += group.bytes_in;
        self.bytes_out += group.bytes_out;
        self.row_groups_copied += group.row_groups_copied;
        self.bytes_copied += group.bytes_copied;
        self.snapshot_id = Some(group.snapshot_id);
        self.conflicts += group.conflicts;
        self.tries += group.tries;
        if let Some(sidecars) = &group.sidecars {
            self.sidecars.get_or_insert_default().add(sidecars);
        }
    }
}

impl From<&PartitionReport> for PartitionResult {
    fn from(report: &PartitionReport) -> Self {
        Self {
            files_before: report.files_before,
            files_after: report.files_after,
            rows_in: report.rows_in,
            rows_out: report.rows_out,
            duplicates_dropped: report.duplicates_dropped,
            bytes_in: report.bytes_in,
            bytes_out: report.bytes_out,
            row_groups_copied: report.row_groups_copied,
            bytes_copied: report.bytes_copied,
            conflicts: u64::from(report.conflicts),
            tries: u64::from(report.tries),
            snapshot_id: report.snapshot_id,
            sidecars: report.sidecars.clone(),
            ..Self::new(report.outcome, report.reason.clone())
        }
    }
}

/// Figures of one committed group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// Files replaced.
    pub files_in: u64,
    /// Files written.
    pub files_out: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows that dedup dropped.
    pub duplicates_dropped: u64,
    /// Bytes replaced.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Row groups of them that were copied without decoding.
    pub row_groups_copied: u64,
    /// Encoded bytes of those.
    pub bytes_copied: u64,
    /// The snapshot.
    pub snapshot_id: i64,
    /// Conflicts met.
    pub conflicts: u32,
    /// Commits sent.
    pub tries: u32,
    /// Sidecars of what was written; None when the dataset asks for none.
    pub sidecars: Option<SidecarCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_add_up() {
        let group = GroupReport {
            files_in: 5,
            files_out: 2,
            rows_in: 50,
            rows_out: 48,
            duplicates_dropped: 2,
            bytes_in: 500,
            bytes_out: 300,
            row_groups_copied: 3,
            bytes_copied: 200,
            snapshot_id: 7,
            conflicts: 1,
            tries: 2,
            sidecars: Some(SidecarCounts { written: 3, reasons: vec!["a".into()], ..SidecarCounts::default() }),
        };
        let mut report = PartitionReport::idle(Outcome::Done, "10 small files", 10);
        report.add(&group);
        let reasons = vec!["a".into(), "b".into()];
        let sidecars = SidecarCounts { written: 2, dropped: 1, reasons, ..SidecarCounts::default() };
        report.add(&GroupReport { snapshot_id: 9, sidecars: Some(sidecars), ..group });
        let sidecars = report.sidecars.as_ref().unwrap();
        assert_eq!((sidecars.written, sidecars.dropped), (5, 1));
        assert_eq!(sidecars.reasons, ["a", "b"]);
        assert_eq!((report.files_before, report.files_after), (10, 4));
        assert_eq!((report.rows_in, report.rows_out, report.duplicates_dropped), (100, 96, 4));
        assert_eq!((report.row_groups_copied, report.bytes_copied), (6, 400));
        assert_eq!((report.snapshot_id, report.conflicts, report.tries), (Some(9), 2, 4));
    }
}
