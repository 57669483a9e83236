//! Several deliveries of one message, several messages of one partition, and leases that change hands.

use std::sync::Arc;
use std::time::Duration;

use firn_compact::{WorkOutcome, work};
use firn_model::Rule;
use firn_storage::Lease;
use futures::future::join_all;
use tokio::sync::Notify;

use crate::faulty_catalog::Swap;
use crate::scene::{Scene, delivered};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_duplicates_side_by_side_one_works_and_none_is_parked() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    let answers = join_all((0..4).map(|_| work(&scene.services, delivered(body.clone(), 4)))).await;
    let count = |outcome| answers.iter().filter(|answer| answer.outcome == outcome).count();
    assert_eq!((count(WorkOutcome::Done), count(WorkOutcome::Superseded)), (1, 3), "{answers:#?}");
    assert_eq!(scene.events.take().len(), 4);
    scene.assert_merged(80).await;
    // A losing duplicate that the host delivers for the fifth time does not park the healthy partition either.
    assert_eq!(scene.work(body, 5).await.outcome, WorkOutcome::Superseded);
    assert_eq!(scene.parked().await, []);
}

/// Holds every swap until the second handle is notified; the first tells that one waits.
fn gate(scene: &Scene) -> (Arc<Notify>, Arc<Notify>) {
    let (waits, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handles = (waits.clone(), go.clone());
    scene.catalog.on_swap(move |_| {
        let (waits, go) = (waits.clone(), go.clone());
        Box::pin(async move {
            waits.notify_one();
            go.notified().await;
            Swap::Goes
        })
    });
    handles
}

#[tokio::test]
async fn a_redelivery_while_the_first_run_works_is_superseded() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    let (waits, go) = gate(&scene);
    let services = scene.services.clone();
    let message = delivered(body.clone(), 1);
    let first = tokio::spawn(async move { work(&services, message).await });
    waits.notified().await;
    let second = scene.work(body, 2).await;
    assert_eq!((second.outcome, second.fault), (WorkOutcome::Superseded, false));
    assert_eq!(second.reason, "another worker has the partition");
    go.notify_one();
    assert_eq!(first.await.unwrap().outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn by_hand_on_a_running_partition_is_sent_again() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let (waits, go) = gate(&scene);
    let services = scene.services.clone();
    let message = delivered(record.message().to_json().unwrap(), 1);
    let first = tokio::spawn(async move { work(&services, message).await });
    waits.notified().await;
    let by_hand = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}\n";
    let answer = scene.work(by_hand, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
    go.notify_one();
    assert_eq!(first.await.unwrap().outcome, WorkOutcome::Done);
    scene.catalog.heal();
    scene.advance_minutes(4);
    assert!(scene.next_message().await.is_none());
    scene.advance_minutes(1);
    let again = scene.next_message().await.unwrap();
    assert_eq!(again.text, by_hand);
    assert_eq!(scene.work(again.text, 1).await.outcome, WorkOutcome::Left, "one file is one sorted run");
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn who_loses_the_lease_commits_nothing_and_leaves_the_record_to_the_other() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    let (store, clock) = (scene.store.clone(), scene.clock.clone());
    let blob = scene.address("a").await.blob().clone();
    // While the table is loaded for the work, this process stands still for a minute and another worker takes over.
    scene.catalog.on_load(move |number| {
        let (store, clock, blob) = (store.clone(), clock.clone(), blob.clone());
        Box::pin(async move {
            if number == 2 {
                clock.advance(Duration::from_secs(61));
                store.acquire(&blob, Duration::from_secs(60)).await.unwrap();
            }
            true
        })
    });
    let answer = scene.work(body.clone(), 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Superseded, false), "{answer:?}");
    scene.catalog.heal();
    assert_eq!(scene.lake.snapshots().await, 8, "nothing was committed");
    let kept = scene.record("a").await.unwrap();
    assert_eq!((kept.generation, kept.outcome), (record.generation, None));
    assert_eq!(scene.queue_length().await, 0);
    // The other one dies too; whoever comes then finishes.
    scene.advance_minutes(2);
    assert_eq!(scene.work(body, 2).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_lease_that_ran_out_and_that_nobody_took_ends_nothing() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let clock = scene.clock.clone();
    scene.catalog.on_load(move |number| {
        let clock = clock.clone();
        Box::pin(async move {
            if number == 2 {
                clock.advance(Duration::from_secs(61));
            }
            true
        })
    });
    assert_eq!(scene.work_on(&record, 1).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_message_without_a_record_or_of_another_gen_is_superseded() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let newer = firn_state::InflightRecord { generation: uuid::Uuid::new_v4(), ..record.clone() };
    scene.replace_record("a", &newer).await;
    let answer = scene.work_on(&record, 5).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Superseded, false));
    assert_eq!(answer.reason, format!("a newer message counts: gen {}", newer.generation));
    assert_eq!(scene.record("a").await, Some(newer), "untouched");
    assert_eq!(scene.parked().await, []);
    let mut other = record.clone();
    other.partition = serde_json::json!({ "p": "b" }).as_object().unwrap().clone();
    assert_eq!(scene.work_on(&other, 5).await.reason, "the partition is done: it has no record");
    assert_eq!(scene.events.take().len(), 2);
}
