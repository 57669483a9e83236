//! The handler's process: start, readiness, restarts, output, end.

use std::sync::Arc;
use std::time::Duration;

use firn_local_host::log::CONSOLE;
use firn_local_host::{InvocationFailure, Level};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::scene::{Scene, host_json, queue_trigger, runs, until};
use crate::script::{Script, good, now};

fn functions() -> Vec<(&'static str, Vec<serde_json::Value>)> {
    vec![("compact", vec![queue_trigger("work")])]
}

#[tokio::test]
async fn the_process_learns_where_it_is() {
    let script = Script::answering(good(json!({}))).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.settings.insert("FIRN_CONFIG".into(), "/etc/firn.yaml".into());
    scene.edit_host(|host| {
        host["customHandler"]["description"]["arguments"] =
            json!(["--config %FIRN_CONFIG%", "%NOT_SET_ANYWHERE%", "%FUNCTIONS_CUSTOMHANDLER_PORT%"]);
    });
    let host = scene.start().await;
    host.ready().await.unwrap();
    let start = &script.starts()[0];
    let environment = &start["environment"];
    let root = scene.folder.path().canonicalize().unwrap();
    assert_eq!(start["directory"], root.display().to_string());
    assert_eq!(environment["FUNCTIONS_CUSTOMHANDLER_PORT"], environment["FUNCTIONS_HTTPWORKER_PORT"]);
    assert_eq!(environment["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"], environment["FUNCTIONS_HTTPWORKER_ID"]);
    assert_eq!(environment["FUNCTIONS_APP_ROOT_PATH"], scene.folder.path().display().to_string());
    assert_eq!(environment["FIRN_CONFIG"], "/etc/firn.yaml");
    assert_eq!(environment["PATH"], std::env::var("PATH").unwrap());
    // Arguments are joined without quotes, what is not set is empty, and nothing is appended.
    assert_eq!(start["arguments"], json!(["--config", "/etc/firn.yaml", environment["FUNCTIONS_CUSTOMHANDLER_PORT"]]));
    assert_eq!(host.handler_process().map(u64::from), start["pid"].as_u64());
    host.stop().await;
}

#[tokio::test]
async fn an_early_invocation_waits_until_the_handler_answers_with_any_status() {
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let on_start = move |_| -> futures::future::BoxFuture<'static, serde_json::Value> {
        let gate = closed.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            json!({})
        })
    };
    let script = Script::new(on_start, |_| now(good(json!({})))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    until(|| script.starts().len() == 1).await;
    let mut early = std::pin::pin!(host.invoke("compact", "x"));
    assert!(futures::poll!(early.as_mut()).is_pending());
    assert_eq!(script.calls().len(), 0);
    // The scripted handler answers the probe with 404.
    gate.add_permits(1);
    assert!(early.await.unwrap().result.is_ok());
    assert_eq!((script.calls().len(), script.starts().len()), (1, 1));
}

