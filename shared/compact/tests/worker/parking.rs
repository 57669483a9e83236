//! Messages that are given up, with a reason that a person can read.

use std::time::Duration;

use base64::Engine as _;
use chrono::TimeDelta;
use firn_compact::WorkOutcome;
use firn_model::Rule;
use firn_state::{InflightRecord, RecordOutcome, SendDecision, SendReason, Situation, decide_send};
use firn_storage::Queue;

use crate::lake::incompatible;
use crate::scene::{BACKLOG, Scene, delivered};

#[tokio::test]
async fn what_is_no_message_is_parked_with_its_text() {
    let scene = Scene::with_backlog().await;
    let utf16: Vec<u8> = "{\"dataset\":\"readings\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (body, says) in [
        (b"junk!".to_vec(), "not JSON"),
        (b"17".to_vec(), "a number"),
        (base64::engine::general_purpose::STANDARD.encode(utf16).into_bytes(), "UTF-16"),
        (
            b"{\"dataset\":\"reading\"}".to_vec(),
            "no dataset \"reading\" in firn.yaml; it has readings; the handler reads its configuration when it starts",
        ),
        (b"{\"dataset\":\"readings\",\"colour\":\"blue\"}".to_vec(), "`colour`"),
        (
            b"{\"dataset\":\"readings\",\"partition\":{\"q\":\"a\"}}".to_vec(),
            "dataset \"readings\": \"q\" is no partition field; spec 0 has p (identity)",
        ),
        (b"{\"dataset\":\"readings\",\"partition\":{}}".to_vec(), "partition field \"p\" is missing"),
        (
            b"{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"specId\":4}".to_vec(),
            "table `db.t` has no partition spec 4; it has 0",
        ),
    ] {
        let answer = scene.work(body.clone(), 1).await;
        assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false), "{answer:?}");
        assert!(answer.reason.contains(says), "{says}: {}", answer.reason);
        assert_eq!(scene.events.only(), ("parked".to_owned(), "parked".to_owned()));
        let id = firn_state::parked_id_of_body(&body);
        let parked = scene.parked().await;
        let (_, entry) = parked.iter().find(|(name, _)| *name == id).unwrap();
        assert_eq!((entry.reason.as_str(), entry.body.as_bytes()), (answer.reason.as_str(), body.as_slice()));
    }
    assert_eq!(scene.queue_length().await, 0);
    assert_eq!(scene.lake.contents().await.0, 8);
}

#[tokio::test]
async fn a_newer_version_waits_for_a_newer_handler_as_long_as_it_lives() {
    let scene = Scene::with_backlog().await;
    let body = "{\"v\":2,\"dataset\":\"readings\",\"wish\":1}";
    let mut message = delivered(body, 3);
    message.expires = Some(scene.now() + TimeDelta::hours(10));
    let answer = firn_compact::work(&scene.services, message).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
    let events = scene.events.take();
    assert_eq!((&events[0]["event"], &events[0]["hiddenSeconds"]), (&"messageDeferred".into(), &3600.into()));
    scene.advance_minutes(59);
    assert!(scene.next_message().await.is_none());
    scene.advance_minutes(1);
    let again = scene.queue.receive(1, Duration::ZERO).await.unwrap().pop().unwrap();
    assert_eq!((again.text.as_str(), again.expires - scene.now()), (body, TimeDelta::hours(9)));
}

#[tokio::test]
async fn incompatible_types_park_the_partition_until_its_inputs_change() {
    let scene = Scene::new(BACKLOG).await;
    scene.lake.append("a", 5, 10, 0).await;
    scene.lake.append_file("a", incompatible(10, "a"), 10).await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false), "{answer:?}");
    assert!(answer.reason.contains("types of column `id` are not compatible"), "{}", answer.reason);
    assert_eq!(scene.events.only(), ("parked".to_owned(), "parked".to_owned()));
    let record = scene.record("a").await.unwrap();
    assert_eq!(record.outcome, Some(RecordOutcome::Parked));
    assert_eq!(record.not_before, Some(scene.now() + TimeDelta::hours(6)));
    let entry = scene.parked_under_partition("a").await;
    assert_eq!((entry.reason, entry.inputs_hash), (answer.reason, record.inputs_hash.clone()));
    assert!(!record.inputs_hash.is_empty());
    // Another delivery of it changes nothing.
    assert_eq!(scene.work_on(&record, 1).await.outcome, WorkOutcome::Superseded);
    assert_eq!(scene.lake.snapshots().await, 6);
}

const WITHOUT_READINGS: &str =
    "compaction: { cooldownHours: 2 }\ningestion: { datasets: [ { name: logs, table: db.logs } ] }\n";

