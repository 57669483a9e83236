//! Deleted blobs that come back, and what an account says of keeping them. The emulator has none of it, so a server answers by script.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_model::BlobId;
use firn_storage::azure::{AzureOptions, AzureStore, ConnectionString};
use firn_storage::{BlobStore, RetryPolicy, StorageError};

use crate::stub::{Answer, Request, Stub, error, status};

const PATH: &str = "/acct/lake/wh%2Fa%20b.parquet";

async fn scripted(
    credential: &str,
    script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
) -> (Stub, AzureStore) {
    let stub = Stub::start(script).await;
    let text = format!("AccountName=acct;BlobEndpoint=http://127.0.0.1:{}/acct;{credential}", stub.port);
    let retry = RetryPolicy { tries: 3, first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    let options = AzureOptions { retry, ..AzureOptions::default() };
    let store = AzureStore::new(&ConnectionString::parse(&text).unwrap(), options).unwrap();
    (stub, store)
}

const KEY: &str = "AccountKey=a2V5IGtleSBrZXkga2V5";

fn id() -> BlobId {
    BlobId { account: "acct".into(), container: "lake".into(), key: "wh/a b.parquet".into() }
}

/// Answers of a service in which the blob is there once `back` says so.
fn look(back: &AtomicBool) -> Answer {
    match back.load(Ordering::SeqCst) {
        true => {
            let time = ("last-modified", "Fri, 26 Jun 2015 23:39:12 GMT".to_owned());
            Answer::Full(200, vec![("etag", "\"0x1\"".into()), time, ("content-length", "10".into())], vec![])
        }
        false => error(404, "BlobNotFound"),
    }
}

fn listing(blobs: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://x/\" ContainerName=\"lake\">\
         <Blobs>{blobs}</Blobs><NextMarker /></EnumerationResults>"
    );
    Answer::Full(200, vec![("content-type", "application/xml".into())], body.into_bytes())
}

fn is(request: &Request, method: &str, part: &str) -> bool {
    request.method == method && request.target.contains(part)
}

/// What was asked, shortly.
fn asked(stub: &Stub) -> Vec<String> {
    let short = |request: &Request| {
        let what = [("comp=undelete", "undelete"), ("showonly=deleted", "deleted"), ("include=versions", "versions")];
        let found = what.iter().find(|(part, _)| request.target.contains(part));
        format!("{} {}", request.method, found.map_or("blob", |(_, name)| name))
    };
    stub.requests().iter().map(short).collect()
}

#[tokio::test]
async fn soft_delete_alone_needs_one_call() {
    let back = Arc::new(AtomicBool::new(false));
    let (stub, store) = scripted(KEY, move |_, request| {
        if is(request, "PUT", "comp=undelete") {
            back.store(true, Ordering::SeqCst);
            return status(200);
        }
        look(&back)
    })
    .await;
    store.undelete(&id()).await.unwrap();
    assert_eq!(asked(&stub), ["PUT undelete", "HEAD blob"]);
    assert!(stub.requests()[0].target.starts_with(PATH), "{:?}", stub.requests());
}

/// With versions Undelete Blob answers 200 and there is no current blob: the newest version becomes it.
#[tokio::test]
async fn the_newest_version_becomes_the_current_one() {
    for credential in [KEY, "SharedAccessSignature=sv=1&sig=topsecret"] {
        let back = Arc::new(AtomicBool::new(false));
        let (stub, store) = scripted(credential, move |_, request| {
            if is(request, "PUT", "comp=undelete") {
                return status(200);
            }
            if is(request, "GET", "include=versions") {
                return listing(
                    "<Blob><Name>wh/a b.parquet</Name><VersionId>2026-11-01T10:00:00.0000000Z</VersionId></Blob>\
                     <Blob><Name>wh/a b.parquet</Name><VersionId>2026-11-02T10:00:00.0000000Z</VersionId></Blob>\
                     <Blob><Name>wh/a b.parquet2</Name><VersionId>2026-11-03T10:00:00.0000000Z</VersionId></Blob>",
                );
            }
            if request.method == "PUT" {
                back.store(true, Ordering::SeqCst);
                return Answer::Full(202, vec![("x-ms-copy-status", "success".into())], vec![]);
            }
            look(&back)
        })
        .await;
        store.undelete(&id()).await.unwrap();
        let requests = stub.requests();
        let copy = requests.iter().find(|request| request.header("x-ms-copy-source").is_some()).unwrap();
        let source = copy.header("x-ms-copy-source").unwrap();
        assert!(source.contains(PATH) && source.contains("versionid=2026-11-02T10%3A00%3A00.0000000Z"), "{source}");
        assert_eq!(source.ends_with("&sv=1&sig=topsecret"), credential != KEY, "{source}");
        assert_eq!(copy.header("if-none-match"), Some("*"), "nothing is written over");
        assert_eq!(asked(&stub)[..4], ["PUT undelete", "HEAD blob", "GET versions", "PUT blob"]);
    }
}

