//! Messages that a person sends.

use base64::Engine as _;
use firn_compact::{FanOutError, WorkOutcome};
use firn_model::Rule;

use crate::scene::Scene;

#[tokio::test]
async fn one_partition_in_every_form_of_text() {
    for form in 0..3 {
        let scene = Scene::with_backlog().await;
        let text = "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}";
        let body = match form {
            0 => text.to_owned(),
            1 => format!("{text}\n"),
            _ => base64::engine::general_purpose::STANDARD.encode(text) + "\n",
        };
        let answer = scene.work(body, 1).await;
        assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Done, false), "{answer:?}");
        scene.assert_merged(80).await;
    }
}

#[tokio::test]
async fn by_hand_takes_a_queued_partition_over() {
    let scene = Scene::with_backlog().await;
    let queued = scene.queued("a", Rule::Backlog, "").await;
    let answer = scene.work("{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}", 1).await;
    assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
    assert_eq!(scene.work_on(&queued, 1).await.outcome, WorkOutcome::Superseded);
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn by_hand_a_parked_partition_is_tried_again() {
    let scene = Scene::with_backlog().await;
    let queued = scene.queued("a", Rule::Backlog, "").await;
    let parked = queued.parked("over budget", chrono::TimeDelta::hours(6), scene.now());
    scene.replace_record("a", &parked).await;
    assert_eq!(scene.work_on(&queued, 1).await.outcome, WorkOutcome::Superseded);
    let answer = scene.work("{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"rule\":\"full\"}", 1).await;
    assert_eq!(answer.outcome, WorkOutcome::Done, "{answer:?}");
    scene.assert_merged(80).await;
}

#[tokio::test]
async fn a_partition_without_files_is_nothing_to_do() {
    let scene = Scene::with_backlog().await;
    let answer = scene.work("{\"dataset\":\"readings\",\"partition\":{\"p\":\"z\"}}", 1).await;
    assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Left, false), "{answer:?}");
    assert_eq!(scene.record("z").await, None);
    assert_eq!(scene.lake.contents().await.0, 8);
}

#[tokio::test]
async fn a_whole_dataset_and_a_dry_run_go_to_the_planner() {
    let scene = Scene::with_backlog().await;
    for body in [
        "{\"dataset\":\"readings\"}",
        "{\"dataset\":\"readings\",\"dryRun\":true}",
        "{\"dataset\":\"readings\",\"partition\":{\"p\":\"a\"},\"dryRun\":true}",
    ] {
        let answer = scene.work(body, 1).await;
        assert_eq!((answer.outcome, answer.fault), (WorkOutcome::Done, false), "{answer:?}");
        assert_eq!(answer.to_json()["sent"], 3);
    }
    let asked = scene.asked.messages.lock().unwrap().clone();
    let shape: Vec<(bool, bool)> = asked.iter().map(|m| (m.partition.is_some(), m.dry_run)).collect();
    assert_eq!(shape, [(false, false), (false, true), (true, true)]);
    assert_eq!(scene.lake.contents().await.0, 8, "nothing was merged here");
}

#[tokio::test]
async fn what_the_planner_refuses_is_parked_and_what_must_wait_is_sent_again() {
    let scene = Scene::with_backlog().await;
    let body = "{\"dataset\":\"readings\"}";
    *scene.asked.answer.lock().unwrap() = Some(FanOutError::Refused("no such date partition".into()));
    let answer = scene.work(body, 1).await;
    assert_eq!((answer.outcome, answer.reason.as_str()), (WorkOutcome::Parked, "no such date partition"));
    assert_eq!(scene.parked().await[0].1.dataset.as_deref(), Some("readings"));
    *scene.asked.answer.lock().unwrap() = Some(FanOutError::Later("catalog down".into()));
    assert_eq!(scene.work(body, 1).await.outcome, WorkOutcome::Deferred);
    scene.advance_minutes(5);
    assert_eq!(scene.next_message().await.unwrap().text, body);
    // Planning that always dies ends too.
    let answer = scene.work(body, 5).await;
    assert_eq!(answer.outcome, WorkOutcome::Parked);
    assert_eq!(scene.asked.messages.lock().unwrap().len(), 2);
}
