//! What changes while a sweep runs: the table, its files, its listing. Nothing goes that anybody might still need.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use firn_maintain::sweep::SweepStop;
use firn_maintain::{SweepOutcome, TableSweep, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::catalog::Scripted;
use crate::double::Fault;
use crate::lake::{Change, Heard, Lake, WAREHOUSE};

/// The load after the listing, and the one before the first deletions.
const AFTER_LISTING: u64 = 2;
const BEFORE_DELETIONS: u64 = 3;

/// A table with an orphan that is due.
async fn with_due_orphan() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.append("t", &["b.parquet"]).await;
    lake.put(&orphan(), b"rows").await;
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    lake
}

fn orphan() -> String {
    format!("{WAREHOUSE}/t/data/orphan.parquet")
}

/// Sweeps, with something happening before the load of this number.
async fn sweep_while<'a>(
    lake: &'a Lake,
    load: u64,
    happens: impl Fn() -> BoxFuture<'a, ()> + Send + Sync + 'a,
) -> (TableSweep, Heard) {
    let mut catalog = Scripted::new(lake);
    catalog.at_load = Some((load, Box::new(happens)));
    let swept = lake.sweep_with("t", &catalog, &lake.clock, false).await;
    assert!(catalog.loads.load(Ordering::Relaxed) >= load, "{swept:?}");
    swept
}

fn moved(swept: &TableSweep) -> &str {
    match &swept.outcome {
        SweepOutcome::Stopped(stop @ SweepStop::Moved { detail }) => {
            assert!(stop.passes());
            detail
        }
        other => panic!("{other:?}"),
    }
}

/// A table that was rolled back, replaced, moved or closed while it was swept is left until it rests.
#[tokio::test]
async fn a_table_that_moves_under_the_sweep_stops_it() {
    for load in [AFTER_LISTING, BEFORE_DELETIONS] {
        // An older version is brought back.
        let lake = with_due_orphan().await;
        let old = lake.load("t").await.metadata.metadata_log().last().unwrap().metadata_file.clone();
        let (swept, heard) = sweep_while(&lake, load, || lake.point("t", &old).boxed()).await;
        assert_eq!(moved(&swept), "its last sequence number went from 2 back to 1", "{load}");
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        assert!(lake.exists(&orphan()).await);

        // Another table of the same name in the same place.
        let lake = with_due_orphan().await;
        let another =
            || lake.rewrite_metadata("t", |json| json["table-uuid"] = uuid::Uuid::nil().to_string().into()).boxed();
        let (swept, _) = sweep_while(&lake, load, another).await;
        assert!(moved(&swept).starts_with("it is another table now, UUID 00000000-"), "{load}: {swept:?}");
        assert!(lake.exists(&orphan()).await);

        for (key, value, detail) in [
            (
                "write.data.path",
                "abfss://lake@acct.dfs.core.windows.net/elsewhere",
                "its location or a path property changed",
            ),
            (
                "gc.enabled",
                "false",
                "table property gc.enabled=false: its files may belong to other tables too was set",
            ),
        ] {
            let lake = with_due_orphan().await;
            let (swept, _) = sweep_while(&lake, load, || lake.set_property("t", key, value).boxed()).await;
            assert_eq!(moved(&swept), detail, "{load}");
            assert!(lake.exists(&orphan()).await);
        }
    }
}

/// A branch that moves to an older snapshot is no such thing: what it led to is still in the table.
#[tokio::test]
async fn a_branch_that_moves_under_the_sweep_keeps_what_it_led_to() {
    for load in [AFTER_LISTING, BEFORE_DELETIONS] {
        let lake = with_due_orphan().await;
        let first = lake.load("t").await.metadata.snapshots().map(|one| one.snapshot_id()).min().unwrap();
        let (swept, heard) = sweep_while(&lake, load, || lake.move_branch("t", "main", first).boxed()).await;
        assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
        assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"]);
        lake.check_whole("t").await;
    }
}