/// With a hierarchical namespace a deletion is asked for by its id.
#[tokio::test]
async fn a_path_of_a_hierarchical_account_comes_back_by_its_deletion() {
    let back = Arc::new(AtomicBool::new(false));
    let (stub, store) = scripted(KEY, move |_, request| {
        if is(request, "PUT", "comp=undelete") {
            return match request.header("x-ms-undelete-source") {
                None => error(404, "BlobNotFound"),
                Some(_) => {
                    back.store(true, Ordering::SeqCst);
                    status(200)
                }
            };
        }
        if is(request, "GET", "include=versions") {
            return error(400, "InvalidQueryParameterValue");
        }
        if is(request, "GET", "showonly=deleted") {
            return listing(
                "<Blob><Name>wh/a b.parquet</Name><Deleted>true</Deleted><DeletionId>133445221234567890</DeletionId></Blob>\
                 <Blob><Name>wh/a b.parquet</Name><Deleted>true</Deleted><DeletionId>132445221234567890</DeletionId></Blob>",
            );
        }
        look(&back)
    })
    .await;
    store.undelete(&id()).await.unwrap();
    let requests = stub.requests();
    let sources: Vec<_> = requests.iter().filter_map(|request| request.header("x-ms-undelete-source")).collect();
    assert_eq!(sources, ["wh/a%20b.parquet?deletionid=133445221234567890"]);
    assert_eq!(asked(&stub), ["PUT undelete", "HEAD blob", "GET versions", "GET deleted", "PUT undelete", "HEAD blob"]);
}

/// What nobody keeps is not there, and a call that was taken without effect is not called a success.
#[tokio::test]
async fn what_does_not_come_back_is_said() {
    for (answer, expected) in [(404, "does not exist"), (200, "took the undelete, and the blob is not there")] {
        let (_stub, store) = scripted(KEY, move |_, request| match request.method.as_str() {
            "PUT" if answer == 200 => status(200),
            "GET" => listing(""),
            _ => error(404, "BlobNotFound"),
        })
        .await;
        let failed = store.undelete(&id()).await.unwrap_err();
        assert_eq!(matches!(failed, StorageError::NotFound { .. }), answer == 404, "{failed}");
        assert!(failed.to_string().contains(expected), "{failed}");
    }
    let (stub, store) = scripted(KEY, |_, _| error(403, "AuthorizationPermissionMismatch")).await;
    assert!(matches!(store.undelete(&id()).await.unwrap_err(), StorageError::Denied { .. }));
    let (_, busy) = (stub, scripted(KEY, |_, _| error(503, "ServerBusy")).await.1);
    assert!(busy.undelete(&id()).await.unwrap_err().is_retryable());
}

/// The time of an answer, for who may write nothing.
#[tokio::test]
async fn the_service_tells_its_time() {
    let (_stub, store) = scripted(KEY, |_, request| {
        assert!(is(request, "GET", "restype=container") || is(request, "HEAD", "restype=container"), "{request:?}");
        Answer::Full(200, vec![("date", "Sun, 01 Nov 2026 12:00:05 GMT".into()), ("etag", "\"0x1\"".into())], vec![])
    })
    .await;
    let time = store.time(&id()).await.unwrap().unwrap();
    assert_eq!(time.to_rfc3339(), "2026-11-01T12:00:05+00:00");
}

#[tokio::test]
async fn the_account_says_for_how_many_days_it_keeps_deleted_blobs() {
    let policy = |text: &'static str| {
        move |_: usize, request: &Request| {
            assert!(
                request.target.contains("comp=properties") && request.target.contains("restype=service"),
                "{request:?}"
            );
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>{text}</StorageServiceProperties>"
            );
            Answer::Full(200, vec![("content-type", "application/xml".into())], body.into_bytes())
        }
    };
    for (text, days) in [
        ("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>14</Days></DeleteRetentionPolicy>", Some(14)),
        ("<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>", None),
        ("", None),
    ] {
        let (_stub, store) = scripted(KEY, policy(text)).await;
        assert_eq!(store.soft_delete_days().await.unwrap(), days, "{text}");
        assert_eq!(store.keeps_deleted_days(&id()).await.unwrap(), days);
    }
    // Data roles do not show it.
    let (_stub, store) = scripted(KEY, |_, _| error(403, "AuthorizationPermissionMismatch")).await;
    assert!(matches!(store.soft_delete_days().await.unwrap_err(), StorageError::Denied { .. }));
}
