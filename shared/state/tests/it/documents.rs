//! Documents in a store: versions, conflicts, leases, listings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use firn_model::{BlobId, PartitionJson, PartitionKey, PartitionValue, Rule, Scalar};
use firn_state::{
    DatasetCursor, InflightRecord, NOT_A_MESSAGE, ParkedRecord, PassRecord, Selection, StateError, StateRoot,
    StateStore, TickRecord, hash_inputs, parked_id_of_body,
};
use firn_storage::{BlobStore, Deleted, Lease, MemoryStore, PutCondition};
use uuid::Uuid;

fn state() -> (StateStore, MemoryStore) {
    let memory = MemoryStore::new();
    let root = BlobId { account: "acct".into(), container: "firn-state".into(), key: String::new() };
    (StateStore::new(Arc::new(memory.clone()), Arc::new(memory.clone()), StateRoot::new(root)), memory)
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_764_547_200_123).unwrap()
}

fn record() -> InflightRecord {
    let selection = Selection {
        dataset: "spans".into(),
        partition: PartitionJson::from_iter([("day".into(), "2026-11-01".into())]),
        spec_id: 3,
        rule: Rule::Cold,
        pass: "p1".into(),
        inputs_hash: hash_inputs(["b", "a"]),
    };
    InflightRecord::new(&selection, Uuid::from_u128(1), now())
}

#[tokio::test]
async fn every_document_comes_back_as_it_was_written() {
    let (state, _) = state();
    let root = state.root().clone();
    let inflight = InflightRecord { step: Some("merge".into()), attempts: 2, started_at: Some(now()), ..record() }
        .parked("over budget", TimeDelta::hours(6), now());
    state.create(&root.inflight("spans", "f0"), &inflight).await.unwrap();
    assert_eq!(state.read(&root.inflight("spans", "f0")).await.unwrap().unwrap().value, inflight);

    let cursor =
        DatasetCursor { snapshot_id: Some(i64::MAX), planned_at: Some(now()), waiting: 3, ..DatasetCursor::default() };
    let tick = TickRecord {
        last_tick: Some(now()),
        schedule_done_until: None,
        cursors: [("spans".to_owned(), cursor)].into(),
        ..TickRecord::default()
    };
    state.create(&root.tick("compact"), &tick).await.unwrap();
    assert_eq!(state.read(&root.tick("compact")).await.unwrap().unwrap().value, tick);

    let parked = ParkedRecord::of_partition(&inflight, b"{\"dataset\":\"spans\"}", now());
    assert_eq!((parked.reason.as_str(), parked.attempts, parked.spec_id), ("over budget", 2, Some(3)));
    state.write(&root.parked("f0"), &parked).await.unwrap();
    state.write(&root.parked("f0"), &parked).await.unwrap();
    assert_eq!(state.read(&root.parked("f0")).await.unwrap().unwrap().value, parked);

    let mut pass = PassRecord::new("p1", Rule::Schedule, now());
    pass.sent.insert("spans".into(), 7);
    state.create(&root.pass("p1"), &pass).await.unwrap();
    assert_eq!(state.read(&root.pass("p1")).await.unwrap().unwrap().value, pass);
    assert_eq!(state.list_passes().await.unwrap()[0].address.name(), "p1");
}

#[tokio::test]
async fn documents_lie_where_the_design_says_in_a_form_people_can_read() {
    let (state, memory) = state();
    let root = state.root().clone();
    let key = PartitionKey::new(3, vec![PartitionValue { name: "day".into(), value: Some(Scalar::Date(20_758)) }]);
    let address = root.inflight("spans", &key.fingerprint("uuid"));
    assert_eq!(address.blob().key, format!("inflight/spans/{}", key.fingerprint("uuid")));
    state.create(&address, &record()).await.unwrap();
    let text = memory.read_all(address.blob()).await.unwrap();
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "version": 1, "gen": "00000000-0000-0000-0000-000000000001", "dataset": "spans",
            "partition": {"day": "2026-11-01"}, "specId": 3, "rule": "cold", "pass": "p1",
            "inputsHash": record().inputs_hash, "writtenAt": "2025-12-01T00:00:00.123Z", "sentAt": null, "startedAt": null,
            "attempts": 0, "retries": 0, "step": null, "notBefore": null, "outcome": null, "reason": null
        })
    );
    for (blob, key) in [
        (root.tick("compact").blob(), "ticks/compact"),
        (root.parked("x").blob(), "parked/x"),
        (root.pass("p").blob(), "passes/p"),
        (root.report("p").blob(), "reports/p.json"),
    ] {
        assert_eq!(blob.key, key);
    }
    for (dataset, segment) in [("../a/b", "~2e.~2fa~2fb"), ("..", "~2e~2e"), ("a b/ü.", "a~20b~2f~c3~bc~2e")] {
        assert_eq!(root.inflight(dataset, "f").blob().key, format!("inflight/{segment}/f"));
    }
    let folder = StateRoot::new(BlobId::local("/wh/firn-state"));
    assert_eq!(folder.tick("compact").blob().key, "/wh/firn-state/ticks/compact");
}

