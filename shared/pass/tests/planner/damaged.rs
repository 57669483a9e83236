//! State that somebody damaged: it is begun anew, and costs one tick at most.

use firn_model::BlobId;
use firn_state::{EXPIRE_TICKS, StateError};
use firn_storage::{PutCondition, StorageError};

use crate::lake::*;

const NOON: &str = "2026-11-01T12:00:00Z";

async fn with_backlog() -> Lake {
    let lake = Lake::new(NOON, "backlogFileThreshold: 2", &["spans"]).await;
    lake.create("spans", &[]).await;
    lake.append_small("spans", "a", 3).await;
    lake
}

async fn put(lake: &Lake, id: &BlobId, text: &'static str) {
    lake.host.state.blobs().put(id, text.into(), PutCondition::Any).await.unwrap();
}

#[tokio::test]
async fn a_damaged_record_is_written_anew_with_its_message() {
    let lake = with_backlog().await;
    lake.tick_after(0).await;
    let lost = lake.drain().await;
    let (listed, before) = lake.record().await;
    for text in ["", "{", "[1]", "{\"version\":1,\"gen\":7}"] {
        put(&lake, listed.address.blob(), text).await;
        let counts = lake.tick_after(15).await.enqueued.counts;
        assert_eq!((counts.sent, counts.running), (1, 0), "{text:?}");
        let messages = lake.drain().await;
        let (_, record) = lake.record().await;
        assert_eq!((&messages[0].partition, messages[0].generation), (&lost[0].partition, Some(record.generation)));
        assert_eq!(
            (record.dataset, &record.inputs_hash, record.attempts),
            (before.dataset.clone(), &before.inputs_hash, 0)
        );
    }
}

#[tokio::test]
async fn a_damaged_record_that_a_worker_holds_stays() {
    let lake = with_backlog().await;
    lake.tick_after(0).await;
    lake.drain().await;
    let (listed, _) = lake.record().await;
    put(&lake, listed.address.blob(), "{").await;
    let lease = lake.host.state.lease();
    let held = lease.acquire(listed.address.blob(), std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(lake.tick_after(0).await.enqueued.counts.sent, 0);
    assert!(lake.drain().await.is_empty());
    let read = lake.host.state.read(&listed.address).await;
    assert!(matches!(read, Err(StateError::Unreadable { .. })), "{read:?}");
    lease.release(listed.address.blob(), &held).await.unwrap();
    assert_eq!(lake.tick_after(15).await.enqueued.counts.sent, 1);
}

#[tokio::test]
async fn a_damaged_record_of_ticks_is_a_first_tick() {
    let lake = with_backlog().await;
    lake.tick_after(0).await;
    lake.drain().await;
    let root = lake.host.state.root();
    put(&lake, root.tick("compact").blob(), "damaged").await;
    assert!(lake.tick_after(1).await.due, "nobody knows when the last one was");
    assert_eq!(lake.tick_record().await.last_tick, Some(lake.host.clock.now()));

    let expire = root.maintenance_tick(EXPIRE_TICKS);
    put(&lake, expire.blob(), "damaged").await;
    assert!(firn_pass::expire_tick(&lake.host, "invocation").await.unwrap().due);
    assert_eq!(lake.host.state.read(&expire).await.unwrap().unwrap().value.last_tick, Some(lake.host.clock.now()));

    // A newer Firn's is not damaged: it is left to that one.
    put(&lake, root.tick("compact").blob(), "{\"version\":99}").await;
    let error = firn_pass::tick(&lake.host, "invocation").await.unwrap_err();
    assert!(error.to_string().contains("deploy the newer Firn"), "{error}");
    let read = lake.host.state.blobs().properties(root.tick("compact").blob()).await;
    assert!(!matches!(read, Err(StorageError::NotFound { .. })));
}
