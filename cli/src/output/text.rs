//! Tables for people. Partitions that were left are many and dull: a few are shown, all are counted.

use std::collections::BTreeMap;
use std::io::Write;

use firn_model::Outcome;
use firn_pass::{
    FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, RequeueSummary, RequeuedEntry,
    VerifyCheck,
};
use firn_plan::Estimate;
use serde_json::Value;

use crate::output::WARNING;
use crate::output::table::{Side, Table, grouped, plural, size};

/// The estimate does not hang on the exact size of files.
const TARGET: u64 = 128 << 20;
/// How many of the partitions that were left are shown.
const LEFT_SHOWN: u64 = 20;

pub(crate) struct Tables {
    out: Box<dyn Write + Send>,
    planned: Table<10>,
    estimate: Estimate,
    finished: Table<7>,
    /// Failures with one and the same reason, after the first.
    repeated: BTreeMap<(String, String), u64>,
    left: Table<3>,
    left_count: u64,
    passed_over: Table<2>,
}

impl Tables {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        Self {
            out,
            planned: Table::new([
                ("DATASET", Side::Left),
                ("PARTITION", Side::Left),
                ("FILES", Side::Right),
                ("SIZE", Side::Right),
                ("ROWS", Side::Right),
                ("RULE", Side::Left),
                ("GB-S", Side::Right),
                ("CALLS", Side::Right),
                ("USD", Side::Right),
                ("SELECTED BECAUSE", Side::Left),
            ]),
            estimate: Estimate::default(),
            finished: Table::new([
                ("DATASET", Side::Left),
                ("PARTITION", Side::Left),
                ("OUTCOME", Side::Left),
                ("FILES", Side::Right),
                ("ROWS", Side::Right),
                ("DUPLICATES", Side::Right),
                ("REASON", Side::Left),
            ]),
            repeated: BTreeMap::new(),
            left: Table::new([("DATASET", Side::Left), ("PARTITION", Side::Left), ("LEFT BECAUSE", Side::Left)]),
            left_count: 0,
            passed_over: Table::new([("DATASET", Side::Left), ("PASSED OVER BECAUSE", Side::Left)]),
        }
    }

    pub(crate) fn planned(&mut self, planned: &PlannedPartition) {
        let partition = planned.label.clone();
        if !planned.selected {
            return self.add_left(planned.dataset.clone(), partition, planned.reason.clone());
        }
        let estimate = Estimate::of(planned.files.len() as u64, planned.bytes, TARGET);
        self.estimate += estimate;
        self.planned.row([
            planned.dataset.clone(),
            partition,
            grouped(planned.files.len() as u64),
            size(planned.bytes),
            grouped(planned.rows),
            planned.rule.to_string(),
            format!("{:.1}", estimate.gb_seconds),
            grouped(estimate.operations()),
            usd(estimate),
            planned.reason.clone(),
        ]);
    }

    pub(crate) fn finished(&mut self, finished: &FinishedPartition) {
        let partition = finished.label.clone();
        if finished.outcome == Outcome::Left {
            return self.add_left(finished.dataset.clone(), partition, finished.reason.clone());
        }
        if finished.outcome.is_failure() {
            let same = (finished.dataset.clone(), finished.reason.clone());
            match self.repeated.get_mut(&same) {
                Some(more) => {
                    *more += 1;
                    return;
                }
                None => {
                    self.repeated.insert(same, 0);
                }
            }
        }
        self.finished.row([
            finished.dataset.clone(),
            partition,
            finished.outcome.to_string(),
            change(finished.files_before, finished.files_after),
            change(finished.rows_in, finished.rows_out),
            grouped(finished.duplicates_dropped),
            finished.reason.clone(),
        ]);
    }

    fn add_left(&mut self, dataset: String, partition: String, reason: String) {
        self.left_count += 1;
        if self.left_count <= LEFT_SHOWN {
            self.left.row([dataset, partition, reason]);
        }
    }

    pub(crate) fn failed(&mut self, failed: &FailedDataset) {
        self.passed_over.row([failed.dataset.clone(), failed.error.to_string()]);
    }

    pub(crate) fn pass_ended(&mut self, summary: &PassSummary, dry_run: bool, remarks: &[String], completed: bool) {
        // As with JSON lines: nobody reading is no reason to fail.
        let _ = self.write_pass(summary, dry_run, remarks, completed);
    }

    fn write_pass(
        &mut self,
        summary: &PassSummary,
        dry_run: bool,
        remarks: &[String],
        completed: bool,
    ) -> std::io::Result<()> {
        let out = &mut self.out;
        self.planned.written(out)?;
        self.finished.written(out)?;
        for ((dataset, reason), more) in self.repeated.iter().filter(|(_, more)| **more > 0) {
            writeln!(out, "… and {} of {dataset} for the same reason: {reason}\n", plural(*more, "more partition"))?;
        }
        self.left.written(out)?;
        if self.left_count > LEFT_SHOWN {
            writeln!(out, "… and {} more, see --format json\n", grouped(self.left_count - LEFT_SHOWN))?;
        }
        self.passed_over.written(out)?;
        if !completed {
            return out.flush();
        }
        if dry_run {
            writeln!(
                out,
                "Dry run: {} selected ({}, {}, {}), {} left.",
                plural(summary.selected, "partition"),
                plural(summary.files, "file"),
                size(summary.bytes),
                plural(summary.rows, "row"),
                grouped(summary.left),
            )?;
            if summary.selected > 0 {
                writeln!(
                    out,
                    "In Azure about {:.0} GB-seconds and {} calls to storage, {} USD (docs/deploy.md says how this is reckoned).",
                    self.estimate.gb_seconds,
                    grouped(self.estimate.operations()),
                    usd(self.estimate)
                )?;
            }
        } else {
            let files = change(summary.files_before, summary.files_after);
            writeln!(
                out,
                "{} merged, {} left, {} superseded, {} failed; files {files}, rows {}, {} dropped.",
                plural(summary.done, "partition"),
                grouped(summary.left),
                grouped(summary.superseded),
                grouped(summary.failed),
                change(summary.rows_in, summary.rows_out),
                plural(summary.duplicates_dropped, "duplicate"),
            )?;
        }
        if summary.waiting > 0 {
            writeln!(
                out,
                "Waiting for the next pass (compaction.maxPartitionsPerPass): {}.",
                plural(summary.waiting, "partition")
            )?;
        }
        for remark in remarks {
            writeln!(out, "Note: {remark}.")?;
        }
        out.flush()
    }

    pub(crate) fn checked(&mut self, check: &VerifyCheck) {
        let (word, message) = match (check.ok, check.message.strip_prefix(WARNING)) {
            (true, None) => ("ok  ", check.message.as_str()),
            (true, Some(message)) => ("WARN", message),
            (false, _) => ("FAIL", check.message.as_str()),
        };
        let _ = writeln!(self.out, "{word}  {}: {message}", check.check).and_then(|()| self.out.flush());
    }

    pub(crate) fn checks_ended(&mut self, checks: u64, failed: u64, completed: bool) {
        if completed {
            let held = match failed {
                0 => "all held".to_owned(),
                failed => format!("{} failed", grouped(failed)),
            };
            let _ = writeln!(self.out, "{}, {held}.", plural(checks, "check")).and_then(|()| self.out.flush());
        }
    }

    pub(crate) fn requeued(&mut self, entry: &RequeuedEntry) {
        let dataset = entry.dataset.as_deref().unwrap_or("-");
        let partition = entry.partition.clone().map(|tuple| Value::Object(tuple).to_string()).unwrap_or_default();
        let (id, outcome, reason) = (&entry.id, entry.outcome.as_str(), &entry.reason);
        let _ =
            writeln!(self.out, "{outcome:8}  {id}  {dataset} {partition}: {reason}").and_then(|()| self.out.flush());
    }

    pub(crate) fn requeue_ended(&mut self, result: &Result<RequeueSummary, PassError>) {
        if let Ok(RequeueSummary { requeued, left, failed }) = result {
            let _ = writeln!(
                self.out,
                "{} back in the queue, {} left, {} failed.",
                grouped(*requeued),
                grouped(*left),
                grouped(*failed)
            )
            .and_then(|()| self.out.flush());
        }
    }
}

