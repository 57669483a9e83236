use std::collections::HashMap;

use firn_storage::BlobStore;
use futures::TryStreamExt;
use iceberg::spec::{FormatVersion, MAIN_BRANCH};
use uuid::Uuid;

use super::*;
use crate::error::NextStep;
use crate::testing::{CATALOG, LOCATION, Lake, SCHEMA_V1, Shape, ident};

/// The catalog table as older JDBC catalogs created it.
fn schema_v0() -> String {
    SCHEMA_V1.replace("iceberg_type VARCHAR(5), ", "")
}

fn property(key: &str, value: &str) -> Vec<TableUpdate> {
    vec![TableUpdate::SetProperties { updates: HashMap::from([(key.to_owned(), value.to_owned())]) }]
}

async fn metadata_files(lake: &Lake) -> Vec<String> {
    let blobs: Vec<_> = lake.store.list(&BlobId::parse(LOCATION).unwrap()).try_collect().await.unwrap();
    blobs.into_iter().map(|blob| blob.id.to_string()).collect()
}

async fn pointers(lake: &Lake, name: &str) -> (String, Option<String>) {
    let query = "SELECT metadata_location, previous_metadata_location FROM iceberg_tables WHERE table_name = $1";
    sqlx::query_as(query).bind(name).fetch_one(&lake.pool).await.unwrap()
}

#[tokio::test]
async fn a_missing_database_is_named_and_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nothing.db");
    let store = || TableStore::new(Arc::new(firn_storage::MemoryStore::new()));
    let error = SqlCatalog::open(&path, "lake", store()).await.unwrap_err();
    assert!(error.to_string().contains(&format!("no database file `{}`", path.display())), "{error}");
    assert_eq!(error.next_step(), NextStep::Absent);
    assert!(!path.exists());

    let error = SqlCatalog::open(Path::new("no/such/folder/x.db"), "lake", store()).await.unwrap_err();
    let absolute = std::env::current_dir().unwrap().join("no/such/folder/x.db");
    assert!(error.to_string().contains(&absolute.display().to_string()), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_catalog_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = || TableStore::new(Arc::new(firn_storage::MemoryStore::new()));
    for (name, content) in [
        ("empty.db", ""),
        ("text.db", "this is no database, but longer than a header is, I hope: 100 bytes are needed to tell it"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, content.repeat(3)).unwrap();
        let error = SqlCatalog::open(&path, "lake", store()).await.unwrap_err();
        assert!(error.to_string().contains(&format!("`{}` is not an Iceberg SQL catalog", path.display())), "{error}");
        assert_eq!(error.next_step(), NextStep::Absent);
    }
}

#[tokio::test]
async fn a_name_that_the_database_does_not_have_names_the_ones_it_has() {
    let lake = Lake::new().await;
    let open = |name| {
        let (database, store) = (lake.database(), TableStore::new(Arc::new(lake.store.clone())));
        async move { SqlCatalog::open(&database, name, store).await }
    };
    assert!(open("lakes").await.is_ok(), "a database without tables may hold any catalog");
    lake.create("t", Shape::partitioned(&[])).await;
    let other = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name) VALUES ('b', 'db', 'x')";
    sqlx::query(other).execute(&lake.pool).await.unwrap();
    let error = open("lakes").await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Absent);
    let end = format!("its catalogs are `b`, `{CATALOG}`: correct catalog.name");
    assert!(error.to_string().starts_with("catalog `lakes`: ") && error.to_string().ends_with(&end), "{error}");
    assert!(open(CATALOG).await.is_ok());
}

#[tokio::test]
async fn a_missing_table_names_the_known_ones_and_no_views_or_others_tables() {
    for schema in [SCHEMA_V1.to_owned(), schema_v0()] {
        let lake = Lake::with_catalog_schema(&schema).await;
        lake.create("b", Shape::partitioned(&[])).await;
        lake.create("a", Shape::partitioned(&[])).await;
        let mut foreign = vec![
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) VALUES ('other', 'db', 'x', 'y')",
        ];
        if schema == SCHEMA_V1 {
            foreign.push("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'v', 'y', NULL, 'VIEW')");
            foreign.push("UPDATE iceberg_tables SET iceberg_type = 'TABLE' WHERE table_name = 'b'");
        }
        for insert in foreign {
            sqlx::query(insert).execute(&lake.pool).await.unwrap();
        }
        let known = lake.catalog.list_tables(&["db".to_owned()]).await.unwrap();
        assert_eq!(known, ["a", "b"]);
        for name in ["v", "x", "A"] {
            let error = lake.catalog.load(&ident(name)).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("table `db.{name}` is not in catalog `lake`; namespace `db` has `db.a`, `db.b`")
            );
        }
    }
}

