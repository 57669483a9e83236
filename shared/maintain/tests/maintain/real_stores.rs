//! Sweeps over real stores: a folder of this machine with links in it, and blobs of the emulator.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use firn_config::Maintenance;
use firn_maintain::sweep::{SweepStop, Undo};
use firn_maintain::{Neighbours, SweepOutcome, SweepTools, TableJob, TableSweep, Verdict, sweep_table};
use firn_model::BlobId;
use firn_state::{StateRoot, StateStore};
use firn_storage::{AzureOptions, AzureStore, BlobStore, Clock, ConnectionString, Lease, LocalStore};
use firn_table::{Catalog, SqlCatalog, TableStore};
use firn_test_support::Azurite;
use iceberg::spec::FormatVersion;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;
use uuid::Uuid;

use crate::lake::{Heard, ident, name};
use crate::writing::{Change, first_metadata, snapshot_with};

/// A table `db.t` in a store that keeps the time of this machine.
struct Real {
    _folder: TempDir,
    store: TableStore,
    state: StateStore,
    catalog: SqlCatalog,
    location: String,
}

impl Real {
    async fn new(store: TableStore, state: StateStore, location: &str) -> Self {
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
        let json = serde_json::to_string(&first_metadata("t", location, &[], FormatVersion::V2)).unwrap();
        let at = format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4());
        store.file_io().new_output(&at).unwrap().write(json.into()).await.unwrap();
        sqlx::query("INSERT INTO iceberg_tables VALUES ('lake', 'db', 't', $1, NULL, 'TABLE')")
            .bind(&at)
            .execute(&pool)
            .await
            .unwrap();
        let catalog = SqlCatalog::open(&database, "lake", store.clone()).await.unwrap();
        Self { _folder: folder, store, state, catalog, location: location.to_owned() }
    }

    async fn put(&self, url: &str) {
        self.store.file_io().new_output(url).unwrap().write("rows".into()).await.unwrap();
    }

    async fn exists(&self, url: &str) -> bool {
        self.store.blobs().exists(&self.store.blob_id(url).unwrap()).await.unwrap()
    }

    async fn append(&self, id: i64, url: &str) {
        let table = self.catalog.load(&ident("t")).await.unwrap();
        let updates = snapshot_with(&table, id, Utc::now(), "main", Change { add: &[url], ..Change::default() }).await;
        self.catalog.swap(&table, updates, vec![]).await.unwrap();
    }

    /// With no age and no grace: the machine's own time is all there is.
    async fn sweep(&self) -> (TableSweep, Heard) {
        let settings = Maintenance {
            expire_snapshots_interval_minutes: 60,
            orphan_cleanup_interval_minutes: 60,
            orphan_min_age_hours: 0,
            orphan_grace_hours: 0,
            orphan_metadata: false,
            receipt_days: 90,
        };
        let tools = SweepTools {
            catalog: &self.catalog,
            state: &self.state,
            settings: &settings,
            clock: &Clock::system(),
            configured: &[],
            deadline: None,
            dry_run: false,
        };
        let job = TableJob { dataset: "t".into(), table: ident("t"), retention: TimeDelta::hours(24) };
        let mut heard = Heard::default();
        let swept = sweep_table(tools, &job, &mut Neighbours::default(), &mut heard).await;
        (swept, heard)
    }

    /// Times of stores are in whole seconds, and a file goes when it is older than it was seen.
    async fn a_while(&self) {
        tokio::time::sleep(Duration::from_millis(2_100)).await;
    }
}

async fn local(folder: &Path) -> Real {
    let store = Arc::new(LocalStore::new());
    let root = BlobId::local(folder.join("state").to_string_lossy());
    let state = StateStore::new(store.clone(), store.clone(), StateRoot::new(root));
    Real::new(TableStore::new(store), state, &format!("file://{}/real/t", folder.display())).await
}

/// What is deleted from a folder lies in the trash.
#[tokio::test]
async fn an_orphan_of_a_folder_goes_to_the_trash() {
    let folder = TempDir::new().unwrap();
    let lake = local(folder.path()).await;
    let (live, orphan) =
        (format!("{}/data/a.parquet", lake.location), format!("{}/data/orphan.parquet", lake.location));
    lake.put(&live).await;
    lake.put(&orphan).await;
    lake.append(1, &live).await;
    lake.a_while().await;
    lake.sweep().await;
    lake.a_while().await;
    let (swept, heard) = lake.sweep().await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    assert_eq!(swept.receipt.undo, Undo::Trash { days: 14 });
    assert!(lake.exists(&live).await && !lake.exists(&orphan).await);
    let trash = folder.path().join("state/trash").join(&swept.receipt.receipt).join("00000000-orphan.parquet");
    assert_eq!(std::fs::read_to_string(trash).unwrap(), "rows");
}