/// Four decimals: a partition costs a part of a cent.
fn usd(estimate: Estimate) -> String {
    format!("{:.4}", estimate.usd())
}

/// Tables of any width.
trait Written {
    /// Writes the table and an empty line, or nothing when it has no rows.
    fn written(&self, out: &mut Box<dyn Write + Send>) -> std::io::Result<()>;
}

impl<const COLUMNS: usize> Written for Table<COLUMNS> {
    fn written(&self, out: &mut Box<dyn Write + Send>) -> std::io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.write(out)?;
        writeln!(out)
    }
}

/// `120 → 2`, or one figure when nothing changed.
fn change(before: u64, after: u64) -> String {
    if before == after { grouped(before) } else { format!("{} → {}", grouped(before), grouped(after)) }
}

#[cfg(test)]
mod tests {
    use firn_pass::PassError;

    use super::*;
    use crate::output::samples::{Sink, finished, planned};

    fn text(write: impl FnOnce(&mut Tables)) -> String {
        let sink = Sink::default();
        write(&mut Tables::new(Box::new(sink.clone())));
        sink.text()
    }

    #[test]
    fn a_dry_run() {
        let mut summary = PassSummary::default();
        let written = text(|out| {
            for partition in [planned(true), planned(false)] {
                summary.add_planned(&partition, true);
                out.planned(&partition);
            }
            out.pass_ended(&summary, true, &[], true);
        });
        let expected = "\
DATASET   PARTITION       FILES    SIZE   ROWS  RULE    GB-S  CALLS     USD  SELECTED BECAUSE
readings  day=2026-11-01      2  1.5 MB  1,200  manual   4.6     44  0.0002  3 small files, 1.5 MB

DATASET   PARTITION       LEFT BECAUSE
readings  day=2026-11-01  nothing to merge

Dry run: 1 partition selected (2 files, 1.5 MB, 1,200 rows), 1 left.
In Azure about 5 GB-seconds and 44 calls to storage, 0.0002 USD (docs/deploy.md says how this is reckoned).
";
        assert_eq!(written, expected);
    }

