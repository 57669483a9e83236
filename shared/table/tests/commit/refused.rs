//! Requests and tables that a commit must not touch.

use firn_table::commit::{CommitError, ReplaceRequest, replace};
use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, SnapshotReference, SnapshotRetention, Transform, UnboundPartitionSpec};

use crate::files::*;
use crate::lake::*;

async fn lake() -> Lake {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2), file("g", "b", 4)]).await;
    lake.append(vec![file("f3", "a", 8)]).await;
    lake
}

async fn refused(lake: &Lake, request: ReplaceRequest) -> CommitError {
    let before = (lake.load().await.metadata_location, lake.metadata_files().await);
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    assert_eq!((lake.load().await.metadata_location, lake.metadata_files().await), before);
    error
}

#[tokio::test]
async fn a_request_that_would_lose_or_double_rows_is_refused() {
    let lake = lake().await;
    let good = lake.request(&["f1", "f3"], "h").await;
    type Change = fn(&mut ReplaceRequest);
    let cases: [(&str, Change); 8] = [
        ("the inputs have 9 rows", |request| request.outputs[0].rows -= 1),
        ("the inputs have 9 rows", |request| request.rows_removed = 1),
        ("the inputs have 9 rows", |request| request.outputs.clear()),
        ("data sequence number 2", |request| request.data_sequence_number = 1),
        ("data sequence number 2", |request| request.data_sequence_number = 3),
        ("0 inputs", |request| request.inputs.clear()),
        ("3 inputs, 2 of them different", |request| request.inputs.push("f1".into())),
        ("is input and output", |request| request.inputs.push(request.outputs[0].path.clone())),
    ];
    for (expected, change) in cases {
        let mut request = good.clone();
        change(&mut request);
        let error = refused(&lake, request).await;
        assert!(matches!(&error, CommitError::Permanent { detail, .. } if detail.contains(expected)), "{error}");
    }
}

#[tokio::test]
async fn inputs_of_another_partition_are_not_found_and_not_mixed() {
    let lake = lake().await;
    let mut request = lake.request(&["f1", "f2"], "h").await;
    request.inputs.push("g".into());
    request.outputs[0].rows = 7;
    let error = refused(&lake, request).await;
    assert!(
        matches!(&error, CommitError::Permanent { detail, .. } if detail.contains("`g` is not of partition")),
        "{error}"
    );
}

#[tokio::test]
async fn an_output_that_is_not_there_as_written_stops_the_commit() {
    let lake = lake().await;
    let good = lake.request(&["f1", "f3"], "h").await;
    let mut longer = good.clone();
    longer.outputs[0].size = 11;
    let error = refused(&lake, longer).await;
    assert!(matches!(error, CommitError::OutputMissing { expected: 11, found: Some(10), .. }), "{error}");
    lake.io.delete(&good.outputs[0].path).await.unwrap();
    let error = refused(&lake, good).await;
    assert!(matches!(error, CommitError::OutputMissing { expected: 10, found: None, .. }), "{error}");
}

#[tokio::test]
async fn version_3_and_tags_are_refused() {
    let lake = Lake::new(FormatVersion::V3, schema(), by(2, "p", Transform::Identity)).await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2)]).await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let error = refused(&lake, request).await;
    assert!(error.to_string().contains("format version 3"), "{error}");

    let lake = self::lake().await;
    let head = lake.load().await.metadata.current_snapshot_id().unwrap();
    let reference = SnapshotReference::new(head, SnapshotRetention::Tag { max_ref_age_ms: None });
    lake.update(vec![TableUpdate::SetSnapshotRef { ref_name: "v1".into(), reference }]).await;
    let request = lake.request_on("v1", &["f1", "f2"], "h").await;
    let error = refused(&lake, request).await;
    assert!(error.to_string().contains("`v1` is a tag"), "{error}");
}

#[tokio::test]
async fn tags_of_a_version_1_table_are_not_lost() {
    let lake = Lake::new(FormatVersion::V1, schema(), by(2, "p", Transform::Identity)).await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2)]).await;
    let table = lake.load().await;
    let path = table.metadata_location.replace("file://", "");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    json["refs"] = serde_json::json!({"eoy": {"snapshot-id": 101, "type": "tag"}});
    std::fs::write(&path, serde_json::to_vec(&json).unwrap()).unwrap();
    let request = lake.request(&["f1", "f2"], "h").await;
    let error = refused(&lake, request).await;
    assert!(error.to_string().contains("`eoy`"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_live_twice_is_not_made_one() {
    let lake = lake().await;
    lake.append(vec![file("f1", "a", 1)]).await;
    let mut request = lake.request(&["f2", "f3"], "h").await;
    request.inputs = vec!["f1".into(), "f3".into()];
    request.outputs[0].rows = 9;
    let error = refused(&lake, request).await;
    assert!(error.to_string().contains("`f1` is live twice"), "{error}");
}

#[tokio::test]
async fn inputs_beside_a_live_output_of_theirs_are_not_merged_again() {
    let lake = lake().await;
    let request = lake.request(&["f1", "f3"], "h").await;
    lake.append(vec![file("h-lost.parquet", "a", 9)]).await;
    let error = refused(&lake, request).await;
    assert!(error.to_string().contains("h-lost.parquet"), "{error}");
}

#[tokio::test]
async fn a_table_that_was_made_anew_under_the_name_is_another_table() {
    let lake = lake().await;
    let mut request = lake.request(&["f1", "f3"], "h").await;
    let fresh = Lake::new(FormatVersion::V2, schema(), UnboundPartitionSpec::builder().build()).await;
    // The plan is of the other table.
    request.base = fresh.load().await;
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    assert!(matches!(error, CommitError::Permanent { .. }), "{error}");
}

#[tokio::test]
async fn a_broken_branch_is_not_started_from_zero() {
    // metadata with a current snapshot that is not in its list must not load at all
    let lake = lake().await;
    let table = lake.load().await;
    let mut json = serde_json::to_value(&*table.metadata).unwrap();
    json["snapshots"] = serde_json::json!([]);
    let path = table.metadata_location.replace("file://", "");
    std::fs::write(path, serde_json::to_vec(&json).unwrap()).unwrap();
    let error = firn_table::Catalog::load(&lake.catalog, &lake.ident).await.unwrap_err();
    assert!(error.to_string().contains("napshot"), "{error}");
}
