//! Whether the roles are enough: a blob of one's own is written, listed, read and deleted.

use std::fmt;
use std::time::SystemTime;

use firn_model::BlobId;
use firn_storage::{BlobStore, Deleted, PutCondition, StorageError};
use futures::TryStreamExt;
use uuid::Uuid;

use super::finding::Finding;
use super::way::Way;

/// What the store said of the probe.
#[derive(Debug, Clone)]
pub(super) struct Probed {
    /// The store's time of the write.
    pub(super) store: SystemTime,
    /// Our time before and after the write.
    pub(super) before: SystemTime,
    pub(super) after: SystemTime,
}

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Write,
    List,
    Read,
    Delete,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Step::Write => "write",
            Step::List => "list",
            Step::Read => "read",
            Step::Delete => "delete",
        }
    }
}

/// A step and what the store said to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) step: Step,
    pub(super) error: StorageError,
}

/// Writes, lists, reads and deletes `<folder><uuid>`. What was written is deleted whatever fails between.
pub(super) async fn probe(store: &dyn BlobStore, folder: &BlobId) -> Result<Probed, Failed> {
    let failed = |step| move |error| Failed { step, error };
    let id = folder.with_key(format!("{}firn-doctor-{}", folder.key, Uuid::new_v4()));
    let before = SystemTime::now();
    let content = id.key.clone().into_bytes();
    store.put(&id, content.clone().into(), PutCondition::IfAbsent).await.map_err(failed(Step::Write))?;
    let after = SystemTime::now();
    let seen = async {
        let listed: Vec<_> = store.list(&id).try_collect().await.map_err(failed(Step::List))?;
        if !listed.iter().any(|blob| blob.id == id) {
            return Err(Failed { step: Step::List, error: StorageError::NotFound { blob: Box::new(id.clone()) } });
        }
        let read = store.read_all(&id).await.map_err(failed(Step::Read))?;
        if read[..] != content[..] {
            let detail = "the bytes read are not those that were written".to_owned();
            return Err(Failed { step: Step::Read, error: StorageError::Other { blob: Box::new(id.clone()), detail } });
        }
        store.properties(&id).await.map_err(failed(Step::Read))
    }
    .await;
    let deleted = store.delete(&id).await.map_err(failed(Step::Delete));
    let properties = seen?;
    match deleted? {
        Deleted::Deleted => Ok(Probed { store: properties.last_modified.into(), before, after }),
        Deleted::Absent => Err(Failed { step: Step::Delete, error: StorageError::NotFound { blob: Box::new(id) } }),
    }
}

/// The role that an identity needs.
const ROLE: &str = "Storage Blob Data Contributor";

/// Access to the container of the state.
pub(super) struct StateAccess {
    pub(super) container: String,
    /// On an emulator the container comes with the first run.
    pub(super) emulator: bool,
    pub(super) way: Way,
    pub(super) probed: Result<(), Failed>,
}

impl StateAccess {
    fn comes_later(&self) -> bool {
        self.emulator && matches!(&self.probed, Err(Failed { error: StorageError::NoContainer { .. }, .. }))
    }
}

/// Access to the files of a dataset.
pub(super) struct DataAccess {
    pub(super) dataset: String,
    pub(super) way: Way,
    pub(super) probed: Result<(), Failed>,
}

impl fmt::Display for StateAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = &self.container;
        match &self.probed {
            Ok(()) => write!(f, "container {container}: wrote, listed, read and deleted a blob"),
            Err(_) if self.comes_later() => {
                write!(
                    f,
                    "container {container} is not there yet: the first run of Firn that needs it creates it on the emulator"
                )
            }
            Err(Failed { error: StorageError::NoContainer { .. }, .. }) => {
                write!(
                    f,
                    "container {container} is not there: create it (infra does), or correct storage.stateContainer"
                )
            }
            Err(Failed { step, error: StorageError::Denied { blob, detail } }) => write!(
                f,
                "container {container}: cannot {}: {blob}: access denied ({detail}): {}",
                step.as_str(),
                self.way.remedy(ROLE)
            ),
            Err(Failed { step, error }) => write!(f, "container {container}: cannot {}: {error}", step.as_str()),
        }
    }
}

impl Finding for StateAccess {
    fn ok(&self) -> bool {
        self.probed.is_ok() || self.comes_later()
    }

    fn warns(&self) -> bool {
        self.comes_later()
    }
}

impl fmt::Display for DataAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dataset = &self.dataset;
        match &self.probed {
            Ok(()) => {
                write!(f, "{dataset}: wrote, listed, read and deleted a blob below _firn/ of the table's location")
            }
            Err(Failed { step, error: StorageError::Denied { blob, detail } }) => write!(
                f,
                "{dataset}: cannot {}: {blob}: access denied ({detail}): {}",
                step.as_str(),
                self.way.remedy(ROLE)
            ),
            Err(Failed { step, error }) => write!(f, "{dataset}: cannot {}: {error}", step.as_str()),
        }
    }
}

impl Finding for DataAccess {
    fn ok(&self) -> bool {
        self.probed.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use firn_storage::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_probe_leaves_nothing() {
        let store = MemoryStore::new();
        let folder = BlobId::parse("abfss://state@acct.dfs.core.windows.net/doctor/").unwrap();
        probe(&store, &folder).await.unwrap();
        let left: Vec<_> = store.list(&folder.with_key("")).try_collect().await.unwrap();
        assert_eq!(left, []);
    }

    #[test]
    fn each_failure_has_its_remedy() {
        let id = Box::new(BlobId::parse("abfss://c@acct.dfs.core.windows.net/k").unwrap());
        let denied = || StorageError::Denied { blob: id.clone(), detail: "HTTP 403".into() };
        let on = |emulator, step, error| StateAccess {
            container: "firn-state".into(),
            emulator,
            way: Way::Identity,
            probed: Err(Failed { step, error }),
        };
        let state = |step, error| on(false, step, error);
        let text = state(Step::Delete, denied()).to_string();
        assert!(text.starts_with("container firn-state: cannot delete: "), "{text}");
        assert!(text.contains("Storage Blob Data Contributor"), "{text}");
        let text = state(Step::Write, StorageError::NoContainer { blob: id.clone() }).to_string();
        assert!(text.starts_with("container firn-state is not there: create it"), "{text}");
        let later = on(true, Step::Write, StorageError::NoContainer { blob: id.clone() });
        assert!(later.ok() && later.warns() && later.to_string().contains("the first run of Firn"), "{later}");
        assert!(!on(true, Step::Write, denied()).ok(), "an emulator may deny too");
        let data = |way| DataAccess {
            dataset: "readings".into(),
            way,
            probed: Err(Failed { step: Step::Write, error: denied() }),
        };
        let (folder, key) = (data(Way::Folder), data(Way::ConnectionString).to_string());
        assert!(!folder.ok() && folder.to_string().starts_with("readings: cannot write: "), "{folder}");
        assert!(
            folder
                .to_string()
                .ends_with("let the user that runs Firn read and write this folder, or mount it writable")
        );
        assert!(key.contains("storage.connectionString") && !key.contains("role"), "{key}");
    }
}
