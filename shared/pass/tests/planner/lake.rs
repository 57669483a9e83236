//! Tables in a temporary folder whose files exist in metadata only, which is all that a planner reads, and the services of a
//! host over them in memory.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use firn_columnar::StopFlag;
use firn_compact::{HostServices, MemoryBudget, Services};
use firn_config::Config;
use firn_model::{BlobId, Message, parse_message};
use firn_pass::{Planner, TickSummary, tick};
use firn_state::{InflightRecord, Listed, Read, StateRoot, StateStore, TickRecord};
use firn_storage::{
    Clock, Deleted, LocalStore, MemoryQueue, MemoryStore, PeekedMessage, Queue, QueueError, QueueMessage, SendOptions,
};
use firn_table::{LoadedTable, SqlCatalog, TableIdent, TableStore};
use firn_telemetry::Emitter;
use iceberg::spec::*;
use iceberg::{TableCreation, TableUpdate};
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

/// Field id of `ts`.
const TS: i32 = 3;
/// One megabyte.
pub const MB: u64 = 1 << 20;

/// A catalog, the services of a host over it, and what they emitted.
pub struct Lake {
    folder: TempDir,
    pool: SqlitePool,
    store: TableStore,
    config: String,
    pub host: HostServices,
    pub clock: Clock,
    pub queue: Arc<FaultyQueue>,
    events: Events,
}

impl Lake {
    /// Without tables. `compaction` is the content of that section, `datasets` are names of datasets and of their tables,
    /// each with further keys after a blank.
    pub async fn new(at: &str, compaction: &str, datasets: &[&str]) -> Lake {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("catalog.db");
        let options = SqliteConnectOptions::new().filename(&database).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::query(
            "CREATE TABLE iceberg_tables (catalog_name TEXT NOT NULL, table_namespace TEXT NOT NULL, \
             table_name TEXT NOT NULL, metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT, \
             PRIMARY KEY (catalog_name, table_namespace, table_name))",
        )
        .execute(&pool)
        .await
        .unwrap();
        let store = TableStore::new(Arc::new(LocalStore::new()));
        let clock = Clock::manual(time(at));
        let events = Events::default();
        let queue = Arc::new(FaultyQueue::new(clock.clone()));
        queue.create().await.unwrap();
        let blobs = Arc::new(MemoryStore::with_clock(clock.clone()));
        let root = BlobId { account: "acct".into(), container: "firn-state".into(), key: String::new() };
        let dataset = |name: &&str| match name.split_once(' ') {
            Some((name, keys)) => format!("{{name: {name}, table: db.{name}, {keys}}}"),
            None => format!("{{name: {name}, table: db.{name}}}"),
        };
        let datasets: Vec<String> = datasets.iter().map(dataset).collect();
        let config = format!(
            "catalog: {{type: sql, uri: 'sqlite:///{}', name: lake, warehouse: 'file://{}/wh'}}\n\
             compaction: {{{compaction}}}\n\
             ingestion: {{datasets: [{}]}}\n",
            database.display(),
            folder.path().display(),
            datasets.join(", ")
        );
        let host = HostServices {
            compact: Services {
                catalog: Arc::new(SqlCatalog::open(&database, "lake", store.clone()).await.unwrap()),
                temp_root: folder.path().to_path_buf(),
                threads: 1,
                stop: StopFlag::default(),
            },
            state: Arc::new(StateStore::new(blobs.clone(), blobs, StateRoot::new(root))),
            queue: queue.clone(),
            poison: Arc::new(MemoryQueue::new("firn-compact-poison")),
            config: Arc::new(Config::load(&config, &HashMap::<String, String>::new()).unwrap()),
            emitter: Emitter::to(events.clone()),
            clock: clock.clone(),
            turns: None,
            memory: MemoryBudget::new(512),
            run_limit: None,
            fan_out: Arc::new(Planner),
        };
        Lake { folder, pool, store, config, host, clock, queue, events }
    }

    /// The configuration as text.
    pub fn config_text(&self) -> &str {
        &self.config
    }

    /// Creates the table of a dataset, partitioned by the string `p`.
    pub async fn create(&self, name: &str, properties: &[(&str, &str)]) {
        self.create_table(name, properties, false).await;
    }

    /// Creates the table of a dataset, partitioned by the day of `ts`.
    pub async fn create_by_day(&self, name: &str) {
        self.create_table(name, &[], true).await;
    }

