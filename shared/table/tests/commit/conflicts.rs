//! Commits that meet others.

use std::sync::Arc;

use firn_table::commit::{AlreadyDone, CommitError, CommitPolicy, already_done, replace};
use iceberg::spec::{NestedField, PrimitiveType, Schema, SchemaRef, Type};
use iceberg::{TableRequirement, TableUpdate};

use crate::doubles::{Faulty, meanwhile};
use crate::files::*;
use crate::lake::*;
use crate::look::*;

async fn two_files() -> Arc<Lake> {
    let lake = Arc::new(by_p().await);
    lake.append(vec![file("f1", "a", 1), file("f2", "a", 2), file("f3", "a", 4)]).await;
    lake
}

#[tokio::test]
async fn an_append_in_between_is_kept_and_nothing_is_merged_again() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let output = name(&request.outputs[0].path);
    let appended = Change { data: vec![file("late", "a", 8)], ..Change::default() };
    let faulty = Faulty::new(&lake.catalog, vec![meanwhile(&lake, appended)]);
    let policy = at_once();
    let committed = replace(&faulty, request, policy.clone()).await.unwrap();
    assert_eq!((committed.tries, committed.conflicts, policy.conflicts.get()), (2, 1, 1));
    let ours = committed.snapshot_id;
    let entry = |status, file: &str, snapshot, sequence, file_sequence| Entry {
        status,
        file: file.into(),
        snapshot,
        sequence,
        file_sequence,
        spec: 0,
    };
    let mut expected = vec![
        entry("added", &output, ours, 1, 3),
        entry("added", "late", 102, 2, 2),
        entry("deleted", "f1", ours, 1, 1),
        entry("deleted", "f2", ours, 1, 1),
        entry("existing", "f3", 101, 1, 1),
    ];
    expected.sort();
    assert_eq!(entries(&committed.table, "main").await, expected);
    check_counts(&committed.table, "main").await;
    // The refused try left nothing: two snapshots of others, ours with two manifests.
    let files = lake.metadata_files().await;
    let avro = files.iter().filter(|name| name.ends_with(".avro")).count();
    assert_eq!(avro, 2 + 2 + 3, "{files:?}");
    let requirements = faulty.requirements.lock().unwrap().clone();
    assert_eq!(
        requirements[1],
        [
            TableRequirement::UuidMatch { uuid: committed.table.metadata.uuid() },
            TableRequirement::RefSnapshotIdMatch { r#ref: "main".into(), snapshot_id: Some(102) },
            TableRequirement::CurrentSchemaIdMatch { current_schema_id: 0 },
        ]
    );
}

/// Whoever has to read and write manifests for every try loses against a writer that commits faster than that.
#[tokio::test]
async fn later_tries_race_with_a_list_alone() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let appended = |name: &str| meanwhile(&lake, Change { data: vec![file(name, "b", 8)], ..Change::default() });
    let faulty = Faulty::new(&lake.catalog, vec![appended("b1"), appended("b2"), appended("b3")]);
    lake.blobs.take_writes();
    let committed = replace(&faulty, request, at_once()).await.unwrap();
    assert_eq!((committed.tries, committed.conflicts), (4, 3));
    let written = lake.blobs.take_writes();
    let of_ours = |part: &str, not: &str| {
        written.iter().filter(|name| name.contains(part) && !name.contains(not)).cloned().collect::<Vec<_>>()
    };
    let lists = of_ours(&format!("snap-{}-", committed.snapshot_id), "never");
    assert_eq!(lists.len(), 4, "{written:?}");
    // One of the output, one of the survivor and the deletions.
    let manifests = of_ours("-m", "snap-");
    assert_eq!(manifests.len(), 2, "{written:?}");
    assert_eq!(live(&committed.table, "main").await.len(), 5);
    check_counts(&committed.table, "main").await;
}

#[tokio::test]
async fn a_version_that_is_outdated_once_manifests_are_written_is_not_tried() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    lake.append(vec![file("late", "b", 8)]).await;
    let policy = at_once();
    let faulty = Faulty::new(&lake.catalog, Vec::new());
    let committed = replace(&faulty, request, policy.clone()).await.unwrap();
    assert_eq!((committed.tries, committed.conflicts, policy.conflicts.get()), (1, 0, 0));
    assert_eq!(faulty.requirements.lock().unwrap().len(), 1);
    assert_eq!(live(&committed.table, "main").await.len(), 3);
}

