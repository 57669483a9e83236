//! The contract over the Blob service of Azurite, and what holds for a storage account only.

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::azure::{AzureOptions, AzureStore, BlockPlan, ConnectionString};
use firn_storage::{BlobStore, PutCondition, StorageError};
use firn_test_support::Azurite;
use futures::{StreamExt, TryStreamExt};

use crate::contract::{Case, contract_tests};

const BLOCK: usize = 64 << 10;

fn options() -> AzureOptions {
    AzureOptions { blocks: BlockPlan { first_bytes: BLOCK, ..BlockPlan::default() }, ..AzureOptions::default() }
}

/// A container of one's own in the shared emulator.
pub(crate) async fn new_container(store: &AzureStore) -> BlobId {
    let name = tempfile::Builder::new().rand_bytes(12).tempfile().unwrap();
    let name = name.path().file_name().unwrap().to_str().unwrap().to_ascii_lowercase();
    let unique: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let container = BlobId { account: store.account().into(), container: format!("c-{unique}"), key: String::new() };
    store.create_container(&container).await.unwrap();
    container
}

pub(crate) fn store(options: AzureOptions) -> AzureStore {
    let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
    AzureStore::new(&connection, options).unwrap()
}

async fn case() -> Case {
    let store = store(options());
    let base = new_container(&store).await.with_key("wh/");
    Case { store: Box::new(store), base, block: BLOCK, _keep: Box::new(()) }
}

contract_tests!(case());

#[tokio::test]
async fn a_missing_container_is_told_apart_from_a_missing_blob() {
    let store = store(options());
    let id = BlobId::parse("abfss://no-such-container@devstoreaccount1.dfs.core.windows.net/k").unwrap();
    let missing = || StorageError::NoContainer { blob: Box::new(id.clone()) };
    assert_eq!(store.read_all(&id).await.unwrap_err(), missing());
    assert_eq!(store.properties(&id).await.unwrap_err(), missing());
    assert_eq!(store.put(&id, Bytes::new(), PutCondition::IfAbsent).await.unwrap_err(), missing());
    assert_eq!(store.delete(&id).await.unwrap_err(), missing());
    assert_eq!(store.list(&id).next().await.unwrap().unwrap_err(), missing());
}

#[tokio::test]
async fn a_wrong_key_is_denied_and_not_shown() {
    let key = "d3JvbmcgIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5";
    let endpoint = Azurite::shared().blob_endpoint();
    let text = format!("AccountName=devstoreaccount1;AccountKey={key};BlobEndpoint={endpoint}");
    let store = AzureStore::new(&ConnectionString::parse(&text).unwrap(), options()).unwrap();
    let id = BlobId::parse("abfss://lake@devstoreaccount1.dfs.core.windows.net/k").unwrap();
    let error = store.read_all(&id).await.unwrap_err();
    let StorageError::Denied { detail, .. } = &error else { panic!("{error:?}") };
    assert!(detail.contains("HTTP 403") && !detail.contains(key), "{detail}");
    assert!(!format!("{store:?}").contains(key));
}

#[tokio::test]
async fn creating_a_container_twice_is_no_error() {
    let store = store(options());
    let container = new_container(&store).await;
    store.create_container(&container).await.unwrap();
}

#[tokio::test]
async fn double_slashes_and_control_characters_stay_in_the_key() {
    let store = store(options());
    let container = new_container(&store).await;
    for key in ["a//b", "/lead", "//", "a/../b/./c", "tab\tx"] {
        let id = container.with_key(key);
        store.put(&id, Bytes::from_static(b"1"), PutCondition::IfAbsent).await.unwrap();
        assert_eq!(store.read_all(&id).await.unwrap(), "1", "{key:?}");
        let listed: Vec<_> = store.list(&id).map_ok(|blob| blob.id).try_collect().await.unwrap();
        assert_eq!(listed, [id], "{key:?}");
    }
}

#[tokio::test]
async fn blocks_grow_before_the_limit_and_the_limit_is_told_at_once() {
    let blocks = BlockPlan { first_bytes: 1 << 10, double_every: 8, max_blocks: 50 };
    let store = store(AzureOptions { blocks, ..AzureOptions::default() });
    let container = new_container(&store).await;
    let data: Vec<u8> = (0..100 << 10).map(|at: u32| (at % 251) as u8).collect();
    let id = container.with_key("grown");
    let mut upload = store.upload(&id).await.unwrap();
    for piece in data.chunks(777) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    upload.complete().await.unwrap();
    assert!(store.read_all(&id).await.unwrap() == data);

    let blocks = BlockPlan { first_bytes: 1 << 10, double_every: 100, max_blocks: 5 };
    let store = self::store(AzureOptions { blocks, ..AzureOptions::default() });
    let id = container.with_key("too-long");
    let mut upload = store.upload(&id).await.unwrap();
    let error = upload.write(Bytes::from(vec![0; 10 << 10])).await.unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error:?}");
    assert_eq!(upload.write(Bytes::from_static(b"x")).await.unwrap_err(), error);
    assert_eq!(upload.complete().await.unwrap_err(), error);
    assert!(!store.exists(&id).await.unwrap());
}

#[tokio::test]
async fn reads_of_several_parts_are_one_version_and_whole() {
    let store = store(AzureOptions::default());
    let container = new_container(&store).await;
    let id = container.with_key("large");
    let data: Vec<u8> = (0..(40 << 20) + 3u32).map(|at| (at % 249) as u8).collect();
    let mut upload = store.upload(&id).await.unwrap();
    for piece in data.chunks(1 << 20) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    upload.complete().await.unwrap();
    assert!(store.read_all(&id).await.unwrap() == data, "more than one part");
    let range = 5..(36 << 20) + 1;
    assert!(store.read(&id, range.clone()).await.unwrap() == data[range.start as usize..range.end as usize]);
}