#[tokio::test]
async fn a_swap_moves_the_pointer_and_a_load_sees_it_at_once() {
    for schema in [SCHEMA_V1.to_owned(), schema_v0()] {
        let lake = Lake::with_catalog_schema(&schema).await;
        let first = lake.create("t", Shape::partitioned(&[])).await;
        let requirements = vec![TableRequirement::UuidMatch { uuid: first.metadata.uuid() }];
        let second = lake.catalog.swap(&first, property("k", "1"), requirements).await.unwrap();
        assert_eq!(
            pointers(&lake, "t").await,
            (second.metadata_location.clone(), Some(first.metadata_location.clone()))
        );
        assert!(second.metadata_location.contains("/t/metadata/00001-"), "{}", second.metadata_location);
        let loaded = lake.catalog.load(&ident("t")).await.unwrap();
        assert_eq!((&loaded.metadata, &loaded.metadata_location), (&second.metadata, &second.metadata_location));
        assert_eq!(loaded.property("k"), Some("1"));
        let log = loaded.metadata.metadata_log();
        assert_eq!(log.iter().map(|entry| &entry.metadata_file).collect::<Vec<_>>(), [&first.metadata_location]);
        assert_eq!(metadata_files(&lake).await.len(), 2);
    }
}

#[tokio::test]
async fn the_loser_of_two_swaps_is_told_and_leaves_no_file() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let winner = lake.catalog.swap(&base, property("k", "winner"), vec![]).await.unwrap();
    let error = lake.catalog.swap(&base, property("k", "loser"), vec![]).await.unwrap_err();
    assert!(matches!(error, SwapError::Conflict { .. }), "{error}");
    let mut expected = [base.metadata_location, winner.metadata_location];
    expected.sort();
    assert_eq!(metadata_files(&lake).await, expected);
    assert_eq!(lake.catalog.load(&ident("t")).await.unwrap().property("k"), Some("winner"));
}

#[tokio::test]
async fn of_many_swaps_at_once_one_wins() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let swaps = (0..12).map(|n| lake.catalog.swap(&base, property("k", &n.to_string()), vec![]));
    let results = futures::future::join_all(swaps).await;
    let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(won.len(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(SwapError::Conflict { .. }))));
    assert_eq!(pointers(&lake, "t").await.0, won[0].metadata_location);
    assert_eq!(metadata_files(&lake).await.len(), 2);
}

#[tokio::test]
async fn a_requirement_that_does_not_hold_is_a_conflict_and_writes_nothing() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    for requirement in [
        TableRequirement::UuidMatch { uuid: Uuid::new_v4() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: Some(7) },
    ] {
        let error = lake.catalog.swap(&base, property("k", "1"), vec![requirement]).await.unwrap_err();
        assert!(matches!(error, SwapError::Conflict { .. }), "{error}");
    }
    assert_eq!(metadata_files(&lake).await, [base.metadata_location]);
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_a_conflict() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let database = lake.database();
    let patience = |swap_tries| Patience { busy_timeout: Duration::from_millis(10), swap_tries };
    let store = TableStore::new(Arc::new(lake.store.clone()));
    let hasty = SqlCatalog::open_with(&database, CATALOG, store.clone(), patience(2)).await.unwrap();
    let patient = SqlCatalog::open_with(&database, CATALOG, store, patience(1_000)).await.unwrap();

    let mut writer = lake.pool.acquire().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await.unwrap();
    let error = hasty.swap(&base, property("k", "1"), vec![]).await.unwrap_err();
    assert!(matches!(&error, SwapError::Conflict { detail, .. } if detail.contains("locked")), "{error}");
    assert_eq!(metadata_files(&lake).await, std::slice::from_ref(&base.metadata_location));

    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        sqlx::query("COMMIT").execute(&mut *writer).await.unwrap();
    };
    let (swapped, ()) = tokio::join!(patient.swap(&base, property("k", "2"), vec![]), release);
    assert_eq!(swapped.unwrap().property("k"), Some("2"));
    assert_eq!(lake.catalog.load(&ident("t")).await.unwrap().property("k"), Some("2"));
}

