//! Rows of the outcome table: done, nothing to do, retry, fault; the rest after a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_compact::WorkOutcome;
use firn_model::Rule;
use firn_state::RecordOutcome;
use futures::FutureExt;
use serde_json::json;

use crate::faulty_catalog::Swap;
use crate::lake::Lake;
use crate::scene::{BACKLOG, Scene, delivered};

fn pair(event: &str, outcome: &str) -> (String, String) {
    (event.to_owned(), outcome.to_owned())
}

#[tokio::test]
async fn a_merged_partition_answers_with_counts_and_leaves_no_record() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "seen").await;
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Done, false), "{answer:?}");
    let json = answer.to_json();
    assert_eq!((&json["outcome"], &json["filesBefore"], &json["filesAfter"]), (&json!("done"), &json!(8), &json!(1)));
    assert_eq!((&json["rowsIn"], &json["rowsOut"], &json["tries"]), (&json!(80), &json!(80), &json!(1)));
    assert_eq!(scene.events.only(), pair("partitionFinished", "done"));
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn what_does_not_fit_at_once_is_merged_in_parts_and_says_how_they_become_one() {
    let scene = Scene::new(BACKLOG).await;
    scene.lake.append("a", 48, 10_000, 0).await;
    let services = scene.configured(
        "compaction: { memoryMb: 64, tempDiskMb: 0 }\n\
         ingestion: { datasets: [ { name: readings, table: db.t, sortColumns: [id] } ] }\n",
    );
    let full = async || {
        let body = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}";
        firn_compact::work(&services, delivered(body, 1)).await
    };
    let answer = full().await;
    assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
    let (parts, ids) = scene.lake.contents().await;
    assert_eq!(ids.len(), 480_000);
    assert!(ids.iter().copied().eq(0..480_000));
    assert!(parts > 1, "{answer:?}");
    let merged = format!("48 files that are not one sorted run; merged in {parts} parts, not at once (");
    assert!(answer.reason.starts_with(&merged), "{}", answer.reason);
    let remedy =
        "): firn compact --full once more makes one sorted run of them, more memoryMb or tempDiskMb makes it at once";
    assert!(answer.reason.ends_with(remedy), "{}", answer.reason);
    let again = full().await;
    assert_eq!(
        (again.outcome, again.reason),
        (WorkOutcome::Done, format!("{parts} files that are not one sorted run"))
    );
    assert_eq!(scene.lake.contents().await, (1, ids));
}

/// K96: a file that is larger than the target, beside none, one and two small ones.
#[tokio::test]
async fn a_file_above_the_target_loses_no_row_whatever_is_beside_it() {
    for small in 0..=2 {
        let scene = Scene::new("targetSizeMb: 2, minFileSizeMb: 1, verify: reread").await;
        scene.lake.append("a", 1, 400_000, 0).await;
        scene.lake.append("a", small, 10, 400_000).await;
        let record = scene.queued("a", Rule::Full, "").await;
        let answer = scene.work_on(&record, 1).await;
        let (files, ids) = scene.lake.contents().await;
        let rows = 400_000 + 10 * i64::try_from(small).unwrap();
        assert!(ids.iter().copied().eq(0..rows), "{small} small files: {} rows", ids.len());
        if small < 2 {
            // Without a row order one small file is well beside large ones.
            assert_ne!(answer.outcome, WorkOutcome::Done, "{answer:?}");
            assert_eq!(files, 1 + small);
        } else {
            assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
            let json = answer.to_json();
            assert_eq!(json["rowsIn"], json["rowsOut"]);
            assert!(files < 3, "{answer:?}");
        }
    }
}

/// K52: one process makes three passes over a table that another writer appends to.
#[tokio::test]
async fn a_process_that_stays_sees_what_was_appended_between_its_passes() {
    let scene = Scene::new(BACKLOG).await;
    for pass in 0..3_i64 {
        scene.lake.append("a", 8, 10, pass * 90).await;
        let record = scene.queued("a", Rule::Schedule, &format!("pass {pass}")).await;
        // And one more after the worker has loaded the table.
        let store = firn_table::TableStore::new(Arc::new(scene.store.clone()));
        let lake = Arc::new(Lake::open(&scene.lake.database, store).await);
        let appended = Arc::new(AtomicBool::new(false));
        scene.catalog.on_swap(move |_| {
            let (lake, appended) = (lake.clone(), appended.clone());
            Box::pin(async move {
                if !appended.swap(true, Ordering::SeqCst) {
                    lake.append_beside("a", 10, pass * 90 + 80).await;
                }
                Swap::Goes
            })
        });
        let answer = scene.work_on(&record, 1).await;
        assert_eq!(answer.outcome, WorkOutcome::Done, "pass {pass}: {answer:?}");
        scene.catalog.heal();
        let (_, ids) = scene.lake.contents().await;
        assert!(ids.iter().copied().eq(0..(pass + 1) * 90), "pass {pass}: {} rows", ids.len());
    }
}