/// A writer that commits before every look at the table: each of its files is seen as the table's.
#[tokio::test]
async fn a_commit_before_every_look_at_the_table_is_seen() {
    let lake = with_due_orphan().await;
    let file = "abfss://lake@acct.dfs.core.windows.net/wh/t/data/old-upload.parquet";
    for file in [file, &orphan().replace("orphan", "orphan-2")] {
        lake.put(file, b"rows").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    // Uploaded long ago, due for deletion, and committed at the last moment.
    let commit = || {
        async {
            let table = lake.load("t").await;
            lake.commit_files(&table, "main", Change { add: &[file], ..Change::default() }).await;
        }
        .boxed()
    };
    let (swept, heard) = sweep_while(&lake, BEFORE_DELETIONS, commit).await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan-2.parquet"], "{swept:?}");
    assert_eq!(heard.reason("old-upload.parquet"), "keep: referenced: live");
    let read = swept.receipt.metadata.as_ref().unwrap();
    assert_ne!(read.location, read.last_location, "the version that was read before the deletions");
    assert_eq!(read.last_location, lake.load("t").await.metadata_location);
    lake.check_whole("t").await;
}

/// A file that is written between the two listings is another one than was decided about.
#[tokio::test]
async fn a_file_that_changed_between_the_listings_stays() {
    let lake = with_due_orphan().await;
    // Its time changes, and is still old enough; another file was not there before.
    let older: DateTime<Utc> = lake.now() - TimeDelta::hours(49);
    let change = || {
        async {
            lake.store.fault("orphan.parquet", Fault::Time(older));
            lake.put(&format!("{WAREHOUSE}/t/data/late.parquet"), b"x").await;
        }
        .boxed()
    };
    let (swept, heard) = sweep_while(&lake, AFTER_LISTING, change).await;
    for file in ["orphan.parquet", "late.parquet"] {
        assert_eq!(heard.reason(file), "keep: written since the listing began", "{swept:?}");
    }
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert_eq!(swept.receipt.kept.get("written since the listing began"), Some(&1), "the one that was to go");
}

/// A file that is written over after the second listing: the store refuses to delete it (If-Match).
#[tokio::test]
async fn a_file_that_is_written_over_before_its_deletion_stays() {
    let lake = with_due_orphan().await;
    let rewrite = || {
        async {
            lake.clock.advance(Duration::from_secs(1));
            lake.put(&orphan(), b"another").await;
        }
        .boxed()
    };
    let (swept, heard) = sweep_while(&lake, BEFORE_DELETIONS, rewrite).await;
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{swept:?}");
    let reason = heard.reason("orphan.parquet");
    assert!(
        reason.starts_with("keep: the store refused to delete it:") && reason.contains("changed by another writer"),
        "{reason}"
    );
    assert_eq!((swept.receipt.deletions.deleted, swept.receipt.deletions.refused), (0, 1));
    assert!(lake.exists(&orphan()).await);
}

/// The second listing ends in an error: nothing was decided without it.
#[tokio::test]
async fn a_second_listing_that_ends_early_stops() {
    let lake = with_due_orphan().await;
    let end = || async { lake.store.fault("a.parquet", Fault::EndsListing) }.boxed();
    let (swept, heard) = sweep_while(&lake, AFTER_LISTING, end).await;
    assert!(matches!(&swept.outcome, SweepOutcome::Stopped(SweepStop::Listing { .. })), "{swept:?}");
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert!(lake.exists(&orphan()).await);
}

/// Very many references without a file in the listing: it cannot be whole.
#[tokio::test]
async fn a_listing_that_lacks_very_many_files_stops() {
    let lake = with_due_orphan().await;
    let names: Vec<String> = (0..10_001).map(|number| format!("unlisted-{number:05}.parquet")).collect();
    let add: Vec<&str> = names.iter().map(String::as_str).collect();
    let table = lake.load("t").await;
    lake.commit_files(&table, "main", Change { add: &add, ..Change::default() }).await;
    lake.hours(1);
    let (swept, heard) = lake.sweep("t").await;
    assert!(matches!(&swept.outcome, SweepOutcome::Stopped(SweepStop::ManyUnlisted(10_000))), "{swept:?}");
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
}
