//! What the store of an account makes of a service that refuses, is silent or breaks off.

use std::time::Duration;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::azure::{AzureOptions, AzureStore, BlockPlan, ConnectionString};
use firn_storage::crc::{crc64, to_header};
use firn_storage::{BlobStore, Deleted, ListedBlob, PutCondition, RetryPolicy, StorageError};
use futures::StreamExt;

use crate::stub::{Answer, Request, Stub, error, status};

const KEY: &str = "a2V5IGtleSBrZXkga2V5";

fn options() -> AzureOptions {
    AzureOptions {
        retry: RetryPolicy {
            tries: 4,
            first_delay: Duration::from_millis(1),
            try_timeout: Duration::from_secs(5),
            ..RetryPolicy::default()
        },
        blocks: BlockPlan { first_bytes: 1000, ..BlockPlan::default() },
        service_version: None,
    }
}

fn connected(port: u16, credential: &str, options: AzureOptions) -> AzureStore {
    let text = format!("AccountName=acct;BlobEndpoint=http://127.0.0.1:{port}/acct;{credential}");
    AzureStore::new(&ConnectionString::parse(&text).unwrap(), options).unwrap()
}

async fn scripted(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> (Stub, AzureStore) {
    let stub = Stub::start(script).await;
    let store = connected(stub.port, &format!("AccountKey={KEY}"), options());
    (stub, store)
}

fn id() -> BlobId {
    BlobId::parse("abfss://lake@acct.dfs.core.windows.net/wh/a.bin").unwrap()
}

fn blob() -> Box<BlobId> {
    Box::new(id())
}

fn etag() -> Vec<(&'static str, String)> {
    vec![("etag", "\"0x1\"".into()), ("last-modified", "Fri, 26 Jun 2015 23:39:12 GMT".into())]
}

/// The answer to a put that succeeded.
fn created() -> Answer {
    Answer::Full(201, etag(), vec![])
}

/// The answer to a read of bytes 0..10 of a blob of ten.
fn ten_bytes() -> Answer {
    Answer::Full(206, ten_bytes_headers(), b"0123456789".to_vec())
}

fn ten_bytes_headers() -> Vec<(&'static str, String)> {
    [etag(), vec![("content-range", "bytes 0-9/10".into())]].concat()
}

/// The answer to a HEAD of a blob that carries this write id.
fn found(write_id: &str) -> Answer {
    let size = ("content-length", "3".to_owned());
    Answer::Full(200, [etag(), vec![size, ("x-ms-meta-firnwrite", write_id.into())]].concat(), vec![])
}

#[tokio::test]
async fn a_busy_service_is_waited_for() {
    let (stub, store) = scripted(|nth, _| match nth {
        0 => Answer::Full(503, vec![("x-ms-retry-after-ms", "3".into())], vec![]),
        1 => Answer::Full(429, vec![("retry-after", "0".into())], vec![]),
        2 => error(500, "InternalError"),
        _ => ten_bytes(),
    })
    .await;
    assert_eq!(store.read(&id(), 0..10).await.unwrap(), "0123456789");
    assert_eq!(stub.requests().len(), 4);
}

#[tokio::test]
async fn a_service_that_stays_busy_is_given_up_with_its_own_wait() {
    let (stub, store) = scripted(|_, _| error(429, "TooManyRequests")).await;
    let failed = store.properties(&id()).await.unwrap_err();
    let StorageError::Throttled { retry_after: None, detail, .. } = &failed else { panic!("{failed:?}") };
    assert!(detail.starts_with("HTTP 429 TooManyRequests, after 4 tries in "), "{detail}");
    assert!(failed.is_retryable());
    assert_eq!(stub.requests().len(), 4);

    let (stub, store) = scripted(|_, _| Answer::Full(503, vec![("retry-after", "72000".into())], vec![])).await;
    let failed = store.put(&id(), Bytes::new(), PutCondition::IfAbsent).await.unwrap_err();
    let asked = Some(Duration::from_secs(72_000));
    assert!(matches!(&failed, StorageError::Throttled { retry_after, .. } if *retry_after == asked), "{failed:?}");
    assert_eq!(stub.requests().len(), 1, "nobody sleeps for twenty hours");
}

#[tokio::test]
async fn a_refused_connection_is_told_clearly() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let retry = RetryPolicy { unreachable_limit: Duration::from_millis(20), ..options().retry };
    for (credential, secret) in
        [(format!("AccountKey={KEY}"), KEY), ("SharedAccessSignature=sv=1&sig=topsecret".into(), "topsecret")]
    {
        let store = connected(port, &credential, AzureOptions { retry: retry.clone(), ..options() });
        let failed = store.read_all(&id()).await.unwrap_err();
        let StorageError::Unavailable { detail, .. } = &failed else { panic!("{failed:?}") };
        assert!(detail.starts_with(&format!("cannot connect to http://127.0.0.1:{port}/acct: ")), "{detail}");
        assert!(detail.contains("onnection refused"), "{detail}");
        assert!(!format!("{failed} {failed:?}").contains(secret), "{failed:?}");
        let put = store.put(&id(), Bytes::new(), PutCondition::IfAbsent).await.unwrap_err();
        assert!(matches!(put, StorageError::Unavailable { .. }), "nothing was sent, so nothing is unknown: {put:?}");
    }
}

