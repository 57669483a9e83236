//! One JSON object a line, with the fields that the design fixes. The last line is the summary.

use std::io::Write;

use firn_pass::{
    FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, RequeueSummary, RequeuedEntry,
    VerifyCheck,
};
use serde_json::{Value, json};

pub(crate) struct JsonLines {
    out: Box<dyn Write + Send>,
}

impl JsonLines {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out }
    }

    /// A reader that has gone away (`| head`) stops no work, so a line that cannot be written is dropped.
    pub(crate) fn line(&mut self, value: &Value) {
        let _ = writeln!(self.out, "{value}").and_then(|()| self.out.flush());
    }

    pub(crate) fn planned(&mut self, planned: &PlannedPartition) {
        self.line(&planned.to_json());
    }

    pub(crate) fn finished(&mut self, finished: &FinishedPartition) {
        self.line(&json!({
            "dataset": finished.dataset,
            "partition": finished.partition.to_json(),
            "outcome": finished.outcome.as_str(),
            "reason": finished.reason,
            "filesBefore": finished.files_before,
            "filesAfter": finished.files_after,
            "rowsIn": finished.rows_in,
            "rowsOut": finished.rows_out,
            "duplicatesDropped": finished.duplicates_dropped,
            "snapshotId": finished.snapshot_id,
        }));
    }

    /// A dataset that was passed over has no partition; otherwise its line reads like that of a failed one.
    pub(crate) fn failed(&mut self, failed: &FailedDataset, dry_run: bool) {
        let reason = failed.error.to_string();
        let mut line = json!({
            "dataset": failed.dataset,
            "partition": null,
            "outcome": "failed",
            "reason": reason,
        });
        if !dry_run {
            for count in ["filesBefore", "filesAfter", "rowsIn", "rowsOut", "duplicatesDropped"] {
                line[count] = json!(0);
            }
            line["snapshotId"] = Value::Null;
        }
        self.line(&line);
    }

    pub(crate) fn pass_ended(
        &mut self,
        summary: &PassSummary,
        dry_run: bool,
        remarks: &[String],
        error: Option<&PassError>,
    ) {
        let mut line = json!({
            "summary": true,
            "ok": summary.ok() && error.is_none(),
            "partitions": summary.partitions,
            "selected": summary.selected,
            "left": summary.left,
            "waiting": summary.waiting,
            "datasetsFailed": summary.datasets_failed + summary.datasets_refused,
        });
        let counts: &[(&str, u64)] = if dry_run {
            &[("files", summary.files), ("bytes", summary.bytes), ("rows", summary.rows)]
        } else {
            &[
                ("done", summary.done),
                ("superseded", summary.superseded),
                ("failed", summary.failed),
                ("filesBefore", summary.files_before),
                ("filesAfter", summary.files_after),
                ("rowsIn", summary.rows_in),
                ("rowsOut", summary.rows_out),
                ("duplicatesDropped", summary.duplicates_dropped),
            ]
        };
        for (name, count) in counts {
            line[*name] = json!(count);
        }
        if !remarks.is_empty() {
            line["remarks"] = json!(remarks);
        }
        self.with_error(line, error);
    }

    pub(crate) fn checked(&mut self, check: &VerifyCheck) {
        self.line(&json!({ "check": check.check, "ok": check.ok, "message": check.message }));
    }

    pub(crate) fn checks_ended(&mut self, checks: u64, failed: u64, error: Option<&PassError>) {
        let line = json!({ "summary": true, "ok": failed == 0 && error.is_none(), "checks": checks, "failed": failed });
        self.with_error(line, error);
    }

    pub(crate) fn requeued(&mut self, entry: &RequeuedEntry) {
        self.line(&entry.to_json());
    }

    pub(crate) fn requeue_ended(&mut self, result: &Result<RequeueSummary, PassError>) {
        let RequeueSummary { requeued, left, failed } = result.as_ref().copied().unwrap_or_default();
        let ok = result.is_ok() && failed == 0;
        let line = json!({ "summary": true, "ok": ok, "requeued": requeued, "left": left, "failed": failed });
        self.with_error(line, result.as_ref().err());
    }

    fn with_error(&mut self, mut line: Value, error: Option<&PassError>) {
        if let Some(error) = error {
            line["error"] = json!(error.to_string());
        }
        self.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use firn_model::{Outcome, Rule};

    use super::*;
    use crate::output::samples::{Sink, finished, planned};

    fn lines(write: impl FnOnce(&mut JsonLines)) -> Vec<Value> {
        let sink = Sink::default();
        write(&mut JsonLines::new(Box::new(sink.clone())));
        sink.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_planned_partition() {
        let selected = planned(true);
        let left = PlannedPartition { rule: Rule::Full, ..planned(false) };
        let expected = vec![
            json!({
                "dataset": "readings", "partition": {"day": "2026-11-01"}, "specId": 2, "decision": "selected",
                "rule": "manual", "reason": "3 small files, 1.5 MB",
                "files": ["file:///w/a.parquet", "file:///w/b.parquet"], "fileCount": 2, "bytes": 1_572_864, "rows": 1200,
            }),
            json!({
                "dataset": "readings", "partition": {"day": "2026-11-01"}, "specId": 2, "decision": "left",
                "rule": "full", "reason": "nothing to merge", "files": [], "fileCount": 0, "bytes": 0, "rows": 0,
            }),
        ];
        let written = lines(|out| {
            out.planned(&selected);
            out.planned(&left);
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_finished_partition() {
        let expected = json!({
            "dataset": "readings", "partition": {"day": "2026-11-01"}, "outcome": "done",
            "reason": "3 small files, 1.5 MB", "filesBefore": 3, "filesAfter": 1, "rowsIn": 1200, "rowsOut": 1190,
            "duplicatesDropped": 10, "snapshotId": 42,
        });
        assert_eq!(lines(|out| out.finished(&finished(Outcome::Done))), [expected]);
        let left = lines(|out| out.finished(&FinishedPartition { snapshot_id: None, ..finished(Outcome::Left) }));
        assert_eq!((&left[0]["outcome"], &left[0]["snapshotId"]), (&json!("left"), &Value::Null));
    }

    #[test]
    fn the_last_line_of_a_pass() {
        let summary = PassSummary {
            partitions: 5,
            selected: 3,
            left: 2,
            done: 2,
            failed: 1,
            files: 7,
            bytes: 700,
            rows: 70,
            files_before: 9,
            files_after: 4,
            rows_in: 60,
            rows_out: 50,
            duplicates_dropped: 10,
            ..PassSummary::default()
        };
        let expected = json!({
            "summary": true, "ok": false, "partitions": 5, "selected": 3, "left": 2, "waiting": 0, "datasetsFailed": 0,
            "done": 2, "superseded": 0, "failed": 1, "filesBefore": 9, "filesAfter": 4, "rowsIn": 60, "rowsOut": 50,
            "duplicatesDropped": 10,
        });
        assert_eq!(lines(|out| out.pass_ended(&summary, false, &[], None)), [expected]);
        let dry = json!({
            "summary": true, "ok": true, "partitions": 5, "selected": 3, "left": 2, "waiting": 0, "datasetsFailed": 0,
            "files": 7, "bytes": 700, "rows": 70,
        });
        let summary = PassSummary { failed: 0, ..summary };
        assert_eq!(lines(|out| out.pass_ended(&summary, true, &[], None)), [dry]);
        let remarked = lines(|out| out.pass_ended(&summary, true, &["no partition matches".into()], None));
        assert_eq!((&remarked[0]["ok"], &remarked[0]["remarks"]), (&json!(true), &json!(["no partition matches"])));
        let error = PassError::Unavailable("no catalog".into());
        let stopped = lines(|out| out.pass_ended(&summary, true, &[], Some(&error)));
        assert_eq!((&stopped[0]["ok"], &stopped[0]["error"]), (&json!(false), &json!("no catalog")));
    }

    #[test]
    fn a_dataset_that_was_passed_over() {
        let failed =
            FailedDataset { dataset: "readings".into(), error: PassError::Unavailable("no table iot.readings".into()) };
        let expected = json!({
            "dataset": "readings", "partition": null, "outcome": "failed", "reason": "no table iot.readings",
            "filesBefore": 0, "filesAfter": 0, "rowsIn": 0, "rowsOut": 0, "duplicatesDropped": 0, "snapshotId": null,
        });
        assert_eq!(lines(|out| out.failed(&failed, false)), [expected]);
    }

    #[test]
    fn checks() {
        let check = VerifyCheck { check: "I3".into(), ok: false, message: "a path is live twice".into() };
        let written = lines(|out| {
            out.checked(&check);
            out.checks_ended(4, 1, None);
        });
        let expected = vec![
            json!({"check": "I3", "ok": false, "message": "a path is live twice"}),
            json!({"summary": true, "ok": false, "checks": 4, "failed": 1}),
        ];
        assert_eq!(written, expected);
    }

    #[test]
    fn a_requeue() {
        let entry = RequeuedEntry {
            id: "0af1".into(),
            dataset: Some("readings".into()),
            partition: None,
            outcome: firn_pass::RequeueOutcome::Left,
            reason: "its text is no message".into(),
        };
        let summary = RequeueSummary { requeued: 2, left: 1, failed: 1 };
        let written = lines(|json| {
            json.requeued(&entry);
            json.requeue_ended(&Ok(summary));
            json.requeue_ended(&Err(PassError::Unavailable("no queue".into())));
        });
        let expected = vec![
            json!({"id": "0af1", "dataset": "readings", "partition": null, "outcome": "left",
                   "reason": "its text is no message"}),
            json!({"summary": true, "ok": false, "requeued": 2, "left": 1, "failed": 1}),
            json!({"summary": true, "ok": false, "requeued": 0, "left": 0, "failed": 0, "error": "no queue"}),
        ];
        assert_eq!(written, expected);
    }
}