    async fn create_table(&self, name: &str, properties: &[(&str, &str)], by_day: bool) {
        let location = format!("file://{}/wh/db/{name}", self.folder.path().display());
        let field =
            |id, name: &str, kind| Arc::new(NestedField::optional(id, name, iceberg::spec::Type::Primitive(kind)));
        let schema = Schema::builder()
            .with_fields([
                field(1, "id", PrimitiveType::Long),
                field(2, "p", PrimitiveType::String),
                field(TS, "ts", PrimitiveType::Timestamptz),
            ])
            .build()
            .unwrap();
        let (source, field, transform) =
            if by_day { (TS, "day", Transform::Day) } else { (2, "p", Transform::Identity) };
        let spec = UnboundPartitionSpec::builder().add_partition_field(source, field, transform).unwrap().build();
        let creation = TableCreation::builder()
            .name(name.to_owned())
            .location(location.clone())
            .schema(schema)
            .partition_spec(spec)
            .properties(properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>())
            .format_version(FormatVersion::V2)
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
        let first = format!("{location}/metadata/00000-first.metadata.json");
        let json = serde_json::to_vec(&metadata).unwrap();
        self.store.file_io().new_output(&first).unwrap().write(json.into()).await.unwrap();
        sqlx::query("INSERT INTO iceberg_tables VALUES ('lake', 'db', $1, $2, NULL, 'TABLE')")
            .bind(name)
            .bind(&first)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub async fn load(&self, name: &str) -> LoadedTable {
        self.host.compact.catalog.load(&TableIdent::new(["db"], name)).await.unwrap()
    }

    /// Appends files of these sizes to partitions of a table, in one snapshot.
    pub async fn append(&self, name: &str, files: &[(&str, u64)]) {
        let files = files.iter().map(|(partition, bytes)| (Literal::string(*partition), None, *bytes));
        self.append_files(name, files.collect()).await;
    }

    /// Appends files of these sizes to days of a table, each with rows up to a time of its day, in one snapshot.
    pub async fn append_until(&self, name: &str, files: &[(&str, u64)]) {
        let file = |(until, bytes): &(&str, u64)| {
            let micros = time(until).timestamp_micros();
            let day = i32::try_from(micros.div_euclid(86_400_000_000)).unwrap();
            (Literal::date(day), Some(micros), *bytes)
        };
        self.append_files(name, files.iter().map(file).collect()).await;
    }

    /// Appends files to very many partitions in one snapshot, in manifests of 8,000 files: each holds files of very many partitions, as
    /// micro-batches leave them, so no manifest can be passed over for any set of partitions.
    pub async fn append_many(&self, name: &str, partitions: u64, files_each: u64, bytes: u64) {
        let all = (0..files_each)
            .flat_map(|_| (0..partitions).map(move |at| (Literal::string(format!("p{at:06}")), None, bytes)));
        let all: Vec<(Literal, Option<i64>, u64)> = all.collect();
        self.append_manifests(name, all.chunks(8000).map(<[_]>::to_vec).collect()).await;
    }

    async fn append_files(&self, name: &str, files: Vec<(Literal, Option<i64>, u64)>) {
        self.append_manifests(name, vec![files]).await;
    }

    /// One snapshot with a new manifest for each of these sets of files.
    async fn append_manifests(&self, name: &str, sets: Vec<Vec<(Literal, Option<i64>, u64)>>) {
        let table = self.load(name).await;
        let metadata = &table.metadata;
        let id = 100 + metadata.snapshots().len() as i64;
        let mut manifests = Vec::new();
        for (set, files) in sets.into_iter().enumerate() {
            let path = format!("{}/metadata/{id}-{set}.avro", metadata.location());
            let spec = metadata.default_partition_spec().as_ref().clone();
            let output = table.io.new_output(path).unwrap();
            let builder = ManifestWriterBuilder::new(output, Some(id), metadata.current_schema().clone(), spec);
            let mut writer = builder.build_v2_data();
            for (number, (partition, until, bytes)) in files.into_iter().enumerate() {
                let path = format!("{}/data/{id}-{set}-{number}", metadata.location());
                writer.add_file(data_file(&path, partition, until, bytes), -1).unwrap();
            }
            manifests.push(writer.write_manifest_file().await.unwrap());
        }
        let parent = metadata.current_snapshot().cloned();
        if let Some(parent) = &parent {
            let bytes = table.io.new_input(parent.manifest_list()).unwrap().read().await.unwrap();
            let list = ManifestList::parse_with_version(&bytes, FormatVersion::V2).unwrap();
            manifests.extend(list.consume_entries());
        }
        let list = format!("{}/metadata/snap-{id}.avro", metadata.location());
        let output = table.io.new_output(&list).unwrap().writer().await.unwrap();
        let sequence = metadata.next_sequence_number();
        let parent_id = parent.map(|parent| parent.snapshot_id());
        let mut writer = ManifestListWriter::v2(output, id, parent_id, sequence);
        writer.add_manifests(manifests.into_iter()).unwrap();
        writer.close().await.unwrap();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence)
            .with_timestamp_ms(Utc::now().timestamp_millis().max(metadata.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
            .with_schema_id(metadata.current_schema_id())
            .build();
        let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
        ];
        self.host.compact.catalog.swap(&table, updates, vec![]).await.unwrap();
    }

    /// Appends so many files of 1 KB to one partition.
    pub async fn append_small(&self, name: &str, partition: &str, count: usize) {
        self.append(name, &vec![(partition, 1024); count]).await;
    }

    /// Takes the manifest list of a table's current snapshot away.
    pub async fn hide_manifest_list(&self, name: &str) -> Hidden {
        let table = self.load(name).await;
        let path = table.metadata.current_snapshot().unwrap().manifest_list().trim_start_matches("file://").to_owned();
        let hidden = Hidden { away: format!("{path}.away"), path };
        std::fs::rename(&hidden.path, &hidden.away).unwrap();
        hidden
    }

    /// Moves the clock on, then runs a tick.
    pub async fn tick_after(&self, minutes: u64) -> TickSummary {
        self.clock.advance(Duration::from_secs(minutes * 60));
        tick(&self.host, "invocation").await.unwrap()
    }

    /// Takes every message off the queue.
    pub async fn drain(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let received = self.queue.receive(32, Duration::from_secs(600)).await.unwrap();
            if received.is_empty() {
                return messages;
            }
            for message in received {
                self.queue.delete(&message.id, &message.pop_receipt).await.unwrap();
                messages.push(parse_message(message.text.as_bytes()).unwrap());
            }
        }
    }

