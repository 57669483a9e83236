//! What tags and other branches hold: it stays, and it is counted.

use iceberg::TableUpdate;

use crate::lake::{Change, Lake, name};

/// Bytes that the receipt calls pinned, replaced and unreferenced.
async fn bytes(lake: &Lake) -> (u64, u64, u64) {
    let receipt = lake.sweep("t").await.0.receipt;
    (receipt.pinned_bytes, receipt.replaced_bytes, receipt.unreferenced_bytes)
}

/// K127: a tag without an age is kept for ever; how many bytes that costs is told.
#[tokio::test]
async fn bytes_that_only_a_tag_or_another_branch_needs_are_counted() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    // A test's file has as many bytes as its name.
    let first = lake.append("t", &["old.parquet"]).await;
    lake.append("t", &["both.parquet"]).await;
    assert_eq!(bytes(&lake).await, (0, 0, 0));

    lake.tag("t", "eoy", first).await;
    assert_eq!(bytes(&lake).await, (0, 0, 0), "the current snapshot needs it, too");
    lake.replace("t", &["old.parquet"], &["new.parquet"]).await;
    let pinned = "old.parquet".len() as u64;
    assert_eq!(bytes(&lake).await, (pinned, 0, 0));
    lake.commit("t", "dev", Change { add: &["of-dev.parquet"], ..Change::default() }).await;
    assert_eq!(bytes(&lake).await, (pinned + "of-dev.parquet".len() as u64, 0, 0));

    // Old as they are, they stay.
    lake.hours(24 * 400);
    let done = lake.expire("t").await;
    assert_eq!(done.pinned, 2);
    assert_eq!(bytes(&lake).await.0, pinned + "of-dev.parquet".len() as u64);

    // Without the tag it is the expiry's, and then nobody's. The manifest that says "removed" has to go first.
    let table = lake.load("t").await;
    lake.update(&table, vec![TableUpdate::RemoveSnapshotRef { ref_name: "eoy".into() }]).await;
    assert_eq!(bytes(&lake).await.0, "of-dev.parquet".len() as u64);
    lake.replace("t", &["new.parquet"], &["newer.parquet"]).await;
    lake.append("t", &["newest.parquet"]).await;
    lake.hours(30);
    lake.append("t", &["last.parquet"]).await;
    lake.expire("t").await;
    let live: Vec<String> = lake.live("t").await.into_values().flatten().collect();
    assert!(!live.contains(&"old.parquet".to_owned()), "{live:?}");
    let (swept, heard) = lake.sweep_twice("t").await;
    assert!(heard.0.iter().any(|line| name(&line.path) == "old.parquet"), "{swept:?}");
    lake.check_whole("t").await;
}
