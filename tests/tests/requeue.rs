//! `firn requeue` over Azurite: what a worker parked goes back into the queue.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use firn_config::Config;
use firn_model::{PartitionJson, Rule, parse_message};
use firn_state::{InflightRecord, NOT_A_MESSAGE, ParkedRecord, Selection, StateStore, parked_id_of_body};
use firn_storage::{AzureQueue, ConnectionString, Queue};
use firn_test_support::Azurite;
use firn_tests::program::run;
use firn_tests::{Run, firn};
use serde_json::{Value, json};
use uuid::Uuid;

fn requeue(config: &Path, more: &[&str]) -> Run {
    run(firn().args(["--format", "json", "requeue", "--config"]).arg(config).args(more))
}

fn configure(folder: &Path, storage: &str) -> (std::path::PathBuf, Config) {
    let text = format!(
        "{storage}catalog: {{ type: sql, uri: \"sqlite:///{0}/catalog.db\", name: lake, warehouse: \"file://{0}/wh\" }}\n\
         ingestion: {{ datasets: [ {{ name: spans, table: a.spans }}, {{ name: logs, table: a.logs }} ] }}\n",
        folder.display()
    );
    let path = folder.join("firn.yaml");
    std::fs::write(&path, text).unwrap();
    let config = Config::from_file(&path).unwrap();
    (path, config)
}

fn summary(run: Run, ok: bool, requeued: u64, left: u64, failed: u64) -> Vec<Value> {
    let expected = json!({"summary": true, "ok": ok, "requeued": requeued, "left": left, "failed": failed});
    assert_eq!(run.summary(), expected, "{run:?}");
    run.lines()
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_work_goes_back_into_the_queue() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let connection = Azurite::shared().connection_string();
    let folder = tempfile::tempdir().unwrap();
    let storage = format!(
        "storage: {{ connectionString: \"{connection}\", stateContainer: requeue-state, queue: requeue-queue }}\n"
    );
    let (path, config) = configure(folder.path(), &storage);
    summary(requeue(&path, &[]).expect_code(0), true, 0, 0, 0);

    let state = StateStore::open(&config).await.unwrap();
    let selection = Selection {
        dataset: "spans".into(),
        partition: PartitionJson::from_iter([("day".into(), "2026-11-01".into())]),
        spec_id: 0,
        rule: Rule::Cold,
        pass: "p1".into(),
        inputs_hash: "h".into(),
    };
    let record = InflightRecord { attempts: 5, ..InflightRecord::new(&selection, Uuid::new_v4(), Utc::now()) };
    let record = record.parked("dies at merge", TimeDelta::hours(6), Utc::now());
    let address = state.root().inflight("spans", "f0");
    state.create(&address, &record).await.unwrap();
    let body = record.message().to_json().unwrap();
    let entry = ParkedRecord::of_partition(&record, body.as_bytes(), Utc::now());
    state.create(&state.root().parked("f0"), &entry).await.unwrap();
    let junk = parked_id_of_body(b"hello");
    let entry = ParkedRecord::of_body(NOT_A_MESSAGE, b"hello", 1, Utc::now());
    state.create(&state.root().parked(&junk), &entry).await.unwrap();

    summary(requeue(&path, &["--dataset", "logs"]).expect_code(0), true, 0, 0, 0);
    let lines = summary(requeue(&path, &["f0", "f1"]).expect_code(1), false, 1, 0, 1);
    assert_eq!(
        lines[0],
        json!({"id": "f0", "dataset": "spans", "partition": {"day": "2026-11-01"}, "outcome": "requeued",
               "reason": "dies at merge"})
    );
    assert_eq!((&lines[1]["id"], &lines[1]["outcome"]), (&json!("f1"), &json!("failed")));

    let queue = AzureQueue::open(&ConnectionString::parse(&connection).unwrap(), "requeue-queue").unwrap();
    let received = queue.receive(32, Duration::from_secs(60)).await.unwrap();
    assert_eq!(received.len(), 1, "one message: {received:?}");
    let message = parse_message(received[0].text.as_bytes()).unwrap();
    let now = state.read(&address).await.unwrap().unwrap().value;
    assert_eq!(message, now.message());
    assert_eq!((now.attempts, now.outcome, now.sent_at.is_some()), (0, None, true));
    assert_ne!(now.generation, record.generation);

    let lines = summary(requeue(&path, &[]).expect_code(0), true, 0, 1, 0);
    assert_eq!(lines[0]["id"], json!(junk), "what is no message stays for a person");
}

#[test]
fn without_an_account_there_is_no_queue_and_wrong_usage_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = configure(folder.path(), "");
    let refused = requeue(&path, &[]).expect_code(2);
    assert!(refused.stderr.contains("there is no queue without a storage section"), "{}", refused.stderr);
    let refused = requeue(&path, &["--dataset", "span"]).expect_code(2);
    assert!(refused.stderr.contains("did you mean spans?"), "{}", refused.stderr);
}
