//! A catalog and tables in memory, by a clock that tests set, written with the iceberg crate's own writers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use firn_config::Config;
use firn_maintain::expiry::ExpiryTools;
use firn_maintain::{
    FileLine, Neighbours, SweepReport, SweepTools, TableExpiry, TableJob, TableSweep, Verdict, expire_table,
    sweep_table,
};
use firn_model::BlobId;
use firn_state::{StateRoot, StateStore};
use firn_storage::{BlobStore, Clock, MemoryStore, PutCondition};
use firn_table::{Catalog, LoadedTable, SqlCatalog, TableIdent, TableStore};
use futures::StreamExt;
use iceberg::TableUpdate;
use iceberg::spec::*;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

use crate::catalog::{Timed, set_times};
use crate::double::Double;
use crate::writing::{first_metadata, snapshot_with, url};

pub use crate::writing::Change;

pub const WAREHOUSE: &str = "abfss://lake@acct.dfs.core.windows.net/wh";

/// One catalog with tables in the namespace `db`.
pub struct Lake {
    _folder: TempDir,
    pub clock: Clock,
    pub store: Arc<Double>,
    pub state_blobs: Arc<Double>,
    pub state: StateStore,
    pub catalog: Timed,
    pool: SqlitePool,
    pub config: Config,
    next_id: std::sync::atomic::AtomicI64,
    /// Live files of snapshots, which never change.
    known: std::sync::Mutex<BTreeMap<i64, BTreeSet<String>>>,
}

impl std::fmt::Debug for Lake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lake")
    }
}

/// Files of a data file's rows, by what a test wants to see.
#[derive(Debug, Default)]
pub struct Heard(pub Vec<FileLine>);

impl SweepReport for Heard {
    fn file(&mut self, line: &FileLine) {
        self.0.push(line.clone());
    }
}

impl Heard {
    /// Last words of the paths with this verdict, sorted.
    pub fn names(&self, verdict: Verdict) -> Vec<String> {
        let of = |line: &&FileLine| line.verdict == verdict;
        let mut names: Vec<String> = self.0.iter().filter(of).map(|line| name(&line.path)).collect();
        names.sort();
        names
    }

    /// Why a file stays or goes.
    pub fn reason(&self, file: &str) -> String {
        let found = self.0.iter().find(|line| name(&line.path) == file);
        found.map(|line| format!("{}: {}", line.verdict.as_str(), line.reason)).unwrap_or_default()
    }
}

pub fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

/// A table of the namespace `db`, or of another one: `other.inner.t`.
pub fn ident(table: &str) -> TableIdent {
    if table.contains('.') { table.parse().unwrap() } else { TableIdent::new(["db"], table) }
}

impl Lake {
    pub async fn new() -> Self {
        Self::with_settings("").await
    }

