//! A scene behind the local Functions host: the real handler, timers and queues over Azurite.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_local_host::stage::{find_app, stage};
use firn_local_host::{Host, HostOptions, MemoryLog, RunningHost, Timing};
use firn_storage::azure::{AzureQueue, ConnectionString};
use firn_storage::{Queue, SendOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::program::beside;
use crate::scene::Scene;

/// The queue of every configuration that names none.
pub const QUEUE: &str = "firn-compact";

/// How often the timer of these tests fires.
const TIMER: &str = "*/2 * * * * *";
const LOOK: Duration = Duration::from_millis(250);

/// A running host. Dropping it kills the handler.
#[derive(Debug)]
pub struct Hosted {
    runtime: Runtime,
    host: Option<RunningHost>,
    log: MemoryLog,
    _root: tempfile::TempDir,
}

/// How a host is started.
#[derive(Debug, Clone)]
pub struct HostedOptions<'a> {
    /// Connection string of host and handler.
    pub connection: &'a str,
    /// Settings beside the usual ones; `AzureFunctionsJobHost__…` stands for a key of host.json.
    pub settings: &'a [(&'a str, &'a str)],
    /// How long a received message stays hidden; the real host's ten minutes where it is not given. An answer to a receive that gets lost
    /// hides its message for as long.
    pub receive_visibility: Option<Duration>,
}

impl Hosted {
    /// Starts a host over the scene's configuration, with the files that Azure gets.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(scene: &Scene, options: &HostedOptions<'_>) -> Hosted {
        let root = tempfile::tempdir().expect("a temporary folder");
        let source = find_app(&[PathBuf::from(env!("CARGO_MANIFEST_DIR"))]).expect("the app is in the source tree");
        stage(&source, &beside("handler"), "handler", root.path()).expect("the app can be staged");
        let config = scene.config().to_str().expect("a path of UTF-8").to_owned();
        let own = [("FIRN_CONFIG", config.as_str())];
        let settings = [&own, options.settings].concat();
        Self::over(root, scene, &HostedOptions { settings: &settings, ..*options })
    }

    /// Starts a host over an app that is staged already.
    ///
    /// # Panics
    /// When it does not start.
    pub fn over(root: tempfile::TempDir, scene: &Scene, options: &HostedOptions<'_>) -> Hosted {
        let runtime = Runtime::new().expect("a runtime starts");
        let log = MemoryLog::default();
        let mut host = HostOptions::new(root.path());
        host.timing = Timing::development();
        if let Some(visibility) = options.receive_visibility {
            host.timing.receive_visibility = visibility;
            host.timing.renew_every = visibility / 2;
        }
        host.log = Arc::new(log.clone());
        let fixed = [
            ("FUNCTIONS_WORKER_RUNTIME", "custom"),
            ("AzureWebJobsStorage", options.connection),
            ("FIRN_TIMER", TIMER),
            ("TMPDIR", scene.path().to_str().expect("a path of UTF-8")),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        host.settings.extend(fixed);
        host.settings.extend(options.settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let host = runtime.block_on(Host::start(host)).expect("the host starts");
        runtime.block_on(host.ready()).expect("the handler answers");
        Hosted { runtime, host: Some(host), log, _root: root }
    }

    fn host(&self) -> &RunningHost {
        self.host.as_ref().expect("it runs until it is stopped")
    }

    /// What the function `status` answers. A handler that is being started again is waited for.
    ///
    /// # Panics
    /// When it does not answer for a minute.
    pub fn status(&self) -> Value {
        let url = self.host().function_url("status").expect("status is an HTTP function");
        let begun = Instant::now();
        loop {
            let answer = self.runtime.block_on(async {
                let client = reqwest::Client::builder().no_proxy().build()?;
                client.get(&url).send().await?.text().await
            });
            let text = answer.expect("the host answers");
            match serde_json::from_str(&text) {
                Ok(status) => return status,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error} in {text:?}"),
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until a tick was recorded, nothing is in flight and the queue and its poison queue are empty, and returns the status then. Partitions at rest
    /// (parked or cooling) are not in flight.
    ///
    /// # Panics
    /// When that does not come about within `limit`, with the log of the host.
    #[track_caller]
    pub fn drained(&self, limit: Duration) -> Value {
        let begun = Instant::now();
        loop {
            let asked = Instant::now();
            let status = self.status();
            // A status reads every record in flight: of hundreds of them it takes a good part of what Azurite can do.
            let look = LOOK.max(asked.elapsed() * 20);
            let at_rest = |record: &&Value| !matches!(record["outcome"].as_str(), Some("parked" | "cooling"));
            let records = status["inflight"]["records"].as_array().cloned().unwrap_or_default();
            let working = records.iter().filter(at_rest).count();
            let waiting = status["queue"]["length"] != 0 || status["poison"]["length"] != 0;
            if !status["tick"].is_null() && !waiting && working == 0 {
                self.runtime.block_on(self.host().wait_idle(limit)).expect("the host is idle");
                return status;
            }
            assert!(begun.elapsed() < limit, "not drained: {status:#}\n{}", self.tail());
            std::thread::sleep(look);
        }
    }

    /// Kills the handler's process, if one runs.
    pub fn kill_handler(&self) -> bool {
        let Some(process) = self.host().handler_process() else { return false };
        let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        killed.is_ok_and(|status| status.success())
    }

    /// Why the host stopped by itself, if it did within `limit`.
    pub fn stopped_within(&self, limit: Duration) -> Option<String> {
        self.runtime.block_on(async { tokio::time::timeout(limit, self.host().stopped()).await.ok() })
    }

    /// Events of the handler, by their name.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let lines = self.log.lines();
        let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line.message).ok());
        parsed.filter(|value| value["event"] == name).collect()
    }

    /// Violations of the host's protocol that strict mode found.
    pub fn problems(&self) -> Vec<String> {
        self.host().problems()
    }

    /// The last lines of the log.
    pub fn tail(&self) -> String {
        let lines = self.log.lines();
        let last = lines.iter().rev().take(60).rev();
        last.map(|line| format!("{}: {}\n", line.category, line.message)).collect()
    }

    /// Posts a message as a person does.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn post(&self, connection: &str, text: &str) {
        let connection = ConnectionString::parse(connection).expect("a connection string");
        let queue = AzureQueue::open(&connection, QUEUE).expect("a queue");
        let options = SendOptions { hidden_for: Duration::ZERO, time_to_live: None };
        self.runtime
            .block_on(async {
                queue.create().await?;
                queue.send(text, &options).await
            })
            .expect("the message is sent");
    }

    /// Ends the host as a shutdown does.
    pub fn stop(mut self) {
        if let Some(host) = self.host.take() {
            self.runtime.block_on(host.stop());
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // Its tasks end on their runtime.
        let _inside = self.runtime.enter();
        drop(self.host.take());
    }
}
