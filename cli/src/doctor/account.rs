//! The storage account of the configuration.

use std::fmt;

use firn_config::Storage;
use firn_model::BlobId;
use firn_state::account_of;
use firn_storage::{AzureAccount, AzureOptions, AzureStore};

use super::finding::Finding;

/// The account, opened. Nothing was sent.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) access: AzureAccount,
    pub(super) store: AzureStore,
}

impl Opened {
    pub(super) fn state_container(&self, storage: &Storage) -> BlobId {
        BlobId {
            account: self.access.account().to_owned(),
            container: storage.state_container.clone(),
            key: String::new(),
        }
    }
}

/// No account is configured.
pub(super) struct Local;

/// Why the account cannot be opened; the text has the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotOpened(String);

/// Opens it.
pub(super) fn open(storage: &Storage) -> Result<Opened, NotOpened> {
    let access = account_of(storage).map_err(|error| NotOpened(error.to_string()))?;
    let store = AzureStore::new(&access, AzureOptions::default()).map_err(|error| NotOpened(error.to_string()))?;
    Ok(Opened { access, store })
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no section storage: state is a folder of the warehouse, there is no queue; for Azure write storage.account")
    }
}

impl Finding for Local {
    fn ok(&self) -> bool {
        true
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Finding for NotOpened {
    fn ok(&self) -> bool {
        false
    }
}