#[tokio::test]
async fn a_stale_message_is_a_cheap_no_op() {
    let scene = Scene::new(BACKLOG).await;
    scene.lake.append("a", 3, 10, 0).await;
    let record = scene.queued("a", Rule::Backlog, "what the planner saw").await;
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Left, false), "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "left"));
    assert_eq!(scene.record("a").await, None);
    assert_eq!(scene.lake.contents().await.0, 3);
}

#[tokio::test]
async fn nothing_to_do_in_what_the_planner_selected_rests() {
    let scene = Scene::new(BACKLOG).await;
    scene.lake.append("a", 3, 10, 0).await;
    let table = scene.lake.load().await;
    let order = firn_model::RowOrder::default();
    let wanted = [crate::scene::key("a")].into();
    let facts = firn_table::partition_facts(&table, "main", &wanted, &order).await.unwrap();
    let hash = firn_compact::facts_hash(&facts[&crate::scene::key("a")]);
    let record = scene.queued("a", Rule::Backlog, &hash).await;
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Cooling, false), "{answer:?}");
    let record = scene.record("a").await.unwrap();
    assert_eq!(record.outcome, Some(RecordOutcome::Cooling));
    assert_eq!(record.not_before, Some(scene.now() + chrono::TimeDelta::hours(6)));
    assert_eq!((record.attempts, record.inputs_hash), (0, hash));
    assert_eq!(scene.events.only(), pair("partitionFinished", "left"));
}

#[tokio::test]
async fn a_rule_raised_in_the_record_is_taken_from_there() {
    let scene = Scene::new(BACKLOG).await;
    scene.lake.append("a", 3, 10, 0).await;
    let sent = scene.queued("a", Rule::Backlog, "").await;
    scene.replace_record("a", &firn_state::InflightRecord { rule: Rule::Full, ..sent.clone() }).await;
    let answer = scene.work_on(&sent, 1).await;
    assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
    assert_eq!(scene.events.take()[0]["rule"], "full");
    scene.assert_merged(30).await;
}

