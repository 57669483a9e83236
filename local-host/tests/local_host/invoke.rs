//! One invocation: what the handler gets, what the host makes of its answer, time-outs.

use std::sync::Arc;
use std::time::Duration;

use firn_local_host::{Framing, InvocationFailure, Level};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::scene::{Scene, queue_trigger, texts, until};
use crate::script::{Script, good, now, raw};

fn functions() -> Vec<(&'static str, Vec<Value>)> {
    vec![("Compact-1", vec![queue_trigger("work")])]
}

#[tokio::test]
async fn the_request_in_both_framings() {
    let script = Script::answering(good(json!({}))).await;
    let mut scene = Scene::new(&script, &functions());
    for framing in [Framing::Chunked, Framing::ContentLength] {
        scene.options.timing.framing = framing;
        let host = scene.start().await;
        let invocation = host.invoke("compact-1", "text").await.unwrap();
        let call = script.calls().pop().unwrap();
        let headers = &call["headers"];
        // The folder's name as it is written, no prefix, no query.
        assert_eq!((&call["method"], &call["path"]), (&json!("POST"), &json!("/Compact-1")));
        assert_eq!(headers["x-azure-functions-invocationid"], invocation.id.to_string());
        assert_eq!(headers["content-type"], "application/json; charset=utf-8");
        assert!(headers["user-agent"].as_str().unwrap().starts_with("Azure-Functions-Host/4."));
        assert!(headers["x-azure-functions-hostversion"].as_str().unwrap().starts_with("4."));
        let chunked = framing == Framing::Chunked;
        assert_eq!(headers.get("transfer-encoding").is_some(), chunked, "{headers}");
        assert_eq!(headers.get("content-length").is_some(), !chunked, "{headers}");
        assert_eq!(call["body"]["Data"]["job"], "\"text\"");
    }
    let ids: Vec<Value> =
        script.calls().iter().map(|call| call["headers"]["x-azure-functions-invocationid"].clone()).collect();
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn logs_of_a_good_answer_are_written_and_those_of_a_bad_one_are_not() {
    let on_call = |call: Value| {
        let body = json!({"Logs": ["compacted 3 files"]});
        now(if call["body"]["Data"]["job"] == "\"bad\"" { raw(500, &body.to_string()) } else { good(body) })
    };
    let script = Script::calls_with(on_call).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let failure = host.invoke("Compact-1", "bad").await.unwrap().result.unwrap_err();
    assert_eq!(failure, InvocationFailure::Answer("the handler answered 500".into()));
    assert_eq!(scene.log.with("compacted 3 files").len(), 0);
    let good = host.invoke("Compact-1", "good").await.unwrap();
    let lines = scene.log.with("compacted 3 files");
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].level, lines[0].category.as_str()), (Level::Information, "Function.Compact-1"));
    assert_eq!(lines[0].invocation, Some(good.id));
}

#[tokio::test]
async fn strict_mode_reports_an_answer_that_would_hang() {
    for (answer, part) in [
        (raw(200, ""), "with an empty body"),
        (raw(200, "null"), "with null"),
        (json!({"status": 204}), "answered 204 without a body"),
    ] {
        let script = Script::answering(answer).await;
        let scene = Scene::new(&script, &functions());
        let host = scene.start().await;
        let failure = host.invoke("Compact-1", "x").await.unwrap().result.unwrap_err();
        assert!(matches!(&failure, InvocationFailure::Hang(why) if why.contains(part)), "{failure}");
        assert!(host.problems()[0].contains(part), "{:?}", host.problems());
        // The process is left alone.
        assert!(host.ready().await.is_ok());
        assert_eq!(script.starts().len(), 1);
    }
}

#[tokio::test]
async fn without_strict_mode_it_hangs_until_the_timeout_and_the_handler_is_killed() {
    let script = Script::answering(raw(200, "null")).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.strict = false;
    scene.options.timing.grace = Duration::from_millis(50);
    let host = scene.start().await;
    let invocation = host.invoke("Compact-1", "x");
    let (invocation, ()) = tokio::join!(invocation, async {
        until(|| !scene.log.with("this invocation never ends").is_empty()).await;
        scene
            .advance_until(Duration::from_secs(60), || !scene.log.with("Timeout value of 1800s exceeded").is_empty())
            .await;
    });
    let failure = invocation.unwrap().result.unwrap_err();
    assert_eq!(failure, InvocationFailure::Timeout(Duration::from_secs(1800)));
    until(|| script.starts().len() == 2).await;
}