/// The table's own files under the name of a link to its folder: the sweep cannot know that it is the same one by its names.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_tables_folder_stops() {
    let folder = TempDir::new().unwrap();
    let lake = local(folder.path()).await;
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
    let by_link = format!("file://{}/link/t/data/a.parquet", folder.path().display());
    lake.put(&format!("{}/data/a.parquet", lake.location)).await;
    lake.put(&format!("{}/data/b.parquet", lake.location)).await;
    lake.append(1, &format!("{}/data/b.parquet", lake.location)).await;
    lake.append(2, &by_link).await;
    for _ in 0..2 {
        lake.a_while().await;
        let (swept, heard) = lake.sweep().await;
        let SweepOutcome::Stopped(SweepStop::OtherName { path, .. }) = &swept.outcome else { panic!("{swept:?}") };
        assert_eq!(*path, by_link);
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    }
    assert!(lake.exists(&by_link).await);
}

/// A file elsewhere that only lies beside a link is nobody's trouble.
#[cfg(unix)]
#[tokio::test]
async fn a_file_outside_that_no_link_leads_into_is_passed_over() {
    let folder = TempDir::new().unwrap();
    let lake = local(folder.path()).await;
    let outside = format!("file://{}/elsewhere/a.parquet", folder.path().display());
    let inside = format!("{}/data/b.parquet", lake.location);
    lake.put(&outside).await;
    lake.put(&inside).await;
    lake.append(1, &inside).await;
    lake.append(2, &outside).await;
    lake.a_while().await;
    let (swept, _) = lake.sweep().await;
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
}

/// K93: names that are hard to sign, to encode or to tell apart.
const ODD: [&str; 8] = [
    "orphan a%20b.parquet",
    "##.parquet",
    "50%zz.parquet",
    "a+b.parquet",
    "a b.parquet",
    "dot./x.parquet",
    "q?y=1&z.parquet",
    "\u{f028}é'.parquet",
];

/// Real blobs of the emulator: listed, seen, deleted by their version; what is live stays.
#[tokio::test]
async fn an_orphan_of_the_emulator_goes() {
    let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
    let azure = Arc::new(AzureStore::new(&connection, AzureOptions::default()).unwrap());
    let container = |name: &str| BlobId {
        account: azure.account().to_owned(),
        container: format!("{name}{}", Uuid::new_v4().simple()),
        key: String::new(),
    };
    let (lake, state) = (container("lake"), container("state"));
    for id in [&lake, &state] {
        azure.create_container(id).await.unwrap();
    }
    let location = format!("abfss://{}@{}.dfs.core.windows.net/wh/t", lake.container, lake.account);
    let blobs: Arc<dyn BlobStore> = azure.clone();
    let leases: Arc<dyn Lease> = azure.clone();
    let state = StateStore::new(blobs.clone(), leases, StateRoot::new(state));
    let lake = Real::new(TableStore::new(blobs), state, &location).await;
    let url = |file: &str| format!("{location}/data/day=2026-11-01/{file}");
    for file in ODD {
        lake.put(&url(file)).await;
        lake.put(&url(&format!("live/{file}"))).await;
    }
    for (id, file) in (1..).zip(ODD) {
        lake.append(id, &url(&format!("live/{file}"))).await;
    }
    lake.a_while().await;
    let (first, heard) = lake.sweep().await;
    assert!(matches!(first.outcome, SweepOutcome::Done), "{first:?}");
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    lake.a_while().await;
    let (swept, heard) = lake.sweep().await;
    let mut names = ODD.map(name);
    names.sort();
    assert_eq!(heard.names(Verdict::Deleted), names, "{swept:?}");
    for file in ODD {
        assert!(lake.exists(&url(&format!("live/{file}"))).await, "{file}");
        assert!(!lake.exists(&url(file)).await, "{file}");
    }
    assert_eq!((swept.receipt.deletions.deleted, swept.receipt.deletions.bytes), (8, 32));
}
