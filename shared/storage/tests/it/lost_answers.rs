//! Writes that Azurite did, whose answers never arrived.

use std::time::Duration;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::azure::{AzureOptions, AzureStore, BlockPlan, ConnectionString};
use firn_storage::crc::crc64;
use firn_storage::{BlobStore, Deleted, PutCondition, RetryPolicy};
use firn_test_support::Azurite;
use firn_test_support::azurite::{ACCOUNT, ACCOUNT_KEY};

use crate::azurite;
use crate::stub::{Answer, Request, Stub};

/// A store whose first request that `is_lost` selects is done, but not answered; and a fresh container.
async fn losing(is_lost: fn(&Request) -> bool) -> (Stub, AzureStore, BlobId) {
    let container = azurite::new_container(&azurite::store(AzureOptions::default())).await;
    let port = Azurite::shared().blob_port();
    let lost = std::sync::atomic::AtomicBool::new(false);
    let stub = Stub::start(move |_, request| {
        if is_lost(request) && !lost.swap(true, std::sync::atomic::Ordering::SeqCst) {
            Answer::Lose(port)
        } else {
            Answer::Forward(port)
        }
    })
    .await;
    let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", stub.port);
    let text = format!("AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={endpoint}");
    let options = AzureOptions {
        retry: RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() },
        blocks: BlockPlan { first_bytes: 1000, ..BlockPlan::default() },
        service_version: None,
    };
    let store = AzureStore::new(&ConnectionString::parse(&text).unwrap(), options).unwrap();
    (stub, store, container)
}

fn is_put(request: &Request) -> bool {
    request.method == "PUT"
}

fn is_commit(request: &Request) -> bool {
    request.target.contains("comp=blocklist")
}

#[tokio::test]
async fn a_put_that_was_done_is_no_conflict_with_itself() {
    let (stub, store, container) = losing(is_put).await;
    let id = container.with_key("created");
    let put = store.put(&id, Bytes::from_static(b"mine"), PutCondition::IfAbsent).await.unwrap();
    assert_eq!((put.size, put.crc64), (4, Some(crc64(b"mine"))));
    assert_eq!(stub.requests().iter().filter(|request| is_put(request)).count(), 2);
    assert_eq!(store.properties(&id).await.unwrap().etag, put.etag);
    assert_eq!(store.read_all(&id).await.unwrap(), "mine");
    store.put(&id, Bytes::from_static(b"next"), PutCondition::IfMatch(put.etag)).await.unwrap();
}

#[tokio::test]
async fn a_put_over_a_version_that_was_done_is_no_conflict_with_itself() {
    let (stub, store, container) = losing(|request| request.header("if-match").is_some()).await;
    let id = container.with_key("replaced");
    let first = store.put(&id, Bytes::from_static(b"1"), PutCondition::Any).await.unwrap();
    let second = store.put(&id, Bytes::from_static(b"22"), PutCondition::IfMatch(first.etag)).await.unwrap();
    assert_eq!(second.size, 2);
    assert_eq!(stub.requests().iter().filter(|request| is_put(request)).count(), 3);
    assert_eq!(store.properties(&id).await.unwrap().etag, second.etag);
    assert_eq!(store.read_all(&id).await.unwrap(), "22");
}

#[tokio::test]
async fn an_upload_that_was_committed_is_no_conflict_with_itself() {
    let (stub, store, container) = losing(is_commit).await;
    let id = container.with_key("uploaded");
    let data: Vec<u8> = (0..5321u32).map(|at| (at % 251) as u8).collect();
    let mut upload = store.upload(&id).await.unwrap();
    upload.write(Bytes::from(data.clone())).await.unwrap();
    let written = upload.complete().await.unwrap();
    assert_eq!((written.size, written.crc64), (5321, Some(crc64(&data))));
    assert_eq!(stub.requests().iter().filter(|request| is_commit(request)).count(), 2);
    assert!(store.read_all(&id).await.unwrap() == data);
}

#[tokio::test]
async fn a_block_that_arrived_twice_counts_once() {
    let (stub, store, container) = losing(|request| request.target.contains("blockid=")).await;
    let id = container.with_key("twice");
    let data: Vec<u8> = (0..2500u32).map(|at| (at % 251) as u8).collect();
    let mut upload = store.upload(&id).await.unwrap();
    upload.write(Bytes::from(data.clone())).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(stub.requests().iter().filter(|request| request.target.contains("blockid=")).count(), 4);
    assert!(store.read_all(&id).await.unwrap() == data);
}

#[tokio::test]
async fn a_delete_that_was_done_is_a_delete() {
    let (_stub, store, container) = losing(|request| request.method == "DELETE").await;
    let id = container.with_key("deleted");
    store.put(&id, Bytes::new(), PutCondition::Any).await.unwrap();
    assert_eq!(store.delete(&id).await, Ok(Deleted::Deleted));
    assert_eq!(store.delete(&id).await, Ok(Deleted::Absent));
}