/// A writer that rewrites manifests takes away what an earlier try had written for.
#[tokio::test]
async fn manifests_are_written_again_where_those_before_them_changed() {
    let lake = two_files().await;
    lake.append(vec![file("g1", "b", 1), file("g2", "b", 1)]).await;
    let ours = lake.request(&["f1", "f2"], "h").await;
    let other = lake.request(&["f3"], "other").await;
    let change = crate::doubles::Fault::After(Box::pin(async {
        replace(&lake.catalog, other, at_once()).await.unwrap();
    }));
    let faulty = Faulty::new(&lake.catalog, vec![change]);
    let committed = replace(&faulty, ours, at_once()).await.unwrap();
    assert_eq!((committed.tries, committed.conflicts), (2, 1));
    let found = live(&committed.table, "main").await;
    assert_eq!(found.len(), 4, "{found:?}");
    check_counts(&committed.table, "main").await;
    let expected = lake.metadata_files().await.iter().filter(|name| name.ends_with(".avro")).count();
    // Two appends with two files each, the other commit with two manifests and a list (the survivors, the output), ours likewise.
    assert_eq!(expected, 2 + 2 + 3 + 3, "what the refused try wrote is gone: {:?}", lake.metadata_files().await);
}

#[tokio::test]
async fn conflicts_are_bounded_counted_and_leave_nothing() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let output = request.outputs[0].path.clone();
    let avro = async |lake: &Lake| lake.metadata_files().await.iter().filter(|name| name.ends_with(".avro")).count();
    let before = avro(&lake).await;
    let appended = |name: String| meanwhile(&lake, Change { data: vec![file(&name, "b", 8)], ..Change::default() });
    let faulty = Faulty::new(&lake.catalog, (0..9).map(|n| appended(format!("late{n}"))).collect());
    let policy = CommitPolicy { retry_max: 2, ..at_once() };
    let error = replace(&faulty, request, policy.clone()).await.unwrap_err();
    assert!(matches!(error, CommitError::ConflictsUsedUp { conflicts: 3, .. }), "{error}");
    assert_eq!(policy.conflicts.get(), 3);
    assert_eq!(avro(&lake).await, before + 3 * 2, "a manifest and a list of each writer, nothing of ours");
    assert!(lake.io.exists(output).await.unwrap(), "outputs are left to the sweep");
}

#[tokio::test]
async fn an_input_that_went_meanwhile_is_named() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let other = lake.request(&["f2", "f3"], "other").await;
    replace(&lake.catalog, other, at_once()).await.unwrap();
    let before = lake.metadata_files().await;
    let table = lake.load().await;
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    let CommitError::InputsGone { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(missing, &["f2"]);
    assert!(error.wants_replan());
    assert_eq!(lake.load().await.metadata_location, table.metadata_location);
    assert_eq!(lake.metadata_files().await, before);
}

#[tokio::test]
async fn of_two_workers_with_one_group_the_second_is_superseded() {
    let lake = two_files().await;
    let first = lake.request(&["f1", "f2"], "h").await;
    let second = lake.request(&["f1", "f2"], "h").await;
    let inputs = first.inputs.clone();
    let partition = first.partition.clone();
    let done = |hash: &'static str| {
        let (lake, inputs, partition) = (lake.clone(), inputs.clone(), partition.clone());
        async move { already_done(&lake.load().await, "main", &partition, hash, &inputs).await.unwrap() }
    };
    assert_eq!(done("h").await, AlreadyDone::No);
    let output = first.outputs[0].path.clone();
    let ours = replace(&lake.catalog, first, at_once()).await.unwrap().snapshot_id;
    assert_eq!(done("h").await, AlreadyDone::LiveOutput { path: output.clone() });
    assert_eq!(done("x").await, AlreadyDone::No);
    let error = replace(&lake.catalog, second, at_once()).await.unwrap_err();
    assert!(matches!(&error, CommitError::Superseded { by, .. } if by.contains(&output)), "{error}");
    assert_eq!(live(&lake.load().await, "main").await, ["f3", &name(&output)]);

    // The output was merged on: only the history knows the group.
    let late = lake.request(&["f3", &name(&output)], "next").await;
    replace(&lake.catalog, late, at_once()).await.unwrap();
    assert_eq!(done("h").await, AlreadyDone::Replaced { snapshot_id: ours });
}

/// Two and three runs on one partition at once give one result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_workers_that_race_with_one_group_exactly_one_commits() {
    for round in 0..10 {
        let lake = two_files().await;
        let mut requests = Vec::new();
        for _ in 0..2 + round % 2 {
            requests.push(lake.request(&["f1", "f2"], "h").await);
        }
        let mut workers = Vec::new();
        for request in requests {
            let lake = lake.clone();
            workers.push(tokio::spawn(async move { replace(&lake.catalog, request, at_once()).await }));
        }
        let mut committed = 0;
        for worker in workers {
            match worker.await.unwrap() {
                Ok(_) => committed += 1,
                Err(CommitError::Superseded { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(committed, 1);
        let table = lake.load().await;
        assert_eq!(table.metadata.snapshots().count(), 2);
        assert_eq!(live(&table, "main").await.len(), 2);
        check_counts(&table, "main").await;
        let files = lake.metadata_files().await;
        let avro = files.iter().filter(|name| name.ends_with(".avro")).count();
        assert_eq!(avro, 2 + 3, "the losers left nothing: {files:?}");
    }
}

/// The plan's snapshot was expired and its files removed while the merge ran.
#[tokio::test]
async fn a_base_whose_files_are_gone_is_left_for_the_current_version() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let old = request.base.metadata.current_snapshot().unwrap().clone();
    lake.append(vec![file("late", "a", 8)]).await;
    lake.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![old.snapshot_id()] }]).await;
    lake.io.delete(old.manifest_list()).await.unwrap();
    let committed = replace(&lake.catalog, request, at_once()).await.unwrap();
    assert_eq!((committed.tries, committed.conflicts), (1, 0));
    assert_eq!(live(&committed.table, "main").await.len(), 3);
    check_counts(&committed.table, "main").await;
}

