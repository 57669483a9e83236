//! The contract over a folder, and what holds for a folder only.

use std::fs;

use bytes::Bytes;
use firn_model::BlobId;
use firn_storage::{BlobStore, Deleted, LocalStore, PutCondition, StorageError};
use futures::StreamExt;

use crate::contract::{Case, contract_tests};

async fn case() -> Case {
    let folder = tempfile::tempdir().unwrap();
    let base = BlobId::local(format!("{}/", folder.path().display()));
    Case { store: Box::new(LocalStore::new()), base, block: 1000, _keep: Box::new(folder) }
}

contract_tests!(case());

fn files(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_being_written_is_hidden_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::new();
    let id = BlobId::local(format!("{}/a.parquet", folder.path().display()));
    let mut upload = store.upload(&id).await.unwrap();
    upload.write(Bytes::from_static(b"half")).await.unwrap();
    let [name] = &files(folder.path())[..] else { panic!() };
    assert!(name.starts_with(".firn-") && name.ends_with(".tmp"), "{name}");
    upload.abort().await;
    assert_eq!(files(folder.path()), [""; 0]);

    let mut upload = store.upload(&id).await.unwrap();
    upload.write(Bytes::from_static(b"whole")).await.unwrap();
    upload.complete().await.unwrap();
    let put = store.put(&id, Bytes::from_static(b"refused"), PutCondition::IfAbsent).await;
    assert!(matches!(put, Err(StorageError::AlreadyExists { .. })), "{put:?}");
    assert_eq!(files(folder.path()), ["a.parquet"]);
}

#[cfg(unix)]
#[tokio::test]
async fn files_have_the_mode_that_the_umask_gives() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let id = BlobId::local(format!("{}/stored", folder.path().display()));
    LocalStore::new().put(&id, Bytes::new(), PutCondition::Any).await.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(id.key.as_ref()), mode(&plain));
}

#[tokio::test]
async fn a_folder_is_no_blob() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let id = BlobId::local(format!("{}/sub", folder.path().display()));
    let store = LocalStore::new();
    assert!(matches!(store.properties(&id).await, Err(StorageError::NotFound { .. })));
    assert!(matches!(store.read_all(&id).await, Err(StorageError::NotFound { .. })));
    assert_eq!(store.delete(&id).await, Ok(Deleted::Absent));
    assert!(matches!(
        store.put(&id, Bytes::new(), PutCondition::IfAbsent).await,
        Err(StorageError::AlreadyExists { .. })
    ));
    assert!(folder.path().join("sub").is_dir());
}

#[tokio::test]
async fn ids_that_are_no_absolute_path_are_refused() {
    let store = LocalStore::new();
    for id in [BlobId::local("relative"), BlobId::local(""), BlobId::parse("abfss://c@a.dfs.x/k").unwrap()] {
        assert!(matches!(store.read_all(&id).await, Err(StorageError::Invalid { .. })), "{id}");
        assert!(matches!(store.list(&id).next().await, Some(Err(StorageError::Invalid { .. }))), "{id}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_that_is_not_utf8_is_told_and_passed_over() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "").unwrap();
    fs::write(folder.path().join("good"), "").unwrap();
    let base = BlobId::local(format!("{}/", folder.path().display()));
    let store = LocalStore::new();
    let listed: Vec<_> = store.list(&base).collect().await;
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().any(|item| matches!(item, Err(StorageError::Invalid { .. }))), "{listed:?}");
    assert!(listed.iter().any(|item| matches!(item, Ok(blob) if blob.id.key.ends_with("/good"))), "{listed:?}");
}
