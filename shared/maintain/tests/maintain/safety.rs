//! Whatever looks wrong stops the sweep, and nothing is deleted.

use chrono::TimeDelta;
use firn_maintain::{SweepOutcome, TableSweep, Verdict};
use firn_storage::{BlobStore, Clock};
use futures::FutureExt;
use iceberg::spec::FormatVersion;

use crate::catalog::Scripted;
use crate::double::Fault;
use crate::lake::{Change, Lake, WAREHOUSE};

async fn with_orphan() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"x").await;
    lake.hours(48);
    lake
}

/// Sweeps until an orphan would be long gone, and says why nothing went.
async fn never_deletes(lake: &Lake) -> String {
    let before = lake.below(&format!("{WAREHOUSE}/")).await;
    let mut reason = String::new();
    for _ in 0..3 {
        let (swept, heard) = lake.sweep("t").await;
        reason = stopped(&swept);
        assert_eq!(
            (swept.receipt.outcome.as_str(), swept.receipt.reason.as_deref()),
            ("failed", Some(reason.as_str()))
        );
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        lake.hours(2);
    }
    assert_eq!(lake.below(&format!("{WAREHOUSE}/")).await, before);
    reason
}

fn stopped(swept: &TableSweep) -> String {
    match &swept.outcome {
        SweepOutcome::Stopped(stop) => stop.to_string(),
        other => panic!("{other:?}"),
    }
}

/// K12: every form of URL in one table.
#[tokio::test]
async fn every_form_of_url_protects_its_file() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append(
        "t",
        &[
            "abfss://lake@acct.dfs.core.windows.net/wh/t/data/a.parquet",
            "https://acct.blob.core.windows.net/lake/wh/t/data/day=1/b%20c.parquet",
            "wasbs://lake@acct.blob.core.windows.net/wh/t/data/d.parquet",
            "abfss://lake@ACCT.dfs.core.windows.net/wh/t/data/e.parquet",
            "abfss://lake/wh/t/data/f.parquet",
            "abfs://lake@acct.dfs.core.windows.net/wh/t/data/g.parquet",
            "wasb://lake@acct.blob.core.windows.net/wh/t/data/h.parquet",
            "az://lake/wh/t/data/i.parquet",
            "az://lake@acct.blob.core.windows.net/wh/t/data/j.parquet",
            "https://acct.dfs.core.windows.net/lake/wh/t/data/day%3D1/k.parquet",
            "HTTPS://Acct.Blob.core.windows.net/lake/wh/t/data/l.parquet",
            "ABFSS://lake@acct.DFS.core.windows.net/wh/t/data/m.parquet",
            "abfss://lake@acct.dfs.core.windows.net/wh/t/data//n.parquet",
        ],
    )
    .await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"x").await;
    lake.hours(30 * 24);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    for file in ["a.parquet", "day=1/b c.parquet", "d.parquet", "e.parquet", "f.parquet", "day=1/k.parquet"] {
        assert!(lake.exists(&format!("{WAREHOUSE}/t/data/{file}")).await, "{file}");
    }
    for file in ["g.parquet", "h.parquet", "i.parquet", "j.parquet", "l.parquet", "m.parquet"] {
        assert!(lake.exists(&format!("{WAREHOUSE}/t/data/{file}")).await, "{file}");
    }
}

