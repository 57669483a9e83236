//! A lost answer is not a failure.

use firn_table::commit::{CommitError, CommitPolicy, replace};

use crate::doubles::{Fault, Faulty};
use crate::files::*;
use crate::lake::*;
use crate::look::*;

async fn one_fault(fault: Fault<'_>) -> (Lake, Result<firn_table::commit::Committed, CommitError>, String, u64) {
    let lake = by_p().await;
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2)]).await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let output = name(&request.outputs[0].path);
    let policy = CommitPolicy { unknown_reloads: 3, ..at_once() };
    let result = {
        let faulty = Faulty::new(&lake.catalog, vec![fault]);
        replace(&faulty, request, policy.clone()).await
    };
    (lake, result, output, policy.conflicts.get())
}

/// The table has our snapshot once, and every file that it names.
async fn assert_committed_once(lake: &Lake, result: Result<firn_table::commit::Committed, CommitError>, output: &str) {
    let committed = result.unwrap();
    let table = lake.load().await;
    assert_eq!(table.metadata.snapshots().count(), 2);
    assert_eq!(table.metadata.current_snapshot_id(), Some(committed.snapshot_id));
    assert_eq!(committed.table.metadata_location, table.metadata_location);
    assert_eq!(live(&table, "main").await, [output]);
    check_counts(&table, "main").await;
}

#[tokio::test]
async fn applied_but_the_answer_was_lost_is_success() {
    let (lake, result, output, conflicts) = one_fault(Fault::AppliedButLost).await;
    assert_committed_once(&lake, result, &output).await;
    assert_eq!(conflicts, 0);
}

#[tokio::test]
async fn a_second_delivery_that_is_refused_is_success_too() {
    let (lake, result, output, conflicts) = one_fault(Fault::AppliedThenRefused).await;
    assert_committed_once(&lake, result, &output).await;
    assert_eq!(conflicts, 1);
}

async fn assert_unknown_and_nothing_removed(lake: &Lake, error: CommitError, output: &str) {
    let CommitError::Unknown { snapshot_id, .. } = error else { panic!("{error}") };
    let files = lake.metadata_files().await;
    let list = format!("snap-{snapshot_id}-");
    assert!(files.iter().any(|name| name.starts_with(&list)), "{files:?}");
    assert_eq!(files.iter().filter(|name| name.contains("-m")).count(), 2, "{files:?}");
    let data = format!("{}/data/{output}", lake.location().await);
    assert!(lake.io.exists(data).await.unwrap());
}

#[tokio::test]
async fn lost_and_not_to_be_seen_stays_unknown() {
    let (lake, result, output, _) = one_fault(Fault::LostBefore).await;
    assert_unknown_and_nothing_removed(&lake, result.unwrap_err(), &output).await;
    assert_eq!(live(&lake.load().await, "main").await, ["f1", "f2"]);
}

#[tokio::test]
async fn success_without_our_snapshot_stays_unknown() {
    let (lake, result, output, _) = one_fault(Fault::Ignored).await;
    let error = result.unwrap_err();
    assert!(error.to_string().contains("lacks the snapshot"), "{error}");
    assert_unknown_and_nothing_removed(&lake, error, &output).await;
}

#[tokio::test]
async fn a_refusal_that_cannot_be_looked_into_stays_unknown() {
    let (lake, result, output, _) = one_fault(Fault::AppliedThenRefusedThenDown).await;
    assert_unknown_and_nothing_removed(&lake, result.unwrap_err(), &output).await;
    // It was applied; the next run sees it.
    assert_eq!(live(&lake.load().await, "main").await, [output]);
}

#[tokio::test]
async fn what_was_never_applied_is_cleaned_up() {
    for fault in [Fault::NotSent, Fault::Denied, Fault::Forbidden] {
        let forbidden = matches!(fault, Fault::Forbidden);
        let (lake, result, output, _) = one_fault(fault).await;
        match result.unwrap_err() {
            CommitError::Storage { .. } => assert!(!forbidden),
            CommitError::Permanent { detail, .. } => assert!(forbidden && detail.contains("403"), "{detail}"),
            other => panic!("{other}"),
        }
        let files = lake.metadata_files().await;
        assert_eq!(files.iter().filter(|name| name.ends_with(".avro")).count(), 2, "{files:?}");
        assert!(lake.io.exists(format!("{}/data/{output}", lake.location().await)).await.unwrap());
    }
}

/// Who asks is not let in, perhaps because a proxy sent the request twice and the secret ended between the two.
#[tokio::test]
async fn a_refusal_of_who_asks_is_looked_into_before_anything_is_removed() {
    let (lake, result, output, conflicts) = one_fault(Fault::AppliedThenDenied).await;
    assert_committed_once(&lake, result, &output).await;
    assert_eq!(conflicts, 0);

    let (lake, result, _, _) = one_fault(Fault::DeniedThenDown).await;
    let error = result.unwrap_err();
    assert!(matches!(error, CommitError::Storage { .. }), "tried again later: {error}");
    assert!(error.to_string().contains("does not let Firn commit: 401"), "{error}");
    let files = lake.metadata_files().await;
    assert_eq!(files.iter().filter(|name| name.contains("-m")).count(), 2, "left for the sweep: {files:?}");
    assert_eq!(live(&lake.load().await, "main").await, ["f1", "f2"]);
}

/// A server may answer 409 to the second delivery of a request while it works on the first.
#[tokio::test]
async fn a_refused_request_that_lands_later_finds_all_its_files() {
    let (lake, result, output, _) = one_fault(Fault::RefusedWhileUnderWay).await;
    assert_committed_once(&lake, result, &output).await;

    // Also when it lands after the commit was given up, in whatever way.
    for last in [Fault::RefusedWhileUnderWay, Fault::NotSent, Fault::Forbidden] {
        let lake = by_p().await;
        lake.append(vec![file("f1", "a", 1), file("f2", "a", 2)]).await;
        let request = lake.request(&["f1", "f2"], "h").await;
        let output = name(&request.outputs[0].path);
        let retry_max = if matches!(last, Fault::RefusedWhileUnderWay) { 0 } else { 1 };
        let faults = if retry_max == 0 { vec![last] } else { vec![Fault::Refused, last] };
        let faulty = Faulty::new(&lake.catalog, faults);
        let policy = CommitPolicy { retry_max, unknown_reloads: 1, ..at_once() };
        let error = replace(&faulty, request, policy).await.unwrap_err();
        assert_unknown_and_nothing_removed(&lake, error, &output).await;
        faulty.land().await;
        if retry_max == 0 {
            assert_eq!(live(&lake.load().await, "main").await, [output]);
        }
    }
}
