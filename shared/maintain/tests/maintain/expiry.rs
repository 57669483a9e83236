//! Expiry on whole tables: only metadata changes, and every file of every retained snapshot is there afterwards.

use firn_maintain::{ExpiryOutcome, SkipReason, TableExpiry};
use iceberg::TableUpdate;
use iceberg::spec::{PartitionStatisticsFile, SnapshotRetention, StatisticsFile};

use crate::lake::{Change, Lake};

fn expired(done: &TableExpiry) -> Vec<i64> {
    assert!(matches!(done.outcome, ExpiryOutcome::Done), "{done:?}");
    done.plan.expired().collect()
}

async fn snapshots(lake: &Lake) -> Vec<i64> {
    let mut ids: Vec<i64> = lake.load("t").await.metadata.snapshots().map(|one| one.snapshot_id()).collect();
    ids.sort();
    ids
}

/// K24, K127: snapshots that tags and branches hold stay, references are as before, and no file is touched.
#[tokio::test]
async fn what_references_hold_stays_and_no_file_goes() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["a"]).await;
    let s2 = lake.append("t", &["b"]).await;
    let s3 = lake.replace("t", &["a"], &["c"]).await;
    lake.tag("t", "audit", s2).await;
    let keeps_two = SnapshotRetention::branch(Some(1), None, None);
    lake.set_ref("t", "dev", s2, keeps_two).await;
    let s4 = lake.commit("t", "dev", Change { add: &["d"], ..Change::default() }).await;
    lake.hours(30);
    let s5 = lake.append("t", &["e"]).await;
    let before = lake.below(&format!("{}/t/data/", crate::lake::WAREHOUSE)).await;

    let done = lake.expire("t").await;
    assert_eq!(expired(&done), [s1, s3]);
    assert_eq!(done.pinned, 2, "the tag and the head of dev");
    assert_eq!(snapshots(&lake).await, [s2, s4, s5]);
    let refs: Vec<(String, i64)> =
        lake.load("t").await.history().unwrap().refs.into_iter().map(|one| (one.name, one.snapshot_id)).collect();
    assert_eq!(refs, [("audit".into(), s2), ("dev".into(), s4), ("main".into(), s5)]);
    assert_eq!(lake.below(&format!("{}/t/data/", crate::lake::WAREHOUSE)).await, before);
    lake.check_whole("t").await;

    // K24: what is only pinned is not proposed again, and nothing is committed.
    let version = lake.load("t").await.metadata_location;
    let again = lake.expire("t").await;
    assert_eq!((expired(&again), again.tries), (vec![], 0));
    assert_eq!(lake.load("t").await.metadata_location, version);
}

/// Statistics of expired snapshots go with them.
#[tokio::test]
async fn statistics_go_with_their_snapshot() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["a"]).await;
    lake.hours(30);
    let s2 = lake.append("t", &["b"]).await;
    let mut updates = Vec::new();
    for snapshot_id in [s1, s2] {
        let statistics = StatisticsFile {
            snapshot_id,
            statistics_path: format!("{}/t/metadata/{snapshot_id}.stats", crate::lake::WAREHOUSE),
            file_size_in_bytes: 1,
            file_footer_size_in_bytes: 1,
            key_metadata: None,
            blob_metadata: vec![],
        };
        let partition_statistics = PartitionStatisticsFile {
            snapshot_id,
            statistics_path: format!("{}/t/metadata/p{snapshot_id}.parquet", crate::lake::WAREHOUSE),
            file_size_in_bytes: 1,
        };
        updates.push(TableUpdate::SetStatistics { statistics });
        updates.push(TableUpdate::SetPartitionStatistics { partition_statistics });
    }
    lake.update(&lake.load("t").await, updates).await;
    assert_eq!(expired(&lake.expire("t").await), [s1]);
    let metadata = lake.load("t").await.metadata;
    assert_eq!(metadata.statistics_iter().map(|file| file.snapshot_id).collect::<Vec<_>>(), [s2]);
    assert_eq!(metadata.partition_statistics_iter().map(|file| file.snapshot_id).collect::<Vec<_>>(), [s2]);
}

/// K91: a tag that goes in the same run takes only what nothing else needs.
#[tokio::test]
async fn a_tag_that_goes_takes_no_live_file() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["f1", "f2"]).await;
    let s2 = lake.replace("t", &["f1"], &["f3"]).await;
    lake.set_ref("t", "old", s1, SnapshotRetention::Tag { max_ref_age_ms: Some(3_600_000) }).await;
    lake.hours(30);
    let s3 = lake.append("t", &["f4"]).await;
    let done = lake.expire("t").await;
    assert_eq!(expired(&done), [s1, s2]);
    assert_eq!(done.plan.refs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["old"]);
    assert_eq!(snapshots(&lake).await, [s3]);
    lake.hours(1);
    lake.sweep_twice("t").await;
    lake.check_whole("t").await;
    assert!(lake.live("t").await[&s3].contains("f2"));
}