/// Calls that wait until the test lets them go.
fn held(gate: &Arc<Semaphore>) -> impl Fn(Value) -> futures::future::BoxFuture<'static, Value> + Send + Sync + use<> {
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
async fn a_timeout_fails_at_once_and_kills_everything_that_runs_uncounted() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::calls_with(held(&gate)).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.timing.grace = Duration::from_millis(100);
    let host = scene.start().await;
    // More than three, so a counted end would have stopped the host.
    for round in 1..=4 {
        let run = async {
            until(|| script.calls().len() == 2 * round - 1).await;
            // The second begins half-way.
            scene.clock.advance(Duration::from_secs(900));
            let second = host.invoke("Compact-1", "second");
            let advance = async {
                until(|| script.calls().len() == 2 * round).await;
                scene.clock.advance(Duration::from_secs(901));
            };
            tokio::join!(second, advance).0
        };
        let (first, second) = tokio::join!(host.invoke("Compact-1", "first"), run);
        assert_eq!(first.unwrap().result, Err(InvocationFailure::Timeout(Duration::from_secs(1800))));
        assert!(matches!(second.unwrap().result, Err(InvocationFailure::Connection(_))));
        until(|| script.starts().len() == round + 1).await;
    }
    assert!(host.ready().await.is_ok());
}

#[tokio::test]
async fn a_handler_that_answers_within_the_grace_is_left_alone() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::calls_with(held(&gate)).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.timing.grace = Duration::from_secs(600);
    let host = scene.start().await;
    let run = async {
        until(|| script.calls().len() == 1).await;
        scene.clock.advance(Duration::from_secs(1801));
    };
    let (first, ()) = tokio::join!(host.invoke("Compact-1", "first"), run);
    assert_eq!(first.unwrap().result, Err(InvocationFailure::Timeout(Duration::from_secs(1800))));
    gate.add_permits(2);
    assert!(host.invoke("Compact-1", "second").await.unwrap().result.is_ok());
    assert_eq!(script.starts().len(), 1);
}

#[tokio::test]
async fn a_host_without_a_limit_waits_for_ever() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::calls_with(held(&gate)).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| host["functionTimeout"] = json!("-1"));
    let host = scene.start().await;
    let run = async {
        until(|| script.calls().len() == 1).await;
        scene.clock.advance(Duration::from_secs(10 * 24 * 3600));
        tokio::task::yield_now().await;
        gate.add_permits(1);
    };
    assert!(tokio::join!(host.invoke("Compact-1", "first"), run).0.unwrap().result.is_ok());
}

/// What is enqueued for an answer, or the failure.
async fn enqueued(answer: Value, output: &str) -> Result<Vec<String>, InvocationFailure> {
    let script = Script::answering(good(answer)).await;
    let out = json!({"type": "queue", "direction": "out", "name": output, "queueName": "Next", "connection": "AzureWebJobsStorage"});
    let scene = Scene::new(&script, &[("compact", vec![queue_trigger("work"), out])]);
    let host = scene.start().await;
    host.invoke("compact", "x").await.unwrap().result?;
    let queue = scene.storage.memory_queue("next");
    // Made on demand: no output, no queue.
    Ok(if firn_storage::Queue::length(&queue).await.is_ok() { texts(&queue).await } else { Vec::new() })
}

#[tokio::test]
async fn queue_outputs() {
    let texts = |texts: &[&str]| Ok(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    for (answer, output, expected) in [
        (json!({"Outputs": {"out": ["{\"a\":1}"]}, "ReturnValue": null}), "out", texts(&["{\"a\":1}"])),
        (json!({"Outputs": {"out": "[1,2]"}}), "out", texts(&["1", "2"])),
        (json!({"Outputs": {"OUT": "x"}}), "out", texts(&[])),
        (json!({"outputs": {"out": "x!"}, "logs": null}), "out", texts(&["x!"])),
        (json!({"ReturnValue": "next!"}), "$return", texts(&["next!"])),
        (json!({"ReturnValue": {"out": "y!"}}), "out", texts(&["y!"])),
        (json!({}), "out", texts(&[])),
    ] {
        assert_eq!(enqueued(answer.clone(), output).await, expected, "{answer}");
    }
    let failure = enqueued(json!({"Outputs": {"out": "{oops}"}}), "out").await.unwrap_err();
    assert!(matches!(&failure, InvocationFailure::Output(why) if why.contains("looks like JSON")), "{failure}");
}
