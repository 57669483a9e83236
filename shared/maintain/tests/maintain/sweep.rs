//! What a sweep deletes, what it leaves and what it writes down.

use firn_maintain::sweep::{Deletion, DeletionOutcome, ReceiptPart, Undo};
use firn_maintain::{ExpiryOutcome, SweepOutcome, Verdict};
use firn_state::AbandonedOutputs;
use firn_table::sidecar_uuid;
use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, PartitionStatisticsFile, StatisticsFile};

use crate::double::Fault;
use crate::lake::{Change, Heard, Lake, WAREHOUSE, name};

/// A table with two snapshots, one orphan, and everything old.
async fn with_orphan() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet", "b.parquet"]).await;
    lake.replace("t", &["a.parquet"], &["c.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"rows").await;
    lake.hours(48);
    lake
}

#[tokio::test]
async fn only_what_nobody_refers_to_goes_and_only_at_the_second_look() {
    let lake = with_orphan().await;
    let before = lake.below(&format!("{WAREHOUSE}/t/")).await;
    let (first, heard) = lake.sweep("t").await;
    assert!(matches!(first.outcome, SweepOutcome::Done), "{first:?}");
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert_eq!(heard.reason("orphan.parquet"), "keep: in grace: the first sweep of a table deletes nothing");
    assert_eq!(lake.below(&format!("{WAREHOUSE}/t/")).await, before);

    // Half of the grace.
    lake.clock.advance(std::time::Duration::from_secs(1800));
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("orphan.parquet"), "keep: in grace");
    lake.clock.advance(std::time::Duration::from_secs(1800));
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    let mut after = before;
    assert!(after.remove("data/orphan.parquet"));
    assert_eq!(lake.below(&format!("{WAREHOUSE}/t/")).await, after);
    lake.check_whole("t").await;
}

/// What a merge knows it left behind needs no second look; age and references are asked all the same.
#[tokio::test]
async fn outputs_of_a_commit_that_failed_for_certain_go_at_the_next_sweep() {
    let lake = with_orphan().await;
    lake.sweep("t").await;
    let table = lake.load("t").await;
    let url = |file: &str| format!("{WAREHOUSE}/t/data/{file}");
    for file in ["left.parquet", "unknown.parquet"] {
        lake.put(&url(file), b"rows").await;
    }
    let listed = AbandonedOutputs {
        table: "db.t".into(),
        // The last one was committed after all.
        paths: vec![url("left.parquet"), lake.url(&table, "c.parquet")],
        reason: "5 tries met conflicting commits".into(),
        at: lake.now(),
    };
    lake.state.create(&lake.state.root().abandoned(&table.uuid()), &listed).await.unwrap();
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("left.parquet"), "keep: too young");
    lake.hours(48);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["left.parquet", "orphan.parquet"], "{swept:?}");
    assert_eq!(heard.reason("unknown.parquet"), "keep: in grace");
    assert_eq!(lake.state.list_abandoned(&table.uuid()).await.unwrap().len(), 1, "left.parquet was there");
    lake.sweep("t").await;
    assert_eq!(lake.state.list_abandoned(&table.uuid()).await.unwrap(), [], "c.parquet is in the table");
    lake.check_whole("t").await;
}

#[tokio::test]
async fn a_list_of_outputs_that_are_gone_is_forgotten() {
    let lake = with_orphan().await;
    let table = lake.load("t").await;
    let paths = vec![format!("{WAREHOUSE}/t/data/gone.parquet")];
    let listed = AbandonedOutputs { table: "db.t".into(), paths, reason: "superseded".into(), at: lake.now() };
    lake.state.create(&lake.state.root().abandoned(&table.uuid()), &listed).await.unwrap();
    lake.dry_run("t").await;
    assert_eq!(lake.state.list_abandoned(&table.uuid()).await.unwrap().len(), 1, "a dry run writes nothing");
    lake.sweep("t").await;
    assert_eq!(lake.state.list_abandoned(&table.uuid()).await.unwrap(), []);
}