/// K12, K58: a path that is written encoded, or with a double slash, protects what it could mean.
#[tokio::test]
async fn a_path_protects_its_key_as_it_stands_and_decoded() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    for key in ["x%20y.parquet", "x y.parquet", "z.parquet", "doubled.parquet", "ended.parquet"] {
        lake.put(&format!("{WAREHOUSE}/t/data/{key}"), b"x").await;
    }
    let table = lake.load("t").await;
    let add = [
        "x%20y.parquet",
        "abfss://lake@acct.dfs.core.windows.net/wh/t/data/z.parquet",
        "abfss://lake@acct.dfs.core.windows.net/wh//t/data//doubled.parquet",
        "abfss://lake@acct.dfs.core.windows.net/wh/t/data/ended.parquet/",
    ];
    lake.commit_files(&table, "main", Change { add: &add, ..Change::default() }).await;
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [""; 0], "{swept:?}");
    // Without a reference two names of one identity protect each other.
    let lake = with_orphan().await;
    for key in ["x%20y.parquet", "x y.parquet"] {
        lake.put(&format!("{WAREHOUSE}/t/data/{key}"), b"x").await;
    }
    lake.hours(48);
    let (_, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"]);
    assert_eq!(heard.reason("x y.parquet"), "keep: two files of one identity");
}

/// K12: unknown schemes, other accounts and containers stop.
#[tokio::test]
async fn paths_that_lead_elsewhere_stop() {
    for (file, reason) in [
        ("s3://bucket/t/data/a.parquet", "unknown scheme"),
        ("abfss://lake@other.dfs.core.windows.net/wh/t/data/b.parquet", "another account or container"),
        ("abfss://elsewhere@acct.dfs.core.windows.net/wh/t/data/b.parquet", "another account or container"),
        ("abfss://lake@acct.dfs.core.windows.net/wh/t/data/../data/b.parquet", "`.` or `..`"),
    ] {
        let lake = with_orphan().await;
        let table = lake.load("t").await;
        lake.commit_files(&table, "main", Change { add: &[file], ..Change::default() }).await;
        lake.hours(48);
        let found = never_deletes(&lake).await;
        assert!(found.contains(reason), "{file}: {found}");
    }
}

/// A form of URL of which nothing is found in the listing: the names do not mean what they seem to mean.
#[tokio::test]
async fn a_form_that_is_never_found_stops() {
    let lake = with_orphan().await;
    let table = lake.load("t").await;
    let file = "https://acct.blob.core.windows.net/lake/outside/b.parquet";
    lake.put(file, b"x").await;
    lake.commit_files(&table, "main", Change { add: &[file], ..Change::default() }).await;
    lake.hours(48);
    let found = never_deletes(&lake).await;
    assert!(found.starts_with("the metadata has paths like `https://acct.blob.core.windows.net/…`"), "{found}");
}

/// A form of which only the log still knows, with files that the writer has deleted: nothing can be mistaken any more. While one is there, it can.
#[tokio::test]
async fn a_form_of_the_log_alone_whose_files_are_gone_stops_nothing() {
    for there in [false, true] {
        let lake = with_orphan().await;
        let old = "wasbs://lake@acct.blob.core.windows.net/elsewhere/metadata/00000-x.metadata.json";
        if there {
            lake.put(old, b"{}").await;
        }
        lake.rewrite_metadata("t", |json| {
            let log = json["metadata-log"].as_array_mut().unwrap();
            let first = log[0]["timestamp-ms"].clone();
            log.insert(0, serde_json::json!({ "timestamp-ms": first, "metadata-file": old }));
        })
        .await;
        lake.hours(48);
        if there {
            assert!(never_deletes(&lake).await.contains("`wasbs://…@acct.blob.core.windows.net`"));
        } else {
            let (swept, heard) = lake.sweep_twice("t").await;
            assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
        }
    }
}

/// A file that a snapshot needs is gone: the table is damaged, or its names mean something else.
#[tokio::test]
async fn a_missing_file_stops() {
    let lake = with_orphan().await;
    lake.store.inner.delete(&lake.id(&format!("{WAREHOUSE}/t/data/a.parquet"))).await.unwrap();
    let found = never_deletes(&lake).await;
    assert!(found.contains("a.parquet` is not there although the table refers to it"), "{found}");
}