/// K84: a staged snapshot that was cherry-picked expires, its file is main's now.
#[tokio::test]
async fn a_cherry_picked_file_outlives_its_staged_snapshot() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a"]).await;
    let staged = lake.commit("t", "main", Change { add: &["w"], staged: true, ..Change::default() }).await;
    lake.append("t", &["w"]).await;
    lake.hours(30);
    let s3 = lake.append("t", &["b"]).await;
    assert!(expired(&lake.expire("t").await).contains(&staged));
    lake.sweep_twice("t").await;
    lake.check_whole("t").await;
    assert!(lake.live("t").await[&s3].contains("w"));
}

#[tokio::test]
async fn tables_whose_owners_say_no_are_left_with_the_reason() {
    let lake = Lake::new().await;
    for (table, key, value, reason) in [
        ("off", "firn.enabled", "false", SkipReason::Disabled),
        ("gc", "gc.enabled", "FALSE", SkipReason::NoCollection),
        ("other", "self-optimizing.enabled", "true", SkipReason::OtherOptimizer("self-optimizing.enabled")),
    ] {
        lake.create(table, &[(key, value)]).await;
        lake.append(table, &["a"]).await;
        lake.hours(30);
        lake.append(table, &["b"]).await;
        let done = lake.expire(table).await;
        assert!(matches!(&done.outcome, ExpiryOutcome::Skipped(found) if *found == reason), "{done:?}");
        assert_eq!(lake.load(table).await.metadata.snapshots().len(), 2);
        let (swept, heard) = lake.sweep(table).await;
        assert_eq!(swept.receipt.outcome, "left");
        assert_eq!(swept.receipt.reason, Some(reason.to_string()));
        assert!(heard.0.is_empty());
    }
}

/// A setting that cannot be right expires nothing; a clock that jumped neither.
#[tokio::test]
async fn doubtful_ages_expire_nothing() {
    let lake = Lake::new().await;
    lake.create("t", &[("history.expire.max-snapshot-age-ms", "-1")]).await;
    lake.append("t", &["a"]).await;
    lake.hours(30);
    lake.append("t", &["b"]).await;
    let done = lake.expire("t").await;
    assert!(
        matches!(&done.outcome, ExpiryOutcome::Failed(failure) if failure.to_string().contains("\"-1\"")),
        "{done:?}"
    );
    lake.set_property("t", "history.expire.max-snapshot-age-ms", "3600000").await;
    let ahead = firn_storage::Clock::manual(lake.now() + chrono::TimeDelta::hours(40));
    let tools = firn_maintain::ExpiryTools { catalog: &lake.catalog, state: &lake.state, clock: &ahead, retry_max: 5 };
    let done = firn_maintain::expire_table(tools, &lake.job("t")).await;
    assert!(matches!(&done.outcome, ExpiryOutcome::Failed(failure) if failure.to_string().contains("set the clock")));
    assert_eq!(snapshots(&lake).await.len(), 2);
}

/// Thousands of snapshots are one commit.
#[tokio::test]
async fn thousands_of_snapshots_go_at_once() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a"]).await;
    let list = lake.load("t").await.metadata.current_snapshot().unwrap().manifest_list().to_owned();
    lake.rewrite_metadata("t", |json| {
        let made = |n: i64| {
            serde_json::json!({
                "snapshot-id": n, "parent-snapshot-id": n - 1, "sequence-number": n, "timestamp-ms": json["last-updated-ms"],
                "manifest-list": list, "summary": {"operation": "append"}, "schema-id": 0
            })
        };
        let snapshots: Vec<_> = (2..=5_001).map(made).collect();
        let log: Vec<_> = (1..=5_001)
            .map(|n| serde_json::json!({"snapshot-id": n, "timestamp-ms": json["last-updated-ms"]}))
            .collect();
        json["snapshots"].as_array_mut().unwrap().extend(snapshots);
        json["snapshot-log"] = log.into();
        json["last-sequence-number"] = 5_001.into();
        json["current-snapshot-id"] = 5_001.into();
        json["refs"]["main"]["snapshot-id"] = 5_001.into();
    })
    .await;
    lake.hours(30);
    let done = lake.expire("t").await;
    assert_eq!((expired(&done).len(), done.tries), (5_000, 1));
    assert_eq!(snapshots(&lake).await, [5_001]);
    lake.check_whole("t").await;
}
