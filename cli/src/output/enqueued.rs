//! The answer of `firn compact --enqueue`: what became of each partition, and how many messages were sent.

use std::io::Write;

use firn_pass::{
    EnqueueSummary, EnqueuedPartition, FailedDataset, FinishedPartition, PassError, PlannedPartition, Report,
};
use serde_json::{Value, json};

use crate::args::Format;
use crate::output::json::JsonLines;
use crate::output::table::{Side, Table, grouped, plural};

/// Answers in the format that was asked for.
pub(crate) enum EnqueueAnswer {
    Json(JsonLines),
    Text { out: Box<dyn Write + Send>, rows: Box<Table<5>> },
}

impl EnqueueAnswer {
    pub(crate) fn new(format: Format, out: impl Write + Send + 'static) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        match format {
            Format::Json => EnqueueAnswer::Json(JsonLines::new(out)),
            Format::Text => {
                let columns = ["DATASET", "PARTITION", "DECISION", "RULE", "REASON"];
                EnqueueAnswer::Text { out, rows: Box::new(Table::new(columns.map(|name| (name, Side::Left)))) }
            }
        }
    }

    /// The end of the pass, or why it did not take place.
    pub(crate) fn ended(&mut self, result: &Result<EnqueueSummary, PassError>, remark: Option<&str>) {
        match (self, result) {
            (EnqueueAnswer::Json(lines), Ok(summary)) => lines.line(&summary_line(summary, remark)),
            (EnqueueAnswer::Json(lines), Err(error)) => {
                lines.line(&json!({ "summary": true, "ok": false, "error": error.to_string() }));
            }
            // As with JSON lines: nobody reading is no reason to fail.
            (EnqueueAnswer::Text { out, rows }, Ok(summary)) => {
                let _ = write_text(out, rows, summary, remark);
            }
            (EnqueueAnswer::Text { .. }, Err(_)) => {}
        }
    }
}

fn summary_line(summary: &EnqueueSummary, remark: Option<&str>) -> Value {
    let mut line = json!({ "summary": true, "ok": summary.ok() });
    if let (Value::Object(line), Ok(Value::Object(counts))) = (&mut line, serde_json::to_value(summary)) {
        line.extend(counts);
    }
    if let Some(remark) = remark {
        line["remarks"] = json!([remark]);
    }
    line
}

fn write_text(
    out: &mut dyn Write,
    rows: &Table<5>,
    summary: &EnqueueSummary,
    remark: Option<&str>,
) -> std::io::Result<()> {
    if !rows.is_empty() {
        rows.write(out)?;
        writeln!(out)?;
    }
    let counts = &summary.counts;
    writeln!(
        out,
        "{} sent, {} queued or running already, {} parked or cooling, {} left; pass {}.",
        plural(counts.sent, "message"),
        grouped(counts.running + counts.raised),
        grouped(counts.at_rest),
        grouped(counts.left),
        summary.pass,
    )?;
    if counts.waiting > 0 {
        let waiting = plural(counts.waiting, "partition");
        writeln!(out, "Above compaction.maxPartitionsPerPass: {waiting}. Run again to send them.")?;
    }
    if let Some(remark) = remark {
        writeln!(out, "Note: {remark}.")?;
    }
    out.flush()
}

impl Report for EnqueueAnswer {
    fn planned(&mut self, _: &PlannedPartition) {}

    fn finished(&mut self, _: &FinishedPartition) {}

    fn enqueued(&mut self, partition: &EnqueuedPartition) {
        match self {
            EnqueueAnswer::Json(lines) => lines.line(&json!({
                "dataset": partition.dataset,
                "partition": partition.partition.to_json(),
                "specId": partition.partition.spec_id,
                "decision": partition.decision,
                "rule": partition.rule.as_str(),
                "reason": partition.reason,
            })),
            // Partitions that were left are many and dull: they are counted.
            EnqueueAnswer::Text { .. } if partition.decision == "left" => {}
            EnqueueAnswer::Text { rows, .. } => rows.row([
                partition.dataset.clone(),
                partition.label.clone(),
                partition.decision.to_owned(),
                partition.rule.to_string(),
                partition.reason.clone(),
            ]),
        }
    }

    fn failed(&mut self, failed: &FailedDataset) {
        let reason = failed.error.to_string();
        match self {
            EnqueueAnswer::Json(lines) => lines
                .line(&json!({ "dataset": failed.dataset, "partition": null, "decision": "failed", "reason": reason })),
            EnqueueAnswer::Text { rows, .. } => {
                let (none, failed_word) = (String::new(), "failed".to_owned());
                rows.row([failed.dataset.clone(), none.clone(), failed_word, none, reason]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_model::{PartitionKey, Rule};
    use firn_pass::SendCounts;

    use super::*;
    use crate::output::samples::Sink;

    fn answer(format: Format) -> String {
        let sink = Sink::default();
        let mut answer = EnqueueAnswer::new(format, sink.clone());
        let partition = |decision| EnqueuedPartition {
            dataset: "readings".into(),
            partition: PartitionKey::unpartitioned(1),
            label: "(unpartitioned)".into(),
            decision,
            rule: Rule::Full,
            reason: "selected".into(),
        };
        answer.enqueued(&partition("sent"));
        answer.enqueued(&partition("left"));
        let counts = SendCounts { partitions: 3, selected: 1, sent: 1, left: 1, waiting: 1, ..SendCounts::default() };
        answer
            .ended(&Ok(EnqueueSummary { pass: "p-1".into(), datasets: 1, counts, ..EnqueueSummary::default() }), None);
        sink.text()
    }

    #[test]
    fn json_names_each_partition_and_ends_with_the_counts() {
        let text = answer(Format::Json);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sent = json!({
            "dataset": "readings", "partition": {}, "specId": 1, "decision": "sent", "rule": "full", "reason": "selected",
        });
        assert_eq!((lines.len(), &lines[0], &lines[1]["decision"]), (3, &sent, &json!("left")));
        let last = &lines[2];
        assert_eq!((&last["summary"], &last["ok"], &last["sent"]), (&json!(true), &json!(true), &json!(1)));
        assert_eq!((&last["waiting"], &last["pass"], &last["atRest"]), (&json!(1), &json!("p-1"), &json!(0)));
    }

    #[test]
    fn a_pass_that_met_no_partition_says_so() {
        let ended = |format| {
            let sink = Sink::default();
            EnqueueAnswer::new(format, sink.clone())
                .ended(&Ok(EnqueueSummary::default()), Some("no partition matches"));
            sink.text()
        };
        let json: Value = serde_json::from_str(&ended(Format::Json)).unwrap();
        assert_eq!((&json["ok"], &json["remarks"]), (&json!(true), &json!(["no partition matches"])));
        assert!(ended(Format::Text).ends_with("\nNote: no partition matches.\n"));
    }

    #[test]
    fn text_shows_what_was_sent_and_counts_the_rest() {
        let text = answer(Format::Text);
        assert!(text.contains("sent") && !text.contains("left  "), "{text}");
        assert!(text.contains("1 message sent, 0 queued or running already, 0 parked or cooling, 1 left; pass p-1."));
        assert!(text.contains("Above compaction.maxPartitionsPerPass: 1 partition. Run again to send them."));
    }
}
