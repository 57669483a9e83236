//! What a person restored is left alone for seven days, however often it is swept and whatever else is known of it.

use firn_maintain::restore::{Restored, restore};
use firn_maintain::{TableSweep, Verdict};
use firn_state::AbandonedOutputs;
use firn_table::sidecar_uuid;

use crate::double::Fault;
use crate::lake::{Lake, WAREHOUSE, name};

fn url(file: &str) -> String {
    format!("{WAREHOUSE}/t/data/{file}")
}

async fn with_orphans(files: &[&str]) -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    for file in files {
        lake.put(&url(file), b"rows").await;
    }
    lake.hours(48);
    lake
}

async fn bring_back(lake: &Lake, swept: &TableSweep) -> Vec<(String, Restored)> {
    let table = lake.load("t").await;
    let mut told = Vec::new();
    let mut tell = |file: firn_maintain::restore::RestoredFile| told.push((name(&file.path), file.restored));
    restore(&lake.state, &table, &swept.receipt, lake.now(), &mut tell).await.unwrap();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

/// Sweeps every hour until the file goes; how many hours that took.
async fn hours_until_it_goes(lake: &Lake, file: &str) -> u64 {
    for hour in 1..24 * 20 {
        lake.hours(1);
        let (_, heard) = lake.sweep("t").await;
        if heard.names(Verdict::Deleted).contains(&file.to_owned()) {
            return hour;
        }
    }
    panic!("{file} never goes");
}

/// The emulated store writes a restored file anew, so it is too young for a day: that must not lose the seven.
#[tokio::test]
async fn hourly_sweeps_leave_a_restored_file_alone_for_seven_days() {
    let lake = with_orphans(&["lost.parquet"]).await;
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["lost.parquet"]);
    assert_eq!(bring_back(&lake, &swept).await, [("lost.parquet".to_owned(), Restored::Back)]);
    // Seven days, and the grace of an hour.
    assert_eq!(hours_until_it_goes(&lake, "lost.parquet").await, 7 * 24 + 1);
}

/// A restore that was killed, or that a sweep overtakes: what is back already is left alone, too.
#[tokio::test]
async fn a_sweep_beside_a_restore_takes_nothing_away_again() {
    let lake = with_orphans(&["lost-1.parquet", "lost-2.parquet"]).await;
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted).len(), 2);
    // As on an account, where a file that comes back is as old as it was.
    lake.store.fault("lost-1.parquet", Fault::Time(lake.now() - chrono::TimeDelta::hours(48)));
    lake.store.fault("lost-2.parquet", Fault::HangsUndelete);
    tokio::select! {
        _ = bring_back(&lake, &swept) => panic!("it hangs at the second file"),
        () = lake.store.hangs.notified() => {}
    }
    assert!(lake.exists(&url("lost-1.parquet")).await);
    for _ in 0..3 {
        let (swept, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), [""; 0], "{swept:?}");
        lake.hours(2);
    }
    lake.store.fault("lost-2.parquet", Fault::Gone);
    let told = bring_back(&lake, &swept).await;
    assert_eq!(told, [("lost-1.parquet".to_owned(), Restored::There), ("lost-2.parquet".to_owned(), Restored::Back)]);
}

/// A file that a merge is known to have left behind counts as seen since then: not when it was restored.
#[tokio::test]
async fn an_abandoned_file_that_was_restored_is_left_alone_as_long() {
    let lake = with_orphans(&["left.parquet", "other.parquet"]).await;
    lake.sweep("t").await;
    let table = lake.load("t").await;
    // It names a file that stays listed, too, so the list is not forgotten.
    let paths = vec![url("left.parquet"), url("other.parquet")];
    let listed = AbandonedOutputs { table: "db.t".into(), paths, reason: "superseded".into(), at: lake.now() };
    lake.state.create(&lake.state.root().abandoned(&table.uuid()), &listed).await.unwrap();
    lake.hours(2);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["left.parquet", "other.parquet"]);
    bring_back(&lake, &swept).await;
    assert_eq!(lake.state.list_abandoned(&table.uuid()).await.unwrap().len(), 1, "still known");
    // Seven days; it was seen long before them, so the grace has passed by then.
    assert_eq!(hours_until_it_goes(&lake, "left.parquet").await, 7 * 24);
}

/// The grace that begins anew does not end the seven days either.
#[tokio::test]
async fn snapshots_that_come_and_go_do_not_end_it() {
    let lake = with_orphans(&["lost.parquet"]).await;
    let (swept, _) = lake.sweep_twice("t").await;
    bring_back(&lake, &swept).await;
    let mut hours = 0;
    for day in 0..6 {
        lake.append("t", &[&format!("d{day}.parquet")]).await;
        lake.hours(26);
        hours += 26;
        lake.append("t", &[&format!("e{day}.parquet")]).await;
        lake.expire("t").await;
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), [""; 0], "after {hours} hours");
    }
}

/// A file that was there again all the same is left alone too, and so are the sidecars that came back.
#[tokio::test]
async fn what_is_there_already_and_sidecars_are_left_alone_as_well() {
    let lake = with_orphans(&["lost.parquet"]).await;
    let uuid = sidecar_uuid(&lake.id(&url("lost.parquet")));
    let sidecar = format!("{WAREHOUSE}/t/_firn/{uuid}.ndv");
    lake.put(&sidecar, b"x").await;
    lake.hours(25);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted).len(), 2);
    lake.put(&url("lost.parquet"), b"another").await;
    let told = bring_back(&lake, &swept).await;
    assert_eq!(told, [(name(&sidecar), Restored::Back), ("lost.parquet".to_owned(), Restored::There)]);
    for _ in 0..6 {
        lake.hours(26);
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    }
    lake.hours(26);
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [name(&sidecar), "lost.parquet".to_owned()]);
}
