//! Metadata that is newer than what the catalog names: another catalog goes on with the table, or a commit was killed.

use firn_maintain::sweep::SweepStop;
use firn_maintain::{SweepOutcome, Verdict};
use iceberg::spec::FormatVersion;

use crate::double::Fault;
use crate::lake::{Lake, WAREHOUSE, name};

fn location() -> String {
    format!("{WAREHOUSE}/t")
}

fn data(file: &str) -> String {
    format!("{WAREHOUSE}/t/data/{file}")
}

/// A table `t` with a file and an orphan.
async fn with_orphan() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&data("orphan.parquet"), b"x").await;
    lake.hours(1);
    lake
}

/// K32: the table was registered in another catalog and is written there. This catalog's version is old, and what was committed since is live all the
/// same.
#[tokio::test]
async fn a_table_that_another_catalog_goes_on_with_stops() {
    let lake = with_orphan().await;
    let stale = lake.load("t").await.metadata_location;
    for file in ["b.parquet", "c.parquet"] {
        lake.append("t", &[file]).await;
        lake.hours(1);
    }
    let ahead = lake.load("t").await.metadata_location;
    lake.point("t", &stale).await;
    lake.hours(48);
    for _ in 0..3 {
        let (swept, heard) = lake.sweep("t").await;
        let SweepOutcome::Stopped(stop @ SweepStop::Ahead { found, named }) = &swept.outcome else {
            panic!("{swept:?}")
        };
        assert_eq!((name(found), named), (name(&ahead), &stale));
        assert!(!stop.passes() && stop.to_string().contains("another catalog goes on with the table"), "{stop}");
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        lake.hours(2);
    }
    for file in ["b.parquet", "c.parquet", "orphan.parquet"] {
        assert!(lake.exists(&data(file)).await, "{file}");
    }

    // It was brought back on purpose, and goes on here: the next commit shows it.
    lake.append("t", &["d.parquet"]).await;
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["b.parquet", "c.parquet", "orphan.parquet"], "{swept:?}");
    lake.check_whole("t").await;
}

/// The store's times tell nothing about which version is the later one: the table was copied, with the times of its files or in any order, and
/// beside many older versions that the log has dropped.
#[tokio::test]
async fn later_versions_are_found_whatever_the_times_of_their_files() {
    for format in [FormatVersion::V1, FormatVersion::V2] {
        let lake = Lake::new().await;
        lake.create_at("t", &location(), &[], format).await;
        lake.append("t", &["a.parquet"]).await;
        lake.set_property("t", "write.metadata.previous-versions-max", "1").await;
        for number in 0..40 {
            lake.append("t", &[&format!("a{number}.parquet")]).await;
        }
        lake.hours(1);
        let stale = lake.load("t").await.metadata_location;
        for file in ["b.parquet", "c.parquet", "d.parquet"] {
            lake.append("t", &[file]).await;
            lake.hours(1);
        }
        let ahead = lake.load("t").await;
        lake.point("t", &stale).await;
        lake.hours(48);
        let log = ahead.metadata.metadata_log().iter().map(|entry| entry.metadata_file.clone());
        let later: Vec<_> = log.chain([ahead.metadata_location.clone()]).filter(|file| *file != stale).collect();
        assert_eq!(later.len(), 2);
        let year_ago = lake.now() - chrono::TimeDelta::days(365);
        for file in &later {
            lake.store.fault(&name(file), Fault::Time(year_ago));
        }
        for _ in 0..3 {
            let (swept, heard) = lake.sweep("t").await;
            let SweepOutcome::Stopped(SweepStop::Ahead { named, .. }) = &swept.outcome else { panic!("{swept:?}") };
            assert_eq!(*named, stale);
            assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
            lake.hours(2);
        }
        for file in ["b.parquet", "c.parquet", "d.parquet"] {
            assert!(lake.exists(&data(file)).await, "{file}");
        }
    }
}