#[tokio::test]
async fn the_receipt_has_listing_version_states_and_each_deletion() {
    let lake = with_orphan().await;
    let (swept, _) = lake.sweep_twice("t").await;
    let receipt = &swept.receipt;
    let address = lake.state.root().receipt::<firn_maintain::Receipt>("t", &receipt.receipt, None);
    let stored = lake.state.read(&address).await.unwrap().unwrap().value;
    assert_eq!(&stored, receipt);
    assert_eq!((receipt.outcome.as_str(), &receipt.reason, receipt.parts), ("done", &None, 1));
    let listing = receipt.listing.as_ref().unwrap();
    assert_eq!(listing.folders, ["abfss://lake@acct.dfs.core.windows.net/wh/t/"]);
    let metadata = receipt.metadata.as_ref().unwrap();
    assert_eq!(metadata.location, lake.load("t").await.metadata_location);
    assert_eq!((metadata.snapshots, metadata.last_sequence_number), (2, 2));
    // b and c are live, and so is what the metadata is made of.
    assert_eq!(receipt.states.replaced, 1, "a");
    assert_eq!((receipt.states.unreferenced, receipt.states.deleted), (0, 1));
    assert_eq!(receipt.states.live + receipt.states.replaced + receipt.states.deleted, listing.objects);
    assert_eq!(receipt.deletions.deleted, 1);
    assert_eq!(receipt.undo, Undo::SoftDelete { days: 14 });
    assert_eq!(receipt.kept.get("referenced: an older snapshot needs it"), Some(&1));

    let part = lake.state.root().receipt::<ReceiptPart>("t", &receipt.receipt, Some(1));
    let part = lake.state.read(&part).await.unwrap().unwrap().value;
    assert_eq!(part.metadata, metadata.location);
    let [deletion] = part.deletions.as_slice() else { panic!("{part:?}") };
    let expected = Deletion {
        path: format!("{WAREHOUSE}/t/data/orphan.parquet"),
        reason: "no snapshot refers to it; seen so since 2020-01-03T00:00:00Z".into(),
        age_hours: 50,
        bytes: 4,
        etag: deletion.etag.clone(),
        modified: "2020-01-01T00:00:00Z".into(),
        unreferenced_since: Some("2020-01-03T00:00:00Z".into()),
        outcome: DeletionOutcome::Deleted,
        trash: None,
        detail: None,
    };
    assert_eq!(*deletion, expected);
    assert!(!deletion.etag.is_empty());
}

/// K7: what expiry released a moment ago stays for the grace, however old it is.
#[tokio::test]
async fn a_file_that_expiry_released_stays_for_the_grace() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["f1.parquet"]).await;
    lake.hours(90 * 24 - 25);
    lake.replace("t", &["f1.parquet"], &["f2.parquet"]).await;
    // The manifest that says "removed" goes with the next commit.
    lake.append("t", &["f3.parquet"]).await;
    lake.sweep("t").await;
    lake.hours(25);
    lake.sweep("t").await;
    lake.append("t", &["f4.parquet"]).await;
    lake.expire("t").await;
    lake.clock.advance(std::time::Duration::from_secs(1));
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("f1.parquet"), "keep: in grace");
    lake.hours(1);
    let (_, heard) = lake.sweep("t").await;
    assert!(heard.reason("f1.parquet").starts_with("deleted: no snapshot refers to it"), "{heard:?}");
    lake.check_whole("t").await;
}

/// A file that came back and was released again between two sweeps begins its grace anew.
#[tokio::test]
async fn snapshots_that_came_and_went_begin_the_grace_anew() {
    let lake = with_orphan().await;
    lake.sweep("t").await;
    lake.append("t", &["orphan.parquet"]).await;
    lake.replace("t", &["orphan.parquet"], &[]).await;
    lake.append("t", &["d.parquet"]).await;
    lake.hours(30);
    lake.append("t", &["e.parquet"]).await;
    lake.expire("t").await;
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("orphan.parquet"), "keep: in grace");
    assert!(swept.receipt.warnings[0].starts_with("the grace begins anew: snapshots came and went"), "{swept:?}");
    lake.hours(1);
    let (_, heard) = lake.sweep("t").await;
    assert!(heard.names(Verdict::Deleted).contains(&"orphan.parquet".to_owned()));
}

