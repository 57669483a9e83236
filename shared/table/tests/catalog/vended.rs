//! Storage credentials that come with a table, against Azurite: who configured no good key reaches the table all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;
use bytes::Bytes;
use chrono::{Duration, Utc};
use firn_config::{Config, ProcessEnvironment};
use firn_model::BlobId;
use firn_storage::{
    AzureAccount, AzureOptions, AzureStore, BlobStore, ConnectionString, Deleted, PutCondition, RoutingStore,
    StorageError,
};
use firn_table::{Catalog, LoadedTable, TableIdent, TableStore};
use firn_test_support::Azurite;
use firn_test_support::azurite::{ACCOUNT, ACCOUNT_KEY};
use futures::TryStreamExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::double::Double;
use crate::rest::{error, table};

const SAS: &str = "adls.sas-token.devstoreaccount1.dfs.core.windows.net";
const TABLE: &str = "/v1/namespaces/db/tables/t";

/// A signature for the account ("Create an account SAS").
fn sas(permissions: &str, seconds: i64) -> String {
    let end = (Utc::now() + Duration::seconds(seconds)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let version = "2021-12-02";
    let text = format!("{ACCOUNT}\n{permissions}\nb\nsco\n\n{end}\n\n\n{version}\n\n");
    let signature = hmac_sha256(&text, &Secret::new(ACCOUNT_KEY)).unwrap();
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("sv={version}&ss=b&srt=sco&sp={permissions}&se={}&sig={}", encode(&end), encode(&signature))
}

fn with(config: Value) -> Value {
    let mut answer = table();
    answer["config"] = config;
    answer
}

/// An account whose key is not that of Azurite.
fn wrong_key() -> AzureAccount {
    let right = Azurite::shared().connection_string();
    let wrong = right.replace(ACCOUNT_KEY, &ACCOUNT_KEY.replace("Eby8", "Abcd"));
    AzureAccount::from(ConnectionString::parse(&wrong).unwrap())
}

async fn container(name: &str) -> BlobId {
    let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
    let id = BlobId::parse(&format!("abfss://{name}@{ACCOUNT}.dfs.core.windows.net/wh/t/a")).unwrap();
    AzureStore::new(&connection, AzureOptions::default()).unwrap().create_container(&id).await.unwrap();
    id
}

async fn load(double: &Double, more: &str) -> (Arc<dyn Catalog>, LoadedTable) {
    let text = format!(
        "storage: {{ account: acct }}\ncatalog: {{ type: rest, uri: \"{}\"{more} }}\n\
         ingestion: {{ datasets: [ {{ name: t, table: db.t }} ] }}\n",
        double.url()
    );
    let config = Config::load(&text, &ProcessEnvironment).unwrap();
    let account = wrong_key();
    let stores = RoutingStore::new().with_connection(&account, AzureOptions::default()).unwrap();
    let catalog =
        firn_table::catalog::open(&config.catalog, TableStore::new(Arc::new(stores)), Some(&account)).await.unwrap();
    let loaded = catalog.load(&TableIdent::new(["db"], "t")).await.unwrap();
    (catalog, loaded)
}

async fn double(answer: impl Fn(usize) -> (u16, Value) + Send + Sync + 'static) -> Double {
    Double::start(move |seen, before| match seen.path.as_str() {
        "/v1/config" => (200, json!({})),
        _ => answer(before.iter().filter(|seen| seen.is("GET", TABLE)).count() + 1),
    })
    .await
}

async fn put(store: &dyn BlobStore, id: &BlobId) -> Result<(), StorageError> {
    store.put(id, Bytes::from_static(b"1"), PutCondition::Any).await.map(|_| ())
}

#[tokio::test]
async fn a_table_is_reached_with_what_comes_with_it() {
    let id = container("vended").await;
    let double = double(|_| (200, with(json!({SAS: sas("racwdl", 3600)})))).await;
    let (_catalog, table) = load(&double, "").await;
    let blobs = table.blobs();
    put(blobs.as_ref(), &id).await.unwrap();
    assert_eq!(blobs.read_all(&id).await.unwrap(), "1");
    assert_eq!(
        table
            .io
            .new_input("abfss://vended@devstoreaccount1.dfs.core.windows.net/wh/t/a")
            .unwrap()
            .read()
            .await
            .unwrap(),
        "1"
    );
    let listed: Vec<_> = blobs.list(&id.with_key("wh/")).try_collect().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(blobs.delete(&id).await.unwrap(), Deleted::Deleted);
    assert!(!format!("{table:?}").contains("sig="), "no secret is printed");
}

#[tokio::test]
async fn what_they_may_not_do_is_left_to_the_configured_identity() {
    let id = container("reading").await;
    let list = json!([{"prefix": "abfss://reading@devstoreaccount1.dfs.core.windows.net/wh", "config": {SAS: sas("rcw", 3600)}}]);
    let double = double(move |_| {
        let mut answer = table();
        answer["storage-credentials"] = list.clone();
        (200, answer)
    })
    .await;
    let (_catalog, table) = load(&double, "").await;
    let blobs = table.blobs();
    put(blobs.as_ref(), &id).await.unwrap();
    let denied =
        |result: Result<(), StorageError>| assert!(matches!(result, Err(StorageError::Denied { .. })), "{result:?}");
    denied(blobs.list(&id.with_key("wh/")).try_collect::<Vec<_>>().await.map(|_| ()));
    denied(blobs.delete(&id).await.map(|_| ()));
    // Outside the prefix nothing was handed out.
    denied(put(blobs.as_ref(), &id.with_key("elsewhere")).await);
}

#[tokio::test]
async fn credentials_are_renewed_ahead_of_their_end() {
    let id = container("renewed").await;
    let double = double(|number| match number {
        1 => (200, with(json!({SAS: sas("rcw", 5)}))),
        _ => (200, with(json!({SAS: sas("rcw", 3600)}))),
    })
    .await;
    let (_catalog, table) = load(&double, "").await;
    put(table.blobs().as_ref(), &id).await.unwrap();
    assert_eq!(double.count("GET", TABLE), 1);
    // In the last fifth of its life.
    tokio::time::sleep(std::time::Duration::from_millis(4_200)).await;
    assert_eq!(table.blobs().read_all(&id).await.unwrap(), "1");
    assert_eq!(table.blobs().read_all(&id).await.unwrap(), "1");
    assert_eq!(double.count("GET", TABLE), 2);
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_are_used_to_their_end() {
    let id = container("lasting").await;
    let down = Arc::new(AtomicU16::new(200));
    let status = Arc::clone(&down);
    let double = double(move |_| match status.load(Ordering::SeqCst) {
        200 => (200, with(json!({SAS: sas("rcw", 40)}))),
        status => (status, error(status, "ServiceUnavailableException")),
    })
    .await;
    let (_catalog, table) = load(&double, "").await;
    down.store(503, Ordering::SeqCst);
    tokio::time::sleep(std::time::Duration::from_millis(32_500)).await;
    put(table.blobs().as_ref(), &id).await.unwrap();
    let asked = double.count("GET", TABLE);
    put(table.blobs().as_ref(), &id).await.unwrap();
    assert_eq!(double.count("GET", TABLE), asked, "not asked again at once");
}

#[tokio::test]
async fn a_signature_that_is_revoked_is_replaced_once() {
    let id = container("revoked").await;
    let double = double(|number| match number {
        1 => (200, with(json!({SAS: format!("{}x", sas("rcw", 3600))}))),
        _ => (200, with(json!({SAS: sas("rcw", 3600)}))),
    })
    .await;
    let (_catalog, table) = load(&double, "").await;
    put(table.blobs().as_ref(), &id).await.unwrap();
    assert_eq!(double.count("GET", TABLE), 2);
    // Who may not do something at all is told so, and the catalog is not asked each time.
    for _ in 0..3 {
        let denied = table.blobs().delete(&id).await;
        assert!(matches!(denied, Err(StorageError::Denied { .. })), "{denied:?}");
    }
    assert_eq!(double.count("GET", TABLE), 2);
}

#[tokio::test]
async fn credentials_that_ended_and_cannot_be_renewed_are_a_reason_to_try_later() {
    let id = container("ended").await;
    let down = Arc::new(AtomicU16::new(200));
    let status = Arc::clone(&down);
    let double = double(move |_| match status.load(Ordering::SeqCst) {
        200 => (200, with(json!({SAS: sas("rcw", -1)}))),
        status => (status, error(status, "ServiceUnavailableException")),
    })
    .await;
    let (_catalog, table) = load(&double, "").await;
    down.store(503, Ordering::SeqCst);
    let error = table.blobs().read_all(&id).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("could not be renewed"), "{error}");
}

#[tokio::test]
async fn short_lived_credentials_are_not_renewed_for_each_request() {
    let id = container("short").await;
    let double = double(|_| (200, with(json!({SAS: sas("rcw", 60)})))).await;
    let (_catalog, table) = load(&double, "").await;
    for _ in 0..3 {
        put(table.blobs().as_ref(), &id).await.unwrap();
    }
    assert_eq!(double.count("GET", TABLE), 1);
}

/// A sweep that lists as one and deletes as another may see what it must not touch.
#[tokio::test]
async fn who_may_list_and_not_delete_sweeps_as_the_configured_identity() {
    let id = container("listing").await;
    let double = double(|_| (200, with(json!({SAS: sas("rcwl", 3600)})))).await;
    let (_catalog, table) = load(&double, "").await;
    put(table.blobs().as_ref(), &id).await.unwrap();
    let listed = table.blobs().list(&id.with_key("wh/")).try_collect::<Vec<_>>().await;
    assert!(matches!(listed, Err(StorageError::Denied { .. })), "{listed:?}");
}