#[tokio::test]
async fn the_third_crash_stops_the_host() {
    let script =
        Script::new(|_| now(json!({"exit": 3, "stderr": ["one", "two", "three", "four"]})), |_| now(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let reason = host.stopped().await;
    assert!(reason.starts_with("Exceeded http worker restart retry count. Shutting down Functions Host"), "{reason}");
    assert!(reason.contains("exited with code 3 (two | three | four)"), "{reason}");
    assert_eq!(script.starts().len(), 3);
    let failure = host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    assert!(matches!(failure, InvocationFailure::HostStopped { asked: false, .. }), "{failure}");
}

#[tokio::test]
async fn strikes_are_forgotten_when_the_last_is_half_an_hour_old() {
    let script = Script::new(|_| now(json!({})), |_| now(json!({"exit": 1}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    for starts in 2..=5 {
        host.invoke("compact", "x").await.unwrap().result.unwrap_err();
        until(|| script.starts().len() == starts).await;
        scene.clock.advance(Duration::from_secs(31 * 60));
    }
    assert!(host.ready().await.is_ok());
}

#[tokio::test]
async fn exit_200_restarts_without_being_counted() {
    let on_start = |number| now(if number <= 5 { json!({"exit": 200}) } else { json!({}) });
    let script = Script::new(on_start, |_| now(good(json!({})))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    assert!(host.invoke("compact", "x").await.unwrap().result.is_ok());
    assert_eq!(script.starts().len(), 6);
}

#[tokio::test]
async fn exit_0_is_never_restarted() {
    let script = Script::answering(json!({"exit": 0})).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.strict = false;
    let host = scene.start().await;
    let first = host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    assert!(matches!(first, InvocationFailure::Connection(_)), "{first}");
    until(|| !scene.log.with("which the host never restarts").is_empty()).await;
    // The host believes that it listens: later invocations are not gated, they fail.
    let later = host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    assert!(matches!(later, InvocationFailure::Connection(_)), "{later}");
    assert_eq!(script.starts().len(), 1);
    assert_eq!(host.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn strict_mode_stops_at_exit_0() {
    let script = Script::answering(json!({"exit": 0})).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    let reason = host.stopped().await;
    assert!(reason.starts_with("the handler exited with code 0, which the host never restarts"), "{reason}");
    assert_eq!(host.problems(), [reason]);
}

#[tokio::test]
async fn a_crash_fails_what_runs_and_the_next_process_takes_over() {
    let on_call = |call: serde_json::Value| {
        now(if call["body"]["Data"]["job"] == "\"crash\"" { json!({"abort": true}) } else { good(json!({})) })
    };
    let script = Script::calls_with(on_call).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    let failure = host.invoke("compact", "crash").await.unwrap().result.unwrap_err();
    assert!(matches!(failure, InvocationFailure::Connection(_)), "{failure}");
    until(|| script.starts().len() == 2).await;
    assert!(host.invoke("compact", "fine").await.unwrap().result.is_ok());
}

#[tokio::test]
async fn a_handler_that_never_listens_is_killed_and_counted() {
    let script = Script::new(|_| now(json!({"silent": true})), |_| now(json!({}))).await;
    let mut scene = Scene::new(&script, &functions());
    scene.options.timing.initialization = Duration::from_millis(700);
    let host = scene.start().await;
    let reason = host.stopped().await;
    assert!(reason.contains("did not answer within 700ms"), "{reason}");
    let starts = script.starts();
    assert_eq!(starts.len(), 3);
    until(|| starts.iter().all(|start| !runs(start["pid"].as_u64().unwrap()))).await;
}

#[tokio::test]
async fn initialization_timeout_of_host_json_is_the_window() {
    let script = Script::new(|_| now(json!({"silent": true})), |_| now(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| host["customHandler"]["initializationTimeout"] = json!("00:00:00.6"));
    let reason = scene.start().await.stopped().await;
    assert!(reason.contains("did not answer within 600ms"), "{reason}");
}

#[tokio::test]
async fn a_missing_executable_shows_at_the_first_invocation_only() {
    let script = Script::answering(json!({})).await;
    let mut scene = Scene::new(&script, &functions());
    scene.edit_host(|host| host["customHandler"]["description"]["defaultExecutablePath"] = json!("not-here"));
    scene.options.strict = false;
    scene.options.timing.initialization = Duration::from_millis(50);
    let host = scene.start().await;
    until(|| !scene.log.with("the handler cannot be started").is_empty()).await;
    let failure = host.invoke("compact", "x").await.unwrap().result.unwrap_err();
    assert!(failure.to_string().contains("Initialization timed out and host is shutting down"), "{failure}");
    assert_eq!(host.stopped().await, "Initialization timed out and host is shutting down");
}

#[tokio::test]
async fn strict_mode_reports_a_missing_executable_at_once() {
    let script = Script::answering(json!({})).await;
    let scene = Scene::new(&script, &functions());
    scene.edit_host(|host| host["customHandler"]["description"]["defaultExecutablePath"] = json!("not-here"));
    let host = scene.start().await;
    let reason = host.stopped().await;
    assert!(reason.starts_with("the handler cannot be started (No such file"), "{reason}");
}

#[tokio::test]
async fn a_handler_below_the_app_root_is_found_by_its_name() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let program = host_json()["customHandler"]["description"]["defaultExecutablePath"].as_str().unwrap().to_owned();
    std::fs::copy(program, scene.folder.path().join("handler")).unwrap();
    scene.edit_host(|host| host["customHandler"]["description"]["defaultExecutablePath"] = json!("handler"));
    let host = scene.start().await;
    assert!(host.invoke("compact", "x").await.unwrap().result.is_ok());
}

#[tokio::test]
async fn output_is_logged_line_by_line() {
    let start = json!({
        "stdout": ["{\"event\":\"started\"}", "LanguageWorkerConsoleLog hidden"],
        "stderr": ["it went wrong", "a Warning"],
    });
    let script = Script::new(move |_| now(start.clone()), |_| now(good(json!({})))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    host.ready().await.unwrap();
    let console = || scene.log.lines().into_iter().filter(|line| line.category == CONSOLE).collect::<Vec<_>>();
    until(|| console().len() == 3).await;
    let mut lines: Vec<(Level, String)> = console().into_iter().map(|line| (line.level, line.message)).collect();
    lines.sort();
    let expected = [
        (Level::Information, "{\"event\":\"started\"}"),
        (Level::Warning, "a Warning"),
        (Level::Error, "it went wrong"),
    ];
    assert_eq!(lines, expected.map(|(level, text)| (level, text.to_owned())));
    assert!(console().iter().all(|line| line.invocation.is_none()));
}

#[tokio::test]
async fn nothing_is_left_running() {
    let script = Script::answering(good(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let (dropped, stopped) = (scene.start().await, scene.start().await);
    for host in [&dropped, &stopped] {
        host.ready().await.unwrap();
    }
    let pids = [&dropped, &stopped].map(|host| u64::from(host.handler_process().unwrap()));
    let port = |host: &firn_local_host::RunningHost| host.url().rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let ports = [port(&dropped), port(&stopped)];
    drop(dropped);
    stopped.stop().await;
    assert!(pids.iter().all(|pid| !runs(*pid)), "{pids:?}");
    // The servers end on the next turn of the runtime.
    until(|| ports.iter().all(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())).await;
}

#[tokio::test]
async fn a_handler_that_is_killed_while_it_starts_does_not_come_back() {
    let script = Script::new(|_| now(json!({"silent": true})), |_| now(json!({}))).await;
    let scene = Scene::new(&script, &functions());
    let host = scene.start().await;
    until(|| script.starts().len() == 1).await;
    host.stop().await;
    assert!(!runs(script.starts()[0]["pid"].as_u64().unwrap()));
    assert_eq!(script.starts().len(), 1);
}
