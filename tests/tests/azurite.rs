//! `firn compact` on tables that PyIceberg wrote into Azurite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use firn_test_support::azurite::ACCOUNT_KEY;
use firn_test_support::{Azurite, Fault, Proxy, Request};
use firn_tests::Scene;
use firn_tests::random::number_from;
use firn_tests::scene::TABLE;
use serde_json::{Value, json};

#[path = "common/sidecars.rs"]
mod sidecars;

const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";

/// Thresholds under which a partition of 40 tiny files is worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";

/// Flags of a pass over the whole dataset.
const ALL: [&str; 2] = ["--dataset", "readings"];

/// Appends of the table on which commits are counted. FIRN_APPENDS=1000 is what the project asks for before a release.
const APPENDS: u64 = 240;

/// A scene whose `firn` reaches Azurite through a proxy; other parties do not.
fn proxied(container: &str) -> (Scene, Proxy) {
    let azurite = Azurite::shared();
    let proxy = Proxy::start(azurite.blob_port()).unwrap();
    let scene = Scene::azurite(azurite, container).with_connection_string(&azurite.connection_string_by(proxy.port()));
    (scene, proxy)
}

fn snapshots(inspected: &Value) -> Vec<i64> {
    inspected["snapshots"].as_array().unwrap().iter().map(|snapshot| snapshot["id"].as_i64().unwrap()).collect()
}

fn head(inspected: &Value) -> i64 {
    inspected["current_snapshot_id"].as_i64().unwrap()
}

#[test]
fn late_rows_and_duplicates_are_merged_and_nothing_is_deleted() {
    let scene = Scene::azurite(Azurite::shared(), "late");
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --limit 6000 --appends 120 --partition month:time_hour --duplicates 0.02");
    let (before, files_before) = (scene.inspect(), scene.lake.files(TABLE));
    let rows_before = scene.digest();
    let deduplicated = scene.lake.digest(TABLE, &["--dedup", "origin,time_hour"]);
    assert!(deduplicated.rows < rows_before.rows, "the input has duplicates");

    let lines = scene.compact(&ALL).expect_code(0).lines();
    assert!(lines.len() >= 3, "several months: {lines:#?}");
    for line in &lines {
        assert_eq!((&line["outcome"], &line["filesAfter"]), (&json!("done"), &json!(1)), "{line}");
    }
    assert_eq!(scene.digest(), deduplicated);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), deduplicated);
    assert_eq!(scene.digest_at(head(&before)), rows_before, "time travel to before the merge");

    let after = scene.inspect();
    let (old, new) = (snapshots(&before), snapshots(&after));
    assert_eq!(old, new[..old.len()], "no snapshot expires");
    assert_eq!(new.len(), old.len() + lines.len(), "one snapshot a partition");
    let files_after = scene.lake.files(TABLE);
    let changed: Vec<_> = files_before.iter().filter(|(name, size)| files_after.get(*name) != Some(*size)).collect();
    assert!(changed.is_empty(), "files are gone or changed: {changed:?}");
    scene.check_converged(&ALL);
}

#[test]
fn a_reader_in_a_loop_sees_the_same_rows_all_the_time() {
    let (scene, proxy) = proxied("reader");
    scene.configure(EAGER, "sortColumns: [origin, time_hour]");
    scene.make("--source weather --limit 6000 --appends 60 --partition month:time_hour --duplicates 0.02");
    let rows = scene.digest();
    let before = scene.inspect();

    let mut command = scene.lake.command("digest_loop.py", TABLE, &[]);
    let mut reader = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let rest = thread::spawn(move || lines.map(Result::unwrap).collect::<Vec<_>>());
    // Slow enough that the reader looks in between.
    proxy.delay(Duration::from_millis(40));
    let merged = scene.compact(&ALL).expect_code(0).summary()["done"].as_u64().unwrap();
    drop(reader.stdin.take());
    let reads: Vec<Value> =
        [vec![first], rest.join().unwrap()].concat().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(reader.wait().unwrap().success());

    for read in &reads {
        assert_eq!((&read["rows"], &read["digest"]), (&json!(rows.rows), &json!(rows.digest)), "{read}");
    }
    let seen: Vec<i64> = reads.iter().map(|read| read["snapshot_id"].as_i64().unwrap()).collect();
    let after = scene.inspect();
    assert_eq!((seen.first(), seen.last()), (Some(&head(&before)), Some(&head(&after))));
    assert_eq!(snapshots(&after).len() as u64, snapshots(&before).len() as u64 + merged);
    eprintln!("{} reads saw {} of {} snapshots", reads.len(), seen.iter().collect::<BTreeSet<_>>().len(), merged + 1);
    scene.check_converged(&ALL);
}

