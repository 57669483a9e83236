//! Catalogs that are shared with others: Firn and PyIceberg on the same tables in Azurite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use firn_model::BlobId;
use firn_storage::{AzureOptions, AzureStore, ConnectionString};
use firn_test_support::{Azurite, IcebergRest, Postgres, Proxy, proxy::Trouble};
use firn_tests::program::run;
use firn_tests::scene::TABLE;
use firn_tests::{Scene, Spark, firn};
use serde_json::{Value, json};

const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";
/// Thresholds under which a partition of some tiny files is worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread, commitRetryMax: 20";
const ALL: [&str; 2] = ["--dataset", "readings"];
const ROWS: &str = "--source weather --limit 4000 --appends 60 --partition month:time_hour --duplicates 0.02";

fn by_postgres(database: &str) -> Scene {
    let scene = Scene::azurite(Azurite::shared(), &format!("pg-{database}"));
    scene.with_catalog(&Postgres::shared().database(database))
}

/// A scene whose catalog is a server of its own.
fn by_rest(container: &str) -> (Scene, IcebergRest) {
    let scene = Scene::azurite(Azurite::shared(), container);
    let server = IcebergRest::start(Azurite::shared(), scene.lake.warehouse());
    (scene.with_catalog(&server.url()), server)
}

/// PyIceberg writes, Firn merges while PyIceberg goes on writing, and both read the same rows afterwards.
fn share(scene: &Scene) {
    scene.configure(EAGER, READINGS);
    scene.make(&format!("{ROWS} --last 40"));
    let lake = scene.lake.clone();
    let writer = thread::spawn(move || {
        let options = format!("{ROWS} --first 40");
        lake.make_table(TABLE, &options.split(' ').collect::<Vec<_>>())
    });
    let meanwhile = scene.compact(&ALL).expect_code(0).summary();
    assert!(meanwhile["done"].as_u64().unwrap() > 0, "{meanwhile}");
    let written = writer.join().unwrap();
    assert!(written["rows"].as_u64().unwrap() > 4000, "{written}");

    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    scene.compact(&ALL).expect_code(0);
    scene.compact(&[ALL.as_slice(), &["--full"]].concat()).expect_code(0);
    assert_eq!(scene.digest(), deduplicated);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), deduplicated);
    let again = scene.compact(&[ALL.as_slice(), &["--full", "--dry-run"]].concat()).expect_code(0);
    let selected: Vec<Value> = again.lines().into_iter().filter(|line| line["decision"] == "selected").collect();
    assert_eq!(selected, Vec::<Value>::new());
    scene.check_converged(&ALL);
}