/// K28: whatever the metadata names stays, however old.
#[tokio::test]
async fn statistics_logs_hints_and_removed_entries_stay() {
    let lake = Lake::with_settings("orphanMetadata: true").await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["a.parquet"]).await;
    lake.replace("t", &["a.parquet"], &["b.parquet"]).await;
    let metadata = format!("{WAREHOUSE}/t/metadata");
    let statistics = StatisticsFile {
        snapshot_id: s1,
        statistics_path: format!("{metadata}/ndv.puffin"),
        file_size_in_bytes: 1,
        file_footer_size_in_bytes: 1,
        key_metadata: None,
        blob_metadata: vec![],
    };
    let partitions = format!("{metadata}/partitions.avro");
    let partition_statistics =
        PartitionStatisticsFile { snapshot_id: s1, statistics_path: partitions.clone(), file_size_in_bytes: 1 };
    let updates =
        vec![TableUpdate::SetStatistics { statistics }, TableUpdate::SetPartitionStatistics { partition_statistics }];
    lake.update(&lake.load("t").await, updates).await;
    for file in [&format!("{metadata}/ndv.puffin"), &partitions, &format!("{metadata}/version-hint.text")] {
        lake.put(file, b"x").await;
    }
    // Not named by anything, and of the table's own making by their looks.
    for file in ["lost-m0.avro", "00042-lost.metadata.json", "dangling.puffin", "old.stats"] {
        lake.put(&format!("{metadata}/{file}"), b"x").await;
    }
    lake.put(&format!("{metadata}/notes.txt"), b"x").await;
    lake.hours(30 * 24);
    let (_, heard) = lake.sweep_twice("t").await;
    let gone = ["00042-lost.metadata.json", "dangling.puffin", "lost-m0.avro", "old.stats"];
    assert_eq!(heard.names(Verdict::Deleted), gone);
    for file in ["ndv.puffin", "partitions.avro", "version-hint.text", "notes.txt"] {
        assert!(lake.exists(&format!("{metadata}/{file}")).await, "{file}");
    }
    assert_eq!(lake.load("t").await.metadata.metadata_log().len(), 3);
    for entry in lake.load("t").await.metadata.metadata_log() {
        assert!(lake.exists(&entry.metadata_file).await);
    }
    lake.check_whole("t").await;
}

/// Statistics of Firn's own: those of retained snapshots stay, those of expired ones and those that were never registered go, and none that
/// was written a moment ago.
#[tokio::test]
async fn own_statistics_go_when_no_snapshot_has_them_any_more() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    let s1 = lake.append("t", &["a.parquet"]).await;
    lake.hours(20);
    let s2 = lake.append("t", &["b.parquet"]).await;
    let s3 = lake.append("t", &["c.parquet"]).await;
    let path = |snapshot: i64, n: u32| {
        format!("{WAREHOUSE}/t/_firn/{snapshot}-6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e{n:02}.stats")
    };
    let statistics = |snapshot_id: i64| StatisticsFile {
        snapshot_id,
        statistics_path: path(snapshot_id, 1),
        file_size_in_bytes: 1,
        file_footer_size_in_bytes: 1,
        key_metadata: None,
        blob_metadata: vec![],
    };
    for snapshot in [s1, s2, s3] {
        lake.put(&path(snapshot, 1), b"x").await;
    }
    lake.put(&path(s3, 2), b"never registered").await;
    let set = |id| TableUpdate::SetStatistics { statistics: statistics(id) };
    lake.update(&lake.load("t").await, [s1, s2, s3].map(set).into()).await;
    lake.hours(10);
    let expired = lake.expire("t").await;
    assert!(matches!(expired.outcome, ExpiryOutcome::Done), "{expired:?}");
    assert_eq!(expired.plan.expired().collect::<Vec<_>>(), [s1]);
    lake.hours(20);
    // Uploaded, and about to be registered.
    lake.put(&path(s3, 3), b"just written").await;
    let (_, heard) = lake.sweep_twice("t").await;
    let gone = [path(s1, 1), path(s3, 2)].map(|url| crate::lake::name(&url));
    assert_eq!(heard.names(Verdict::Deleted), gone);
    assert_eq!(heard.reason(&crate::lake::name(&path(s3, 3))), "keep: too young");
    for kept in [path(s2, 1), path(s3, 1)] {
        assert!(lake.exists(&kept).await, "{kept}");
    }
    lake.check_whole("t").await;
}

