//! Passes that a person asks for: from the command line and by message.

use firn_compact::FanOutError;
use firn_model::{Message, Rule};
use firn_pass::{EnqueuedPartition, FailedDataset, FinishedPartition, ManualRequest, NoReport, PartitionCondition};
use firn_pass::{PassError, PlannedPartition, Report, enqueue};
use serde_json::{Value, json};

use crate::lake::*;

const NOON: &str = "2026-11-01T12:00:00Z";

#[derive(Default)]
struct Decisions(Vec<(String, &'static str)>);

impl Report for Decisions {
    fn planned(&mut self, _: &PlannedPartition) {}
    fn finished(&mut self, _: &FinishedPartition) {}
    fn failed(&mut self, _: &FailedDataset) {}
    fn enqueued(&mut self, partition: &EnqueuedPartition) {
        self.0.push((partition.partition.to_string(), partition.decision));
    }
}

async fn three_partitions() -> Lake {
    let lake = Lake::new(NOON, "", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append("spans", &[("a", 20 * MB), ("a", 20 * MB), ("b", 20 * MB), ("b", 20 * MB), ("c", 20 * MB)]).await;
    lake
}

#[tokio::test]
async fn what_is_asked_for_is_planned_and_fanned_out() {
    let lake = three_partitions().await;
    let mut decisions = Decisions::default();
    let summary = enqueue(&lake.host, &ManualRequest::default(), "run", &mut decisions).await.unwrap();
    assert_eq!((summary.counts.partitions, summary.counts.sent, summary.counts.left), (3, 2, 1));
    decisions.0.sort();
    let expected = [("p=a", "sent"), ("p=b", "sent"), ("p=c", "left")];
    assert_eq!(decisions.0, expected.map(|(partition, word)| (partition.to_owned(), word)));
    let messages = lake.drain().await;
    assert!(messages.iter().all(|message| message.rule == Some(Rule::Manual)));
    assert!(messages.iter().all(|message| message.pass.as_ref() == Some(&summary.pass)));
    let pass = lake.host.state.read(&lake.host.state.root().pass(&summary.pass)).await.unwrap().unwrap().value;
    assert_eq!((pass.rule, pass.sent["spans"]), (Rule::Manual, 2));
}

#[tokio::test]
async fn filters_hold_and_what_cannot_be_done_is_said() {
    let lake = three_partitions().await;
    let only = |column: &str| ManualRequest {
        partitions: vec![PartitionCondition { column: column.into(), value: Some("b".into()) }],
        ..ManualRequest::default()
    };
    let summary = enqueue(&lake.host, &only("p"), "run", &mut NoReport).await.unwrap();
    assert_eq!((summary.counts.partitions, summary.counts.sent), (1, 1));
    assert_eq!(partitions(&lake.drain().await), ["b"]);
    let refused = enqueue(&lake.host, &only("q"), "run", &mut NoReport).await.unwrap();
    assert_eq!((refused.datasets_refused, refused.ok()), (1, false));
    let unknown = ManualRequest { dataset: Some("logs".into()), ..ManualRequest::default() };
    let error = enqueue(&lake.host, &unknown, "run", &mut NoReport).await.unwrap_err();
    assert!(matches!(&error, PassError::Usage(text) if text.contains("\"logs\"")), "{error}");
}

#[tokio::test]
async fn a_message_by_hand_is_the_same_pass() {
    let lake = three_partitions().await;
    let answer = lake.host.fan_out.fan_out(&lake.host, &Message::by_hand("spans"), "run").await.unwrap();
    assert_eq!((&answer.counts["sent"], &answer.counts["left"]), (&json!(2), &json!(1)));
    assert_eq!(answer.reason, "2 messages sent, 1 partitions left");
    // Delivered a second time it sends nothing new.
    let again = lake.host.fan_out.fan_out(&lake.host, &Message::by_hand("spans"), "run").await.unwrap();
    assert_eq!((&again.counts["sent"], &again.counts["running"]), (&json!(0), &json!(2)));
    assert_eq!(partitions(&lake.drain().await), ["a", "b"]);
}

#[tokio::test]
async fn a_message_that_cannot_be_done_is_refused_with_a_reason() {
    let lake = three_partitions().await;
    let refusal = |message: Message| {
        let host = lake.host.clone();
        async move {
            match host.fan_out.fan_out(&host, &message, "run").await {
                Err(FanOutError::Refused(reason)) => reason,
                other => panic!("{other:?}"),
            }
        }
    };
    assert!(refusal(Message::by_hand("logs")).await.contains("no dataset \"logs\""));
    let range = |text: &str| Message { date_range: Some(text.into()), ..Message::by_hand("spans") };
    assert!(refusal(range("yesterday")).await.contains("\"yesterday\" is not a date range"));
    assert!(refusal(range("2026-11-01:2026-11-02")).await.contains("spans"), "the table has no date partition");
    assert!(lake.drain().await.is_empty());
}

#[tokio::test]
async fn a_dry_run_by_message_writes_its_plan_and_sends_nothing() {
    let lake = three_partitions().await;
    let message = Message { dry_run: true, pass: Some("by-hand".into()), ..Message::by_hand("spans") };
    let answer = lake.host.fan_out.fan_out(&lake.host, &message, "run").await.unwrap();
    assert_eq!((answer.pass.as_str(), &answer.counts["selected"]), ("by-hand", &json!(2)));
    assert!(lake.drain().await.is_empty() && lake.records().await.is_empty());
    let report: Value = lake.host.state.read(&lake.host.state.root().report("by-hand")).await.unwrap().unwrap().value;
    assert_eq!(
        report["summary"],
        json!({"partitions": 3, "selected": 2, "left": 1, "files": 4, "bytes": 80 * MB, "rows": 40})
    );
    let planned = report["partitions"].as_array().unwrap();
    assert_eq!((&planned[0]["partition"], &planned[0]["decision"]), (&json!({"p": "a"}), &json!("selected")));
    assert_eq!(planned[0]["fileCount"], json!(2));
    assert_eq!(planned[2]["decision"], json!("left"));
    let passes = lake.events("passFinished");
    assert_eq!((&passes[0]["dryRun"], &passes[0]["rule"]), (&json!(true), &json!("manual")));

    let one = Message {
        partition: Some(json!({"p": "b"}).as_object().unwrap().clone()),
        pass: Some("one".into()),
        ..message
    };
    lake.host.fan_out.fan_out(&lake.host, &one, "run").await.unwrap();
    let report: Value = lake.host.state.read(&lake.host.state.root().report("one")).await.unwrap().unwrap().value;
    assert_eq!(report["summary"]["partitions"], json!(1));
}