#[tokio::test]
async fn conflicts_used_up_are_tried_again_under_a_new_gen() {
    let scene = Scene::with_backlog().await;
    let first = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.swaps(Swap::Conflict);
    let answer = scene.work_on(&first, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Retry, false), "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "retry"));
    // What was merged in vain is left to the next sweep.
    let [abandoned] = &scene.abandoned().await[..] else { panic!("one attempt") };
    assert_eq!(abandoned.paths.len(), 1);
    let table = scene.lake.load().await;
    assert!(table.io.exists(&abandoned.paths[0]).await.unwrap(), "{abandoned:?}");
    assert!(abandoned.reason.contains("met conflicting commits"), "{abandoned:?}");
    let record = scene.record("a").await.unwrap();
    assert_ne!(record.generation, first.generation);
    assert_eq!((record.attempts, record.retries, record.outcome), (0, 1, Some(RecordOutcome::Retry)));
    assert_eq!(record.not_before, Some(scene.now() + chrono::TimeDelta::minutes(2)));
    assert_eq!(record.sent_at, Some(scene.now()));
    assert!(scene.next_message().await.is_none(), "hidden for two minutes");
    // The old message no longer counts.
    assert_eq!(scene.work_on(&first, 2).await.outcome, WorkOutcome::Superseded);

    scene.advance_minutes(2);
    let second = scene.next_message().await.unwrap();
    assert_eq!(second.text, record.message().to_json().unwrap());
    assert_eq!(scene.work(second.text, 1).await.outcome, WorkOutcome::Retry);
    assert_eq!(scene.record("a").await.unwrap().retries, 2);
    scene.advance_minutes(3);
    assert!(scene.next_message().await.is_none(), "hidden for four minutes");
    scene.advance_minutes(1);
    scene.catalog.heal();
    let third = scene.next_message().await.unwrap();
    assert_eq!(scene.work(third.text, 1).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_commit_of_unknown_state_is_looked_for_later() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.swaps(Swap::Unknown);
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Retry, false), "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "unknown"));
    assert_eq!(scene.abandoned().await, [], "its outputs may be in the table");
    scene.catalog.heal();
    scene.advance_minutes(2);
    let message = scene.next_message().await.unwrap();
    assert_eq!(scene.work(message.text, 1).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_catalog_that_is_down_before_the_record_is_known_sends_the_same_text() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.loads_fail_from(1);
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
    assert_eq!(scene.events.only(), pair("messageDeferred", "deferred"));
    scene.catalog.heal();
    assert_eq!(scene.record("a").await, Some(record.clone()), "untouched");
    scene.advance_minutes(5);
    let again = scene.next_message().await.unwrap();
    assert_eq!(again.text, record.message().to_json().unwrap());
    assert_eq!(scene.work(again.text, 1).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_catalog_that_goes_down_during_the_work_is_a_retry() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.loads_fail_from(2);
    let answer = scene.work_on(&record, 1).await;
    assert_eq!(answer.outcome, WorkOutcome::Retry, "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "retry"));
    scene.catalog.heal();
    assert_eq!(scene.record("a").await.unwrap().retries, 1);
}

/// A secret that was changed parks nothing, however often it is met: a person is waited for, and then the work is done.
#[tokio::test]
async fn who_is_not_let_in_by_the_catalog_is_never_parked() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    let mut text = record.message().to_json().unwrap();
    // Met when the message is looked at.
    scene.catalog.shuts(true);
    for _ in 0..7 {
        let answer = scene.work(text, 1).await;
        assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Deferred, false), "{answer:?}");
        assert!(answer.reason.contains("does not let Firn in: HTTP 401: check catalog.auth"), "{answer:?}");
        scene.advance_minutes(60);
        text = scene.next_message().await.unwrap().text;
    }
    assert_eq!(scene.record("a").await, Some(record), "untouched");
    scene.catalog.shuts(false);
    // Met by the commit.
    scene.catalog.swaps(Swap::Denied);
    for retries in 1..=7 {
        let answer = scene.work(text, 1).await;
        assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Retry, false), "{answer:?}");
        assert!(answer.reason.contains("does not let Firn commit: HTTP 403"), "{answer:?}");
        let record = scene.record("a").await.unwrap();
        assert_eq!((record.attempts, record.retries, record.outcome), (0, retries, Some(RecordOutcome::Retry)));
        scene.advance_minutes(64);
        text = scene.next_message().await.unwrap().text;
    }
    assert_eq!(scene.parked().await, vec![]);
    scene.catalog.heal();
    assert_eq!(scene.work(text, 1).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

/// Merging costs far more than a commit: others who are faster for a while do not make it be done again.
#[tokio::test]
async fn a_merge_outlives_the_tries_of_one_commit() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    // Three commits of one try each lose.
    scene.catalog.on_swap(|n| Box::pin(async move { if n <= 3 { Swap::Conflict } else { Swap::Goes } }));
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Done, false), "{answer:?}");
    assert_eq!(answer.to_json()["tries"], json!(4));
    assert!(scene.abandoned().await.is_empty(), "merged once");
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn where_nothing_can_be_committed_nothing_is_merged() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.becomes_read_only();
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Left, false), "{answer:?}");
    assert_eq!(answer.reason, "this catalog is a view: nothing can be committed");
    assert!(scene.abandoned().await.is_empty(), "nothing was uploaded");
    assert_eq!(scene.lake.contents().await.0, 8);
}

#[tokio::test]
async fn a_retry_that_cannot_be_sent_is_a_fault_and_the_old_message_counts() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.swaps(Swap::Conflict);
    let mut broken = scene.services.clone();
    broken.queue = std::sync::Arc::new(firn_storage::MemoryQueue::new("not-there"));
    let body = record.message().to_json().unwrap();
    let answer = firn_compact::work(&broken, delivered(body.clone(), 1)).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Failed, true), "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "failed"));
    let kept = scene.record("a").await.unwrap();
    assert_eq!((kept.generation, kept.attempts), (record.generation, 1));
    scene.catalog.heal();
    assert_eq!(scene.work(body, 2).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_panic_leaves_the_start_counted_and_one_event() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.swaps(Swap::Panics);
    let body = record.message().to_json().unwrap();
    let unwound = std::panic::AssertUnwindSafe(scene.work(body.clone(), 1)).catch_unwind().await;
    assert!(unwound.is_err());
    assert_eq!(scene.events.only(), pair("partitionFinished", "failed"));
    assert_eq!(scene.record("a").await.unwrap().attempts, 1);
    scene.catalog.heal();
    scene.advance_minutes(2);
    assert_eq!(scene.work(body, 2).await.outcome, WorkOutcome::Done);
    scene.assert_merged(80).await;
}

/// Three groups of two files each.
async fn three_groups() -> Scene {
    let scene = Scene::new("targetSizeMb: 2, minFileSizeMb: 1, groupBudgetMb: 2, memoryMb: 128").await;
    scene.lake.append("a", 6, 80_000, 0).await;
    scene
}

