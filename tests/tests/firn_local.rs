//! `firn local` and `firn invoke`: the host on this machine over the real handler and Azurite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use firn_test_support::Azurite;
use firn_tests::Scene;
use firn_tests::program::{Run, firn, run};
use firn_tests::scene::{MANUAL, TABLE};
use serde_json::{Value, json};

/// Far more than it takes.
const LIMIT: Duration = Duration::from_secs(240);

/// A running `firn local`; it is told to stop when dropped, so that its handler ends too.
struct Local {
    process: Child,
    /// What it printed before it was ready.
    lines: Vec<Value>,
}

impl Local {
    fn start(scene: &Scene) -> Local {
        let mut command = local(&scene.path());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        command.current_dir(source).args(["--format", "json", "local", "--config"]).arg(scene.config());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = Vec::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        loop {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "firn local ended: {:?}", process.wait());
            lines.push(serde_json::from_str(&line).unwrap());
            if lines.last().is_some_and(|line: &Value| line.get("host").is_some()) {
                break;
            }
        }
        process.stdout = Some(out.into_inner());
        Local { process, lines }
    }

    fn port(&self) -> u16 {
        self.lines.last().unwrap()["host"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Tells it to stop; exit code and the rest of what it printed.
    fn stop(&mut self) -> (Option<i32>, String) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let code = self.process.wait().unwrap().code();
        let mut rest = String::new();
        if let Some(mut out) = self.process.stdout.take() {
            out.read_to_string(&mut rest).unwrap();
        }
        (code, rest)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// `firn` with a folder of its own for the host's address.
fn local(folder: &Path) -> Command {
    let mut command = firn();
    command.env("FIRN_LOCAL_DIR", folder.join("local"));
    command
}

fn invoke(scene: &Scene, arguments: &[&str]) -> Run {
    run(local(&scene.path()).args(["--format", "json", "invoke"]).args(arguments))
}

/// Whether a process has this scene's configuration in its environment and is the handler.
fn handlers(scene: &Scene) -> usize {
    let wanted = format!("FIRN_CONFIG={}", scene.config().display());
    let is_handler = |entry: std::io::Result<std::fs::DirEntry>| {
        let environment = std::fs::read(entry.ok()?.path().join("environ")).ok()?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let has = |text: &str| environment.split('\0').any(|variable| variable.starts_with(text));
        (has(&wanted) && has("FUNCTIONS_CUSTOMHANDLER_PORT=")).then_some(())
    };
    std::fs::read_dir("/proc").unwrap().filter_map(is_handler).count()
}

#[test]
fn a_table_is_compacted_through_the_queue_and_nothing_is_left_running() {
    let scene = Scene::azurite(Azurite::shared(), "local-host");
    scene.configure(
        "backlogFileThreshold: 10, verify: reread",
        "seriesColumns: [origin], timeColumn: time_hour, dedup: true",
    );
    scene.lake.make_table(
        TABLE,
        &["--source", "weather", "--limit", "3000", "--appends", "40", "--partition", "month:time_hour"],
    );
    let expected = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    let files_before = scene.inspect()["files"].as_array().map(Vec::len);

    let mut host = Local::start(&scene);
    let functions: Vec<&str> = host.lines.iter().filter_map(|line| line["function"].as_str()).collect();
    assert_eq!(functions, ["clean-orphans", "compact", "compact-poison", "expire-snapshots", "plan", "status"]);
    // The host begins with a look for due work, so there is nothing to fire.
    let begun = Instant::now();
    let status = loop {
        let status = invoke(&scene, &["status"]).expect_code(0).summary();
        let body = &status["body"];
        if body["tick"].is_object() && body["queue"]["length"] == 0 && body["inflight"]["count"] == 0 {
            break status;
        }
        assert!(begun.elapsed() < LIMIT, "not drained: {status:#}");
        thread::sleep(Duration::from_millis(300));
    };
    assert_eq!(status["body"]["parked"]["count"], 0, "{status:#}");
    assert_eq!(scene.digest(), expected);
    scene.check_converged(&MANUAL);
    assert_ne!(scene.inspect()["files"].as_array().map(Vec::len), files_before);

    // A message by hand for a dataset that is not there is parked, and the handler says so.
    let parked = invoke(&scene, &["compact", "--data", "{\"dataset\":\"nowhere\"}"]).expect_code(0).summary();
    assert_eq!(parked["ok"], true, "{parked:#}");
    assert_eq!(invoke(&scene, &["status"]).summary()["body"]["parked"]["count"], 1);
    let unknown = invoke(&scene, &["merge"]).expect_code(2);
    assert!(unknown.stderr.contains("\"merge\" is no function of"), "{}", unknown.stderr);

    assert_eq!(handlers(&scene), 1);
    let port = host.port();
    let (code, rest) = host.stop();
    assert_eq!(code, Some(0));
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last, json!({"summary": true, "ok": true}));
    assert_eq!(handlers(&scene), 0);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let gone = invoke(&scene, &["status"]).expect_code(1);
    assert!(gone.stderr.contains("no local host runs"), "{}", gone.stderr);
}

#[test]
fn a_host_that_is_killed_takes_its_handler_along() {
    // Queues are named in function.json, so hosts that must not share one have an Azurite of their own.
    let azurite = Azurite::start();
    let scene = Scene::azurite(&azurite, "local-killed");
    scene.configure("verify: reread", "seriesColumns: [origin], timeColumn: time_hour");
    scene.make("--source weather --limit 100 --appends 2");
    let mut host = Local::start(&scene);
    let mut second = Local::start(&scene);
    let url = |host: &Local| format!("http://127.0.0.1:{}", host.port());
    let several = invoke(&scene, &["status"]).expect_code(2);
    assert!(
        several.stderr.contains("several local hosts run") && several.stderr.contains(&url(&second)),
        "{}",
        several.stderr
    );
    // The key of a host that announced itself need not be given.
    invoke(&scene, &["status", "--url", &url(&second)]).expect_code(0);
    assert_eq!(second.stop().0, Some(0));
    invoke(&scene, &["status"]).expect_code(0);
    let begun = Instant::now();
    while handlers(&scene) == 0 {
        assert!(begun.elapsed() < LIMIT, "no handler was started");
        thread::sleep(Duration::from_millis(50));
    }
    host.process.kill().unwrap();
    host.process.wait().unwrap();
    let begun = Instant::now();
    while handlers(&scene) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "its handler still runs");
        thread::sleep(Duration::from_millis(50));
    }
    let gone = invoke(&scene, &["status"]).expect_code(1);
    assert!(gone.stderr.contains("no local host runs"), "{}", gone.stderr);
}
