//! Stores that refuse: nothing goes that is not in writing, and what is refused goes later.

use firn_maintain::sweep::{DeletionOutcome, ReceiptPart, SweepStop};
use firn_maintain::{ExpiryOutcome, SweepOutcome, Verdict};
use firn_storage::{BlobStore, StorageError};
use futures::StreamExt;
use iceberg::spec::FormatVersion;

use crate::double::Fault;
use crate::lake::{Lake, WAREHOUSE};

const FILES: [&str; 3] = ["lost-1.parquet", "lost-2.parquet", "lost-3.parquet"];

/// A table with orphans that are due.
async fn with_due_orphans() -> Lake {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    for file in FILES {
        lake.put(&url(file), b"rows").await;
    }
    lake.hours(48);
    lake.sweep("t").await;
    lake.hours(2);
    lake
}

fn url(file: &str) -> String {
    format!("{WAREHOUSE}/t/data/{file}")
}

async fn all_there(lake: &Lake) -> bool {
    for file in FILES {
        if !lake.exists(&url(file)).await {
            return false;
        }
    }
    true
}

/// A sweep whose state cannot be written ends before anything goes: what the next sweep needs, the part of the receipt that undoes it, or the
/// look at the clock.
#[tokio::test]
async fn nothing_goes_before_it_is_in_writing() {
    for unwritable in ["clock", "/record", "/seen-*", "/000001.json"] {
        let lake = with_due_orphans().await;
        lake.state_blobs.fault(unwritable, Fault::Unwritable);
        for _ in 0..2 {
            let (swept, heard) = lake.sweep("t").await;
            let SweepOutcome::Stopped(stop @ SweepStop::State(_)) = &swept.outcome else {
                panic!("{unwritable}: {swept:?}")
            };
            assert!(stop.passes(), "{stop}");
            assert_eq!(heard.names(Verdict::Deleted), [""; 0]);
            assert_eq!((swept.receipt.outcome.as_str(), swept.receipt.deletions.deleted), ("failed", 0));
            lake.hours(1);
        }
        assert!(all_there(&lake).await, "{unwritable}");
        lake.state_blobs.faults.lock().unwrap().clear();
        let (swept, heard) = lake.sweep("t").await;
        assert_eq!(heard.names(Verdict::Deleted), FILES, "{unwritable}: {swept:?}");
        // What the failed ones wrote in vain is removed once it is old.
        lake.hours(25);
        lake.sweep("t").await;
        let state = lake.state_blobs.inner.list(&lake.state.root().trash("").with_key("sweeps/"));
        let left: Vec<String> = state.map(|blob| blob.unwrap().id.key).collect().await;
        assert_eq!(left.len(), 2, "{unwritable}: the record and what was seen: {left:?}");
    }
}

/// The receipt itself cannot be written: no file has gone when that is noticed.
#[tokio::test]
async fn nothing_goes_without_a_receipt() {
    let lake = with_due_orphans().await;
    lake.state_blobs.fault("receipts/t/*", Fault::Unwritable);
    let (swept, _) = lake.sweep("t").await;
    assert!(matches!(&swept.outcome, SweepOutcome::Stopped(SweepStop::State(_))), "{swept:?}");
    assert!(all_there(&lake).await);
}

/// An expiry asks the clock of the store first.
#[tokio::test]
async fn an_expiry_without_the_stores_time_does_nothing() {
    let lake = with_due_orphans().await;
    lake.append("t", &["b.parquet"]).await;
    lake.hours(48);
    lake.state_blobs.fault("clock", Fault::Unwritable);
    let before = lake.load("t").await.metadata_location;
    let done = lake.expire("t").await;
    assert!(matches!(done.outcome, ExpiryOutcome::Failed(_)), "{done:?}");
    assert_eq!(lake.load("t").await.metadata_location, before);
}

/// A file that may not be deleted ends the sweep, which says so; the receipt has each file by what became of it, and the next sweep goes on.
#[tokio::test]
async fn what_may_not_be_deleted_is_told_and_goes_later() {
    let lake = with_due_orphans().await;
    lake.store.fault("lost-2.parquet", Fault::DeniesDelete);
    let (swept, heard) = lake.sweep("t").await;
    let SweepOutcome::Stopped(SweepStop::Storage(StorageError::Denied { .. })) = &swept.outcome else {
        panic!("{swept:?}")
    };
    assert_eq!(heard.names(Verdict::Deleted), ["lost-1.parquet", "lost-3.parquet"]);
    assert!(heard.reason("lost-2.parquet").starts_with("keep: the store refused to delete it:"), "{heard:?}");
    let deletions = swept.receipt.deletions;
    assert_eq!((deletions.deleted, deletions.refused, swept.receipt.states.deleted), (2, 1, 2));
    let address = lake.state.root().receipt::<ReceiptPart>("t", &swept.receipt.receipt, Some(1));
    let part = lake.state.read(&address).await.unwrap().unwrap().value;
    let outcomes: Vec<DeletionOutcome> = part.deletions.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [DeletionOutcome::Deleted, DeletionOutcome::Refused, DeletionOutcome::Deleted]);

    lake.store.faults.lock().unwrap().clear();
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["lost-2.parquet"]);
}

/// A file that the listing lacks, and that nobody may look at: it may be there or not.
#[tokio::test]
async fn a_file_that_cannot_be_looked_at_stops() {
    let lake = with_due_orphans().await;
    lake.store.fault("/a.parquet", Fault::Hidden);
    let (swept, _) = lake.sweep("t").await;
    assert!(
        matches!(&swept.outcome, SweepOutcome::Stopped(SweepStop::Storage(StorageError::Denied { .. }))),
        "{swept:?}"
    );
    assert!(all_there(&lake).await);
}

/// Very old tables of version 1 name their manifests in the metadata, where this version does not read them: then nobody knows their files.
#[tokio::test]
async fn manifests_in_the_metadata_stop() {
    let lake = Lake::new().await;
    lake.create_at("t", &format!("{WAREHOUSE}/t"), &[], FormatVersion::V1).await;
    lake.append("t", &["a.parquet"]).await;
    for file in FILES {
        lake.put(&url(file), b"rows").await;
    }
    let table = lake.load("t").await;
    let manifest = table.manifests(table.metadata.current_snapshot().unwrap()).await.unwrap().remove(0).manifest_path;
    lake.rewrite_metadata("t", |json| {
        let snapshot = json["snapshots"][0].as_object_mut().unwrap();
        snapshot.remove("manifest-list");
        snapshot.insert("manifests".to_owned(), serde_json::json!([manifest]));
    })
    .await;
    lake.hours(48);
    for _ in 0..3 {
        let (swept, _) = lake.sweep("t").await;
        assert!(matches!(&swept.outcome, SweepOutcome::Stopped(SweepStop::Table(_))), "{swept:?}");
        lake.hours(2);
    }
    assert!(all_there(&lake).await);
}