    /// Puts a message of somebody else into the queue.
    pub async fn queue_other(&self) {
        self.queue.send("{\"dataset\":\"spans\"}", &SendOptions::default()).await.unwrap();
    }

    /// The in-flight records, by partition.
    pub async fn records(&self) -> Vec<(Listed<InflightRecord>, InflightRecord)> {
        let mut records = Vec::new();
        for listed in self.host.state.list_inflight(None).await.unwrap() {
            let read = self.host.state.read_listed(&listed).await.unwrap().unwrap();
            records.push((listed, read.value));
        }
        records.sort_by_key(|(_, record)| (record.dataset.clone(), record.partition.get("p").map(Value::to_string)));
        records
    }

    /// The only record.
    pub async fn record(&self) -> (Listed<InflightRecord>, InflightRecord) {
        let mut records = self.records().await;
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    /// Puts another record in the place of one.
    pub async fn replace(&self, listed: &Listed<InflightRecord>, record: &InflightRecord) {
        self.host.state.replace(&listed.address, record, &listed.version, None).await.unwrap();
    }

    pub async fn tick_record(&self) -> TickRecord {
        let Read { value, .. } =
            self.host.state.read(&self.host.state.root().tick("compact")).await.unwrap().expect("a tick is recorded");
        value
    }

    /// Events of this kind so far.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let text = String::from_utf8(self.events.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == kind).collect()
    }
}

/// A file that is not where it belongs.
pub struct Hidden {
    path: String,
    away: String,
}

impl Hidden {
    pub fn put_back(self) {
        std::fs::rename(self.away, self.path).unwrap();
    }
}

/// A time as `2026-11-01T02:00:00Z`.
pub fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Values of `p` that messages name, sorted.
pub fn partitions(messages: &[Message]) -> Vec<String> {
    let value = |message: &Message| message.partition.as_ref().unwrap()["p"].as_str().unwrap().to_owned();
    let mut values: Vec<String> = messages.iter().map(value).collect();
    values.sort();
    values
}

fn data_file(path: &str, partition: Literal, until: Option<i64>, bytes: u64) -> DataFile {
    let upper = until.map(|micros| (TS, Datum::timestamptz_micros(micros)));
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!("{path}.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition([Some(partition)].into_iter().collect())
        .record_count(10)
        .file_size_in_bytes(bytes)
        .lower_bounds(upper.clone().into_iter().collect())
        .upper_bounds(upper.into_iter().collect())
        .build()
        .unwrap()
}

/// Everything that was emitted.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<u8>>>);

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A queue in memory that can be told to refuse every send.
#[derive(Debug)]
pub struct FaultyQueue {
    inner: MemoryQueue,
    refuses: AtomicBool,
}

impl FaultyQueue {
    fn new(clock: Clock) -> Self {
        Self { inner: MemoryQueue::with_clock("firn-compact", clock), refuses: AtomicBool::new(false) }
    }

    pub fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::SeqCst);
    }
}

#[async_trait]
impl Queue for FaultyQueue {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn create(&self) -> Result<(), QueueError> {
        self.inner.create().await
    }

    async fn send(&self, text: &str, options: &SendOptions) -> Result<String, QueueError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(QueueError::Unavailable { queue: self.name().into(), detail: "refused by the test".into() });
        }
        self.inner.send(text, options).await
    }

    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<QueueMessage>, QueueError> {
        self.inner.receive(max, visibility).await
    }

    async fn peek(&self, max: usize) -> Result<Vec<PeekedMessage>, QueueError> {
        self.inner.peek(max).await
    }

    async fn update(
        &self,
        id: &str,
        receipt: &str,
        text: Option<&str>,
        visibility: Duration,
    ) -> Result<String, QueueError> {
        self.inner.update(id, receipt, text, visibility).await
    }

    async fn delete(&self, id: &str, receipt: &str) -> Result<Deleted, QueueError> {
        self.inner.delete(id, receipt).await
    }

    async fn length(&self) -> Result<u64, QueueError> {
        self.inner.length().await
    }
}
