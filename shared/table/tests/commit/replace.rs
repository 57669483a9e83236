//! What a commit that meets nobody leaves behind.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use firn_storage::Clock;
use firn_table::commit::{ReplaceOperation, replace};
use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, Operation, SnapshotReference, SnapshotRetention, Transform, UnboundPartitionSpec};

use crate::files::*;
use crate::lake::*;
use crate::look::*;

fn entry(status: &'static str, file: &str, snapshot: i64, sequence: i64, file_sequence: i64) -> Entry {
    Entry { status, file: file.into(), snapshot, sequence, file_sequence, spec: 0 }
}

#[tokio::test]
async fn survivors_keep_their_numbers_and_inputs_are_marked_deleted_with_theirs() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2), file("g", "b", 4)]).await;
    lake.append(vec![file("f3", "a", 8)]).await;
    let before = lake.append(vec![file("other", "b", 16)]).await;
    let untouched: Vec<String> = manifest_files(&before, before.metadata.current_snapshot().unwrap())
        .await
        .into_iter()
        .map(|file| file.manifest_path)
        .collect();
    let mut request = lake.request(&["f1", "f3"], "h").await;
    request.summary = BTreeMap::from([("firn.proof".to_owned(), "reread".to_owned())]);
    let output = name(&request.outputs[0].path);
    let committed = replace(&lake.catalog, request, at_once()).await.unwrap();
    let ours = committed.snapshot_id;
    assert_eq!((committed.tries, committed.conflicts), (1, 0));
    assert_eq!(committed.table.metadata_location, lake.load().await.metadata_location);

    let mut expected = vec![
        entry("added", &output, ours, 2, 4),
        entry("added", "other", 103, 3, 3),
        entry("deleted", "f1", ours, 1, 1),
        entry("deleted", "f3", ours, 2, 2),
        entry("existing", "f2", 101, 1, 1),
        entry("existing", "g", 101, 1, 1),
    ];
    expected.sort();
    assert_eq!(entries(&committed.table, "main").await, expected);
    check_counts(&committed.table, "main").await;

    let head = committed.table.metadata.current_snapshot().unwrap().clone();
    assert_eq!(head.snapshot_id(), ours);
    assert_eq!(head.parent_snapshot_id(), Some(103));
    assert_eq!(head.sequence_number(), 4);
    assert_eq!(head.schema_id(), Some(0));
    assert_eq!(head.summary().operation, Operation::Replace);
    let manifests = manifest_files(&committed.table, &head).await;
    assert_eq!(manifests.len(), 3, "one of outputs, one of what was touched, one left alone");
    assert_eq!(manifests[2].manifest_path, untouched[0], "carried over as it stands");
    let summary = &head.summary().additional_properties;
    for (key, value) in [
        ("added-data-files", "1"),
        ("deleted-data-files", "2"),
        ("added-records", "9"),
        ("deleted-records", "9"),
        ("added-files-size", "10"),
        ("removed-files-size", "90"),
        ("total-data-files", "4"),
        ("total-records", "31"),
        ("total-files-size", "230"),
        ("changed-partition-count", "1"),
        ("manifests-created", "2"),
        ("manifests-kept", "1"),
        ("manifests-replaced", "2"),
        ("firn.inputs", "h"),
        ("firn.proof", "reread"),
    ] {
        assert_eq!(summary.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[tokio::test]
async fn old_deletions_are_dropped_and_manifests_without_live_files_go() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 1)]).await;
    lake.append(vec![file("g1", "b", 1), file("g2", "b", 1)]).await;
    replace(&lake.catalog, lake.request(&["f1", "f2"], "h1").await, at_once()).await.unwrap();
    let request = lake.request(&["g1", "g2"], "h2").await;
    let after = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    let statuses: Vec<(String, &str)> =
        entries(&after, "main").await.into_iter().map(|entry| (entry.file[..2].to_owned(), entry.status)).collect();
    let expected = [("h1", "added"), ("h2", "added"), ("g1", "deleted"), ("g2", "deleted")];
    assert_eq!(statuses, expected.map(|(file, status)| (file.to_owned(), status)));
    check_counts(&after, "main").await;
}