fn said(scene: &Scene, check: &str) -> Vec<(bool, String)> {
    let mut command = firn();
    command.args(["--format", "json", "doctor", "--config"]).arg(scene.config());
    let lines = run(&mut command).lines().into_iter().filter(|line| line["check"] == check);
    lines.map(|line| (line["ok"] == json!(true), line["message"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn a_catalog_in_postgresql_is_shared_with_pyiceberg() {
    share(&by_postgres("shared"));
}

#[test]
fn a_rest_catalog_is_shared_with_pyiceberg() {
    let (scene, _server) = by_rest("rest-shared");
    share(&scene);
}

#[test]
fn a_commit_over_rest_whose_answer_was_lost_is_found_in_the_table() {
    let (scene, server) = by_rest("rest-lost");
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --limit 1500 --appends 30 --partition month:time_hour");
    let rows = scene.digest();
    let before = scene.inspect()["snapshots"].as_array().unwrap().len();

    // Every first answer to a commit is lost, after the server has applied it.
    let proxy = Proxy::start(server.port()).unwrap();
    let commits = AtomicU64::new(0);
    proxy.trouble(Some(Box::new(move |_, method, path| {
        let commit = method == "POST" && path.ends_with("/tables/readings");
        (commit && commits.fetch_add(1, Ordering::SeqCst) == 0).then_some(Trouble::LostAnswer)
    })));
    let scene = scene.with_catalog(&format!("http://127.0.0.1:{}", proxy.port()));
    scene.configure(EAGER, READINGS);
    let lines = scene.compact(&ALL).expect_code(0).lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["outcome"] == "done"), "{lines:#?}");
    assert_eq!(scene.digest(), rows);
    let after = scene.inspect()["snapshots"].as_array().unwrap().len();
    assert_eq!(after - before, lines.len(), "no commit twice");
    scene.check_converged(&ALL);
}

/// The container of a lake; PyIceberg's lakes make theirs.
fn create_container(scene: &Scene) {
    let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
    let store = AzureStore::new(&connection, AzureOptions::default()).unwrap();
    let container = BlobId::parse(scene.lake.warehouse()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(store.create_container(&container)).unwrap();
}

#[test]
fn a_rest_catalog_is_shared_with_spark() {
    let (scene, _server) = by_rest("rest-spark");
    share_with_spark(&scene);
}

/// Firn and PyIceberg on the tables of Iceberg's JDBC catalog, which Spark has made.
#[test]
fn a_catalog_in_postgresql_is_shared_with_sparks_jdbc_catalog() {
    share_with_spark(&by_postgres("spark"));
}

/// Spark writes, Firn merges, and Spark, PyIceberg and DuckDB read the same rows as before; a stream across the merge sees each row once.
fn share_with_spark(scene: &Scene) {
    create_container(scene);
    let mut spark = Spark::start(Azurite::shared(), &scene.lake);
    spark.ask(&json!({"do": "create"}));
    spark.ask(&json!({"do": "append", "first": 0, "count": 12}));
    let written = spark.ask(&json!({"do": "rows"}));
    assert_eq!(written["rows"], 240);
    let ids = |range: std::ops::Range<i64>| json!({"ids": range.collect::<Vec<i64>>()});
    assert_eq!(spark.ask(&json!({"do": "stream"})), ids(0..240));
    let (pyiceberg, duckdb) = (scene.digest(), scene.lake.duck_digest(TABLE, &[]));
    assert_eq!(pyiceberg, duckdb);

    scene.configure("backlogFileThreshold: 5, verify: reread", "timeColumn: time, ndvColumns: [name, id, price, day]");
    let merged = scene.compact(&ALL).expect_code(0).lines();
    assert_eq!(merged.len(), 3, "{merged:#?}");
    assert!(merged.iter().all(|line| line["outcome"] == "done" && line["filesAfter"] == 1), "{merged:#?}");

    assert_eq!(spark.ask(&json!({"do": "rows"})), written);
    assert_eq!((scene.digest(), scene.lake.duck_digest(TABLE, &[])), (pyiceberg, duckdb));
    let told = spark.ask(&json!({"do": "metadata"}));
    let files = told["files"].as_array().unwrap();
    assert_eq!((files.len(), files.iter().map(|file| file[1].as_u64().unwrap()).sum::<u64>()), (3, 240), "{files:#?}");
    let live = |entry: &&Value| entry[0] != 2;
    let entries: Vec<&Value> = told["entries"].as_array().unwrap().iter().filter(live).collect();
    assert_eq!(entries.len(), 3, "{entries:#?}");
    // What was merged counts as old as the newest of it: a later delete would still apply.
    assert!(entries.iter().all(|entry| entry[1] == 12), "{entries:#?}");
    let operations = told["operations"].as_array().unwrap();
    assert_eq!(
        (operations.len(), &operations[12..]),
        (15, &[json!("replace"), json!("replace"), json!("replace")][..])
    );
    let days = json!([["2026-10-01", 84, 1], ["2026-10-02", 84, 1], ["2026-10-03", 72, 1]]);
    assert_eq!(told["partitions"], days);

    spark.ask(&json!({"do": "append", "first": 240, "count": 2}));
    assert_eq!(spark.ask(&json!({"do": "stream"})), ids(240..280), "each row once, across the merges");
    let written = spark.ask(&json!({"do": "rows"}));
    scene.compact(&ALL).expect_code(0);
    assert_eq!(spark.ask(&json!({"do": "rows"})), written);
    assert_eq!(spark.ask(&json!({"do": "stream"})), ids(0..0), "a merge brings a stream nothing new");
    statistics_reach_the_optimizer(scene, &mut spark);
    scene.check_converged(&ALL);
}

/// Statistics that Firn registers through the REST catalog are what Spark's optimizer counts on.
fn statistics_reach_the_optimizer(scene: &Scene, spark: &mut Spark) {
    let mut command = firn();
    command.args(["--format", "json", "statistics", "--dataset", "readings", "--config"]).arg(scene.config());
    let made = run(&mut command).expect_code(0).lines().remove(0);
    assert_eq!(made["decision"], "registered", "{made}");
    let distinct: Vec<(&str, u64)> = made["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["distinct"].as_u64().unwrap()))
        .collect();
    assert_eq!(distinct, [("name", 7), ("id", 280), ("price", 20), ("day", 20)]);
    let told = spark.ask(&json!({"do": "statistics"}));
    assert_eq!(told["files"], json!([{"snapshot": made["snapshotId"], "path": made["path"]}]));
    let optimizer = told["optimizer"].as_str().unwrap();
    for (name, distinct) in distinct {
        let of_column = optimizer.split(&format!("{name}#")).nth(1).unwrap_or_default();
        assert!(of_column.contains(&format!("ColumnStat(Some({distinct})")), "{name}: {optimizer}");
    }
    // Other programs decode the sketches: decimals and dates have the bytes that the specification says.
    let read = scene.lake.statistics(TABLE);
    for column in read[0]["columns"].as_array().unwrap() {
        assert_eq!(column["ndv"], column["counted"], "{read:#}");
    }
}

#[test]
fn doctor_looks_at_a_rest_catalog() {
    let (scene, server) = by_rest("rest-looked");
    scene.configure(EAGER, READINGS);
    assert_eq!(said(&scene, "catalog"), [(true, "lake answers".to_owned())]);
    let (ok, message) = said(&scene, "table").remove(0);
    assert!(!ok && message.contains("namespace `iot` has no tables"), "{message}");
    drop(server);
    let (ok, message) = said(&scene, "catalog").remove(0);
    assert!(!ok && message.contains("does not answer"), "{message}");
}

#[test]
fn doctor_looks_at_a_catalog_in_postgresql() {
    let scene = by_postgres("looked");
    scene.configure(EAGER, READINGS);
    let (ok, message) = said(&scene, "catalog").remove(0);
    assert!(!ok && message.contains("is not an Iceberg SQL catalog"), "{message}");
    scene.make("--source weather --limit 100 --appends 2");
    assert_eq!(said(&scene, "catalog"), [(true, "lake answers".to_owned())]);
    assert_eq!(said(&scene, "table").len(), 1);

    let url = Postgres::shared().url("looked").replace(":firn-test@", ":hunter2@");
    let scene = scene.with_catalog(&url);
    scene.configure(EAGER, READINGS);
    let (ok, message) = said(&scene, "catalog").remove(0);
    assert!(!ok && message.contains("correct user and password in catalog.uri"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}