#[tokio::test]
async fn a_silent_service_is_asked_again() {
    let stub = Stub::start(|nth, _| if nth == 0 { Answer::Hang } else { ten_bytes() }).await;
    let retry = RetryPolicy { try_timeout: Duration::from_millis(300), ..options().retry };
    let store = connected(stub.port, &format!("AccountKey={KEY}"), AzureOptions { retry, ..options() });
    assert_eq!(store.read(&id(), 0..10).await.unwrap(), "0123456789");
    assert_eq!(stub.requests().len(), 2);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_read_again_and_never_given_short() {
    let half = || Answer::Short(206, ten_bytes_headers(), b"0123".to_vec(), 10);
    let (stub, store) = scripted(move |nth, _| if nth == 0 { half() } else { ten_bytes() }).await;
    assert_eq!(store.read(&id(), 0..10).await.unwrap(), "0123456789");
    assert_eq!(stub.requests().len(), 2);

    let (stub, store) = scripted(move |_, _| half()).await;
    for result in [store.read(&id(), 0..10).await, store.read_all(&id()).await] {
        assert!(matches!(&result, Err(StorageError::Unavailable { .. })), "{result:?}");
    }
    assert_eq!(stub.requests().len(), 8);

    // A length that is true of the answer, but not of what was asked for.
    let less = || Answer::Full(206, ten_bytes_headers(), b"0123".to_vec());
    let (_stub, store) = scripted(move |_, _| less()).await;
    let result = store.read(&id(), 0..10).await;
    assert!(matches!(&result, Err(StorageError::Unavailable { .. })), "{result:?}");
}

fn page(blobs: &str, marker: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"lake\"><Blobs>{blobs}</Blobs>\
         <NextMarker>{marker}</NextMarker></EnumerationResults>"
    );
    Answer::Full(200, vec![("content-type", "application/xml".into())], body.into_bytes())
}

fn listed(name: &str, metadata: &str) -> String {
    format!(
        "<Blob><Name>{name}</Name><Properties><Last-Modified>Fri, 26 Jun 2015 23:39:12 GMT</Last-Modified><Etag>0x1</Etag>\
         <Content-Length>7</Content-Length></Properties><Metadata>{metadata}</Metadata></Blob>"
    )
}

