//! Messages that the host gave up.

use firn_compact::{WorkOutcome, poison};
use firn_model::Rule;
use firn_state::RecordOutcome;

use crate::scene::Scene;

fn parked() -> (String, String) {
    ("parked".to_owned(), "parked".to_owned())
}

#[tokio::test]
async fn junk_is_kept_for_a_person() {
    let scene = Scene::with_backlog().await;
    let answer = poison(&scene.services, b"junk", "run-1").await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false));
    assert_eq!(scene.events.only(), parked());
    let (_, entry) = scene.parked().await.remove(0);
    assert!(entry.reason.starts_with("not a Firn message: "), "{}", entry.reason);
    assert_eq!(entry.body, "junk");
    // Again: one entry, one more event.
    poison(&scene.services, b"junk", "run-2").await;
    assert_eq!((scene.parked().await.len(), scene.events.only()), (1, parked()));
}

#[tokio::test]
async fn the_partition_of_the_message_that_counted_is_parked_with_its_last_step() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "hash").await;
    let died = firn_state::InflightRecord { attempts: 4, started_at: Some(scene.now()), ..record.at_step("3 merging") };
    scene.replace_record("a", &died).await;
    let body = record.message().to_json().unwrap();
    let answer = poison(&scene.services, body.as_bytes(), "run-1").await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false));
    assert_eq!(answer.reason, "attempts at 4: the last attempt ended without an outcome at step 3 merging");
    let entry = scene.parked_under_partition("a").await;
    assert_eq!((entry.attempts, entry.inputs_hash.as_str(), entry.body), (4, "hash", body));
    let record = scene.record("a").await.unwrap();
    assert_eq!(record.outcome, Some(RecordOutcome::Parked));
    let event = &scene.events.take()[0];
    assert_eq!(
        (&event["event"], &event["pass"], &event["dequeueCount"]),
        (&"parked".into(), &"pass-1".into(), &0.into())
    );
}

#[tokio::test]
async fn a_losing_duplicate_never_parks_a_healthy_partition() {
    let scene = Scene::with_backlog().await;
    let old = scene.queued("a", Rule::Backlog, "").await;
    let healthy = firn_state::InflightRecord { generation: uuid::Uuid::new_v4(), ..old.clone() };
    scene.replace_record("a", &healthy).await;
    let body = old.message().to_json().unwrap();
    assert_eq!(poison(&scene.services, body.as_bytes(), "run-1").await.outcome, WorkOutcome::Parked);
    assert_eq!(scene.record("a").await, Some(healthy.clone()), "untouched");
    assert_eq!(scene.events.only(), parked());
    assert_eq!(scene.work_on(&healthy, 1).await.outcome, WorkOutcome::Done);
    assert_eq!(scene.record("a").await, None);
}

#[tokio::test]
async fn a_partition_that_is_being_worked_on_is_left_alone() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.take_lease("a").await;
    let body = record.message().to_json().unwrap();
    let answer = poison(&scene.services, body.as_bytes(), "run-1").await;
    assert_eq!(answer.outcome, WorkOutcome::Parked);
    assert_eq!(scene.record("a").await, Some(record));
}

#[tokio::test]
async fn without_a_catalog_the_text_is_kept_all_the_same() {
    let scene = Scene::with_backlog().await;
    let record = scene.queued("a", Rule::Backlog, "").await;
    scene.catalog.loads_fail_from(1);
    let body = record.message().to_json().unwrap();
    let answer = poison(&scene.services, body.as_bytes(), "run-1").await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Parked, false));
    scene.catalog.heal();
    let (_, entry) = scene.parked().await.remove(0);
    assert_eq!((entry.body, entry.dataset.as_deref()), (body, Some("readings")));
    assert_eq!(scene.record("a").await, Some(record));
}
