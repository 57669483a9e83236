//! An app in a folder, a host over it, queues and blobs in memory, and a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_local_host::{Host, HostOptions, ManualClock, MemoryHostStorage, MemoryLog, RunningHost};
use firn_storage::{MemoryQueue, Queue};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::script::Script;

/// How long something may take that must happen: far more than it takes.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) clock: ManualClock,
    pub(crate) storage: MemoryHostStorage,
    pub(crate) log: MemoryLog,
    pub(crate) options: HostOptions,
}

/// host.json as Firn has it, over the scripted handler.
pub(crate) fn host_json() -> Value {
    json!({
        "version": "2.0",
        "functionTimeout": "00:30:00",
        "extensionBundle": {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.*, 5.0.0)"},
        "customHandler": {"description": {"defaultExecutablePath": env!("CARGO_BIN_EXE_firn-scripted-handler")}},
        "extensions": {"queues": {
            "batchSize": 1, "newBatchThreshold": 0, "maxDequeueCount": 5, "visibilityTimeout": "00:02:00",
            "messageEncoding": "none", "maxPollingInterval": "00:00:30",
        }},
    })
}

pub(crate) fn queue_trigger(queue: &str) -> Value {
    json!({"type": "queueTrigger", "direction": "in", "name": "job", "queueName": queue, "connection": "AzureWebJobsStorage"})
}

pub(crate) fn timer(schedule: &str) -> Value {
    json!({"type": "timerTrigger", "direction": "in", "name": "tick", "schedule": schedule})
}

impl Scene {
    /// With the functions given as name and bindings.
    pub(crate) fn new(script: &Script, functions: &[(&str, Vec<Value>)]) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-12-01T07:57:00Z".parse().unwrap());
        let storage = MemoryHostStorage::new(clock.storage());
        let log = MemoryLog::default();
        let mut options = HostOptions::new(folder.path());
        options.settings = BTreeMap::from([
            ("SCRIPT_URL".to_owned(), script.url.clone()),
            ("AzureWebJobsStorage".to_owned(), "UseDevelopmentStorage=true".to_owned()),
            ("FUNCTIONS_WORKER_RUNTIME".to_owned(), "custom".to_owned()),
        ]);
        options.clock = Arc::new(clock.clone());
        options.storage = Arc::new(storage.clone());
        options.log = Arc::new(log.clone());
        let scene = Scene { folder, clock, storage, log, options };
        scene.write_host(&host_json());
        for (name, bindings) in functions {
            std::fs::create_dir(scene.folder.path().join(name)).unwrap();
            let file = scene.folder.path().join(name).join("function.json");
            std::fs::write(file, json!({ "bindings": bindings }).to_string()).unwrap();
        }
        scene
    }

    pub(crate) fn write_host(&self, file: &Value) {
        std::fs::write(self.folder.path().join("host.json"), file.to_string()).unwrap();
    }

    /// Changes host.json.
    pub(crate) fn edit_host(&self, edit: impl FnOnce(&mut Value)) {
        let mut file = host_json();
        edit(&mut file);
        self.write_host(&file);
    }

    pub(crate) async fn start(&self) -> RunningHost {
        Host::start(self.options.clone()).await.unwrap()
    }

    /// A queue that exists.
    pub(crate) async fn queue(&self, name: &str) -> MemoryQueue {
        let queue = self.storage.memory_queue(name);
        queue.create().await.unwrap();
        queue
    }

    /// Moves the clock on, a little at a time, until `done`.
    pub(crate) async fn advance_until(&self, step: Duration, mut done: impl FnMut() -> bool) {
        until(|| {
            let over = done();
            if !over {
                self.clock.advance(step);
            }
            over
        })
        .await;
    }
}

/// Waits until `done`.
#[track_caller]
pub(crate) fn until(mut done: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < LIMIT, "waited for too long at {caller}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The texts of a queue's visible messages.
pub(crate) async fn texts(queue: &dyn Queue) -> Vec<String> {
    queue.peek(32).await.unwrap().into_iter().map(|message| message.text).collect()
}

/// Whether a process runs.
pub(crate) fn runs(pid: u64) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
