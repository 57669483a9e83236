//! The undo of a sweep, by a store that keeps deleted blobs (the emulator has no such thing).

use std::time::{Duration, Instant};

use firn_maintain::restore::{Restored, RestoredFile, restore};
use firn_maintain::sweep::{DeletionOutcome, ReceiptPart, Undo};
use firn_maintain::{Receipt, SweepOutcome, TableSweep, Verdict};
use firn_storage::BlobStore;

use crate::double::{Fault, Kept};
use crate::lake::{Lake, WAREHOUSE, name};

async fn bring_back(lake: &Lake, swept: &TableSweep) -> Vec<(String, Restored)> {
    let table = lake.load("t").await;
    let mut told = Vec::new();
    let mut tell = |file: RestoredFile| told.push((name(&file.path), file.restored));
    restore(&lake.state, &table, &swept.receipt, lake.now(), &mut tell).await.unwrap();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

async fn with_orphans(files: &[&str]) -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    for file in files {
        lake.put(&format!("{WAREHOUSE}/t/data/{file}"), file.as_bytes()).await;
    }
    lake.hours(48);
    lake
}

#[tokio::test]
async fn what_a_receipt_names_comes_back_and_is_left_alone() {
    let lake = with_orphans(&["lost-1.parquet", "lost-2.parquet", "lost-3.parquet"]).await;
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted).len(), 3);
    // One was written anew since, one is no longer kept.
    let url = |file: &str| format!("{WAREHOUSE}/t/data/{file}");
    lake.put(&url("lost-2.parquet"), b"another").await;
    lake.store.deleted.lock().unwrap().remove(&lake.id(&url("lost-3.parquet")));

    let told = bring_back(&lake, &swept).await;
    let expected = [
        ("lost-1.parquet".to_owned(), Restored::Back),
        ("lost-2.parquet".to_owned(), Restored::There),
        ("lost-3.parquet".to_owned(), Restored::Gone),
    ];
    assert_eq!(told, expected);
    assert_eq!(lake.store.read_all(&lake.id(&url("lost-1.parquet"))).await.unwrap(), "lost-1.parquet");
    assert_eq!(lake.store.read_all(&lake.id(&url("lost-2.parquet"))).await.unwrap(), "another");

    // Seven days nobody takes it away again, although it is nobody's.
    for _ in 0..6 {
        lake.hours(26);
        let (_, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    }
    lake.hours(26);
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["lost-1.parquet", "lost-2.parquet"]);
}

/// An account may take the call and restore nothing: that is not called restored.
#[tokio::test]
async fn what_is_not_there_afterwards_is_not_back() {
    let lake = with_orphans(&["lost-1.parquet", "lost-2.parquet"]).await;
    let (swept, _) = lake.sweep_twice("t").await;
    lake.store.fault("lost-1.parquet", Fault::StaysDeleted);
    let expected = [("lost-1.parquet".to_owned(), Restored::NotBack), ("lost-2.parquet".to_owned(), Restored::Back)];
    assert_eq!(bring_back(&lake, &swept).await, expected);
}

/// A deletion whose answer was lost is called refused, and may have happened.
#[tokio::test]
async fn a_deletion_whose_answer_was_lost_is_brought_back_too() {
    let lake = with_orphans(&["lost-1.parquet", "lost-2.parquet"]).await;
    lake.sweep("t").await;
    lake.hours(2);
    lake.store.fault("lost-1.parquet", Fault::LosesDelete);
    lake.store.fault("lost-2.parquet", Fault::Leased);
    let (swept, heard) = lake.sweep("t").await;
    assert!(matches!(&swept.outcome, SweepOutcome::Stopped(stop) if stop.passes()), "{swept:?}");
    assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
    assert_eq!((swept.receipt.deletions.deleted, swept.receipt.deletions.refused), (0, 2));
    assert!(!lake.exists(&format!("{WAREHOUSE}/t/data/lost-1.parquet")).await, "it happened");
    let expected = [("lost-1.parquet".to_owned(), Restored::Back), ("lost-2.parquet".to_owned(), Restored::There)];
    assert_eq!(bring_back(&lake, &swept).await, expected);
}

/// K6: a sweep that is killed while it deletes leaves a receipt that names each file that it may have taken; the next sweep goes on.
#[tokio::test]
async fn what_a_killed_sweep_deleted_is_in_writing_and_comes_back() {
    let files = ["lost-1.parquet", "lost-2.parquet", "lost-3.parquet"];
    let lake = with_orphans(&files).await;
    lake.sweep("t").await;
    lake.hours(2);
    lake.store.fault("lost-2.parquet", Fault::HangsAfterDelete);
    lake.store.fault("lost-3.parquet", Fault::SlowDelete(Instant::now() + Duration::from_secs(3_600)));
    tokio::select! {
        swept = lake.sweep("t") => panic!("it hangs: {swept:?}"),
        () = lake.store.hangs.notified() => {}
    }
    lake.store.faults.lock().unwrap().clear();
    let url = |file: &str| format!("{WAREHOUSE}/t/data/{file}");
    assert!(!lake.exists(&url("lost-2.parquet")).await && lake.exists(&url("lost-3.parquet")).await);

    let mut running = Vec::new();
    for one in lake.state.list_receipts::<Receipt>(Some("t")).await.unwrap() {
        // Parts have a number for a name.
        if one.address.name() != "000001.json" {
            let receipt = lake.state.read_listed(&one).await.unwrap().unwrap().value;
            running.extend((receipt.outcome == "running").then_some(receipt));
        }
    }
    let [receipt] = &running[..] else { panic!("{running:?}") };
    assert_eq!((receipt.parts, &receipt.ended_at), (1, &None));
    let address = lake.state.root().receipt::<ReceiptPart>("t", &receipt.receipt, Some(1));
    let part = lake.state.read(&address).await.unwrap().unwrap().value;
    let mut planned: Vec<(String, DeletionOutcome)> =
        part.deletions.iter().map(|one| (name(&one.path), one.outcome)).collect();
    planned.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(planned, files.map(|file| (file.to_owned(), DeletionOutcome::Planned)));

    let swept = TableSweep { outcome: SweepOutcome::Done, receipt: receipt.clone() };
    let told = bring_back(&lake, &swept).await;
    assert_eq!(
        told[1..],
        [("lost-2.parquet".to_owned(), Restored::Back), ("lost-3.parquet".to_owned(), Restored::There)]
    );
    for file in files {
        assert!(lake.exists(&url(file)).await, "{file}");
    }
    lake.hours(2);
    let (swept, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), [""; 0], "{swept:?}");
}

/// The receipt says what undoes it, and a person hears when receipts go before that.
#[tokio::test]
async fn the_receipt_says_whether_and_for_how_long_it_can_be_undone() {
    for (kept, undo) in
        [(Kept::Days(30), Undo::SoftDelete { days: 30 }), (Kept::Nothing, Undo::None), (Kept::NotShown, Undo::Unknown)]
    {
        let lake = Lake::with_settings("receiptDays: 29").await;
        lake.create("t", &[]).await;
        lake.append("t", &["a.parquet"]).await;
        *lake.store.kept.lock().unwrap() = kept;
        let (swept, _) = lake.sweep("t").await;
        assert_eq!(swept.receipt.undo, undo);
        let warned = swept.receipt.warnings.iter().any(|warning| {
            warning.starts_with("receiptDays 29 is less than the 30 days for which deleted files are kept")
        });
        assert_eq!(warned, kept == Kept::Days(30), "{:?}", swept.receipt.warnings);
    }
}