/// A removed entry may name a file that is gone.
#[tokio::test]
async fn a_file_that_was_removed_may_be_gone() {
    let lake = with_orphan().await;
    lake.replace("t", &["a.parquet"], &["b.parquet"]).await;
    lake.hours(30);
    lake.expire("t").await;
    lake.store.inner.delete(&lake.id(&format!("{WAREHOUSE}/t/data/a.parquet"))).await.unwrap();
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
}

/// A listing that lacks what is there is not whole.
#[tokio::test]
async fn a_listing_that_is_not_whole_stops() {
    let lake = with_orphan().await;
    lake.store.fault("a.parquet", Fault::Unlisted);
    assert!(never_deletes(&lake).await.contains("is there and the listing lacks it"));
    let lake = with_orphan().await;
    lake.store.fault("a.parquet", Fault::EndsListing);
    assert!(never_deletes(&lake).await.contains("ended early"));
}

/// K108: metadata that cannot be true.
#[tokio::test]
async fn damaged_metadata_stops() {
    let lake = with_orphan().await;
    lake.rewrite_metadata("t", |json| json["snapshots"] = serde_json::json!([])).await;
    let before = lake.below(&format!("{WAREHOUSE}/")).await;
    for _ in 0..3 {
        let (swept, _) = lake.sweep("t").await;
        stopped(&swept);
        let expired = lake.expire("t").await;
        assert!(matches!(expired.outcome, firn_maintain::ExpiryOutcome::Failed(_)), "{expired:?}");
        lake.hours(2);
    }
    assert_eq!(lake.below(&format!("{WAREHOUSE}/")).await, before);
}

/// A manifest that cannot be read: nobody knows what it names.
#[tokio::test]
async fn an_unreadable_manifest_stops() {
    let lake = with_orphan().await;
    let table = lake.load("t").await;
    let manifest = table.manifests(table.metadata.current_snapshot().unwrap()).await.unwrap().remove(0);
    lake.put(&manifest.manifest_path, b"junk").await;
    lake.hours(48);
    assert!(never_deletes(&lake).await.contains("no Avro file"));
}

/// K72: a clock that jumped ahead makes nothing old.
#[tokio::test]
async fn a_clock_that_jumped_stops() {
    let lake = with_orphan().await;
    lake.put(&format!("{WAREHOUSE}/t/data/fresh.parquet"), b"x").await;
    lake.sweep("t").await;
    let ahead = Clock::manual(lake.now() + TimeDelta::days(400));
    let (swept, _) = lake.sweep_with("t", &lake.catalog, &ahead, false).await;
    assert!(stopped(&swept).contains("set the clock"), "{swept:?}");
    // A few minutes ahead: the store's time counts.
    let close = Clock::manual(lake.now() + TimeDelta::minutes(5));
    let (swept, _) = lake.sweep_with("t", &lake.catalog, &close, false).await;
    assert_eq!(swept.receipt.listing.unwrap().began, "2020-01-03T00:00:00Z");
}

/// A dry run counts ages as a sweep does: to the store's time, and not at all by a clock that jumped.
#[tokio::test]
async fn a_dry_run_goes_by_the_stores_time() {
    let lake = with_orphan().await;
    lake.put(&format!("{WAREHOUSE}/t/data/fresh.parquet"), b"x").await;
    let ahead = Clock::manual(lake.now() + TimeDelta::days(400));
    let (swept, _) = lake.sweep_with("t", &lake.catalog, &ahead, true).await;
    assert!(stopped(&swept).contains("set the clock"), "{swept:?}");
    let close = Clock::manual(lake.now() + TimeDelta::minutes(5));
    let (swept, heard) = lake.sweep_with("t", &lake.catalog, &close, true).await;
    assert_eq!(swept.receipt.listing.unwrap().began, "2020-01-03T00:00:00Z");
    assert_eq!(heard.reason("fresh.parquet"), "keep: too young");
}

