//! Queue triggers over queues in memory and a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use firn_local_host::{InvocationFailure, NotIdle};
use firn_storage::{Queue, QueueError, SendOptions};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::scene::{Scene, queue_trigger, texts, until};
use crate::script::{Script, good, now, raw};

const SECOND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(60);

fn functions() -> Vec<(&'static str, Vec<Value>)> {
    vec![("compact", vec![queue_trigger("work")])]
}

async fn send(queue: &dyn Queue, text: &str) {
    queue.send(text, &SendOptions::default()).await.unwrap();
}

/// Calls that wait until the test lets them go.
fn held(gate: &Arc<Semaphore>) -> impl Fn(Value) -> BoxFuture<'static, Value> + Send + Sync + use<> {
    let gate = gate.clone();
    move |_| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            good(json!({}))
        })
    }
}

#[tokio::test]
async fn a_message_reaches_the_function_and_is_deleted() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    send(&queue, r#"{"id":"j-1","n":3,"dry":true,"tags":["a"]}"#).await;
    let host = scene.start().await;
    host.wait_idle(IDLE).await.unwrap();
    let body = script.bodies().pop().unwrap();
    assert_eq!(body["Data"], json!({"job": r#""{\"id\":\"j-1\",\"n\":3,\"dry\":true,\"tags\":[\"a\"]}""#}));
    let metadata = &body["Metadata"];
    assert_eq!(metadata["sys"]["MethodName"], "compact");
    for (name, value) in [
        ("DequeueCount", "1"),
        ("InsertionTime", "2026-12-01T07:57:00+00:00"),
        ("ExpirationTime", "2026-12-08T07:57:00+00:00"),
        // Hidden for ten minutes.
        ("NextVisibleTime", "2026-12-01T08:07:00+00:00"),
        // The message's field has overwritten its id.
        ("Id", "\"j-1\""),
        ("n", "\"3\""),
        ("dry", "\"True\""),
    ] {
        assert_eq!(metadata[name], value, "{name}");
    }
    assert!(metadata["PopReceipt"].as_str().unwrap().starts_with("\"receipt-"), "{metadata}");
    assert_eq!((metadata.get("tags"), metadata.get("QueueTrigger")), (None, None));
    assert_eq!(queue.length().await, Ok(0));
}

#[tokio::test]
async fn binary_triggers_get_base64_and_no_fields() {
    let script = Script::answering(good(json!({}))).await;
    let mut trigger = queue_trigger("work");
    trigger["dataType"] = "binary".into();
    let scene = Scene::new(&script, &[("compact", vec![trigger])]);
    send(&scene.queue("work").await, r#"{"id":"j-1"}"#).await;
    let host = scene.start().await;
    host.wait_idle(IDLE).await.unwrap();
    let body = script.bodies().pop().unwrap();
    assert_eq!(body["Data"]["job"], "eyJpZCI6ImotMSJ9");
    assert_eq!(body["Metadata"]["Id"], "\"message-1\"");
}

#[tokio::test]
async fn a_long_run_keeps_its_message_hidden_and_deletes_it_by_its_latest_receipt() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::calls_with(held(&gate)).await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    send(&queue, "x").await;
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    // 25 minutes in steps below the renewal's five: it would have been visible again after ten.
    for _ in 0..25 {
        scene.clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(queue.receive(1, SECOND).await, Ok(vec![]));
    }
    gate.add_permits(1);
    host.wait_idle(IDLE).await.unwrap();
    assert_eq!((script.calls().len(), queue.length().await), (1, Ok(0)));
}

#[tokio::test]
async fn five_attempts_each_after_the_visibility_timeout_then_poison_with_the_body_only() {
    let script = Script::answering(raw(500, "{}")).await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    let poison = scene.storage.memory_queue("work-poison");
    let text = r#"{"dataset":"spans"}"#;
    send(&queue, text).await;
    let host = scene.start().await;
    for attempt in 1..=5 {
        until(|| scene.log.with("(Failed").len() == attempt).await;
        assert_eq!(script.calls().len(), attempt);
        if attempt < 5 {
            assert!(matches!(poison.length().await, Err(QueueError::NotFound { .. })), "made on demand");
            // Released for two minutes, no more and no less; the listener looks again within 30 s.
            until_released(&host, &scene).await;
            scene.clock.advance(Duration::from_secs(119));
            assert_eq!(queue.peek(1).await.unwrap(), []);
            scene.advance_until(SECOND, || script.calls().len() > attempt).await;
        }
    }
    host.wait_idle(IDLE).await.unwrap();
    let counts: Vec<Value> = script.bodies().iter().map(|body| body["Metadata"]["DequeueCount"].clone()).collect();
    assert_eq!(counts, ["1", "2", "3", "4", "5"]);
    let moved = poison.peek(32).await.unwrap();
    assert_eq!(moved.len(), 1);
    assert_eq!((moved[0].text.as_str(), moved[0].dequeue_count), (text, 0));
    let line = "Message has reached MaxDequeueCount of 5. Moving message to queue 'work-poison'.";
    assert_eq!(scene.log.with(line).len(), 1);
}

/// Until the failed message was given back.
async fn until_released(host: &firn_local_host::RunningHost, scene: &Scene) {
    let queue = scene.storage.memory_queue("work");
    loop {
        // Nothing runs, and the message is still there.
        match host.wait_idle(Duration::ZERO).await {
            Err(NotIdle::Busy { running: 0, .. }) if queue.length().await == Ok(1) => return,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_message_whose_attempts_were_used_up_by_crashes_of_the_host_is_never_run() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    send(&queue, "x").await;
    for _ in 0..5 {
        assert_eq!(queue.receive(1, SECOND).await.unwrap().len(), 1);
        scene.clock.advance(Duration::from_secs(2));
    }
    let host = scene.start().await;
    host.wait_idle(IDLE).await.unwrap();
    assert_eq!(texts(&scene.storage.memory_queue("work-poison")).await, ["x"]);
    assert_eq!(script.calls().len(), 0);
}

#[tokio::test]
async fn what_is_no_base64_goes_to_poison_at_once_and_raw() {
    let script = Script::answering(raw(500, "{}")).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| {
        let queues = &mut host["extensions"]["queues"];
        queues["messageEncoding"] = "base64".into();
        queues["maxDequeueCount"] = 1.into();
    });
    let queue = scene.queue("work").await;
    send(&queue, r#"{"dataset":"spans"}"#).await;
    send(&queue, "aGVsbG8=").await;
    // Base64 of bytes that are no UTF-8: a binding error, so an attempt that failed.
    send(&queue, "/////w==").await;
    let host = scene.start().await;
    host.wait_idle(IDLE).await.unwrap();
    let poison = scene.storage.memory_queue("work-poison");
    assert_eq!(texts(&poison).await, [r#"{"dataset":"spans"}"#, "aGVsbG8=", "/////w=="]);
    assert_eq!(script.bodies().len(), 1);
    assert_eq!(script.bodies()[0]["Data"]["job"], "\"hello\"");
    assert_eq!(scene.log.with("the message is no UTF-8").len(), 1);
}

#[tokio::test]
async fn a_trigger_on_a_poison_queue_leaves_what_fails_hidden() {
    let script = Script::answering(raw(500, "{}")).await;
    let scene = Scene::new(&script, &[("compact-poison", vec![queue_trigger("work-poison")])]);
    let queue = scene.queue("work-poison").await;
    send(&queue, "x").await;
    let host = scene.start().await;
    until(|| scene.log.with("(Failed").len() == 1).await;
    scene.clock.advance(Duration::from_secs(590));
    assert_eq!(queue.peek(1).await.unwrap(), []);
    scene.advance_until(SECOND, || script.calls().len() == 2).await;
    assert!(scene.log.with("Moving message").is_empty());
    drop(host);
}

async fn most_at_once(batch: usize, threshold: usize, messages: usize, wanted: usize) {
    let gate = Arc::new(Semaphore::new(0));
    let (now_running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let on_call = {
        let (gate, running, most) = (gate.clone(), now_running.clone(), most.clone());
        move |_| -> BoxFuture<'static, Value> {
            let (gate, running, most) = (gate.clone(), running.clone(), most.clone());
            Box::pin(async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
                good(json!({}))
            })
        }
    };
    let script = Script::calls_with(on_call).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| {
        let queues = &mut host["extensions"]["queues"];
        queues["batchSize"] = batch.into();
        queues["newBatchThreshold"] = threshold.into();
    });
    let queue = scene.queue("work").await;
    for number in 0..messages {
        send(&queue, &number.to_string()).await;
    }
    let host = scene.start().await;
    until(|| now_running.load(Ordering::SeqCst) == batch).await;
    // Let down to the threshold, after which the next batch comes on top.
    gate.add_permits(batch - threshold);
    until(|| now_running.load(Ordering::SeqCst) == wanted).await;
    gate.add_permits(messages);
    host.wait_idle(IDLE).await.unwrap();
    assert_eq!(script.calls().len(), messages);
    assert_eq!(most.load(Ordering::SeqCst), wanted, "batch {batch}, threshold {threshold}");
}

#[tokio::test]
async fn one_at_a_time() {
    most_at_once(1, 0, 5, 1).await;
}

#[tokio::test]
async fn a_batch_on_top_of_the_threshold() {
    most_at_once(4, 2, 12, 6).await;
}

#[tokio::test]
async fn a_missing_queue_is_waited_for_and_never_created() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.storage.memory_queue("work");
    let host = scene.start().await;
    host.ready().await.unwrap();
    for _ in 0..20 {
        scene.clock.advance(Duration::from_secs(31));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(matches!(queue.length().await, Err(QueueError::NotFound { .. })));
    queue.create().await.unwrap();
    send(&queue, "x").await;
    // No wait is longer than maxPollingInterval.
    scene.clock.advance(Duration::from_secs(31));
    until(|| script.calls().len() == 1).await;
    host.wait_idle(IDLE).await.unwrap();
}

#[tokio::test]
async fn a_host_that_is_stopped_lets_work_end_or_gives_it_back() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::calls_with(held(&gate)).await;
    let mut scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    // It ends in time: deleted.
    send(&queue, "ends").await;
    scene.options.timing.drain = Duration::from_secs(60);
    let host = scene.start().await;
    until(|| script.calls().len() == 1).await;
    let (ended, ()) = tokio::join!(host.stop(), async { gate.add_permits(1) });
    let () = ended;
    assert_eq!(queue.length().await, Ok(0));
    // It does not: given back after visibilityTimeout, also at its last attempt.
    send(&queue, "goes on").await;
    for _ in 0..4 {
        queue.receive(1, SECOND).await.unwrap();
        scene.clock.advance(Duration::from_secs(2));
    }
    scene.options.timing.drain = Duration::from_millis(50);
    let host = scene.start().await;
    until(|| script.calls().len() == 2).await;
    host.stop().await;
    scene.clock.advance(Duration::from_secs(119));
    assert_eq!(texts(&queue).await, Vec::<String>::new());
    scene.clock.advance(Duration::from_secs(1));
    assert_eq!(texts(&queue).await, ["goes on"]);
    assert!(matches!(scene.storage.memory_queue("work-poison").length().await, Err(QueueError::NotFound { .. })));
}

#[tokio::test]
async fn a_host_that_gave_up_leaves_messages_hidden() {
    let script = Script::new(
        |number| now(if number == 1 { json!({}) } else { json!({"exit": 1}) }),
        |_| now(json!({"exit": 1})),
    )
    .await;
    let scene = Scene::new(&script, &functions());
    let queue = scene.queue("work").await;
    let host = scene.start().await;
    host.ready().await.unwrap();
    let failure = host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    assert!(matches!(failure, InvocationFailure::Connection(_)), "{failure}");
    send(&queue, "waits").await;
    host.stopped().await;
    assert!(
        matches!(host.wait_idle(IDLE).await, Err(NotIdle::Stopped(reason)) if reason.contains("restart retry count"))
    );
    drop(host);
    assert_eq!(queue.length().await, Ok(1));
}

#[tokio::test]
async fn a_poison_queue_that_cannot_be_written_stops_the_host() {
    let script = Script::answering(raw(500, "{}")).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| {
        host["extensions"]["queues"]["messageEncoding"] = "base64".into();
        host["extensions"]["queues"]["maxDequeueCount"] = 1.into();
    });
    let queue = scene.queue("work").await;
    send(&queue, "aGVsbG8=").await;
    let mut scene = scene;
    scene.options.storage = Arc::new(NoPoison(scene.storage.clone()));
    let host = scene.start().await;
    assert_eq!(host.stopped().await, "cannot write to queue 'work-poison': no such account");
    drop(host);
    assert_eq!(queue.length().await, Ok(1));
}

/// Storage that refuses poison queues.
#[derive(Debug)]
struct NoPoison(firn_local_host::MemoryHostStorage);

#[async_trait::async_trait]
impl firn_local_host::HostStorage for NoPoison {
    async fn queue(&self, connection: &str, name: &str) -> Result<Arc<dyn Queue>, String> {
        if name.ends_with("-poison") { Err("no such account".into()) } else { self.0.queue(connection, name).await }
    }

    async fn host_blobs(&self, connection: &str) -> Result<firn_local_host::storage::HostBlobs, String> {
        self.0.host_blobs(connection).await
    }
}