#[tokio::test]
async fn metadata_stays_when_nobody_asked() {
    let lake = with_orphan().await;
    lake.put(&format!("{WAREHOUSE}/t/metadata/lost-m0.avro"), b"x").await;
    lake.hours(48);
    let (_, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"]);
    assert_eq!(heard.reason("lost-m0.avro"), "keep: unknown layout");
}

/// K53: a sidecar shares the fate of its exact data file; what nobody knows stays.
#[tokio::test]
async fn sidecars_share_the_fate_of_their_exact_file() {
    let lake = with_orphan().await;
    let table = lake.load("t").await;
    let sidecar = |file: &str, kind: &str| {
        let uuid = sidecar_uuid(&lake.id(&format!("{WAREHOUSE}/t/data/{file}")));
        format!("{WAREHOUSE}/t/_firn/{uuid}.{kind}")
    };
    let live = sidecar("b.parquet", "tantivy");
    let replaced = sidecar("a.parquet", "bloom");
    let of_orphan = [sidecar("orphan.parquet", "bloom"), sidecar("orphan.parquet", "ndv")];
    let alone = sidecar("gone-long-ago.parquet", "ndv");
    let longer = format!("{}c.tantivy", live.strip_suffix(".tantivy").unwrap());
    let notes = format!("{WAREHOUSE}/t/_firn/notes.txt");
    for file in [&live, &replaced, &of_orphan[0], &of_orphan[1], &alone, &longer, &notes] {
        lake.put(file, b"x").await;
    }
    // The orphan's age is 48 h, that of the sidecars 25 h.
    lake.hours(25);
    let early = sidecar("not-uploaded-yet.parquet", "ndv");
    lake.put(&early, b"x").await;
    let (_, heard) = lake.sweep_twice("t").await;
    let deleted = heard.names(Verdict::Deleted);
    let mut expected: Vec<String> = [&of_orphan[0], &of_orphan[1], &alone].map(|url| crate::lake::name(url)).into();
    expected.push("orphan.parquet".into());
    expected.sort();
    assert_eq!(deleted, expected);
    assert_eq!(heard.reason(&crate::lake::name(&of_orphan[0])), "deleted: sidecar of a file that goes");
    assert_eq!(heard.reason(&crate::lake::name(&live)), "keep: sidecar of a kept file");
    assert_eq!(heard.reason(&crate::lake::name(&replaced)), "keep: sidecar of a kept file");
    assert_eq!(heard.reason(&crate::lake::name(&early)), "keep: too young");
    for file in [&longer, &notes] {
        assert_eq!(heard.reason(&crate::lake::name(file)), "keep: unknown layout");
    }
    drop(table);
}

/// A sidecar stays when its file could not be deleted.
#[tokio::test]
async fn a_sidecar_stays_with_a_file_that_the_store_keeps() {
    let lake = with_orphan().await;
    let uuid = sidecar_uuid(&lake.id(&format!("{WAREHOUSE}/t/data/orphan.parquet")));
    lake.put(&format!("{WAREHOUSE}/t/_firn/{uuid}.ndv"), b"x").await;
    lake.hours(25);
    lake.store.fault("orphan.parquet", Fault::Leased);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert!(heard.reason("orphan.parquet").starts_with("keep: the store refused to delete it:"), "{heard:?}");
    assert_eq!(heard.reason(&format!("{uuid}.ndv")), "keep: sidecar of a kept file");
    assert_eq!((swept.receipt.deletions.refused, swept.receipt.deletions.deleted), (1, 0));
    assert!(matches!(swept.outcome, SweepOutcome::Done));
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_says_when_a_file_would_go() {
    let lake = with_orphan().await;
    let before = lake.below(&format!("{WAREHOUSE}/")).await;
    let (swept, heard) = lake.dry_run("t").await;
    assert_eq!(heard.names(Verdict::Delete), ["orphan.parquet"]);
    assert_eq!(
        heard.reason("orphan.parquet"),
        "delete: no snapshot refers to it; the next sweep sees it so, may go from 2020-01-03T01:00:00Z"
    );
    assert_eq!(swept.receipt.deletions.deleted, 1, "would go");
    assert_eq!(lake.below(&format!("{WAREHOUSE}/")).await, before);
    assert!(format!("{:?}", lake.state_blobs.inner).contains("(0 blobs)"), "{:?}", lake.state_blobs.inner);
}

/// A delete of a file that is gone is not counted as deleted.
#[tokio::test]
async fn what_another_sweep_deleted_first_is_not_counted() {
    let lake = with_orphan().await;
    lake.store.fault("orphan.parquet", Fault::Gone);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!((swept.receipt.deletions.deleted, swept.receipt.deletions.absent), (0, 1));
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert!(matches!(swept.outcome, SweepOutcome::Done));
}

/// Without grace the sweep after the first deletes, with a warning.
#[tokio::test]
async fn a_grace_of_0_is_allowed_with_a_warning() {
    let lake = Lake::with_settings("orphanGraceHours: 0").await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"rows").await;
    lake.hours(48);
    let (first, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert!(first.receipt.warnings[0].starts_with("orphanGraceHours is 0"), "{first:?}");
    lake.clock.advance(std::time::Duration::from_secs(1));
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"]);
}

/// Many orphans go in several batches, each in a part of the receipt.
#[tokio::test]
async fn many_deletions_share_parts_of_the_receipt() {
    let lake = with_orphan().await;
    for number in 0..1_200 {
        lake.put(&format!("{WAREHOUSE}/t/data/lost-{number:04}.parquet"), b"x").await;
    }
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!((heard.names(Verdict::Deleted).len(), swept.receipt.parts), (1_201, 3));
    assert_eq!(swept.receipt.deletions.deleted, 1_201);
    let mut written = 0;
    for part in 1..=3 {
        let address = lake.state.root().receipt::<ReceiptPart>("t", &swept.receipt.receipt, Some(part));
        written += lake.state.read(&address).await.unwrap().unwrap().value.deletions.len();
    }
    assert_eq!(written, 1_201);
    lake.check_whole("t").await;
}

/// K18, K28: one Puffin file holds the vectors of two files. A merge replaces one of them: the other's vector still needs it.
#[tokio::test]
async fn a_puffin_file_stays_as_long_as_one_of_its_vectors_is_needed() {
    // Writers differ in where they put vectors.
    for folder in ["metadata", "data"] {
        a_puffin_file_of(&format!("{WAREHOUSE}/t/{folder}")).await;
    }
}

async fn a_puffin_file_of(folder: &str) {
    let lake = Lake::with_settings("orphanMetadata: true").await;
    lake.create_at("t", &format!("{WAREHOUSE}/t"), &[], FormatVersion::V3).await;
    let puffin = format!("{folder}/vectors.puffin");
    for file in [&puffin, &format!("{folder}/lost.puffin")] {
        lake.put(file, b"PFA1").await;
    }
    // Each in a manifest of its own: one that only says "removed" goes with the next commit.
    for file in ["f1.parquet", "f2.parquet", "f3.parquet"] {
        lake.append("t", &[file]).await;
    }
    let vectors = [("f1.parquet", puffin.as_str()), ("f2.parquet", puffin.as_str())];
    lake.commit("t", "main", Change { vectors: &vectors, ..Change::default() }).await;
    lake.replace("t", &["f1.parquet", "f3.parquet"], &["f13.parquet"]).await;
    lake.append("t", &["f4.parquet"]).await;
    lake.hours(30);
    let head = lake.append("t", &["f5.parquet"]).await;
    assert!(matches!(lake.expire("t").await.outcome, ExpiryOutcome::Done));
    let (swept, heard) = lake.sweep_twice("t").await;
    let deleted = heard.names(Verdict::Deleted);
    assert!(
        ["f1.parquet", "f3.parquet", "lost.puffin"].iter().all(|file| deleted.contains(&(*file).to_owned())),
        "{swept:?}"
    );
    assert!(!deleted.contains(&"vectors.puffin".to_owned()) && lake.exists(&puffin).await, "{deleted:?}");
    assert!(lake.live("t").await[&head].contains("vectors.puffin"), "the vector of f2");
    lake.check_whole("t").await;

    // The last file that needs a vector goes: so does the Puffin file, after expiry and grace.
    lake.replace("t", &["f2.parquet"], &["f6.parquet"]).await;
    lake.append("t", &["f7.parquet"]).await;
    lake.hours(30);
    lake.append("t", &["f8.parquet"]).await;
    lake.sweep("t").await;
    lake.expire("t").await;
    lake.sweep("t").await;
    lake.hours(2);
    let (swept, heard) = lake.sweep("t").await;
    let deleted = heard.names(Verdict::Deleted);
    assert!(
        deleted.contains(&"vectors.puffin".to_owned()) && deleted.contains(&"f2.parquet".to_owned()),
        "{deleted:?} {swept:?}"
    );
    lake.check_whole("t").await;
}

/// Metadata files that a writer trimmed from the log are nobody's, and go when they are asked for; the log's own stay.
#[tokio::test]
async fn metadata_files_that_were_trimmed_from_the_log_go_when_asked() {
    for asked in [true, false] {
        let lake = Lake::with_settings(&format!("orphanMetadata: {asked}")).await;
        lake.create("t", &[("write.metadata.previous-versions-max", "2")]).await;
        for file in ["a", "b", "c", "d"] {
            lake.append("t", &[&format!("{file}.parquet")]).await;
        }
        // Compressed ones are metadata files as well, whichever way they are named.
        for file in ["00000-x.gz.metadata.json", "00001-y.metadata.json.gz"] {
            lake.put(&format!("{WAREHOUSE}/t/metadata/{file}"), b"x").await;
        }
        let table = lake.load("t").await;
        let mut kept: Vec<String> =
            table.metadata.metadata_log().iter().map(|entry| name(&entry.metadata_file)).collect();
        kept.push(name(&table.metadata_location));
        assert_eq!(kept.len(), 3);
        lake.hours(48);
        let (swept, heard) = lake.sweep_twice("t").await;
        let deleted = heard.names(Verdict::Deleted);
        assert_eq!(deleted.len(), if asked { 4 } else { 0 }, "{deleted:?} {swept:?}");
        assert!(kept.iter().all(|file| !deleted.contains(file)));
        lake.check_whole("t").await;
    }
}

/// K6: what a merge that was killed leaves behind, at each step of its upload: outputs that nobody committed, sidecars with and without them.
#[tokio::test]
async fn leftovers_of_killed_merges_are_collected() {
    let lake = with_orphan().await;
    let uuids: Vec<String> = (0..3).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let output = |uuid: &str| format!("{WAREHOUSE}/t/data/{:032x}-{uuid}.parquet", 7);
    let sidecar = |uuid: &str, kind: &str| format!("{WAREHOUSE}/t/_firn/{uuid}.{kind}");
    // Killed after the output, after half of its sidecars, and after a sidecar whose output never came.
    lake.put(&output(&uuids[0]), b"rows").await;
    lake.put(&output(&uuids[1]), b"rows").await;
    lake.put(&sidecar(&uuids[1], "bloom"), b"x").await;
    lake.put(&sidecar(&uuids[2], "ndv"), b"x").await;
    let left: Vec<String> =
        [output(&uuids[0]), output(&uuids[1]), sidecar(&uuids[1], "bloom"), sidecar(&uuids[2], "ndv")]
            .map(|url| name(&url))
            .into();
    // The same merge, done again, is live.
    let again = uuid::Uuid::new_v4().to_string();
    lake.append("t", &[&output(&again)]).await;
    lake.put(&sidecar(&again, "bloom"), b"x").await;
    let reasons = |heard: &Heard| left.iter().map(|file| heard.reason(file)).collect::<Vec<_>>();
    let with_its_file = "keep: sidecar of a kept file";
    for _ in 0..2 {
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(reasons(&heard), ["keep: too young", "keep: too young", with_its_file, "keep: too young"]);
        lake.hours(11);
    }
    lake.hours(3);
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(reasons(&heard), ["keep: in grace", "keep: in grace", with_its_file, "keep: in grace"]);
    lake.hours(1);
    let (swept, heard) = lake.sweep("t").await;
    let deleted = heard.names(Verdict::Deleted);
    assert!(left.iter().all(|file| deleted.contains(file)), "{deleted:?} {swept:?}");
    assert_eq!(heard.reason(&name(&sidecar(&again, "bloom"))), "keep: sidecar of a kept file");
    lake.check_whole("t").await;
    assert!(lake.exists(&output(&again)).await && lake.exists(&sidecar(&again, "bloom")).await);
}

/// K93: names that cannot be used stay, the sweep goes on, and the receipt names some of them.
#[tokio::test]
async fn names_that_cannot_be_used_are_in_the_receipt() {
    let lake = with_orphan().await;
    for number in 0..7 {
        lake.put(&format!("{WAREHOUSE}/t/data/odd-{number}.parquet."), b"x").await;
        lake.store.fault(&format!("odd-{number}.parquet."), Fault::Odd);
    }
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    assert_eq!(swept.receipt.kept.get("name that cannot be used"), Some(&7));
    let expected: Vec<String> =
        (0..5).map(|number| lake.id(&format!("{WAREHOUSE}/t/data/odd-{number}.parquet.")).to_string()).collect();
    let warning = format!("7 blobs have names that cannot be used and stay, such as {}", expected.join(", "));
    assert!(swept.receipt.warnings.contains(&warning), "{:?}", swept.receipt.warnings);
}