    #[test]
    fn a_pass_with_everything_in_it() {
        let mut summary = PassSummary { waiting: 1, ..PassSummary::default() };
        let written = text(|out| {
            for outcome in [Outcome::Done, Outcome::Failed] {
                summary.add_finished(&finished(outcome));
                out.finished(&finished(outcome));
            }
            let left =
                FinishedPartition { reason: "nothing to merge".into(), files_after: 3, ..finished(Outcome::Left) };
            for _ in 0..22 {
                summary.add_finished(&left);
                out.finished(&left);
            }
            let error = PassError::Unavailable("table iot.old is not in catalog lake".into());
            out.failed(&FailedDataset { dataset: "old".into(), error });
            out.pass_ended(&summary, false, &[], true);
        });
        let left = "readings  day=2026-11-01  nothing to merge\n".repeat(20);
        let expected = format!(
            "\
DATASET   PARTITION       OUTCOME  FILES           ROWS  DUPLICATES  REASON
readings  day=2026-11-01  done     3 → 1  1,200 → 1,190          10  3 small files, 1.5 MB
readings  day=2026-11-01  failed   3 → 1  1,200 → 1,190          10  3 small files, 1.5 MB

DATASET   PARTITION       LEFT BECAUSE
{left}
… and 2 more, see --format json

DATASET  PASSED OVER BECAUSE
old      table iot.old is not in catalog lake

1 partition merged, 22 left, 0 superseded, 1 failed; files 72 → 68, rows 28,800 → 28,560, 240 duplicates dropped.
Waiting for the next pass (compaction.maxPartitionsPerPass): 1 partition.
"
        );
        assert_eq!(written, expected);
    }

    #[test]
    fn one_reason_of_many_failures_is_said_once_with_a_count() {
        let failed = |dataset: &str, reason: &str| FinishedPartition {
            dataset: dataset.into(),
            reason: reason.into(),
            files_after: 3,
            rows_out: 1200,
            ..finished(Outcome::Failed)
        };
        let written = text(|out| {
            for failed in [failed("logs", "no key"), failed("logs", "no key"), failed("spans", "no key")] {
                out.finished(&failed);
            }
            out.finished(&failed("logs", "no key"));
            out.finished(&failed("logs", "no codec"));
            out.pass_ended(&PassSummary { failed: 5, ..PassSummary::default() }, false, &[], true);
        });
        let expected = "\
DATASET  PARTITION       OUTCOME  FILES   ROWS  DUPLICATES  REASON
logs     day=2026-11-01  failed       3  1,200          10  no key
spans    day=2026-11-01  failed       3  1,200          10  no key
logs     day=2026-11-01  failed       3  1,200          10  no codec

… and 2 more partitions of logs for the same reason: no key

0 partitions merged, 0 left, 0 superseded, 5 failed; files 0, rows 0, 0 duplicates dropped.
";
        assert_eq!(written, expected);
    }

    #[test]
    fn a_pass_without_work_and_one_that_was_stopped() {
        let idle = text(|out| out.pass_ended(&PassSummary::default(), false, &["no partition matches".into()], true));
        assert_eq!(
            idle,
            "0 partitions merged, 0 left, 0 superseded, 0 failed; files 0, rows 0, 0 duplicates dropped.\n\
             Note: no partition matches.\n"
        );
        assert_eq!(text(|out| out.pass_ended(&PassSummary::default(), false, &[], false)), "");
    }

    #[test]
    fn checks() {
        let written = text(|out| {
            out.checked(&VerifyCheck { check: "I2".into(), ok: true, message: "12 files are there".into() });
            out.checked(&VerifyCheck { check: "I3".into(), ok: false, message: "a path is live twice".into() });
            out.checked(&VerifyCheck { check: "I4".into(), ok: true, message: "warning: it is odd".into() });
            out.checks_ended(2, 1, true);
            out.checks_ended(1, 0, true);
        });
        let expected = "ok    I2: 12 files are there\nFAIL  I3: a path is live twice\nWARN  I4: it is odd\n2 checks, 1 failed.\n1 check, all held.\n";
        assert_eq!(written, expected);
    }
}
