//! What a command answers on stdout: JSON lines for programs, tables for people.

pub(crate) mod enqueued;
pub(crate) mod explained;
pub(crate) mod json;
pub(crate) mod maintained;
pub(crate) mod progress;
pub(crate) mod stdout;
pub(crate) mod table;
pub(crate) mod text;

use std::io::Write;

use firn_pass::{
    FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, Report, RequeueSummary, RequeuedEntry,
    VerifyCheck,
};

use crate::args::Format;
use crate::output::json::JsonLines;
use crate::output::progress::Progress;
use crate::output::text::Tables;

/// How the message of a check begins that is well and that a person should know of all the same.
pub(crate) const WARNING: &str = "warning: ";

/// Answers in the format that was asked for, and keeps count for the case that the pass never comes to its end.
pub(crate) struct Answer {
    style: Style,
    dry_run: bool,
    counted: PassSummary,
    progress: Progress,
}

enum Style {
    Json(JsonLines),
    Text(Box<Tables>),
}

impl Answer {
    pub(crate) fn new(format: Format, out: impl Write + Send + 'static, dry_run: bool, progress: Progress) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        let style = match format {
            Format::Json => Style::Json(JsonLines::new(out)),
            Format::Text => Style::Text(Box::new(Tables::new(out))),
        };
        Self { style, dry_run, counted: PassSummary::default(), progress }
    }

    /// What was counted so far.
    pub(crate) fn counted(&self) -> &PassSummary {
        &self.counted
    }

    /// The end of a pass with what the counts do not say; `error` when it did not come to its end by itself.
    pub(crate) fn pass_ended(&mut self, summary: &PassSummary, remarks: &[String], error: Option<&PassError>) {
        self.progress.clear();
        match &mut self.style {
            Style::Json(lines) => lines.pass_ended(summary, self.dry_run, remarks, error),
            Style::Text(tables) => tables.pass_ended(summary, self.dry_run, remarks, error.is_none()),
        }
    }

    pub(crate) fn checked(&mut self, check: &VerifyCheck) {
        match &mut self.style {
            Style::Json(lines) => lines.checked(check),
            Style::Text(tables) => tables.checked(check),
        }
    }

    pub(crate) fn requeued(&mut self, entry: &RequeuedEntry) {
        match &mut self.style {
            Style::Json(lines) => lines.requeued(entry),
            Style::Text(tables) => tables.requeued(entry),
        }
    }

    pub(crate) fn requeue_ended(&mut self, result: &Result<RequeueSummary, PassError>) {
        match &mut self.style {
            Style::Json(lines) => lines.requeue_ended(result),
            Style::Text(tables) => tables.requeue_ended(result),
        }
    }

    pub(crate) fn checks_ended(&mut self, checks: u64, failed: u64, error: Option<&PassError>) {
        match &mut self.style {
            Style::Json(lines) => lines.checks_ended(checks, failed, error),
            Style::Text(tables) => tables.checks_ended(checks, failed, error.is_none()),
        }
    }
}

impl Report for Answer {
    fn planned(&mut self, partition: &PlannedPartition) {
        self.counted.add_planned(partition, self.dry_run);
        if self.dry_run {
            match &mut self.style {
                Style::Json(lines) => lines.planned(partition),
                Style::Text(tables) => tables.planned(partition),
            }
        }
        self.progress.show(&self.counted);
    }

    fn finished(&mut self, partition: &FinishedPartition) {
        self.counted.add_finished(partition);
        match &mut self.style {
            Style::Json(lines) => lines.finished(partition),
            Style::Text(tables) => tables.finished(partition),
        }
        self.progress.show(&self.counted);
    }

    fn failed(&mut self, dataset: &FailedDataset) {
        self.counted.add_failed(dataset);
        match &mut self.style {
            Style::Json(lines) => lines.failed(dataset, self.dry_run),
            Style::Text(tables) => tables.failed(dataset),
        }
    }
}

/// What the tests of the formats share.
#[cfg(test)]
mod samples {
    use std::io;
    use std::sync::{Arc, Mutex};

    use firn_model::{Outcome, PartitionKey, PartitionValue, Rule, Scalar};

    use super::*;

    /// A writer whose text can be read afterwards.
    #[derive(Clone, Default)]
    pub(super) struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Sink {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn day() -> PartitionKey {
        PartitionKey::new(2, vec![PartitionValue { name: "day".into(), value: Some(Scalar::Date(20_758)) }])
    }

    pub(super) fn planned(selected: bool) -> PlannedPartition {
        let files = ["file:///w/a.parquet", "file:///w/b.parquet"].map(str::to_owned);
        PlannedPartition {
            dataset: "readings".into(),
            partition: day(),
            label: "day=2026-11-01".into(),
            selected,
            rule: Rule::Manual,
            reason: if selected { "3 small files, 1.5 MB" } else { "nothing to merge" }.into(),
            files: if selected { files.into() } else { Vec::new() },
            bytes: if selected { 1_572_864 } else { 0 },
            rows: if selected { 1200 } else { 0 },
        }
    }

    pub(super) fn finished(outcome: Outcome) -> FinishedPartition {
        FinishedPartition {
            dataset: "readings".into(),
            partition: day(),
            label: "day=2026-11-01".into(),
            outcome,
            reason: "3 small files, 1.5 MB".into(),
            files_before: 3,
            files_after: 1,
            rows_in: 1200,
            rows_out: 1190,
            duplicates_dropped: 10,
            snapshot_id: Some(42),
        }
    }
}
