//! A process that works on a queue, on stores in memory, with a clock that stands still.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeZone, Utc};
use firn_columnar::StopFlag;
use firn_compact::{Delivered, FanOut, FanOutError, FannedOut, HostServices, MemoryBudget, Services, WorkAnswer, work};
use firn_config::Config;
use firn_model::{BlobId, Message, PartitionKey, PartitionValue, Rule, Scalar};
use firn_state::{AbandonedOutputs, Address, InflightRecord, ParkedRecord, Selection, StateRoot, StateStore};
use firn_storage::{Clock, Lease, LeaseId, MemoryQueue, MemoryStore, Queue, QueueMessage};
use firn_table::Catalog;
use firn_telemetry::Emitter;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::faulty_catalog::FaultyCatalog;
use crate::lake::{Lake, by_p};

pub const LOCATION: &str = "abfss://lake@acct.dfs.core.windows.net/wh/db/t";

/// What a test sees and moves.
pub struct Scene {
    /// Keeps the catalog's file.
    _folder: TempDir,
    pub store: MemoryStore,
    pub lake: Lake,
    pub catalog: Arc<FaultyCatalog>,
    pub queue: MemoryQueue,
    pub clock: Clock,
    pub events: Events,
    pub asked: Arc<Asked>,
    pub services: HostServices,
}

impl Scene {
    /// Dataset `readings` on a table partitioned by `p`; `compaction` is YAML.
    pub async fn new(compaction: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Utc.with_ymd_and_hms(2026, 11, 30, 6, 0, 0).unwrap());
        let store = MemoryStore::with_clock(clock.clone());
        let lake = Lake::create(folder.path(), Arc::new(store.clone()), LOCATION, by_p(), &[]).await;
        let catalog = FaultyCatalog::new(lake.catalog.clone());
        let queue = MemoryQueue::with_clock("firn-compact", clock.clone());
        queue.create().await.unwrap();
        let root = StateRoot::new(BlobId::parse("abfss://firn-state@acct.dfs.core.windows.net/state").unwrap());
        let state = StateStore::new(Arc::new(store.clone()), Arc::new(store.clone()), root);
        let (events, asked) = (Events::default(), Arc::new(Asked::default()));
        let text = format!(
            "catalog: {{ type: sql, uri: \"sqlite:///{}\", name: lake, warehouse: \"file:///wh\" }}\n\
             compaction: {{ {compaction} }}\n\
             ingestion:\n  datasets:\n    - {{ name: readings, table: db.t }}\n",
            lake.database.display()
        );
        let config = Config::load(&text, &BTreeMap::new()).unwrap_or_else(|errors| panic!("{errors}"));
        let services = HostServices {
            compact: Services {
                catalog: catalog.clone() as Arc<dyn Catalog>,
                temp_root: folder.path().to_path_buf(),
                threads: 1,
                stop: StopFlag::default(),
            },
            state: Arc::new(state),
            queue: Arc::new(queue.clone()),
            poison: Arc::new(MemoryQueue::with_clock("firn-compact-poison", clock.clone())),
            config: Arc::new(config),
            emitter: Emitter::to(events.clone()),
            clock: clock.clone(),
            turns: None,
            memory: MemoryBudget::new(4096),
            run_limit: None,
            fan_out: asked.clone(),
        };
        Scene { _folder: folder, store, lake, catalog, queue, clock, events, asked, services }
    }

    /// With eight small files in partition `a`: more than the threshold of five.
    pub async fn with_backlog() -> Scene {
        let scene = Scene::new(BACKLOG).await;
        scene.lake.append("a", 8, 10, 0).await;
        scene
    }

    /// The services of a handler with another configuration: everything below `catalog`.
    pub fn configured(&self, compaction_and_datasets: &str) -> HostServices {
        let catalog =
            "catalog: { type: sql, uri: \"sqlite:////x/catalog.db\", name: lake, warehouse: \"file:///wh\" }\n";
        let text = format!("{catalog}{compaction_and_datasets}");
        let config = Config::load(&text, &BTreeMap::new()).unwrap_or_else(|errors| panic!("{errors}"));
        HostServices { config: Arc::new(config), ..self.services.clone() }
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub fn advance_minutes(&self, minutes: u64) {
        self.clock.advance(Duration::from_secs(60 * minutes));
    }

    async fn fingerprint(&self, p: &str) -> String {
        key(p).fingerprint(&self.lake.load().await.uuid())
    }

    pub async fn address(&self, p: &str) -> Address<InflightRecord> {
        self.services.state.root().inflight("readings", &self.fingerprint(p).await)
    }

    pub async fn record(&self, p: &str) -> Option<InflightRecord> {
        self.services.state.read(&self.address(p).await).await.unwrap().map(|read| read.value)
    }

    /// What the planner selects.
    pub fn selection(p: &str, rule: Rule, inputs_hash: &str) -> Selection {
        Selection {
            dataset: "readings".into(),
            partition: json!({ "p": p }).as_object().unwrap().clone(),
            spec_id: 0,
            rule,
            pass: "pass-1".into(),
            inputs_hash: inputs_hash.into(),
        }
    }

    /// Writes a record of the planner and gives its message.
    pub async fn queued(&self, p: &str, rule: Rule, inputs_hash: &str) -> InflightRecord {
        let selection = Self::selection(p, rule, inputs_hash);
        let record = InflightRecord::new(&selection, Uuid::new_v4(), self.now()).sent(self.now());
        self.services.state.create(&self.address(p).await, &record).await.unwrap();
        record
    }

    pub async fn replace_record(&self, p: &str, record: &InflightRecord) {
        let address = self.address(p).await;
        let read = self.services.state.read(&address).await.unwrap().unwrap();
        self.services.state.replace(&address, record, &read.version, None).await.unwrap();
    }

    /// The lease of a record, as another worker takes it.
    pub async fn take_lease(&self, p: &str) -> LeaseId {
        self.store.acquire(self.address(p).await.blob(), Duration::from_secs(60)).await.unwrap()
    }

    pub async fn work(&self, body: impl Into<Vec<u8>>, dequeue_count: u64) -> WorkAnswer {
        work(&self.services, delivered(body, dequeue_count)).await
    }

    /// Works on the message of a record.
    pub async fn work_on(&self, record: &InflightRecord, dequeue_count: u64) -> WorkAnswer {
        self.work(record.message().to_json().unwrap(), dequeue_count).await
    }

    /// The message that is visible now, taken out of the queue.
    pub async fn next_message(&self) -> Option<QueueMessage> {
        let message = self.queue.receive(1, Duration::from_secs(600)).await.unwrap().pop()?;
        self.queue.delete(&message.id, &message.pop_receipt).await.unwrap();
        Some(message)
    }

    pub async fn queue_length(&self) -> u64 {
        self.queue.length().await.unwrap()
    }

    pub async fn parked(&self) -> Vec<(String, ParkedRecord)> {
        let mut found = Vec::new();
        for listed in self.services.state.list_parked().await.unwrap() {
            let name = listed.address.name().to_owned();
            found.push((name, self.services.state.read_listed(&listed).await.unwrap().unwrap().value));
        }
        found
    }

    pub async fn parked_under_partition(&self, p: &str) -> ParkedRecord {
        let id = self.fingerprint(p).await;
        self.parked().await.into_iter().find(|(name, _)| *name == id).unwrap().1
    }

    /// Outputs that are noted for the next sweep.
    pub async fn abandoned(&self) -> Vec<AbandonedOutputs> {
        let state = &self.services.state;
        let mut found = Vec::new();
        for listed in state.list_abandoned(&self.lake.load().await.uuid()).await.unwrap() {
            found.push(state.read_listed(&listed).await.unwrap().unwrap().value);
        }
        found
    }

    /// Fails unless partition `a` holds these ids in one file, nothing is queued or parked, and no record is left.
    pub async fn assert_merged(&self, ids: i64) {
        assert_eq!(self.lake.contents().await, (1, (0..ids).collect()));
        assert_eq!(self.record("a").await, None);
        assert_eq!(self.queue_length().await, 0);
        assert_eq!(self.parked().await, []);
    }
}