#[tokio::test]
async fn version_1_has_no_numbers_and_keeps_its_snapshot_ids() {
    let lake = Lake::new(FormatVersion::V1, schema(), by(2, "p", Transform::Identity)).await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2), file("f3", "a", 4)]).await;
    let committed = replace(&lake.catalog, lake.request(&["f1", "f2"], "h").await, at_once()).await.unwrap();
    let ours = committed.snapshot_id;
    let found = entries(&committed.table, "main").await;
    let short: Vec<_> = found.iter().map(|e| (e.status, e.snapshot, e.sequence, e.file_sequence)).collect();
    assert_eq!(
        short,
        [("added", ours, 0, 0), ("deleted", ours, 0, 0), ("deleted", ours, 0, 0), ("existing", 101, 0, 0)]
    );
    check_counts(&committed.table, "main").await;
    assert_eq!(committed.table.metadata.current_snapshot().unwrap().sequence_number(), 0);
}

#[tokio::test]
async fn a_table_upgraded_from_version_1_keeps_number_0_where_it_was() {
    let lake = Lake::new(FormatVersion::V1, schema(), by(2, "p", Transform::Identity)).await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2), file("f3", "a", 4)]).await;
    lake.update(vec![TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V2 }]).await;
    lake.append(vec![file("g", "b", 1)]).await;
    let committed = replace(&lake.catalog, lake.request(&["f1", "f2"], "h").await, at_once()).await.unwrap();
    let found = entries(&committed.table, "main").await;
    let short: Vec<_> = found.iter().map(|e| (e.status, &e.file[..1], e.sequence, e.file_sequence)).collect();
    assert_eq!(
        short,
        [
            ("added", "g", 1, 1),
            ("added", "h", 0, 2),
            ("deleted", "f", 0, 0),
            ("deleted", "f", 0, 0),
            ("existing", "f", 0, 0)
        ]
    );
    check_counts(&committed.table, "main").await;
}

#[tokio::test]
async fn dropped_rows_make_an_overwrite() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 5), file("f2", "a", 5)]).await;
    let mut request = lake.request(&["f1", "f2"], "h").await;
    request.outputs[0].rows = 7;
    request.rows_removed = 3;
    request.operation = ReplaceOperation::Overwrite;
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    let head = table.metadata.current_snapshot().unwrap();
    assert_eq!(head.summary().operation, Operation::Overwrite);
    assert_eq!(head.summary().additional_properties["total-records"], "7");
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn all_rows_may_go() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 5), file("g", "b", 5)]).await;
    let mut request = lake.request(&["f1"], "h").await;
    request.outputs.clear();
    request.rows_removed = 5;
    request.operation = ReplaceOperation::Overwrite;
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    assert_eq!(live(&table, "main").await, ["g"]);
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn paths_are_matched_as_they_stand() {
    let lake = by_p().await;
    let location = lake.location().await;
    let encoded = format!("{location}/data/p=x%20y/f%201.parquet");
    let spaced = format!("{location}/data/p=x y/f 1.parquet");
    lake.append(vec![file(&encoded, "x y", 1), file(&spaced, "x y", 2), file("f 1.parquet", "x y", 4)]).await;
    let mut request = lake.request(&["f%201.parquet"], "h").await;
    request.inputs = vec![encoded, spaced];
    request.outputs[0].rows = 3;
    let output = name(&request.outputs[0].path);
    let table = replace(&lake.catalog, request, at_once()).await.unwrap().table;
    assert_eq!(live(&table, "main").await, ["f 1.parquet", output.as_str()]);
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn another_branch_moves_and_main_does_not() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1)]).await;
    let retention = SnapshotRetention::Branch {
        min_snapshots_to_keep: Some(3),
        max_snapshot_age_ms: Some(86_400_000),
        max_ref_age_ms: Some(864_000_000),
    };
    let change = Change {
        data: vec![file("b1", "a", 1), file("b2", "a", 1)],
        retention: retention.clone(),
        ..Change::default()
    };
    lake.commit("ingest", change).await;
    let before = lake.load().await;
    let request = lake.request_on("ingest", &["b1", "b2"], "h").await;
    let output = name(&request.outputs[0].path);
    let committed = replace(&lake.catalog, request, at_once()).await.unwrap();
    let metadata = &committed.table.metadata;
    assert_eq!(metadata.current_snapshot_id(), before.metadata.current_snapshot_id());
    assert_eq!(metadata.snapshot_for_ref("ingest").unwrap().snapshot_id(), committed.snapshot_id);
    assert_eq!(live(&committed.table, "main").await, ["f1"]);
    assert_eq!(live(&committed.table, "ingest").await, ["f1", output.as_str()]);
    let json = serde_json::to_value(&**metadata).unwrap();
    let reference: SnapshotReference = serde_json::from_value(json["refs"]["ingest"].clone()).unwrap();
    assert_eq!(reference.retention, retention, "the branch's own settings stay");
    check_counts(&committed.table, "ingest").await;
}