#[tokio::test]
async fn a_manifest_that_is_gone_for_good_stops_the_commit() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let table = lake.load().await;
    let head = table.metadata.current_snapshot().unwrap();
    let manifest = manifest_files(&table, head).await.remove(0).manifest_path;
    lake.io.delete(&manifest).await.unwrap();
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    assert!(error.to_string().contains(&name(&manifest)), "{error}");
    assert_eq!(lake.load().await.metadata_location, table.metadata_location);
}

#[tokio::test]
async fn workers_on_different_partitions_both_commit() {
    let lake = Arc::new(by_p().await);
    let names = ["a", "b", "c", "d"];
    for p in names {
        lake.append(vec![file(&format!("{p}1"), p, 1), file(&format!("{p}2"), p, 2)]).await;
    }
    let mut workers = Vec::new();
    for p in names {
        let request = lake.request(&[&format!("{p}1"), &format!("{p}2")], p).await;
        let lake = lake.clone();
        let policy = CommitPolicy { retry_max: 50, ..at_once() };
        workers.push(tokio::spawn(
            async move { replace(&lake.catalog, request, policy).await.map(|done| done.conflicts) },
        ));
    }
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    let table = lake.load().await;
    assert_eq!(live(&table, "main").await.len(), 4);
    check_counts(&table, "main").await;
}

fn wider(table: &firn_table::LoadedTable) -> Schema {
    let mut fields = table.metadata.current_schema().as_struct().fields().to_vec();
    fields.push(Arc::new(NestedField::optional(9, "new", Type::Primitive(PrimitiveType::Int))));
    let current: &SchemaRef = table.metadata.current_schema();
    Schema::builder().with_schema_id(current.schema_id() + 1).with_fields(fields).build().unwrap()
}

#[tokio::test]
async fn a_schema_that_changed_meanwhile_asks_for_a_new_plan() {
    let lake = two_files().await;
    let request = lake.request(&["f1", "f2"], "h").await;
    let schema = wider(&lake.load().await);
    let changed =
        lake.update(vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }]).await;
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    assert!(matches!(error, CommitError::SchemaChanged { planned: 0, current: 1, .. }), "{error}");
    assert!(error.wants_replan());
    assert_eq!(lake.load().await.metadata_location, changed.metadata_location);
}

/// A commit to a branch asks nothing of `main`, and what others append there meanwhile stays.
#[tokio::test]
async fn a_branch_requires_its_own_head_alone() {
    let lake = two_files().await;
    lake.commit("b", Change { data: vec![file("b1", "a", 1), file("b2", "a", 1)], ..Change::default() }).await;
    let request = lake.request_on("b", &["b1", "b2"], "h").await;
    let (head, output) =
        (request.base.metadata.snapshot_for_ref("b").unwrap().snapshot_id(), name(&request.outputs[0].path));
    let appended = Change { data: vec![file("late", "a", 8)], ..Change::default() };
    let faulty = Faulty::new(&lake.catalog, vec![meanwhile(&lake, appended)]);
    let table = replace(&faulty, request, at_once()).await.unwrap().table;
    let own = TableRequirement::RefSnapshotIdMatch { r#ref: "b".into(), snapshot_id: Some(head) };
    for asked in faulty.requirements.lock().unwrap().iter() {
        let of_refs: Vec<_> =
            asked.iter().filter(|asked| matches!(asked, TableRequirement::RefSnapshotIdMatch { .. })).collect();
        assert_eq!(of_refs, [&own]);
    }
    assert_eq!(live(&table, "main").await, ["f1", "f2", "f3", "late"]);
    assert_eq!(live(&table, "b").await, ["f1", "f2", "f3", output.as_str()]);
    check_counts(&table, "b").await;
}

#[tokio::test]
async fn a_branch_that_vanished_stops_the_commit() {
    let lake = two_files().await;
    lake.commit("b", Change { data: vec![file("b1", "a", 1), file("b2", "a", 1)], ..Change::default() }).await;
    let request = lake.request_on("b", &["b1", "b2"], "h").await;
    lake.update(vec![TableUpdate::RemoveSnapshotRef { ref_name: "b".into() }]).await;
    let error = replace(&lake.catalog, request, at_once()).await.unwrap_err();
    assert!(matches!(&error, CommitError::Permanent { detail, .. } if detail.contains("branch `b`")), "{error}");
}
