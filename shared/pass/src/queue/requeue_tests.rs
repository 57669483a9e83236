use std::collections::HashMap;
use std::sync::Arc;

use chrono::TimeDelta;
use firn_model::{BlobId, MessageKind, Rule};
use firn_state::{NOT_A_MESSAGE, Selection, StateRoot, parked_id_of_body};
use firn_storage::{MemoryQueue, MemoryStore};

use super::*;

struct Place {
    config: Config,
    state: StateStore,
    queue: MemoryQueue,
}

impl Place {
    async fn new() -> Self {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [{name: spans, table: a.b}, {name: logs, table: a.c}]}";
        let memory = Arc::new(MemoryStore::new());
        let root = BlobId { account: "a".into(), container: "firn-state".into(), key: String::new() };
        let queue = MemoryQueue::new("firn-compact");
        queue.create().await.unwrap();
        let state = StateStore::new(memory.clone(), memory, StateRoot::new(root));
        Self { config: Config::load(text, &HashMap::new()).unwrap(), state, queue }
    }

    async fn run(&self, dataset: Option<&str>, ids: &[&str]) -> (RequeueSummary, Vec<RequeuedEntry>) {
        let request = RequeueRequest {
            dataset: dataset.map(str::to_owned),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        let mut entries = Vec::new();
        let requeue = Requeue { config: &self.config, state: &self.state, queue: &self.queue, now: Utc::now() };
        let summary = requeue.run(&request, &mut |entry| entries.push(entry.clone())).await.unwrap();
        (summary, entries)
    }

    /// A partition that was parked after five attempts, as the worker leaves it.
    async fn parked(&self, dataset: &str, id: &str) -> InflightRecord {
        let selection = Selection {
            dataset: dataset.into(),
            partition: PartitionJson::from_iter([("day".into(), "2026-11-01".into())]),
            spec_id: 2,
            rule: Rule::Tier,
            pass: "p".into(),
            inputs_hash: "h".into(),
        };
        let record = InflightRecord { attempts: 5, ..InflightRecord::new(&selection, Uuid::new_v4(), Utc::now()) };
        let record = record.parked("dies at merge", TimeDelta::hours(6), Utc::now());
        self.state.create(&self.state.root().inflight(dataset, id), &record).await.unwrap();
        let body = record.message().to_json().unwrap();
        let entry = ParkedRecord::of_partition(&record, body.as_bytes(), Utc::now());
        self.state.write(&self.state.root().parked(id), &entry).await.unwrap();
        record
    }

    async fn parked_body(&self, body: &str) -> String {
        let id = parked_id_of_body(body.as_bytes());
        let entry = ParkedRecord::of_body(NOT_A_MESSAGE, body.as_bytes(), 1, Utc::now());
        self.state.write(&self.state.root().parked(&id), &entry).await.unwrap();
        id
    }

    async fn messages(&self) -> Vec<Message> {
        let received = self.queue.receive(32, std::time::Duration::from_secs(1)).await.unwrap();
        received.iter().map(|received| parse_message(received.text.as_bytes()).unwrap()).collect()
    }

    async fn left_over(&self) -> usize {
        self.state.list_parked().await.unwrap().len()
    }
}

fn counts(requeued: u64, left: u64, failed: u64) -> RequeueSummary {
    RequeueSummary { requeued, left, failed }
}

#[tokio::test]
async fn a_parked_partition_goes_back_under_a_new_gen_with_nothing_counted() {
    let place = Place::new().await;
    let parked = place.parked("spans", "f0").await;
    let (summary, entries) = place.run(None, &[]).await;
    assert_eq!(summary, counts(1, 0, 0));
    assert_eq!(
        entries[0].to_json(),
        json!({"id": "f0", "dataset": "spans", "partition": {"day": "2026-11-01"}, "outcome": "requeued",
               "reason": "dies at merge"})
    );
    let record = place.state.read(&place.state.root().inflight("spans", "f0")).await.unwrap().unwrap().value;
    assert_ne!(record.generation, parked.generation);
    assert_eq!((record.attempts, record.outcome, record.not_before), (0, None, None));
    assert!(record.sent_at.is_some());
    let messages = place.messages().await;
    assert_eq!(messages, [record.message()]);
    assert_eq!(place.left_over().await, 0);
    assert_eq!(place.run(None, &[]).await.0, counts(0, 0, 0), "once more does nothing");
}

#[tokio::test]
async fn only_what_was_asked_for_goes_back() {
    let place = Place::new().await;
    place.parked("spans", "f0").await;
    place.parked("spans", "f1").await;
    place.parked("logs", "f2").await;
    let (summary, entries) = place.run(Some("logs"), &[]).await;
    assert_eq!((summary, entries[0].id.as_str()), (counts(1, 0, 0), "f2"));
    let (summary, entries) = place.run(None, &["f1", "f9"]).await;
    assert_eq!(summary, counts(1, 0, 1));
    assert_eq!((entries[0].id.as_str(), entries[1].id.as_str()), ("f1", "f9"));
    assert_eq!(entries[1].reason, "there is no parked entry of this id");
    assert_eq!(place.left_over().await, 1);
}

#[tokio::test]
async fn without_a_record_it_is_asked_for_by_hand() {
    let place = Place::new().await;
    let record = place.parked("spans", "f0").await;
    place.state.discard(&place.state.root().inflight("spans", "f0")).await.unwrap();
    assert_eq!(place.run(None, &[]).await.0, counts(1, 0, 0));
    let messages = place.messages().await;
    assert_eq!(messages, [Message { generation: None, pass: None, ..record.message() }]);
    assert_eq!(messages[0].kind(), MessageKind::ByHandPartition);
}

#[tokio::test]
async fn a_partition_that_is_queued_again_is_left() {
    let place = Place::new().await;
    let record = place.parked("spans", "f0").await;
    let address = place.state.root().inflight("spans", "f0");
    place.state.write(&address, &record.requeued(Uuid::new_v4(), Utc::now())).await.unwrap();
    let (summary, entries) = place.run(None, &[]).await;
    assert_eq!((summary, entries[0].reason.as_str()), (counts(0, 1, 0), "its partition is in the queue already"));
    assert_eq!(place.messages().await, []);
    assert_eq!(place.left_over().await, 0, "an entry that says nothing true any more goes");
}

#[tokio::test]
async fn texts_go_back_only_when_they_are_messages_of_known_datasets() {
    let place = Place::new().await;
    let good = place.parked_body("{\"dataset\":\"logs\",\"dryRun\":true}").await;
    let unknown = place.parked_body("{\"dataset\":\"metrics\"}").await;
    let junk = place.parked_body("hello").await;
    let (summary, entries) = place.run(None, &[]).await;
    assert_eq!(summary, counts(1, 2, 0));
    let of = |id: &str| entries.iter().find(|entry| entry.id == id).unwrap();
    assert_eq!(of(&good).outcome, RequeueOutcome::Requeued);
    assert_eq!(of(&unknown).reason, "dataset metrics is not in firn.yaml: add it, restart the handler, then requeue");
    assert!(of(&junk).reason.starts_with("its text is no message, so nothing can be sent"));
    assert_eq!(place.messages().await, [Message { dry_run: true, ..Message::by_hand("logs") }]);
    assert_eq!(place.left_over().await, 2);
}
