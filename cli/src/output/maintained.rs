//! The answers of `firn expire`, `firn statistics`, `firn orphans` and `firn restore`: a line for each snapshot or file, written as it is known.

use std::io::Write;

use firn_maintain::sweep::{Deletion, DeletionOutcome, Undo};
use firn_maintain::{FileLine, Receipt, SweepReport, Verdict};
use firn_pass::{ColumnDistinct, ExpiryLine, MaintainReport, MaintainSummary, PassError, StatisticsLine, TableLine};
use serde_json::{Value, json};

use crate::args::Format;
use crate::output::json::JsonLines;
use crate::output::table::{grouped, one_line, plural, size};

/// Lines of files that stay, for people; JSON has all of them.
const KEPT_SHOWN: u64 = 20;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Expire,
    Statistics,
    Orphans { dry_run: bool },
}

/// Answers in the format that was asked for.
pub(crate) struct MaintainAnswer {
    style: Style,
    asked: Asked,
    kept: u64,
}

enum Style {
    Json(JsonLines),
    Text(Box<dyn Write + Send>),
}

impl MaintainAnswer {
    pub(crate) fn new(format: Format, out: impl Write + Send + 'static, asked: Asked) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        let style = match format {
            Format::Json => Style::Json(JsonLines::new(out)),
            Format::Text => Style::Text(out),
        };
        Self { style, asked, kept: 0 }
    }

    /// A reader that has gone away stops no work. A file may have a line break in its name: it stays one line all the same.
    fn text(&mut self, line: std::fmt::Arguments<'_>) {
        if let Style::Text(out) = &mut self.style {
            let _ = writeln!(out, "{}", one_line(&line.to_string())).and_then(|()| out.flush());
        }
    }

    fn json(&mut self, value: &Value) {
        if let Style::Json(lines) = &mut self.style {
            lines.line(value);
        }
    }

    /// The end of the pass, or why it did not take place.
    pub(crate) fn ended(&mut self, result: &Result<MaintainSummary, PassError>) {
        match result {
            Ok(summary) => {
                let mut line = json!({ "summary": true, "ok": summary.ok() });
                if let (Value::Object(line), Ok(Value::Object(counts))) = (&mut line, serde_json::to_value(summary)) {
                    line.extend(counts);
                }
                self.json(&line);
                if self.kept > KEPT_SHOWN {
                    let more = grouped(self.kept - KEPT_SHOWN);
                    self.text(format_args!("… and {more} more that stay, see --format json"));
                }
                self.say_summary(summary);
            }
            Err(error) => self.json(&json!({ "summary": true, "ok": false, "error": error.to_string() })),
        }
    }

    fn say_summary(&mut self, summary: &MaintainSummary) {
        let tables = format!(
            "{}, {} left alone, {} failed",
            plural(summary.tables, "table"),
            grouped(summary.left),
            grouped(summary.failed)
        );
        match self.asked {
            Asked::Expire => self.text(format_args!(
                "{} expired, {} removed; {tables}.",
                plural(summary.expired, "snapshot"),
                plural(summary.refs_removed, "reference")
            )),
            Asked::Statistics => {
                self.text(format_args!("{}; {tables}.", plural(summary.statistics, "statistics file")));
            }
            Asked::Orphans { dry_run } => {
                let word = if dry_run { "would go" } else { "deleted" };
                self.text(format_args!(
                    "{} listed, {} ({}) {word}, {} unreferenced ones stay; {tables}.",
                    plural(summary.listed, "file"),
                    grouped(summary.deleted),
                    size(summary.bytes),
                    grouped(if dry_run {
                        summary.unreferenced.saturating_sub(summary.deleted)
                    } else {
                        summary.unreferenced
                    }),
                ));
            }
        }
    }

    /// The last receipt of a dataset, or more of its deletions.
    pub(crate) fn receipt(&mut self, receipt: &Receipt, deletions: &[Deletion]) {
        if deletions.is_empty() {
            self.json(&serde_json::to_value(receipt).unwrap_or_default());
            self.say_receipt(receipt);
        }
        for deletion in deletions {
            let mut line = serde_json::to_value(deletion).unwrap_or_default();
            line["dataset"] = json!(receipt.dataset);
            line["receipt"] = json!(receipt.receipt);
            self.json(&line);
            let word = match deletion.outcome {
                DeletionOutcome::Planned => "planned",
                DeletionOutcome::Deleted => "deleted",
                DeletionOutcome::Absent => "absent",
                DeletionOutcome::Refused => "refused",
            };
            let (path, reason) = (&deletion.path, &deletion.reason);
            self.text(format_args!(
                "{word:8} {:>6} h  {:>9}  {path}: {reason}",
                deletion.age_hours,
                size(deletion.bytes)
            ));
        }
    }

    fn say_receipt(&mut self, receipt: &Receipt) {
        let Receipt { receipt: id, dataset, table, started_at, outcome, states, deletions, .. } = receipt;
        self.text(format_args!("{dataset} ({table}): receipt {id}, {started_at}, {outcome}"));
        if let Some(reason) = &receipt.reason {
            self.text(format_args!("  {reason}"));
        }
        if let Some(listing) = &receipt.listing {
            let folders = listing.folders.join(", ");
            self.text(format_args!("  listed {} in {folders}", plural(listing.objects, "file")));
        }
        let pinned = match receipt.pinned_bytes {
            0 => String::new(),
            bytes => format!(" ({} by tags and other branches alone)", size(bytes)),
        };
        self.text(format_args!(
            "  live {}{pinned}, replaced {} ({}), unreferenced {} ({}), deleted {} ({})",
            grouped(states.live),
            grouped(states.replaced),
            size(receipt.replaced_bytes),
            grouped(states.unreferenced),
            size(receipt.unreferenced_bytes),
            grouped(deletions.deleted),
            size(deletions.bytes)
        ));
        for (reason, count) in &receipt.kept {
            self.text(format_args!("  kept {}: {reason}", grouped(*count)));
        }
        let undo = match receipt.undo {
            Undo::SoftDelete { days } => format!("the account keeps deleted blobs for {days} days: firn restore {id}"),
            Undo::Trash { days } => format!("deleted files lie in the trash for {days} days: firn restore {id}"),
            Undo::None => "none: what is deleted is gone; switch soft delete on for the account".to_owned(),
            Undo::Unknown => "not known: the account does not show whether it keeps deleted blobs".to_owned(),
        };
        self.text(format_args!("  undo: {undo}"));
    }

    /// The end of a look at receipts.
    pub(crate) fn receipts_ended(&mut self, result: &Result<u64, PassError>) {
        match result {
            Ok(receipts) => {
                self.json(&json!({ "summary": true, "ok": true, "receipts": receipts }));
                if *receipts == 0 {
                    self.text(format_args!("No sweep has left a receipt yet."));
                }
            }
            Err(error) => self.json(&json!({ "summary": true, "ok": false, "error": error.to_string() })),
        }
    }
}