#[tokio::test]
async fn a_refused_update_is_permanent_and_leaves_no_file() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let trigger = "CREATE TRIGGER no_update BEFORE UPDATE ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'frozen'); END";
    sqlx::query(trigger).execute(&lake.pool).await.unwrap();
    let error = lake.catalog.swap(&base, property("k", "1"), vec![]).await.unwrap_err();
    assert!(matches!(&error, SwapError::Permanent { .. }) && error.to_string().contains("frozen"), "{error}");
    assert_eq!(metadata_files(&lake).await, [base.metadata_location]);
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let lake = Lake::new().await;
    let base = lake.create("t", Shape::partitioned(&[])).await;
    let file = SqliteFile::open(&lake.database(), CATALOG, PATIENCE.busy_timeout).await.unwrap();
    file.close().await;
    let closed = SqlCatalog { database: Arc::new(file), ..lake.catalog.clone() };
    let error = closed.swap(&base, property("k", "1"), vec![]).await.unwrap_err();
    assert!(matches!(error, SwapError::NotSent { .. }), "{error}");
    assert_eq!(metadata_files(&lake).await, [base.metadata_location]);
    assert_eq!(closed.load(&ident("t")).await.unwrap_err().next_step(), NextStep::Retry);
}

#[tokio::test]
async fn foreign_metadata_names_are_counted_on_and_compression_follows_the_property() {
    let lake = Lake::new().await;
    let shape = Shape::partitioned(&[]).property("write.metadata.compression-codec", "gzip");
    let made = lake.create("made", shape).await;
    let hadoop = lake.register("t", &format!("{LOCATION}/t/metadata/v3.metadata.json"), &made.metadata).await;
    let next = lake.catalog.swap(&hadoop, property("k", "1"), vec![]).await.unwrap();
    assert!(next.metadata_location.contains("/metadata/00004-"), "{}", next.metadata_location);
    assert!(next.metadata_location.ends_with(".gz.metadata.json"), "{}", next.metadata_location);
    let loaded = lake.catalog.load(&ident("t")).await.unwrap();
    assert_eq!(loaded.metadata, next.metadata);
}

#[tokio::test]
async fn the_metadata_log_is_cut_and_old_files_stay() {
    let lake = Lake::new().await;
    let shape = Shape::partitioned(&[])
        .property("write.metadata.previous-versions-max", "2")
        .property("write.metadata.delete-after-commit.enabled", "true");
    let mut table = lake.create("t", shape).await;
    for n in 0..5 {
        table = lake.catalog.swap(&table, property("k", &n.to_string()), vec![]).await.unwrap();
    }
    assert_eq!(table.metadata.metadata_log().len(), 2);
    assert_eq!(metadata_files(&lake).await.len(), 6);
}

#[tokio::test]
async fn metadata_that_cannot_be_used_is_an_error_that_names_the_table() {
    let lake = Lake::new().await;
    let good = lake.create("good", Shape::partitioned(&[]).version(FormatVersion::V2)).await;
    let mut json = serde_json::to_value(&*good.metadata).unwrap();
    json["current-snapshot-id"] = serde_json::json!(5);
    let text = json.to_string();
    for (name, bytes) in [("lost", text.as_str()), ("cut", &text[..text.len() / 2]), ("empty", "")] {
        let at = format!("{LOCATION}/{name}/metadata/00000-{}.metadata.json", Uuid::new_v4());
        lake.put(&at, bytes.to_owned()).await;
        lake.insert(name, &at).await;
        let error = lake.catalog.load(&ident(name)).await.unwrap_err();
        assert!(matches!(error, TableError::Metadata { .. }), "{error}");
        assert_eq!(error.next_step(), NextStep::Skip);
        assert!(error.to_string().contains(&format!("`db.{name}`")) && error.to_string().contains(&at), "{error}");
    }
    lake.insert("gone", &format!("{LOCATION}/gone/metadata/00000-x.metadata.json")).await;
    let error = lake.catalog.load(&ident("gone")).await.unwrap_err();
    assert!(matches!(error, TableError::Read { .. }), "{error}");
    lake.insert("s3", "s3://bucket/metadata/00000-x.metadata.json").await;
    let error = lake.catalog.load(&ident("s3")).await.unwrap_err();
    assert!(matches!(error, TableError::Url { .. }), "{error}");
}

#[tokio::test]
async fn the_configuration_opens_its_catalog() {
    let lake = Lake::new().await;
    lake.create("t", Shape::partitioned(&[])).await;
    let section = firn_config::Catalog::Sql(firn_config::SqlCatalog {
        name: CATALOG.to_owned(),
        database: firn_config::Database::Sqlite(lake.database()),
        warehouse: None,
    });
    let store = || TableStore::new(Arc::new(lake.store.clone()));
    let catalog = crate::catalog::open(&section, store(), None).await.unwrap();
    assert_eq!(catalog.load(&ident("t")).await.unwrap().ident, ident("t"));
}