#[tokio::test]
async fn finished_groups_are_committed_and_the_rest_goes_on_under_a_new_gen() {
    const LIMIT: Duration = Duration::from_secs(6);
    let mut scene = three_groups().await;
    scene.services.run_limit = Some(LIMIT);
    let record = scene.queued("a", Rule::Full, "").await;
    let over = std::time::Instant::now() + LIMIT;
    // The commit of the first group lasts until the time is up.
    scene.catalog.on_swap(move |_| {
        Box::pin(async move {
            tokio::time::sleep_until(over.into()).await;
            Swap::Goes
        })
    });
    let answer = scene.work_on(&record, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Continued, false), "{answer:?}");
    assert_eq!(scene.events.only(), pair("partitionFinished", "done"));
    assert_eq!(scene.lake.snapshots().await, 7, "one group is committed");
    let next = scene.record("a").await.unwrap();
    assert_ne!(next.generation, record.generation);
    assert_eq!((next.attempts, next.outcome), (0, Some(RecordOutcome::Continued)));

    scene.catalog.heal();
    scene.services.run_limit = None;
    let message = scene.next_message().await.expect("visible at once");
    assert_eq!(scene.work(message.text, 1).await.outcome, WorkOutcome::Done);
    assert!(scene.lake.snapshots().await > 7, "the rest too");
    assert_eq!(scene.lake.contents().await.1, (0..480_000).collect::<Vec<i64>>());
    assert_eq!((scene.record("a").await, scene.queue_length().await), (None, 0));
}

/// `messageBudgetMb`: a message does its share, group by group, and the next goes on.
#[tokio::test]
async fn a_message_replaces_no_more_than_its_budget() {
    let sizes = "targetSizeMb: 2, minFileSizeMb: 1, groupBudgetMb: 2, memoryMb: 128";
    // Three groups of less than 2 MB each.
    for (budget, messages) in [("1", 3), ("4", 2), ("5", 1), ("off", 1)] {
        let scene = Scene::new(&format!("{sizes}, messageBudgetMb: {budget}")).await;
        scene.lake.append("a", 6, 80_000, 0).await;
        let record = scene.queued("a", Rule::Full, "").await;
        let mut text = record.message().to_json().unwrap();
        for message in 1..=messages {
            let answer = scene.work(text.clone(), 1).await;
            if message == messages {
                assert_eq!(answer.outcome, WorkOutcome::Done, "{budget}, message {message}: {answer:?}");
                break;
            }
            assert_eq!(answer.outcome, WorkOutcome::Continued, "{budget}, message {message}: {answer:?}");
            assert!(answer.reason.contains("messageBudgetMb was used up"), "{answer:?}");
            assert_eq!(scene.record("a").await.unwrap().attempts, 0);
            text = scene.next_message().await.expect("visible at once").text;
        }
        assert_eq!(scene.lake.snapshots().await, 6 + 3, "{budget}: each group has its own commit");
        assert_eq!(scene.lake.contents().await.1, (0..480_000).collect::<Vec<i64>>());
        assert_eq!((scene.record("a").await, scene.queue_length().await), (None, 0));
    }
}

#[tokio::test]
async fn a_continuation_without_progress_does_not_go_on_for_ever() {
    let scene = three_groups().await;
    let first = scene.queued("a", Rule::Full, "").await;
    let mut text = first.message().to_json().unwrap();
    // The time of every message is up before its first group.
    for attempt in 1..=5_u32 {
        let services = without_time_for_a_group(&scene);
        let answer = firn_compact::work(&services, delivered(text.clone(), 1)).await;
        assert_eq!(answer.outcome, WorkOutcome::Continued, "attempt {attempt}: {answer:?}");
        assert_eq!(scene.record("a").await.unwrap().attempts, attempt);
        text = scene.next_message().await.unwrap().text;
        scene.catalog.heal();
    }
    let answer = scene.work(text, 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false), "{answer:?}");
    assert!(answer.reason.contains("the time of one message ended at step 2 loaded"), "{answer:?}");
    assert_eq!(scene.parked_under_partition("a").await.attempts, 5);
    assert_eq!(scene.queue_length().await, 0);
}

/// The time is up while the table is loaded for the work, after the claim.
fn without_time_for_a_group(scene: &Scene) -> firn_compact::HostServices {
    const LIMIT: Duration = Duration::from_millis(1500);
    let mut services = scene.services.clone();
    services.run_limit = Some(LIMIT);
    let over = std::time::Instant::now() + LIMIT;
    scene.catalog.on_load(move |number| {
        Box::pin(async move {
            if number == 2 {
                tokio::time::sleep_until((over + Duration::from_millis(10)).into()).await;
            }
            true
        })
    });
    services
}
