//! What workers of one process and of one table share: memory and turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use firn_compact::{CommitTurns, LeaseTurns, MemoryBudget, WorkOutcome, work};
use firn_model::Rule;
use futures::future::join_all;
use serde_json::json;

use crate::faulty_catalog::Swap;
use crate::scene::{BACKLOG, Scene, delivered};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invocations_that_do_not_fit_together_run_one_after_the_other() {
    let mut scene = Scene::new(BACKLOG).await;
    scene.services.memory = MemoryBudget::new(200);
    let mut bodies = Vec::new();
    for p in ["a", "b", "c"] {
        scene.lake.append(p, 6, 10, 0).await;
        bodies.push(scene.queued(p, Rule::Backlog, "").await.message().to_json().unwrap());
    }
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    scene.catalog.on_swap(move |_| {
        let (at_once, most) = (at_once.clone(), most.clone());
        Box::pin(async move {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            Swap::Goes
        })
    });
    let answers = join_all(bodies.into_iter().map(|body| work(&scene.services, delivered(body, 1)))).await;
    assert!(answers.iter().all(|answer| answer.outcome == WorkOutcome::Done), "{answers:#?}");
    assert_eq!(seen.load(Ordering::SeqCst), 1, "128 of 200 MB each");
    assert_eq!(scene.services.memory.free_mb(), 200);
}

#[tokio::test]
async fn a_message_that_gets_no_memory_in_its_time_is_sent_again() {
    let mut scene = Scene::with_backlog().await;
    scene.services.memory = MemoryBudget::new(200);
    scene.services.run_limit = Some(Duration::from_millis(50));
    let record = scene.queued("a", Rule::Backlog, "").await;
    let taken = scene.services.memory.reserve(150).await;
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
    drop(taken);
    assert_eq!(scene.record("a").await, Some(record), "no start was counted");
    scene.advance_minutes(1);
    scene.services.run_limit = None;
    let message = scene.next_message().await.unwrap();
    assert_eq!(scene.work(message.text, 1).await.outcome, WorkOutcome::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_workers_of_one_table_that_take_turns_lose_no_merge() {
    // Without a single retry every conflict would cost the merge.
    let mut scene = Scene::new(BACKLOG).await;
    scene.services.turns = Some(Arc::new(LeaseTurns::new((*scene.services.state).clone())));
    let mut bodies = Vec::new();
    for p in (0..16).map(|n| format!("p{n}")) {
        scene.lake.append(&p, 6, 5, 0).await;
        bodies.push(scene.queued(&p, Rule::Backlog, "").await.message().to_json().unwrap());
    }
    let answers = join_all(bodies.into_iter().map(|body| work(&scene.services, delivered(body, 1)))).await;
    for answer in &answers {
        assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
        assert_eq!((&answer.counts["tries"], &answer.counts["conflicts"]), (&json!(1), &json!(0)));
    }
    assert_eq!(scene.lake.contents().await.0, 16);
    assert_eq!((scene.queue_length().await, scene.parked().await), (0, vec![]));
}

#[tokio::test]
async fn a_turn_is_had_by_one_and_not_waited_for_without_end() {
    let scene = Scene::new(BACKLOG).await;
    let state = (*scene.services.state).clone();
    let turns = LeaseTurns::waiting_at_most(state.clone(), Duration::from_millis(400));
    let first = turns.take("table-1").await.expect("nobody has it");
    assert!(turns.take("table-1").await.is_none(), "the commit goes ahead without");
    let other = turns.take("table-2").await.expect("another table's turn is another turn");
    first.give_back().await;
    turns.take("table-1").await.expect("given back").give_back().await;
    other.give_back().await;
    // Of a holder that died the turn ends by itself.
    std::mem::forget(turns.take("table-1").await.unwrap());
    scene.clock.advance(Duration::from_secs(16));
    assert!(turns.take("table-1").await.is_some());
}