/// What a commit asked of the store: everything after the last upload of a data file.
fn commit_of(requests: &[Request]) -> &[Request] {
    let uploaded = requests.iter().rposition(|request| request.is("PUT", ".parquet")).expect("a data file is uploaded");
    &requests[uploaded + 1..]
}

/// How often each manifest was read, by path and range: a range that is read twice is a manifest that is read twice.
fn manifest_reads(requests: &[Request]) -> BTreeMap<(&str, &str), usize> {
    let mut reads = BTreeMap::new();
    for request in requests.iter().filter(|request| request.method == "GET" && is_manifest(&request.path)) {
        *reads.entry((request.path.as_str(), request.range.as_str())).or_default() += 1;
    }
    reads
}

/// PyIceberg and Firn name manifests `<uuid>-m<n>.avro` and manifest lists `snap-….avro`.
fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    name.ends_with(".avro") && !name.starts_with("snap-")
}

/// Merges three partitions of a table of many appends, one a run, and returns how long each commit took.
fn merge_three_months(scene: &Scene, proxy: &Proxy) -> Vec<Duration> {
    let rows = scene.digest();
    let mut times = Vec::new();
    for month in ["2013-01", "2013-02", "2013-03"] {
        proxy.take_requests();
        let flags = ["--partition", &format!("time_hour_month={month}")];
        let lines = scene.compact(&flags).expect_code(0).lines();
        assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &json!("done")), "{lines:#?}");
        let requests = proxy.take_requests();
        let commit = commit_of(&requests);
        let reads = manifest_reads(commit);
        assert!(!reads.is_empty(), "a commit that removes files reads manifests");
        let again: Vec<_> = reads.iter().filter(|(_, count)| **count > 1).collect();
        assert!(again.is_empty(), "{month}: the commit reads manifests more than once: {again:?}");
        let swapped = commit.iter().rfind(|request| request.is("PUT", ".metadata.json")).expect("metadata is written");
        times.push(swapped.ended - commit[0].begun);
    }
    assert_eq!(scene.digest(), rows);
    let after = scene.inspect();
    let manifests = after["manifests"][head(&after).to_string()].as_array().unwrap();
    assert!(manifests.len() <= 5, "{} manifests are left: {manifests:#?}", manifests.len());
    scene.check_converged(&ALL);
    times
}

#[test]
fn a_commit_reads_each_manifest_once_and_leaves_few() {
    let (scene, proxy) = proxied("appends");
    scene.configure("backlogFileThreshold: 10", READINGS);
    // January to March, in time order: an append belongs to one partition.
    let appends = number_from("FIRN_APPENDS").unwrap_or(APPENDS);
    let options = "--source weather --limit 6420 --per-transaction 40 --arrival sorted --partition month:time_hour";
    scene.make(&format!("{options} --appends {appends}"));
    let times = merge_three_months(&scene, &proxy);
    eprintln!("commits on a table of {appends} appends: {times:?}");
}

#[test]
fn a_data_file_that_cannot_be_uploaded_leads_to_no_commit() {
    let (scene, proxy) = proxied("upload");
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --limit 3000 --appends 40 --partition month:time_hour");
    let (rows, before) = (scene.digest(), scene.inspect());

    let (status, code) = ("403 Forbidden", "AuthorizationPermissionMismatch");
    proxy.fail(Some(Fault { method: "PUT", path_ends: ".parquet", status, code }));
    let run = scene.compact(&ALL).expect_code(1);
    let lines = run.lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["outcome"] == "failed"), "{lines:#?}");
    let reason = lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains(".parquet") && reason.contains(code), "{reason}");
    let after = scene.inspect();
    assert_eq!(after["metadata_location"], before["metadata_location"], "no commit");
    assert_eq!(head(&after), head(&before));
    assert_eq!(scene.digest(), rows);
    assert!(proxy.take_requests().iter().any(|request| request.is("PUT", ".parquet") && request.status == 403));

    proxy.fail(None);
    scene.compact(&ALL).expect_code(0);
    assert_eq!(scene.digest(), rows);
    scene.check_converged(&ALL);
}

