//! The same over Azurite: what the ports in memory might hide.

use std::sync::Arc;

use firn_local_host::{AzureHostStorage, HostStorage, SystemClock, Timing};
use firn_storage::{Queue, SendOptions};
use firn_test_support::Azurite;
use serde_json::{Value, json};
use std::time::Duration;

use crate::scene::{Scene, queue_trigger, texts, timer, until};
use crate::script::{Script, good, now, raw};

const IDLE: Duration = Duration::from_secs(60);

/// A scene over Azurite, with the machine's clock.
fn over_azurite(script: &Script, functions: &[(&str, Vec<Value>)]) -> Scene {
    let mut scene = Scene::new(script, functions);
    scene.options.clock = Arc::new(SystemClock);
    scene.options.storage = Arc::new(AzureHostStorage);
    scene.options.timing = Timing::development();
    scene.options.settings.insert("AzureWebJobsStorage".into(), Azurite::shared().connection_string());
    scene
}

async fn queue(name: &str) -> Arc<dyn Queue> {
    let queue = AzureHostStorage.queue(&Azurite::shared().connection_string(), name).await.unwrap();
    queue.create().await.unwrap();
    queue
}

#[tokio::test]
async fn messages_are_worked_on_and_deleted() {
    let script = Script::answering(good(json!({}))).await;
    let scene = over_azurite(&script, &[("compact", vec![queue_trigger("az-done")])]);
    scene.edit_host(|host| host["extensions"]["queues"]["messageEncoding"] = "base64".into());
    let queue = queue("az-done").await;
    for text in ["aGVsbG8=", "d29ybGQ="] {
        queue.send(text, &SendOptions::default()).await.unwrap();
    }
    let host = scene.start().await;
    host.wait_idle(IDLE).await.unwrap();
    let mut jobs: Vec<Value> = script.bodies().into_iter().map(|mut body| body["Data"]["job"].take()).collect();
    jobs.sort_by_key(Value::to_string);
    assert_eq!(jobs, ["\"hello\"", "\"world\""]);
    let metadata = &script.bodies()[0]["Metadata"];
    assert_eq!(metadata["DequeueCount"], "1");
    for name in ["Id", "PopReceipt", "InsertionTime", "ExpirationTime", "NextVisibleTime"] {
        assert!(metadata[name].is_string(), "{name}: {metadata}");
    }
    assert_eq!(queue.length().await, Ok(0));
    host.stop().await;
}

#[tokio::test]
async fn what_fails_comes_again_and_then_to_the_poison_queue() {
    let script = Script::answering(raw(500, "{}")).await;
    let scene = over_azurite(
        &script,
        &[("compact", vec![queue_trigger("az-fails")]), ("poison", vec![queue_trigger("az-fails-poison")])],
    );
    scene.edit_host(|host| {
        host["extensions"]["queues"]["visibilityTimeout"] = "00:00:00".into();
        host["extensions"]["queues"]["maxDequeueCount"] = 2.into();
    });
    let queue = queue("az-fails").await;
    let text = "{\"dataset\":\"spans\"}\n";
    queue.send(text, &SendOptions::default()).await.unwrap();
    let host = scene.start().await;
    // Two attempts, then the poison's own function, which fails too.
    until(|| script.calls().len() == 3).await;
    let paths: Vec<Value> = script.calls().iter().map(|call| call["path"].clone()).collect();
    assert_eq!(paths, ["/compact", "/compact", "/poison"]);
    let counts: Vec<Value> = script.bodies().iter().map(|body| body["Metadata"]["DequeueCount"].clone()).collect();
    assert_eq!(counts, ["1", "2", "1"]);
    assert_eq!(script.bodies()[2]["Data"]["job"], json!(text).to_string());
    until(|| scene.log.with("(Failed").len() == 3).await;
    assert_eq!(texts(queue.as_ref()).await, Vec::<String>::new());
    assert_eq!(queue.length().await, Ok(0));
    host.stop().await;
}

#[tokio::test]
async fn a_long_run_is_renewed_and_deleted_by_the_new_receipt() {
    let (sender, receiver) = tokio::sync::watch::channel(false);
    let script = Script::calls_with(move |_| {
        let mut receiver = receiver.clone();
        Box::pin(async move {
            receiver.wait_for(|open| *open).await.unwrap();
            good(json!({}))
        })
    })
    .await;
    let mut scene = over_azurite(&script, &[("compact", vec![queue_trigger("az-long")])]);
    scene.options.timing.receive_visibility = Duration::from_secs(3);
    scene.options.timing.renew_every = Duration::from_secs(1);
    let queue = queue("az-long").await;
    queue.send("x", &SendOptions::default()).await.unwrap();
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    // Longer than it would stay hidden by itself.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(queue.peek(1).await.unwrap(), []);
    sender.send_replace(true);
    host.wait_idle(IDLE).await.unwrap();
    assert_eq!((script.calls().len(), queue.length().await), (1, Ok(0)));
}

#[tokio::test]
async fn a_timer_keeps_status_and_lease_and_makes_up_for_a_missed_time() {
    let script = Script::calls_with(|_| now(good(json!({})))).await;
    let mut scene = over_azurite(&script, &[("plan", vec![timer("0 */5 * * * *")])]);
    // The time moves by hand, the storage's goes on.
    scene.options.clock = Arc::new(scene.clock.clone());
    scene.options.settings.insert("AzureFunctionsWebHost__hostid".into(), "az-timer".into());
    let place = AzureHostStorage.host_blobs(&Azurite::shared().connection_string()).await.unwrap();
    let status = place.container.with_key("timers/az-timer/Host.Functions.plan/status");
    let read = || async {
        let bytes = place.blobs.read_all(&status).await.ok()?;
        Some(serde_json::from_slice::<Value>(&bytes).unwrap()["Next"].clone())
    };
    let until_next = |next: &'static str| async move {
        while read().await != Some(json!(next)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let host = scene.start().await;
    until_next("2026-12-01T08:00:00+00:00").await;
    let lock = place.container.with_key("locks/az-timer/Host.Functions.plan.Listener");
    let held = place.lease.acquire(&lock, Duration::from_secs(15)).await;
    assert!(matches!(held, Err(firn_storage::LeaseError::Held { .. })), "{held:?}");
    host.stop().await;
    scene.clock.advance(Duration::from_secs(3600));
    // The lease was given back, so the next host has the timer at once.
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    assert_eq!(script.bodies()[0]["Data"]["tick"]["IsPastDue"], true);
    until_next("2026-12-01T09:00:00+00:00").await;
    assert_eq!(script.calls().len(), 1);
    host.stop().await;
}