pub const BACKLOG: &str = "backlogFileThreshold: 5, memoryMb: 128, commitRetryMax: 0";

pub fn key(p: &str) -> PartitionKey {
    PartitionKey::new(0, vec![PartitionValue { name: "p".into(), value: Some(Scalar::String(p.into())) }])
}

pub fn delivered(body: impl Into<Vec<u8>>, dequeue_count: u64) -> Delivered {
    Delivered { body: body.into(), dequeue_count, invocation_id: "run-1".into(), expires: None }
}

/// Remembers the lines.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Vec<u8>>>);

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Events {
    /// The lines since the last call.
    pub fn take(&self) -> Vec<Value> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The one line since the last call: its event and outcome.
    #[track_caller]
    pub fn only(&self) -> (String, String) {
        let lines = self.take();
        assert_eq!(lines.len(), 1, "one terminal event: {lines:#?}");
        let word = |field: &str| lines[0][field].as_str().unwrap().to_owned();
        (word("event"), word("outcome"))
    }
}

/// Remembers what was asked of the planner.
#[derive(Debug, Default)]
pub struct Asked {
    pub messages: Mutex<Vec<Message>>,
    pub answer: Mutex<Option<FanOutError>>,
}

#[async_trait]
impl FanOut for Asked {
    async fn fan_out(&self, _: &HostServices, message: &Message, _: &str) -> Result<FannedOut, FanOutError> {
        self.messages.lock().unwrap().push(message.clone());
        match self.answer.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => {
                let counts = json!({ "sent": 3 }).as_object().unwrap().clone();
                Ok(FannedOut { pass: "pass-9".into(), reason: "3 partitions sent".into(), counts })
            }
        }
    }
}