/// Files without a usable time stay.
#[tokio::test]
async fn files_without_a_usable_time_stay() {
    let lake = with_orphan().await;
    lake.store.fault("orphan.parquet", Fault::Time(chrono::DateTime::UNIX_EPOCH));
    let (_, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.reason("orphan.parquet"), "keep: no usable time");
    lake.store.fault("orphan.parquet", Fault::Time(lake.now() + TimeDelta::days(3)));
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("orphan.parquet"), "keep: no usable time");
}

/// K20: a file younger than the age stays, however long it has been seen.
#[tokio::test]
async fn an_upload_that_is_not_committed_yet_stays() {
    let lake = with_orphan().await;
    lake.put(&format!("{WAREHOUSE}/t/data/upload.parquet"), b"x").await;
    for _ in 0..12 {
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(heard.reason("upload.parquet"), "keep: too young");
        lake.hours(2);
    }
    lake.commit("t", "main", Change { add: &["upload.parquet"], ..Change::default() }).await;
    lake.hours(1);
    lake.sweep_with("t", &lake.catalog, &lake.clock, false).await;
    lake.check_whole("t").await;
}

/// K32: a commit between any two steps of the sweep is seen before anything goes.
#[tokio::test]
async fn a_file_that_is_committed_during_the_sweep_stays() {
    for commits_at in 1..=3 {
        let lake = with_orphan().await;
        lake.sweep("t").await;
        lake.hours(2);
        let mut catalog = Scripted::new(&lake);
        let commit = || async {
            let table = lake.load("t").await;
            lake.commit_files(&table, "main", Change { add: &["orphan.parquet"], ..Change::default() }).await;
        };
        // It is loaded three times: before and after the listing, and before the deletions.
        catalog.at_load = Some((commits_at, Box::new(move || commit().boxed())));
        let (swept, heard) = lake.sweep_with("t", &catalog, &lake.clock, false).await;
        assert_eq!(heard.names(Verdict::Deleted), [""; 0], "load {commits_at}: {swept:?}");
        lake.check_whole("t").await;
    }
}

/// K54: two sweeps at once delete each file once, and neither fails.
#[tokio::test]
async fn two_sweeps_at_once_do_no_harm() {
    let lake = with_orphan().await;
    for number in 0..50 {
        lake.put(&format!("{WAREHOUSE}/t/data/lost-{number}.parquet"), b"x").await;
    }
    lake.hours(48);
    let (one, other) = tokio::join!(lake.sweep("t"), lake.sweep("t"));
    assert!(
        matches!((&one.0.outcome, &other.0.outcome), (SweepOutcome::Done, SweepOutcome::Done)),
        "{one:?} {other:?}"
    );
    lake.hours(2);
    let (one, other) = tokio::join!(lake.sweep("t"), lake.sweep("t"));
    let deleted = one.0.receipt.deletions.deleted + other.0.receipt.deletions.deleted;
    assert_eq!(deleted, 51, "{:?} {:?}", one.0.receipt.deletions, other.0.receipt.deletions);
    lake.check_whole("t").await;
}

/// An older version of the table was brought back: what only the newer one refers to is not deleted at once.
#[tokio::test]
async fn a_table_that_went_back_begins_its_grace_anew() {
    let lake = with_orphan().await;
    let old = lake.load("t").await.metadata_location;
    lake.append("t", &["newer.parquet"]).await;
    lake.hours(48);
    lake.sweep("t").await;
    lake.point("t", &old).await;
    lake.hours(2);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert!(swept.receipt.warnings.iter().any(|warning| warning.contains("older version")), "{swept:?}");
}

/// Tables of format version 1.
#[tokio::test]
async fn tables_of_version_1_are_swept() {
    let lake = Lake::new().await;
    lake.create_at("t", &format!("{WAREHOUSE}/t"), &[], FormatVersion::V1).await;
    lake.append("t", &["a.parquet"]).await;
    lake.append("t", &["b.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"x").await;
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    lake.check_whole("t").await;
}