#[tokio::test]
async fn a_table_that_is_not_there_parks_the_message() {
    let scene = Scene::new(BACKLOG).await;
    let services = scene.configured("ingestion: { datasets: [ { name: readings, table: db.gone } ] }\n");
    let body = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"}}";
    let answer = firn_compact::work(&services, delivered(body, 1)).await;
    assert_eq!(answer.outcome, WorkOutcome::Parked, "{answer:?}");
    assert!(answer.reason.contains("`db.gone` is not in catalog"), "{}", answer.reason);
    assert_eq!(scene.parked().await[0].0, firn_state::parked_id_of_body(body.as_bytes()), "by hand there is no record");
    // The record of a planner's message waits for nothing else.
    let record = scene.queued("a", Rule::Backlog, "").await;
    let answer = firn_compact::work(&services, delivered(record.message().to_json().unwrap(), 1)).await;
    assert_eq!(answer.outcome, WorkOutcome::Parked, "{answer:?}");
    assert_eq!(scene.record("a").await.unwrap().outcome, Some(RecordOutcome::Parked));
    assert_eq!(scene.parked_under_partition("a").await.reason, answer.reason);
}

#[tokio::test]
async fn a_dataset_that_is_not_configured_parks_its_partition_until_the_cool_down_ends() {
    let scene = Scene::with_backlog().await;
    let services = scene.configured(WITHOUT_READINGS);
    let other = scene.queued("b", Rule::Backlog, "planned").await;
    let record = scene.queued("a", Rule::Backlog, "planned").await;
    let answer = firn_compact::work(&services, delivered(record.message().to_json().unwrap(), 1)).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false), "{answer:?}");
    assert_eq!(
        answer.reason,
        "no dataset \"readings\" in firn.yaml; it has logs; the handler reads its configuration when it starts: add the \
         dataset, restart the handler, then firn requeue, or wait for cooldownHours"
    );
    assert_eq!(scene.events.only(), ("parked".to_owned(), "parked".to_owned()));
    let parked = scene.record("a").await.unwrap();
    let cooled_down = scene.now() + TimeDelta::hours(2);
    assert_eq!((parked.outcome, parked.not_before), (Some(RecordOutcome::Parked), Some(cooled_down)));
    assert_eq!((parked.generation, &parked.reason), (record.generation, &Some(answer.reason.clone())));
    let entry = scene.parked_under_partition("a").await;
    assert_eq!((entry.reason.as_str(), entry.inputs_hash.as_str()), (answer.reason.as_str(), "planned"));
    assert_eq!((scene.parked().await.len(), scene.queue_length().await), (1, 0), "one entry, under the partition");
    assert_eq!(scene.record("b").await.unwrap(), other, "another message's record stays as it is");
    // The planner of a configuration that has it again.
    let selection = Scene::selection("a", Rule::Backlog, "planned");
    let decide = |now| {
        let situation = Situation { leased: false, queue_empty: true, generation: uuid::Uuid::new_v4(), now };
        decide_send(Some(&parked), &selection, &situation)
    };
    assert!(matches!(decide(scene.now()), SendDecision::Skip { .. }));
    assert!(matches!(decide(cooled_down), SendDecision::Send { reason: SendReason::CooledDown, .. }));
    // A second delivery of the same message changes nothing.
    scene.events.take();
    firn_compact::work(&services, delivered(record.message().to_json().unwrap(), 2)).await;
    assert_eq!(scene.record("a").await.unwrap(), parked);
}

#[tokio::test]
async fn a_record_that_a_worker_has_or_that_waits_for_a_newer_message_is_not_parked() {
    let scene = Scene::with_backlog().await;
    let services = scene.configured(WITHOUT_READINGS);
    let record = scene.queued("a", Rule::Backlog, "planned").await;
    let stale = InflightRecord { generation: uuid::Uuid::new_v4(), ..record.clone() };
    let work = async |record: &InflightRecord| {
        let body = record.message().to_json().unwrap();
        firn_compact::work(&services, delivered(body, 1)).await
    };
    assert_eq!(work(&stale).await.outcome, WorkOutcome::Parked);
    assert_eq!(scene.record("a").await.unwrap(), record, "a newer message counts");
    let _lease = scene.take_lease("a").await;
    assert_eq!(work(&record).await.outcome, WorkOutcome::Parked);
    assert_eq!(scene.record("a").await.unwrap(), record, "a worker has it");
}

#[tokio::test]
async fn what_the_host_gives_up_parks_the_partition_of_a_dataset_that_is_not_configured_too() {
    let scene = Scene::with_backlog().await;
    let services = scene.configured(WITHOUT_READINGS);
    let record = scene.queued("a", Rule::Backlog, "planned").await;
    let body = record.message().to_json().unwrap();
    let answer = firn_compact::poison(&services, body.as_bytes(), "invocation").await;
    assert_eq!(answer.outcome, WorkOutcome::Parked, "{answer:?}");
    assert!(answer.reason.starts_with("the host gave the message up: no dataset \"readings\""), "{}", answer.reason);
    assert_eq!(scene.record("a").await.unwrap().outcome, Some(RecordOutcome::Parked));
    assert_eq!(scene.parked_under_partition("a").await.reason, answer.reason);
}