#[tokio::test]
async fn a_listing_goes_on_after_an_empty_page_and_a_failed_one() {
    let (stub, store) = scripted(|nth, _| match nth {
        0 => page("", "one"),
        1 => error(500, "InternalError"),
        2 => page(&(listed("wh/a", "") + &listed("wh/folder", "<hdi_isfolder>true</hdi_isfolder>")), "two two"),
        3 => page("", "three"),
        _ => page(&listed("wh/b &amp; c", "<firnwrite>x</firnwrite>"), ""),
    })
    .await;
    let prefix = id().with_key("wh/");
    let blobs: Vec<_> = store.list(&prefix).collect().await;
    let expected = ["wh/a", "wh/b & c"].map(|key| {
        let last_modified = chrono::DateTime::parse_from_rfc2822("Fri, 26 Jun 2015 23:39:12 GMT").unwrap().to_utc();
        Ok(ListedBlob { id: id().with_key(key), size: 7, etag: "0x1".into(), last_modified })
    });
    assert_eq!(blobs, expected);
    let requests = stub.requests();
    assert_eq!(requests.len(), 5);
    assert!(requests.iter().all(|request| request.target.contains("prefix=wh%2F")), "{requests:?}");
    assert!(!requests[0].target.contains("marker="));
    for (nth, marker) in [(1, "one"), (2, "one"), (3, "two+two"), (4, "three")] {
        let target = requests[nth].target.replace("%20", "+");
        assert!(target.contains(&format!("marker={marker}")), "{target}");
    }
}

#[tokio::test]
async fn a_listing_that_fails_says_so_and_ends() {
    let (_stub, store) =
        scripted(|nth, _| if nth == 0 { page(&listed("wh/a", ""), "one") } else { error(403, "AuthorizationFailure") })
            .await;
    let blobs: Vec<_> = store.list(&id().with_key("wh/")).collect().await;
    assert_eq!(blobs.len(), 2);
    assert!(blobs[0].is_ok() && matches!(blobs[1], Err(StorageError::Denied { .. })), "{blobs:?}");
}

#[tokio::test]
async fn every_body_goes_out_with_its_checksum() {
    let (stub, store) = scripted(|_, _| created()).await;
    store.put(&id(), Bytes::from_static(b"Hello Azure!"), PutCondition::Any).await.unwrap();
    let mut upload = store.upload(&id()).await.unwrap();
    upload.write(Bytes::from(vec![7; 2500])).await.unwrap();
    upload.complete().await.unwrap();
    let requests = stub.requests();
    assert_eq!(requests[0].header("x-ms-content-crc64"), Some("DtjZpL9/o8c="));
    assert_eq!(requests.iter().map(|request| request.body.len()).collect::<Vec<_>>()[..4], [12, 1000, 1000, 500]);
    assert_eq!(requests.len(), 5);
    for request in &requests {
        assert_eq!(request.header("x-ms-content-crc64"), Some(to_header(crc64(&request.body)).as_str()), "{request:?}");
        assert!(request.header("authorization").unwrap().starts_with("SharedKey acct:"));
    }
    assert!(requests[4].target.ends_with("?comp=blocklist"), "{}", requests[4].target);
    assert_eq!(requests[4].header("if-none-match"), Some("*"));
}

#[tokio::test]
async fn a_body_that_arrived_damaged_is_sent_again() {
    let (stub, store) = scripted(|nth, _| if nth == 0 { error(400, "Crc64Mismatch") } else { created() }).await;
    store.put(&id(), Bytes::from_static(b"abc"), PutCondition::IfAbsent).await.unwrap();
    assert_eq!(stub.requests().len(), 2);
}

