//! Delete files that others add while a merge runs.

use firn_table::commit::{CommitError, replace};
use iceberg::spec::DataFile;

use crate::files::*;
use crate::lake::*;
use crate::look::*;

/// f1 and f2 in partition a; the merge is planned, then `deletes` come.
async fn planned_then(deletes: Vec<DataFile>, rows_removed: u64) -> (Lake, Result<String, CommitError>) {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 3), file("f2", "a", 10), file("f3", "a", 1)]).await;
    let mut request = lake.request(&["f1", "f2"], "h").await;
    request.rows_removed = rows_removed;
    request.outputs[0].rows -= rows_removed;
    let output = name(&request.outputs[0].path);
    lake.delete(deletes).await;
    lake.append(vec![file("f4", "a", 1)]).await;
    let before = lake.metadata_files().await;
    let result = replace(&lake.catalog, request, at_once()).await;
    if result.is_err() {
        assert_eq!(lake.metadata_files().await, before, "a refused merge leaves nothing");
        assert_eq!(live(&lake.load().await, "main").await[..3], ["d", "f1", "f2"]);
    }
    (lake, result.map(|_| output))
}

async fn assert_merged(lake: &Lake, result: Result<String, CommitError>) {
    let output = result.unwrap();
    let table = lake.load().await;
    assert_eq!(live(&table, "main").await, ["d", "f3", "f4", output.as_str()]);
    check_counts(&table, "main").await;
}

fn assert_refused(result: Result<String, CommitError>) {
    let error = result.unwrap_err();
    let CommitError::NewDeletes { deletes, .. } = &error else { panic!("{error}") };
    assert_eq!(deletes, &["d"]);
    assert!(error.wants_replan());
}

#[tokio::test]
async fn an_equality_delete_still_reaches_the_merged_rows() {
    let (lake, result) = planned_then(vec![equality_delete("d", "a")], 0).await;
    let output = result.as_ref().unwrap().clone();
    assert_merged(&lake, result).await;
    let found = entries(&lake.load().await, "main").await;
    let number = |file: &str| found.iter().find(|entry| entry.file == file).unwrap().sequence;
    assert_eq!(number(&output), 1, "the newest input's, not the commit's own");
    assert_eq!(number("d"), 2);
}

#[tokio::test]
async fn an_equality_delete_stops_a_merge_that_drops_rows() {
    let (_lake, result) = planned_then(vec![equality_delete("d", "a")], 4).await;
    assert_refused(result);
    let (lake, result) = planned_then(vec![equality_delete("d", "b")], 4).await;
    assert_merged(&lake, result).await;
}

#[tokio::test]
async fn a_position_delete_on_an_input_stops_the_merge() {
    for (referenced, bounds) in
        [(Some("f1"), None), (None, Some(("f1", "f1"))), (None, Some(("f0", "f9"))), (None, None)]
    {
        let (_lake, result) = planned_then(vec![position_delete("d", "a", referenced, bounds)], 0).await;
        assert_refused(result);
    }
}

#[tokio::test]
async fn a_position_delete_that_spares_every_input_does_not() {
    for (p, referenced, bounds) in
        [("a", Some("f3"), None), ("a", None, Some(("f3", "f3"))), ("a", None, Some(("f3", "f9"))), ("b", None, None)]
    {
        let (lake, result) = planned_then(vec![position_delete("d", p, referenced, bounds)], 0).await;
        assert_merged(&lake, result).await;
    }
}

#[tokio::test]
async fn deletes_known_when_the_merge_was_planned_are_not_new() {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 3), file("f2", "a", 10)]).await;
    lake.delete(vec![position_delete("d", "a", Some("f1"), None)]).await;
    let request = lake.request(&["f1", "f2"], "h").await;
    // Another writer merges the delete manifests: the same delete in a manifest that was not there before.
    lake.commit("main", Change { data: vec![file("f4", "a", 1)], rewrite_old_deletes: true, ..Change::default() })
        .await;
    replace(&lake.catalog, request, at_once()).await.unwrap();
}