#[test]
fn what_is_not_there_or_not_allowed_is_named() {
    let azurite = Azurite::shared();
    let scene = Scene::azurite(azurite, "surroundings");
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --limit 100 --appends 2");
    let right = azurite.connection_string();
    let wrong_key = right.replace(ACCOUNT_KEY, &ACCOUNT_KEY.replace("Eby8", "Abcd"));
    assert_ne!(wrong_key, right);
    // The same account elsewhere, where nobody made the container.
    let elsewhere = Azurite::start();

    let scene = scene.with_connection_string(&elsewhere.connection_string());
    scene.configure(EAGER, READINGS);
    let missing = scene.compact(&ALL).expect_code(1);
    assert!(missing.stderr.contains("container") && missing.stderr.contains("surroundings"), "{missing:?}");

    let scene = scene.with_connection_string(&wrong_key);
    scene.configure(EAGER, READINGS);
    let denied = scene.compact(&ALL).expect_code(1);
    assert!(denied.stderr.contains("credentials of this account"), "{denied:?}");
    for run in [missing, denied] {
        assert!(!run.stderr.contains("Abcd8vdM02xN") && !run.stderr.contains(ACCOUNT_KEY), "no secrets: {run:?}");
        assert_eq!(run.summary()["ok"], json!(false), "{run:?}");
    }
}

#[test]
fn a_pass_that_is_enqueued_sends_each_partition_once() {
    let scene = Scene::azurite(Azurite::shared(), "enqueued");
    scene.configure(EAGER, READINGS);
    scene.make("--source weather --limit 1500 --appends 40 --partition month:time_hour");
    let before = scene.inspect();

    let first = scene.compact(&["--enqueue"]).expect_code(0);
    let sent: Vec<Value> = first.lines().into_iter().filter(|line| line["decision"] == "sent").collect();
    assert!(!sent.is_empty(), "{first:?}");
    assert_eq!(first.summary()["sent"], json!(sent.len()));

    let second = scene.compact(&["--enqueue", "--full"]).expect_code(0);
    let raised = second.lines().into_iter().filter(|line| line["decision"] == "raised").count();
    assert_eq!((raised, &second.summary()["sent"]), (sent.len(), &json!(0)), "the queued ones take the stronger rule");
    assert_eq!(scene.inspect()["metadata_location"], before["metadata_location"], "nothing is merged here");
}

#[test]
fn sidecars_are_built_beside_the_merge_and_read_back() {
    sidecars::built_beside_the_merge_and_read_back(&Scene::azurite(Azurite::shared(), "sidecars"));
}

/// The store refuses the index alone: the other sidecars and the data file are there, and the event says what is not.
#[test]
fn a_sidecar_that_the_store_refuses_does_not_stop_the_commit() {
    let (scene, proxy) = proxied("refused-sidecar");
    let (status, code) = ("403 Forbidden", "AuthorizationFailure");
    proxy.fail(Some(Fault { method: "PUT", path_ends: ".tantivy", status, code }));
    sidecars::only_the_index_is_refused(&scene);
    assert!(proxy.take_requests().iter().any(|request| request.is("PUT", ".tantivy") && request.status == 403));
    proxy.fail(None);
    sidecars::the_next_pass_indexes_the_file(&scene);
}

/// A search fetches the ends of an index and a few blocks of it.
#[test]
fn an_index_is_read_by_ranges() {
    let (scene, proxy) = proxied("ranges");
    let index_bytes = sidecars::merged_with_an_index(&scene);
    proxy.take_requests();
    sidecars::words_are_looked_for(&scene);
    let requests = proxy.take_requests();
    let reads: Vec<&Request> = requests.iter().filter(|request| request.is("GET", ".tantivy")).collect();
    let bytes: u64 = reads.iter().map(|request| length_of(&request.range)).sum();
    assert!(!reads.is_empty() && bytes < index_bytes / 2, "{bytes} of {index_bytes} bytes: {reads:#?}");
}

/// Bytes of a range as it is asked for, `bytes=0-9`.
fn length_of(range: &str) -> u64 {
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap()
}

#[test]
fn files_of_another_writer_are_indexed_where_they_lie() {
    sidecars::files_of_another_writer_are_indexed_where_they_lie(&Scene::azurite(Azurite::shared(), "backfill"));
}

#[test]
fn table_statistics_are_made_of_all_files() {
    sidecars::statistics_are_made_of_all_files(&Scene::azurite(Azurite::shared(), "statistics"));
}

#[test]
fn a_search_leaves_out_what_delete_files_delete() {
    sidecars::deleted_rows_are_not_found(&Scene::azurite(Azurite::shared(), "deleted"));
}

#[test]
fn odd_values_are_found_by_index_and_scan_alike() {
    sidecars::odd_values_are_found_alike(&Scene::azurite(Azurite::shared(), "odd-values"));
}

#[test]
fn sidecars_hold_the_rows_that_dedup_left_and_promoted_columns() {
    sidecars::built_of_the_rows_that_dedup_left_and_of_promoted_columns(&Scene::azurite(
        Azurite::shared(),
        "sidecars-dedup",
    ));
}