impl SweepReport for MaintainAnswer {
    fn file(&mut self, line: &FileLine) {
        self.json(&json!({
            "dataset": line.dataset,
            "path": line.path,
            "decision": line.verdict.as_str(),
            "reason": line.reason,
            "ageHours": line.age_hours,
            "bytes": line.bytes,
        }));
        if line.verdict == Verdict::Keep {
            self.kept += 1;
            if self.kept > KEPT_SHOWN {
                return;
            }
        }
        let age = line.age_hours.map_or("?".to_owned(), |hours| hours.to_string());
        let (word, path, reason) = (line.verdict.as_str(), &line.path, &line.reason);
        self.text(format_args!("{word:8} {age:>6} h  {:>9}  {path}: {reason}", size(line.bytes)));
    }
}

impl MaintainReport for MaintainAnswer {
    fn snapshot(&mut self, line: &ExpiryLine) {
        let mut value = json!({
            "dataset": line.dataset,
            "snapshotId": line.snapshot_id,
            "decision": line.decision,
            "reason": line.reason,
        });
        if let Some(reference) = &line.reference {
            value["reference"] = json!(reference);
        }
        self.json(&value);
        let what = match (&line.snapshot_id, &line.reference) {
            (Some(id), _) => id.to_string(),
            (None, Some(reference)) => format!("reference {reference}"),
            (None, None) => String::new(),
        };
        self.text(format_args!("{:8} {}  {what}: {}", line.decision, line.dataset, line.reason));
    }

    fn statistics(&mut self, line: &StatisticsLine) {
        let column = |column: &ColumnDistinct| json!({ "name": column.name, "fieldId": column.field_id, "distinct": column.distinct });
        self.json(&json!({
            "dataset": line.dataset,
            "snapshotId": line.snapshot_id,
            "decision": "registered",
            "path": line.path,
            "columns": line.columns.iter().map(column).collect::<Vec<_>>(),
            "files": line.files,
            "scanned": line.scanned,
        }));
        let (dataset, snapshot, path) = (&line.dataset, line.snapshot_id, &line.path);
        let files = plural(line.files, "file");
        self.text(format_args!(
            "{dataset}: snapshot {snapshot}, {files}, {} of them read: {path}",
            grouped(line.scanned)
        ));
        for column in &line.columns {
            self.text(format_args!("  {:>12} different values in {}", grouped(column.distinct), column.name));
        }
    }

    fn table(&mut self, line: &TableLine) {
        let (key, first) = match self.asked {
            Asked::Expire | Asked::Statistics => ("snapshotId", Value::Null),
            Asked::Orphans { .. } => ("path", Value::Null),
        };
        self.json(&json!({ "dataset": line.dataset, key: first, "decision": line.outcome, "reason": line.reason }));
        self.text(format_args!("{:8} {}: {}", line.outcome, line.dataset, line.reason));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_name_with_a_line_break_is_one_line() {
        let heard = Heard::default();
        let mut answer = MaintainAnswer::new(Format::Text, heard.clone(), Asked::Orphans { dry_run: false });
        answer.file(&FileLine {
            dataset: "t".into(),
            path: "file:///t/data/a\ndeleted\u{1b}[2J.parquet".into(),
            verdict: Verdict::Deleted,
            reason: "no snapshot refers to it".into(),
            age_hours: Some(72),
            bytes: 5,
        });
        let text = String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
        let expected =
            "deleted      72 h        5 B  file:///t/data/a\\ndeleted\\u{1b}[2J.parquet: no snapshot refers to it\n";
        assert_eq!(text, expected);
    }
}