/// One commit more than the catalog knows: it may have been killed, or be another catalog's first. Its files stay, all others go.
#[tokio::test]
async fn files_of_a_commit_that_did_not_come_through_stay_until_the_next() {
    let lake = with_orphan().await;
    let stale = lake.load("t").await.metadata_location;
    lake.append("t", &["b.parquet"]).await;
    let next = lake.load("t").await.metadata_location;
    lake.point("t", &stale).await;
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");
    let warned = format!(
        "`{next}` is newer than the version that the catalog names: what it refers to stays until the next commit."
    );
    assert!(swept.receipt.warnings.iter().any(|warning| warning.starts_with(&warned)), "{:?}", swept.receipt.warnings);
    lake.hours(24 * 30);
    assert_eq!(lake.sweep("t").await.1.names(Verdict::Deleted), [""; 0]);
    assert!(lake.exists(&data("b.parquet")).await);

    lake.append("t", &["c.parquet"]).await;
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.reason("b.parquet"), "keep: in grace", "{swept:?}");
    lake.hours(2);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["b.parquet"], "{swept:?}");
    assert_eq!(swept.receipt.warnings, [""; 0]);
    lake.check_whole("t").await;
}

/// A writer cleans up behind its failed commit, wholly or in part: what is gone is passed over.
#[tokio::test]
async fn what_a_failed_commit_cleaned_up_holds_up_nothing() {
    for gone in ["list", "manifest", "metadata"] {
        let lake = with_orphan().await;
        let stale = lake.load("t").await.metadata_location;
        let id = lake.append("t", &["b.parquet"]).await;
        let table = lake.load("t").await;
        let snapshot = table.metadata.snapshot_by_id(id).unwrap();
        let manifests = table.manifests(snapshot).await.unwrap();
        let own = manifests.into_iter().find(|one| one.added_snapshot_id == id).unwrap().manifest_path;
        let lost = match gone {
            "list" => snapshot.manifest_list().to_owned(),
            "manifest" => own,
            _ => table.metadata_location.clone(),
        };
        lake.point("t", &stale).await;
        match gone {
            "metadata" => lake.put(&lost, b"{").await,
            _ => firn_storage::BlobStore::delete(&lake.store.inner, &lake.id(&lost)).await.map(|_| ()).unwrap(),
        }
        lake.hours(48);
        let (swept, heard) = lake.sweep_twice("t").await;
        assert_eq!(heard.names(Verdict::Deleted), ["b.parquet", "orphan.parquet"], "{gone}: {swept:?}");
        let named = swept.receipt.warnings.iter().filter(|warning| warning.contains("although its name says so"));
        assert_eq!(named.count(), usize::from(gone == "metadata"), "{:?}", swept.receipt.warnings);
        lake.check_whole("t").await;
    }
}

/// Another table in the same place that this catalog does not know: which files are whose cannot be told.
#[tokio::test]
async fn another_catalogs_table_in_the_same_place_stops() {
    let lake = with_orphan().await;
    lake.create_at("u", &location(), &[], FormatVersion::V2).await;
    lake.append("u", &[&data("of-u.parquet")]).await;
    let other = lake.load("u").await.metadata_location;
    lake.forget("u").await;
    lake.hours(48);
    for _ in 0..3 {
        let (swept, heard) = lake.sweep("t").await;
        let SweepOutcome::Stopped(SweepStop::TableInside { found, .. }) = &swept.outcome else { panic!("{swept:?}") };
        assert_eq!(*found, other);
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        lake.hours(2);
    }
    assert!(lake.exists(&data("of-u.parquet")).await);
}

/// A table that was dropped before this one came into its place has left orphans, and one that never had rows has nothing to lose.
#[tokio::test]
async fn tables_that_are_past_hold_up_nothing() {
    let lake = Lake::new().await;
    lake.create_at("u", &location(), &[], FormatVersion::V2).await;
    lake.append("u", &[&data("of-u.parquet")]).await;
    lake.forget("u").await;
    lake.hours(1);
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.create_at("v", &location(), &[], FormatVersion::V2).await;
    lake.forget("v").await;
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["of-u.parquet"], "{swept:?}");
    lake.check_whole("t").await;
}