    /// `maintenance` are YAML flow entries of that section.
    pub async fn with_settings(maintenance: &str) -> Self {
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
        let clock = Clock::manual("2020-01-01T00:00:00Z".parse().unwrap());
        let store = Arc::new(Double::new(MemoryStore::with_clock(clock.clone())));
        let memory = MemoryStore::with_clock(clock.clone());
        let state_blobs = Arc::new(Double::new(memory.clone()));
        let root = BlobId { account: "acct".into(), container: "firn-state".into(), key: String::new() };
        let state = StateStore::new(state_blobs.clone(), Arc::new(memory), StateRoot::new(root));
        let tables = TableStore::new(store.clone()).with_default_account(Some("acct"));
        let inner = SqlCatalog::open(&database, "lake", tables).await.unwrap();
        let catalog = Timed { inner, clock: clock.clone() };
        let text = format!(
            "storage: {{account: acct}}\n\
             catalog: {{type: rest, uri: 'https://c.example.com'}}\n\
             maintenance: {{{maintenance}}}\n\
             ingestion: {{datasets: [{{name: t, table: db.t}}]}}"
        );
        let config = Config::load(&text, &HashMap::new()).unwrap();
        let next_id = std::sync::atomic::AtomicI64::new(1);
        Self {
            _folder: folder,
            clock,
            store,
            state_blobs,
            state,
            catalog,
            pool,
            config,
            next_id,
            known: Default::default(),
        }
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub fn hours(&self, hours: u64) {
        self.clock.advance(Duration::from_secs(hours * 3600));
    }

    pub async fn create(&self, table: &str, properties: &[(&str, &str)]) -> LoadedTable {
        self.create_at(table, &format!("{WAREHOUSE}/{table}"), properties, FormatVersion::V2).await
    }

    pub async fn create_at(
        &self,
        table: &str,
        location: &str,
        properties: &[(&str, &str)],
        version: FormatVersion,
    ) -> LoadedTable {
        let metadata = first_metadata(table, location, properties, version);
        let folder = properties.iter().find(|(key, _)| *key == "write.metadata.path");
        let folder = folder.map_or(format!("{location}/metadata"), |(_, path)| (*path).to_owned());
        let at = format!("{folder}/00000-{}.metadata.json", uuid::Uuid::new_v4());
        let mut json = serde_json::to_value(&metadata).unwrap();
        set_times(&mut json, &self.clock);
        self.put(&at, json.to_string().as_bytes()).await;
        sqlx::query("INSERT INTO iceberg_tables VALUES ('lake', $1, $2, $3, NULL, 'TABLE')")
            .bind(ident(table).namespace())
            .bind(ident(table).name())
            .bind(&at)
            .execute(&self.pool)
            .await
            .unwrap();
        self.load(table).await
    }

    /// The catalog forgets a table; its files stay.
    pub async fn forget(&self, table: &str) {
        let forget = sqlx::query("DELETE FROM iceberg_tables WHERE table_name = $1").bind(table);
        assert_eq!(forget.execute(&self.pool).await.unwrap().rows_affected(), 1);
    }

    /// Points the catalog to another metadata file.
    pub async fn point(&self, table: &str, metadata: &str) {
        sqlx::query("UPDATE iceberg_tables SET metadata_location = $1 WHERE table_name = $2")
            .bind(metadata)
            .bind(table)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// Writes a metadata file of one's own making and points the catalog to it.
    pub async fn rewrite_metadata(&self, table: &str, change: impl FnOnce(&mut serde_json::Value)) {
        let loaded = self.load(table).await;
        let mut json = serde_json::to_value(loaded.metadata.as_ref()).unwrap();
        change(&mut json);
        let at = format!("{}/metadata/00099-{}.metadata.json", loaded.location(), uuid::Uuid::new_v4());
        self.put(&at, json.to_string().as_bytes()).await;
        self.point(table, &at).await;
    }

    pub async fn load(&self, table: &str) -> LoadedTable {
        self.catalog.load(&ident(table)).await.unwrap()
    }

    pub fn id(&self, url: &str) -> BlobId {
        BlobId::parse_with(url, Some("acct")).unwrap()
    }

    pub async fn put(&self, url: &str, bytes: &[u8]) {
        self.store.put(&self.id(url), Bytes::copy_from_slice(bytes), PutCondition::Any).await.unwrap();
    }

    pub async fn exists(&self, url: &str) -> bool {
        self.store.exists(&self.id(url)).await.unwrap()
    }

    /// Every key below a URL, without that of the URL.
    pub async fn below(&self, url: &str) -> BTreeSet<String> {
        let prefix = self.id(url);
        let start = prefix.key.len();
        let listed = self.store.inner.list(&prefix).map(|blob| blob.unwrap().id.key[start..].to_owned());
        listed.collect::<Vec<_>>().await.into_iter().collect()
    }

    /// Appends data files, each by its name below `data/`, or by a whole URL. Their blobs are written.
    pub async fn append(&self, table: &str, files: &[&str]) -> i64 {
        self.commit(table, "main", Change { add: files, ..Change::default() }).await
    }

    /// Replaces data files, as a merge does.
    pub async fn replace(&self, table: &str, remove: &[&str], add: &[&str]) -> i64 {
        self.commit(table, "main", Change { add, remove, ..Change::default() }).await
    }

    /// The URL of a data file that a test names.
    pub fn url(&self, table: &LoadedTable, file: &str) -> String {
        url(table, file)
    }

    pub async fn commit(&self, table: &str, branch: &str, change: Change<'_>) -> i64 {
        let table = self.load(table).await;
        for file in change.add {
            let url = self.url(&table, file);
            if !self.exists(&url).await {
                self.put(&url, file.as_bytes()).await;
            }
        }
        self.commit_files(&table, branch, change).await
    }

    /// The same without writing blobs.
    pub async fn commit_files(&self, table: &LoadedTable, branch: &str, change: Change<'_>) -> i64 {
        let id = self.next_id.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let updates = snapshot_with(table, id, self.now(), branch, change).await;
        self.update(table, updates).await;
        id
    }

    pub async fn update(&self, table: &LoadedTable, updates: Vec<TableUpdate>) -> LoadedTable {
        self.catalog.swap(table, updates, vec![]).await.unwrap()
    }

    pub async fn set_ref(&self, table: &str, ref_name: &str, id: i64, retention: SnapshotRetention) {
        let reference = SnapshotReference::new(id, retention);
        let loaded = self.load(table).await;
        self.update(&loaded, vec![TableUpdate::SetSnapshotRef { ref_name: ref_name.to_owned(), reference }]).await;
    }

    pub async fn tag(&self, table: &str, name: &str, id: i64) {
        self.set_ref(table, name, id, SnapshotRetention::Tag { max_ref_age_ms: None }).await;
    }

    /// Points a branch to a snapshot: a rollback, or the end of a cherry-pick.
    pub async fn move_branch(&self, table: &str, name: &str, id: i64) {
        self.set_ref(table, name, id, SnapshotRetention::branch(None, None, None)).await;
    }

    pub async fn set_property(&self, table: &str, key: &str, value: &str) {
        let loaded = self.load(table).await;
        let updates = HashMap::from([(key.to_owned(), value.to_owned())]);
        self.update(&loaded, vec![TableUpdate::SetProperties { updates }]).await;
    }

    pub fn job(&self, table: &str) -> TableJob {
        TableJob { dataset: table.to_owned(), table: ident(table), retention: TimeDelta::hours(24) }
    }

    pub async fn expire(&self, table: &str) -> TableExpiry {
        self.expire_with(table, &self.catalog, 5).await
    }

    /// With so many tries after the first.
    pub async fn expire_with(&self, table: &str, catalog: &dyn Catalog, retry_max: u64) -> TableExpiry {
        let tools = ExpiryTools { catalog, state: &self.state, clock: &self.clock, retry_max };
        expire_table(tools, &self.job(table)).await
    }

    pub async fn sweep(&self, table: &str) -> (TableSweep, Heard) {
        self.sweep_with(table, &self.catalog, &self.clock, false).await
    }

    pub async fn dry_run(&self, table: &str) -> (TableSweep, Heard) {
        self.sweep_with(table, &self.catalog, &self.clock, true).await
    }

    pub async fn sweep_with(
        &self,
        table: &str,
        catalog: &dyn Catalog,
        clock: &Clock,
        dry_run: bool,
    ) -> (TableSweep, Heard) {
        self.sweep_until(table, catalog, clock, dry_run, None).await
    }

    pub async fn sweep_until(
        &self,
        table: &str,
        catalog: &dyn Catalog,
        clock: &Clock,
        dry_run: bool,
        deadline: Option<Instant>,
    ) -> (TableSweep, Heard) {
        let tools = SweepTools {
            catalog,
            state: &self.state,
            settings: &self.config.maintenance,
            clock,
            configured: &[],
            deadline,
            dry_run,
        };
        let mut heard = Heard::default();
        let swept = sweep_table(tools, &self.job(table), &mut Neighbours::default(), &mut heard).await;
        (swept, heard)
    }

    /// What a second sweep deletes, the first having seen it two hours before.
    pub async fn sweep_twice(&self, table: &str) -> (TableSweep, Heard) {
        let (first, heard) = self.sweep(table).await;
        assert!(heard.names(Verdict::Deleted).is_empty(), "the first sweep deletes nothing: {first:?}");
        self.hours(2);
        self.sweep(table).await
    }

    /// Every live file of every retained snapshot and every metadata file is there (I2).
    pub async fn check_whole(&self, table: &str) {
        let loaded = self.load(table).await;
        let audit = firn_table::audit(&loaded).await.unwrap();
        assert_eq!(audit.missing, Vec::<String>::new(), "{table}");
    }

    /// The live files of each snapshot, by last word of their paths.
    pub async fn live(&self, table: &str) -> BTreeMap<i64, BTreeSet<String>> {
        let loaded = self.load(table).await;
        let mut found = BTreeMap::new();
        for snapshot in loaded.metadata.snapshots() {
            let id = snapshot.snapshot_id();
            let known = self.known.lock().unwrap().get(&id).cloned();
            if let Some(known) = known {
                found.insert(id, known);
                continue;
            }
            let mut names = BTreeSet::new();
            for file in loaded.manifests(snapshot).await.unwrap() {
                let manifest = file.load_manifest(&loaded.io).await.unwrap();
                let live = manifest.entries().iter().filter(|entry| entry.is_alive());
                names.extend(live.map(|entry| name(entry.file_path())));
            }
            self.known.lock().unwrap().insert(id, names.clone());
            found.insert(id, names);
        }
        found
    }
}
