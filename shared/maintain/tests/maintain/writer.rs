//! A writer that commits all the time while a sweep runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_maintain::{SweepOutcome, Verdict};
use futures::FutureExt;

use crate::catalog::Scripted;
use crate::lake::{Lake, WAREHOUSE};

/// Exactly the planted orphans go, and every commit stays whole.
#[tokio::test]
async fn a_writer_that_commits_during_the_sweep_loses_nothing() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    let planted: Vec<String> = (0..1_100).map(|number| format!("lost-{number:04}.parquet")).collect();
    for file in &planted {
        lake.put(&format!("{WAREHOUSE}/t/data/{file}"), b"x").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    let ended = AtomicBool::new(false);
    let writer = async {
        let mut commits = 0;
        while !ended.load(Ordering::Relaxed) {
            lake.append("t", &[&format!("new-{commits}.parquet")]).await;
            commits += 1;
            tokio::time::sleep(Duration::from_millis(200).min(Duration::from_millis(5 + 20 * commits))).await;
        }
        commits
    };
    let sweep = async {
        let swept = lake.sweep("t").await;
        ended.store(true, Ordering::Relaxed);
        swept
    };
    let ((swept, heard), commits) = tokio::join!(sweep, writer);
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{:?}", swept.outcome);
    assert_eq!(heard.names(Verdict::Deleted), planted);
    // Every commit is there, each with its file, and the sweep went by the newest version before its last deletions.
    let table = lake.load("t").await;
    assert_eq!(table.metadata.snapshots().len() as u64, 1 + commits);
    assert_eq!(table.metadata.last_sequence_number() as u64, 1 + commits);
    let live = lake.live("t").await;
    let head = &live[&table.metadata.current_snapshot().unwrap().snapshot_id()];
    assert_eq!(head.len() as u64, 1 + commits);
    for commit in 0..commits {
        let file = format!("new-{commit}.parquet");
        assert!(head.contains(&file) && lake.exists(&format!("{WAREHOUSE}/t/data/{file}")).await, "{file}");
        let reason = heard.reason(&file);
        assert!(
            ["", "keep: too young", "keep: written since the listing began"].contains(&reason.as_str()),
            "{file}: {reason}"
        );
    }
    let read = swept.receipt.metadata.unwrap();
    assert!(read.last_sequence_number >= 1 && swept.receipt.parts == 3, "{read:?}");
    assert_eq!(swept.receipt.deletions.deleted, 1_100);
    lake.check_whole("t").await;
}

/// Between any two steps of the sweep there is a commit: each is seen, and each batch of deletions goes by another version.
#[tokio::test]
async fn a_commit_before_every_look_at_the_table_loses_nothing() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    let planted: Vec<String> = (0..1_100).map(|number| format!("lost-{number:04}.parquet")).collect();
    for file in &planted {
        lake.put(&format!("{WAREHOUSE}/t/data/{file}"), b"x").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    let commits = AtomicU64::new(0);
    let commit = || {
        async {
            let number = commits.fetch_add(1, Ordering::Relaxed);
            lake.append("t", &[&format!("new-{number}.parquet")]).await;
        }
        .boxed()
    };
    let mut catalog = Scripted::new(&lake);
    catalog.at_each_load = Some(Box::new(commit));
    let (swept, heard) = lake.sweep_with("t", &catalog, &lake.clock, false).await;
    drop(catalog);
    assert!(matches!(swept.outcome, SweepOutcome::Done), "{:?}", swept.outcome);
    assert_eq!(heard.names(Verdict::Deleted), planted);
    // Before and after the listing, and before each of three batches.
    assert_eq!((commits.load(Ordering::Relaxed), swept.receipt.parts), (5, 3));
    let read = swept.receipt.metadata.unwrap();
    assert_eq!((read.last_sequence_number, read.last_location), (3, lake.load("t").await.metadata_location));
    let live = lake.live("t").await;
    let head = live.values().next_back().unwrap();
    assert_eq!(head.len(), 6);
    lake.check_whole("t").await;
}
