//! Workers that die without a word.

use std::time::Duration;

use firn_compact::{WorkOutcome, work};
use firn_model::Rule;
use firn_state::RecordOutcome;

use crate::faulty_catalog::Swap;
use crate::scene::{Scene, delivered};

/// Works until the commit hangs, then the worker is gone: the lease runs out.
async fn die_while_committing(scene: &Scene, body: &str, dequeue_count: u64) {
    let (reached, waiting) = tokio::sync::oneshot::channel::<()>();
    let reached = std::sync::Mutex::new(Some(reached));
    scene.catalog.on_swap(move |_| {
        if let Some(reached) = reached.lock().unwrap().take() {
            let _ = reached.send(());
        }
        Box::pin(async { Swap::Hangs })
    });
    let services = scene.services.clone();
    let message = delivered(body, dequeue_count);
    let worker = tokio::spawn(async move { work(&services, message).await });
    waiting.await.unwrap();
    worker.abort();
    assert!(worker.await.unwrap_err().is_cancelled());
    scene.catalog.heal();
    scene.clock.advance(Duration::from_secs(61));
}

#[tokio::test]
async fn one_message_whose_worker_always_dies_is_parked_with_the_last_step() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    for delivery in 1..=4 {
        die_while_committing(&scene, &body, delivery).await;
        let left = scene.record("a").await.unwrap();
        assert_eq!(u64::from(left.attempts), delivery);
        assert_eq!(left.step.as_deref(), Some("5 committing, group 1 (8 files)"));
        assert!(left.started_at.is_some());
    }
    scene.events.take();
    let answer = scene.work(body, 5).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false), "{answer:?}");
    assert_eq!(
        answer.reason,
        "DequeueCount at 5, attempts at 4: the last attempt ended without an outcome at step 5 committing, group 1 (8 files)"
    );
    assert_eq!(scene.events.only(), ("parked".to_owned(), "parked".to_owned()));
    let parked = scene.record("a").await.unwrap();
    assert_eq!((parked.outcome, parked.attempts), (Some(RecordOutcome::Parked), 5));
    assert_eq!(parked.not_before, Some(scene.now() + chrono::TimeDelta::hours(6)));
    assert_eq!(scene.parked_under_partition("a").await.reason, answer.reason);
    assert_eq!(scene.lake.contents().await, (8, (0..80).collect()), "nothing was lost");
    assert_eq!(scene.queue_length().await, 0);
}

#[tokio::test]
async fn attempts_are_counted_over_messages_too() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    for _ in 1..=5 {
        die_while_committing(&scene, &body, 1).await;
    }
    let answer = scene.work(body, 1).await;
    assert_eq!(answer.outcome, WorkOutcome::Parked, "{answer:?}");
    assert!(answer.reason.starts_with("attempts at 5: "), "{}", answer.reason);
}

#[tokio::test]
async fn a_start_after_a_death_takes_the_partition_over() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let body = record.message().to_json().unwrap();
    die_while_committing(&scene, &body, 1).await;
    assert_eq!(scene.work(body, 2).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}
