//! The undo of a sweep, by a store that keeps deleted blobs (the emulator has no such thing).

use firn_maintain::Verdict;
use firn_maintain::restore::{Restored, restore};
use firn_storage::BlobStore;

use crate::lake::{Lake, WAREHOUSE, name};

#[tokio::test]
async fn what_a_receipt_names_comes_back_and_is_left_alone() {
    let lake = Lake::new().await;
    lake.create("t", &[]).await;
    lake.append("t", &["a.parquet"]).await;
    for file in ["lost-1.parquet", "lost-2.parquet", "lost-3.parquet"] {
        lake.put(&format!("{WAREHOUSE}/t/data/{file}"), file.as_bytes()).await;
    }
    lake.hours(48);
    let (swept, heard) = lake.sweep_twice("t").await;
    assert_eq!(heard.names(Verdict::Deleted).len(), 3);
    // One was written anew since, one is no longer kept.
    let url = |file: &str| format!("{WAREHOUSE}/t/data/{file}");
    lake.put(&url("lost-2.parquet"), b"another").await;
    lake.store.deleted.lock().unwrap().remove(&lake.id(&url("lost-3.parquet")));

    let table = lake.load("t").await;
    let mut told = Vec::new();
    let mut tell = |file: firn_maintain::restore::RestoredFile| told.push((name(&file.path), file.restored));
    restore(&lake.state, &table, &swept.receipt, lake.now(), &mut tell).await.unwrap();
    told.sort_by(|one, other| one.0.cmp(&other.0));
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
        assert!(!heard.names(Verdict::Deleted).contains(&"lost-1.parquet".to_owned()), "{heard:?}");
    }
    lake.hours(26);
    let (_, heard) = lake.sweep("t").await;
    assert_eq!(heard.names(Verdict::Deleted), ["lost-1.parquet"]);
}