#[tokio::test]
async fn a_clock_that_is_behind_does_not_stop_a_commit() {
    for ahead in [30_000, 90_000, 3_600_000] {
        let lake = by_p().await;
        let change =
            Change { data: vec![file("f1", "a", 1), file("f2", "a", 1)], clock_ahead_ms: ahead, ..Change::default() };
        let parent = lake.commit("main", change).await.metadata.current_snapshot().unwrap().timestamp_ms();
        let table = replace(&lake.catalog, lake.request(&["f1", "f2"], "h").await, at_once()).await.unwrap().table;
        assert_eq!(table.metadata.current_snapshot().unwrap().timestamp_ms(), parent + 1);
        assert_eq!(lake.load().await.metadata.last_updated_ms(), parent + 1);
    }
}

/// The store, and with it every other writer, is half an hour behind this machine.
#[tokio::test]
async fn a_clock_that_is_ahead_makes_no_snapshot_from_the_future() {
    let behind = TimeDelta::minutes(30);
    let store_time = Utc::now() - behind;
    let lake = Lake::in_memory_at(Clock::manual(store_time)).await;
    let change = |name: &str| Change {
        data: vec![file(name, "a", 1), file(&format!("{name}-2"), "a", 1)],
        clock_ahead_ms: -behind.num_milliseconds() - 60_000,
        ..Change::default()
    };
    lake.commit("main", change("f")).await;
    let table = replace(&lake.catalog, lake.request(&["f", "f-2"], "h").await, at_once()).await.unwrap().table;
    let made = table.metadata.current_snapshot().unwrap().timestamp_ms();
    assert_eq!(made, store_time.timestamp_millis());
    assert_eq!(table.metadata.last_updated_ms(), made);
    // The next writer is in time, though its clock is a minute slow.
    lake.commit("main", change("g")).await;
    assert_eq!(live(&lake.load().await, "main").await.len(), 3);
}

#[tokio::test]
async fn totals_that_nobody_wrote_are_counted() {
    let lake = by_p().await;
    lake.append(vec![file("g", "b", 32)]).await;
    lake.delete(vec![equality_delete("eq", "b"), position_delete("pos", "b", None, None)]).await;
    let change = Change { data: vec![file("f1", "a", 1), file("f2", "a", 2)], totals: false, ..Change::default() };
    lake.commit("main", change).await;
    let table = replace(&lake.catalog, lake.request(&["f1", "f2"], "h").await, at_once()).await.unwrap().table;
    check_counts(&table, "main").await;
    let summary = &table.metadata.current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["total-files-size"], "340");
    assert_eq!((summary["total-equality-deletes"].as_str(), summary["total-position-deletes"].as_str()), ("1", "1"));
}

#[tokio::test]
async fn an_unpartitioned_table_is_one_partition() {
    let lake = Lake::new(FormatVersion::V2, schema(), UnboundPartitionSpec::builder().build()).await;
    let empty = || std::iter::empty().collect();
    lake.append(vec![file_in("f1", empty(), 1), file_in("f2", empty(), 2)]).await;
    let table = replace(&lake.catalog, lake.request(&["f1", "f2"], "h").await, at_once()).await.unwrap().table;
    assert_eq!(live(&table, "main").await.len(), 1);
    assert_eq!(
        table.metadata.current_snapshot().unwrap().summary().additional_properties["changed-partition-count"],
        "1"
    );
    check_counts(&table, "main").await;
}
