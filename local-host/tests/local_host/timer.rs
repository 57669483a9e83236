//! Timer triggers over blobs in memory and a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use firn_local_host::{HostStorage, RunningHost};
use firn_model::BlobId;
use firn_storage::BlobStore;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::scene::{Scene, timer, until};
use crate::script::{Script, good, raw};

const SECOND: Duration = Duration::from_secs(1);

fn functions() -> Vec<(&'static str, Vec<Value>)> {
    vec![("plan", vec![timer("0 */5 * * * *")])]
}

async fn status_id(scene: &Scene, host: &RunningHost) -> BlobId {
    let container = scene.storage.host_blobs("").await.unwrap().container;
    container.with_key(format!("timers/{}/Host.Functions.plan/status", host.host_id()))
}

async fn status(scene: &Scene, host: &RunningHost) -> Option<Value> {
    let bytes = scene.storage.blobs().read_all(&status_id(scene, host).await).await.ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// Until the status says that a run is over.
async fn until_next(scene: &Scene, host: &RunningHost, next: &str) -> Value {
    loop {
        match status(scene, host).await {
            Some(found) if found["Next"] == next => return found,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_timer_fires_at_its_time_and_remembers_it() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let first = until_next(&scene, &host, "2026-12-01T08:00:00+00:00").await;
    assert_eq!(
        (&first["Last"], &first["LastUpdated"]),
        (&json!("0001-01-01T00:00:00+00:00"), &json!("0001-01-01T00:00:00+00:00"))
    );
    host.ready().await.unwrap();
    scene.clock.advance(Duration::from_secs(179));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(script.calls().len(), 0);
    scene.clock.advance(SECOND);
    until(|| script.calls().len() == 1).await;
    let tick = json!({"Schedule": {"AdjustForDST": true}, "ScheduleStatus": first, "IsPastDue": false});
    let body = script.bodies().pop().unwrap();
    assert_eq!(body["Data"], json!({"tick": tick}));
    assert_eq!(body["Metadata"]["sys"]["MethodName"], "plan");
    assert_eq!(body["Metadata"].as_object().unwrap().len(), 1);
    let after = until_next(&scene, &host, "2026-12-01T08:05:00+00:00").await;
    assert_eq!(
        (&after["Last"], &after["LastUpdated"]),
        (&json!("2026-12-01T08:00:00+00:00"), &json!("2026-12-01T08:00:00+00:00"))
    );
    scene.clock.advance(Duration::from_secs(300));
    until(|| script.calls().len() == 2).await;
    assert_eq!(script.bodies().pop().unwrap()["Data"]["tick"]["ScheduleStatus"], after);
}

#[tokio::test]
async fn missed_times_make_one_run_that_is_past_due() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    until_next(&scene, &host, "2026-12-01T08:00:00+00:00").await;
    host.stop().await;
    scene.clock.advance(Duration::from_secs(3600));
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    let tick = script.bodies().pop().unwrap()["Data"]["tick"].take();
    assert_eq!(
        (&tick["IsPastDue"], &tick["ScheduleStatus"]["Next"]),
        (&json!(true), &json!("2026-12-01T08:00:00+00:00"))
    );
    until_next(&scene, &host, "2026-12-01T09:00:00+00:00").await;
    // A start without a missed time runs nothing.
    host.stop().await;
    let host = scene.start().await;
    host.ready().await.unwrap();
    scene.clock.advance(Duration::from_secs(120));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(script.calls().len(), 1);
    scene.clock.advance(Duration::from_secs(61));
    until(|| script.calls().len() == 2).await;
    assert_eq!(script.bodies()[1]["Data"]["tick"]["IsPastDue"], false);
}

#[tokio::test]
async fn run_on_startup_runs_once() {
    let script = Script::answering(good(json!({}))).await;
    let mut binding = timer("0 */5 * * * *");
    binding["runOnStartup"] = true.into();
    let scene = Scene::new(&script, &[("plan", vec![binding])]);
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    assert_eq!(script.bodies()[0]["Data"]["tick"]["IsPastDue"], false);
    until_next(&scene, &host, "2026-12-01T08:00:00+00:00").await;
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn more_than_once_a_minute_nothing_is_remembered() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &[("plan", vec![timer("*/20 * * * * *")])]);
    let host = scene.start().await;
    host.ready().await.unwrap();
    scene.advance_until(SECOND, || script.calls().len() == 2).await;
    assert_eq!(script.bodies()[0]["Data"]["tick"]["ScheduleStatus"], Value::Null);
    assert_eq!(status(&scene, &host).await, None);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_followed_by_one_and_never_overlapped() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let script = Script::calls_with(move |_| -> BoxFuture<'static, Value> {
        let gate = held.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            // A failure stops no schedule and is not repeated.
            raw(500, "{}")
        })
    })
    .await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    until_next(&scene, &host, "2026-12-01T08:00:00+00:00").await;
    scene.clock.advance(Duration::from_secs(180));
    until(|| script.calls().len() == 1).await;
    scene.clock.advance(Duration::from_secs(12 * 60));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(script.calls().len(), 1);
    gate.add_permits(1);
    // 8:05 and 8:10 went by: one run at 8:12, then 8:15.
    until(|| script.calls().len() == 2).await;
    assert_eq!(script.bodies()[1]["Data"]["tick"]["IsPastDue"], false);
    gate.add_permits(1);
    until_next(&scene, &host, "2026-12-01T08:15:00+00:00").await;
    assert_eq!(script.calls().len(), 2);
}

#[tokio::test]
async fn one_of_two_hosts_runs_the_timer_and_the_other_takes_over() {
    let script = Script::answering(good(json!({}))).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.settings.insert("AzureFunctionsWebHost__hostid".into(), "two".into());
    let first = scene.start().await;
    assert_eq!(first.host_id(), "two");
    until_next(&scene, &first, "2026-12-01T08:00:00+00:00").await;
    let second = scene.start().await;
    until(|| !scene.log.with("another instance runs this timer").is_empty()).await;
    let lock = scene.storage.host_blobs("").await.unwrap().container.with_key("locks/two/Host.Functions.plan.Listener");
    assert!(scene.storage.blobs().exists(&lock).await.unwrap());
    first.stop().await;
    // Given back, so the second has it at its next try.
    scene.clock.advance(Duration::from_secs(60));
    scene.advance_until(SECOND, || script.calls().len() == 1).await;
    until_next(&scene, &second, "2026-12-01T08:05:00+00:00").await;
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn a_run_by_hand_leaves_schedule_and_status_alone() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let before = until_next(&scene, &host, "2026-12-01T08:00:00+00:00").await;
    assert!(host.invoke("plan", "ignored").await.unwrap().result.is_ok());
    let tick = script.bodies().pop().unwrap()["Data"]["tick"].take();
    assert_eq!((&tick["ScheduleStatus"], &tick["IsPastDue"]), (&before, &json!(false)));
    assert_eq!(status(&scene, &host).await, Some(before));
    assert!(at("2026-12-01T08:00:00Z") > firn_local_host::Clock::now(&scene.clock));
}
