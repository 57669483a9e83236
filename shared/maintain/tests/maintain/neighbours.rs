//! Whose files are whose: tables of other namespaces, of other formats, and catalogs that do not say.

use std::time::{Duration, Instant};

use firn_maintain::{ExpiryOutcome, SkipReason, SweepOutcome, TableSweep, Verdict};
use iceberg::spec::FormatVersion;

use crate::catalog::{Namespaces, Scripted};
use crate::double::Fault;
use crate::lake::{Heard, Lake, WAREHOUSE};

fn stopped(swept: &TableSweep) -> String {
    match &swept.outcome {
        SweepOutcome::Stopped(stop) => stop.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn with_orphan() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    lake.put(&format!("{WAREHOUSE}/t/data/orphan.parquet"), b"x").await;
    lake.hours(48);
    lake
}

/// A read-only catalog shows tables of another format: what Iceberg does not name, that one may need.
#[tokio::test]
async fn tables_of_a_catalog_that_takes_no_commits_are_left_alone() {
    let lake = with_orphan().await;
    lake.append("t", &["b.parquet"]).await;
    lake.hours(48);
    let before = lake.below(&format!("{WAREHOUSE}/")).await;
    let catalog = Scripted { read_only: Some("OneLake's catalog is read-only"), ..Scripted::new(&lake) };
    let reason = SkipReason::ReadOnlyCatalog("OneLake's catalog is read-only".to_owned());
    for _ in 0..3 {
        let expired = lake.expire_with("t", &catalog, 5).await;
        assert!(matches!(&expired.outcome, ExpiryOutcome::Skipped(found) if *found == reason), "{expired:?}");
        let (swept, heard) = lake.sweep_with("t", &catalog, &lake.clock, false).await;
        assert!(matches!(&swept.outcome, SweepOutcome::Skipped(found) if *found == reason), "{swept:?}");
        assert_eq!(swept.receipt.reason, Some(reason.to_string()));
        assert!(heard.0.is_empty());
        lake.hours(30);
    }
    assert_eq!(catalog.sent(), 0, "no swap was sent");
    assert_eq!(lake.below(&format!("{WAREHOUSE}/")).await, before);
}

/// The log of another format beside the data: the Iceberg metadata is a view of that table.
#[tokio::test]
async fn a_table_of_another_format_in_the_same_location_stops() {
    for log in ["_delta_log/00000000000000000000.json", "data/.hoodie/hoodie.properties"] {
        let lake = with_orphan().await;
        lake.put(&format!("{WAREHOUSE}/t/{log}"), b"{}").await;
        for _ in 0..3 {
            let (swept, heard) = lake.sweep("t").await;
            assert!(stopped(&swept).contains("belongs to a table of another format"), "{swept:?}");
            assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
            lake.hours(2);
        }
    }
    // A name that only begins so.
    let lake = with_orphan().await;
    lake.put(&format!("{WAREHOUSE}/t/data/_delta_log_notes/x.txt"), b"{}").await;
    let (_, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"]);
}

/// Tables of two namespaces with one data path (object-storage layout): the live files of one are nobody's to the other.
#[tokio::test]
async fn a_data_path_that_namespaces_share_stops() {
    let lake = Lake::new().await;
    let shared = format!("{WAREHOUSE}-objects");
    for table in ["t", "other.inner.u"] {
        lake.create(table, &[("write.data.path", &shared)]).await;
        lake.append(table, &[&format!("{shared}/0110/{table}/a.parquet")]).await;
    }
    lake.hours(48);
    for _ in 0..3 {
        for (table, other) in [("t", "other.inner.u"), ("other.inner.u", "db.t")] {
            let (swept, heard) = lake.sweep(table).await;
            assert!(stopped(&swept).contains(&format!("of table `{other}` overlap")), "{swept:?}");
            assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        }
        lake.hours(2);
    }
    for table in ["t", "other.inner.u"] {
        lake.check_whole(table).await;
        assert!(lake.exists(&format!("{shared}/0110/{table}/a.parquet")).await);
    }
}

/// A table elsewhere that writes into this one's location, which does not reach out itself.
#[tokio::test]
async fn a_table_of_another_namespace_that_writes_here_stops() {
    let lake = with_orphan().await;
    let here = format!("{WAREHOUSE}/t/data");
    lake.create_at("other.u", &format!("{WAREHOUSE}/other/u"), &[("write.data.path", &here)], FormatVersion::V2).await;
    lake.append("other.u", &[&format!("{here}/live.parquet")]).await;
    lake.hours(48);
    let (swept, _) = lake.sweep("t").await;
    assert!(stopped(&swept).contains("of table `other.u` overlap"), "{swept:?}");
}

/// Without the whole list of tables nobody knows whose files these are.
#[tokio::test]
async fn a_catalog_that_does_not_list_its_tables_stops() {
    let lake = with_orphan().await;
    for (namespaces, reason) in [
        (Namespaces::Denied, "403 ForbiddenException; let this identity list all namespaces"),
        (Namespaces::Only(vec![vec!["other".to_owned()]]), "list of tables lacks `db.t`"),
        (Namespaces::Only(vec![]), "list of tables lacks `db.t`"),
    ] {
        let catalog = Scripted { namespaces, ..Scripted::new(&lake) };
        for _ in 0..3 {
            let (swept, heard) = lake.sweep_with("t", &catalog, &lake.clock, false).await;
            assert!(stopped(&swept).contains(reason), "{swept:?}");
            assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
            lake.hours(2);
        }
    }
}

/// Files lie outside the location, and a neighbour cannot be read: it might have some there too.
#[tokio::test]
async fn a_neighbour_that_cannot_be_read_stops_who_reaches_out() {
    let lake = with_orphan().await;
    lake.create("other.broken", &[]).await;
    lake.point("broken", "abfss://lake@acct.dfs.core.windows.net/wh/nowhere/metadata/x.metadata.json").await;
    // In its own location only.
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{swept:?}");

    lake.create("far", &[("write.data.path", &format!("{WAREHOUSE}-objects"))]).await;
    lake.append("far", &[&format!("{WAREHOUSE}-objects/a.parquet")]).await;
    lake.hours(48);
    let (swept, _) = lake.sweep("far").await;
    assert!(stopped(&swept).contains("table `other.broken` cannot be read"), "{swept:?}");
}

/// Sweeps with longer and longer time, until it is used up where a test wants it: a busy machine may be late before.
async fn late<F: Future<Output = (TableSweep, Heard)>>(
    sweep: impl Fn(Option<Instant>) -> F,
    expected: &str,
) -> (TableSweep, Heard) {
    for milliseconds in [300, 3_000, 30_000, 300_000] {
        let swept = sweep(Some(Instant::now() + Duration::from_millis(milliseconds))).await;
        if matches!(&swept.0.outcome, SweepOutcome::Unfinished(reason) if reason.starts_with(expected)) {
            return swept;
        }
        assert!(matches!(&swept.0.outcome, SweepOutcome::Unfinished(_)), "{:?}", swept.0);
    }
    panic!("never {expected}");
}

/// A run whose time is used up before anything is deleted says where it went by, and that nothing was done.
#[tokio::test]
async fn a_table_that_is_too_large_for_a_run_ends_with_a_reason() {
    for (at, expected) in [
        ("catalog", "out of time while the tables of the catalog were looked at: nothing was deleted"),
        ("listing", "out of time while its folders were listed: nothing was deleted"),
        ("manifest", "out of time while its manifests were read: nothing was deleted"),
    ] {
        let lake = with_orphan().await;
        lake.sweep("t").await;
        lake.hours(2);
        let mut catalog = Scripted::new(&lake);
        match at {
            "catalog" => catalog.namespaces = Namespaces::Hang,
            "listing" => lake.store.fault("orphan.parquet", Fault::HangsListing),
            _ => lake.store.fault("-m0.avro", Fault::HangsReading),
        }
        let (swept, heard) =
            late(|deadline| lake.sweep_until("t", &catalog, &lake.clock, false, deadline), expected).await;
        let SweepOutcome::Unfinished(reason) = &swept.outcome else { panic!("{at}: {swept:?}") };
        assert_eq!((swept.receipt.outcome.as_str(), swept.receipt.reason.as_ref()), ("unfinished", Some(reason)));
        let written = lake.state.root().receipt::<firn_maintain::Receipt>("t", &swept.receipt.receipt, None);
        assert_eq!(lake.state.read(&written).await.unwrap().unwrap().value, swept.receipt);
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
        // The next run goes on as if nothing had been.
        lake.store.faults.lock().unwrap().clear();
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), ["orphan.parquet"], "{at}");
    }
}

/// A run that is late while it deletes finishes its batch and leaves the rest to the next.
#[tokio::test]
async fn a_run_that_is_late_leaves_the_rest_to_the_next() {
    let lake = with_orphan().await;
    for number in 0..1_099 {
        lake.put(&format!("{WAREHOUSE}/t/data/lost-{number:04}.parquet"), b"x").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    // The time is used up by the first deletion.
    let sweep = |deadline: Option<Instant>| {
        lake.store.fault("lost-0000.parquet", Fault::SlowDelete(deadline.unwrap()));
        lake.sweep_until("t", &lake.catalog, &lake.clock, false, deadline)
    };
    let (swept, heard) = late(sweep, "out of time while files were deleted").await;
    let deleted = heard.names(Verdict::Deleted).len() as u64;
    assert!(deleted > 0 && deleted < 1_100, "{deleted}");
    let left = swept.receipt.kept.get("out of time: the next sweep goes on");
    assert_eq!(left, Some(&(1_100 - deleted)), "{:?}", swept.receipt.kept);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted).len() as u64, 1_100 - deleted, "{swept:?}");
    lake.check_whole("t").await;
}