#[tokio::test]
async fn a_shared_access_signature_goes_into_the_query() {
    let stub = Stub::start(|_, _| found("x")).await;
    let store = connected(stub.port, "SharedAccessSignature=?sv=2025-11-05&sig=a%2Bb%3D", options());
    store.properties(&id()).await.unwrap();
    let request = &stub.requests()[0];
    assert_eq!(request.target, "/acct/lake/wh%2Fa.bin?sv=2025-11-05&sig=a%2Bb%3D");
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn the_emulator_is_asked_in_a_version_it_knows() {
    let stub = Stub::start(|_, _| found("x")).await;
    let version = async |account: &str, options: AzureOptions| {
        let endpoint = format!("http://127.0.0.1:{}/{account}", stub.port);
        let text = format!("AccountName={account};AccountKey={KEY};BlobEndpoint={endpoint}");
        let store = AzureStore::new(&ConnectionString::parse(&text).unwrap(), options).unwrap();
        let id = BlobId::parse(&format!("{endpoint}/lake/a")).unwrap();
        store.properties(&id).await.unwrap();
        stub.requests().last().unwrap().header("x-ms-version").unwrap().to_owned()
    };
    assert_eq!(version("devstoreaccount1", options()).await, "2025-11-05");
    assert_ne!(version("acct", options()).await, "2025-11-05");
    let chosen = AzureOptions { service_version: Some("2024-08-04".into()), ..options() };
    assert_eq!(version("devstoreaccount1", chosen).await, "2024-08-04");
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_looked_up() {
    let put = async |second: Answer, there: &'static str, condition| {
        let (_stub, store) = scripted(move |nth, request| match request.method.as_str() {
            "HEAD" => found(there),
            _ if nth == 0 => Answer::Drop,
            _ => second.clone(),
        })
        .await;
        store.put(&id(), Bytes::from_static(b"abc"), condition).await
    };
    let if_match = || PutCondition::IfMatch("0x0".into());
    // The blob that is there is another's.
    let exists = put(error(409, "BlobAlreadyExists"), "other", PutCondition::IfAbsent).await;
    assert_eq!(exists, Err(StorageError::AlreadyExists { blob: blob() }));
    let exists = put(error(412, "ConditionNotMet"), "other", PutCondition::IfAbsent).await;
    assert_eq!(exists, Err(StorageError::AlreadyExists { blob: blob() }));
    let changed = put(error(412, "ConditionNotMet"), "other", if_match()).await;
    assert!(matches!(changed, Err(StorageError::Unknown { .. })), "ours may have come before the other's: {changed:?}");
    for condition in [PutCondition::Any, PutCondition::IfAbsent, if_match()] {
        let lost = put(Answer::Drop, "other", condition.clone()).await.unwrap_err();
        assert!(matches!(lost, StorageError::Unknown { .. }) && !lost.is_retryable(), "{lost:?}");
        assert!(put(created(), "other", condition).await.is_ok());
    }
}

#[tokio::test]
async fn a_conflict_at_the_first_try_is_one_without_a_look() {
    let (stub, store) = scripted(|_, _| error(412, "ConditionNotMet")).await;
    let changed = store.put(&id(), Bytes::new(), PutCondition::IfMatch("0x0".into())).await;
    assert!(matches!(changed, Err(StorageError::Precondition { .. })), "{changed:?}");
    let requests = stub.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("if-match"), Some("\"0x0\""));
}

#[tokio::test]
async fn a_blob_that_vanished_after_a_lost_delete_was_deleted() {
    let (_stub, store) = scripted(|nth, _| if nth == 0 { Answer::Drop } else { error(404, "BlobNotFound") }).await;
    assert_eq!(store.delete(&id()).await, Ok(Deleted::Deleted));
    let (_stub, store) = scripted(|nth, _| if nth == 0 { status(503) } else { error(404, "BlobNotFound") }).await;
    assert_eq!(store.delete(&id()).await, Ok(Deleted::Absent), "a refused try did not delete it");
}

#[tokio::test]
async fn a_block_that_cannot_be_sent_ends_the_upload() {
    let (stub, store) = scripted(|_, _| error(503, "ServerBusy")).await;
    let mut upload = store.upload(&id()).await.unwrap();
    let mut failed = None;
    for _ in 0..5 {
        failed = failed.or(upload.write(Bytes::from(vec![1; 1000])).await.err());
    }
    let failed = failed.expect("the block before the last one is waited for");
    assert!(matches!(failed, StorageError::Throttled { .. }), "{failed:?}");
    assert_eq!(upload.complete().await.unwrap_err(), failed);
    assert!(stub.requests().iter().all(|request| !request.target.contains("blocklist")));
}