#[tokio::test]
async fn the_second_of_two_writers_is_told() {
    let (state, _) = state();
    let address = state.root().inflight("spans", "f0");
    assert_eq!(state.read(&address).await.unwrap(), None);
    let first = state.create(&address, &record()).await.unwrap();
    let changed = StateError::Changed { blob: Box::new(address.blob().clone()) };
    assert_eq!(state.create(&address, &record()).await, Err(changed.clone()));
    let second = state.replace(&address, &record().at_step("merge"), &first, None).await.unwrap();
    assert_eq!(state.replace(&address, &record(), &first, None).await, Err(changed.clone()));
    assert_eq!(state.delete(&address, &first, None).await, Err(changed.clone()));
    let read = state.read(&address).await.unwrap().unwrap();
    assert_eq!((read.version, read.value.step.as_deref()), (second.clone(), Some("merge")));
    assert_eq!(state.delete(&address, &second, None).await, Ok(Deleted::Deleted));
    assert_eq!(state.replace(&address, &record(), &second, None).await, Err(changed.clone()));
    assert!(changed.is_conflict() && !changed.is_retryable());
}

#[tokio::test]
async fn a_record_under_lease_is_changed_by_its_holder_only() {
    let (state, memory) = state();
    let address = state.root().inflight("spans", "f0");
    let version = state.create(&address, &record()).await.unwrap();
    let lease = memory.acquire(address.blob(), Duration::from_secs(60)).await.unwrap();
    let leased = StateError::Leased { blob: Box::new(address.blob().clone()) };
    assert_eq!(state.replace(&address, &record(), &version, None).await, Err(leased.clone()));
    assert_eq!(state.delete(&address, &version, None).await, Err(leased.clone()));
    assert_eq!(state.discard(&address).await, Err(leased));
    let version = state.replace(&address, &record().at_step("merge"), &version, Some(&lease)).await.unwrap();
    assert_eq!(state.delete(&address, &version, Some(&lease)).await, Ok(Deleted::Deleted));
}

#[tokio::test]
async fn newer_and_broken_documents_say_so() {
    let (state, memory) = state();
    let address = state.root().tick("compact");
    for (text, part) in [
        ("{\"version\":2,\"lastTick\":[]}", "has version 2, this Firn reads up to 1: deploy the newer Firn"),
        ("{\"version\":0}", "version 0 was never written"),
        ("{\"lastTick\":null}", "it has no version"),
        ("junk", "cannot be read as a document of Firn"),
        ("{\"version\":1,\"lastTick\":\"soon\"}", "`soon` is not a time"),
    ] {
        memory.put(address.blob(), Bytes::from(text), PutCondition::Any).await.unwrap();
        let error = state.read(&address).await.unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(matches!(error, StateError::Newer { .. }), text.contains('2'));
    }
}

#[tokio::test]
async fn listings_are_by_dataset_and_read_one_by_one() {
    let (state, _) = state();
    let root = state.root().clone();
    for (dataset, name) in [("spans", "b"), ("spans", "a"), ("spans2", "c")] {
        state.create(&root.inflight(dataset, name), &record()).await.unwrap();
    }
    let listed = state.list_inflight(Some("spans")).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|listed| listed.address.name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(state.list_inflight(None).await.unwrap().len(), 3);
    let read = state.read_listed(&listed[0]).await.unwrap().unwrap();
    assert_eq!(read.value, record());
    state.delete(&listed[0].address, &read.version, None).await.unwrap();
    assert_eq!(state.read_listed(&listed[0]).await.unwrap(), None);
}

#[test]
fn the_state_never_lies_below_a_table() {
    let root = StateRoot::new(BlobId::local("/wh/firn-state"));
    for (location, below) in [
        ("/wh", true),
        ("/wh/", true),
        ("/wh/firn-state", true),
        ("/", true),
        ("/wh/firn-state2", false),
        ("/wh/ns/t", false),
        ("/wh/firn-state/t", false),
        ("/w", false),
    ] {
        assert_eq!(root.lies_below(&BlobId::local(location)), below, "{location}");
    }
    let container = |name: &str, key: &str| BlobId { account: "a".into(), container: name.into(), key: key.into() };
    let root = StateRoot::new(container("firn-state", ""));
    assert!(root.lies_below(&container("firn-state", "")));
    assert!(!root.lies_below(&container("firn-state", "wh")));
    assert!(!root.lies_below(&container("lake", "")));
}

#[test]
fn inputs_are_hashed_in_any_order_and_names_do_not_run_together() {
    assert_eq!(hash_inputs(["a", "b"]), hash_inputs(["b", "a"]));
    assert_ne!(hash_inputs(["a", "b"]), hash_inputs(["ab"]));
    assert_ne!(hash_inputs(["a"]), hash_inputs(["a", "a"]));
    assert_eq!(hash_inputs([]).len(), 64);
}

#[test]
fn a_body_is_kept_up_to_8_kb_whatever_it_is() {
    let parked = ParkedRecord::of_body(NOT_A_MESSAGE, &[0xFF; 10_000], 5, now());
    assert_eq!((parked.reason.as_str(), parked.attempts, parked.dataset), ("not a Firn message", 5, None));
    assert!(parked.body.len() <= 8192 && parked.body.starts_with('\u{FFFD}'));
    assert_eq!(parked_id_of_body(b"junk"), parked_id_of_body(b"junk"));
    assert_ne!(parked_id_of_body(b"junk"), parked_id_of_body(b"junk\n"));
}
