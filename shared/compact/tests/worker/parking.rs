//! Messages that are given up, with a reason that a person can read.

use std::time::Duration;

use base64::Engine as _;
use firn_compact::WorkOutcome;
use firn_model::Rule;
use firn_state::RecordOutcome;
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
        (b"{\"dataset\":\"reading\"}".to_vec(), "no dataset \"reading\" in firn.yaml; it has readings"),
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
    message.expires = Some(scene.now() + chrono::TimeDelta::hours(10));
    let answer = firn_compact::work(&scene.services, message).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
    let events = scene.events.take();
    assert_eq!((&events[0]["event"], &events[0]["hiddenSeconds"]), (&"messageDeferred".into(), &3600.into()));
    scene.advance_minutes(59);
    assert!(scene.next_message().await.is_none());
    scene.advance_minutes(1);
    let again = scene.queue.receive(1, Duration::ZERO).await.unwrap().pop().unwrap();
    assert_eq!((again.text.as_str(), again.expires - scene.now()), (body, chrono::TimeDelta::hours(9)));
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
    assert_eq!(record.not_before, Some(scene.now() + chrono::TimeDelta::hours(6)));
    let entry = scene.parked_under_partition("a").await;
    assert_eq!((entry.reason, entry.inputs_hash), (answer.reason, record.inputs_hash.clone()));
    assert!(!record.inputs_hash.is_empty());
    // Another delivery of it changes nothing.
    assert_eq!(scene.work_on(&record, 1).await.outcome, WorkOutcome::Superseded);
    assert_eq!(scene.lake.snapshots().await, 6);
}

#[tokio::test]
async fn a_table_that_is_not_there_parks_the_message() {
    let scene = Scene::new(BACKLOG).await;
    let mut services = scene.services.clone();
    let yaml = "catalog: { type: sql, uri: \"sqlite:////x/catalog.db\", name: lake, warehouse: \"file:///wh\" }\n\
                ingestion: { datasets: [ { name: readings, table: db.gone } ] }\n";
    let config = firn_config::Config::load(yaml, &std::collections::BTreeMap::new()).unwrap();
    services.config = std::sync::Arc::new(config);
    let body = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"}}";
    let answer = firn_compact::work(&services, delivered(body, 1)).await;
    assert_eq!(answer.outcome, WorkOutcome::Parked, "{answer:?}");
    assert!(answer.reason.contains("`db.gone` is not in catalog"), "{}", answer.reason);
}
