//! Where the state of a configuration lies: a container of the storage account, or a folder of the warehouse.

use std::sync::Arc;

use firn_config::{Config, Storage};
use firn_model::BlobId;
use firn_storage::{AzureOptions, AzureStore, LocalStore};

use crate::account::account_of;
use crate::address::StateRoot;
use crate::error::StateError;
use crate::store::StateStore;

/// The folder of the warehouse, where no storage account is configured.
const FOLDER: &str = "firn-state";

impl StateStore {
    /// The state of this configuration: the container `storage.stateContainer`, created when missing; without a `storage`
    /// section the folder `firn-state` of the `file://` warehouse (design section 3).
    ///
    /// # Errors
    /// [`StateError::Configuration`] when neither is named, or what the account says.
    pub async fn open(config: &Config) -> Result<Self, StateError> {
        match &config.storage {
            Some(storage) => in_account(storage).await,
            None => in_warehouse(config),
        }
    }

    /// The same, but nothing is created: for who only looks. Reading from a container that is not there is an error.
    ///
    /// # Errors
    /// [`StateError::Configuration`].
    pub fn look(config: &Config) -> Result<Self, StateError> {
        let Some(storage) = &config.storage else { return in_warehouse(config) };
        let account = Arc::new(azure(storage)?);
        let root = StateRoot::new(container_id(&account, &storage.state_container));
        Ok(Self::new(account.clone(), account, root))
    }

    /// The state in a container of an account that is open already; created when missing.
    ///
    /// # Errors
    /// What the account says.
    pub async fn in_container(account: AzureStore, container: &str) -> Result<Self, StateError> {
        account.create_container(&container_id(&account, container)).await?;
        Ok(Self::as_it_is(account, container))
    }

    /// The same for who only looks: nothing is created.
    pub fn as_it_is(account: AzureStore, container: &str) -> Self {
        let root = container_id(&account, container);
        let account = Arc::new(account);
        Self::new(account.clone(), account, StateRoot::new(root))
    }
}

async fn in_account(storage: &Storage) -> Result<StateStore, StateError> {
    StateStore::in_container(azure(storage)?, &storage.state_container).await
}

fn azure(storage: &Storage) -> Result<AzureStore, StateError> {
    let account = account_of(storage)?;
    AzureStore::new(&account, AzureOptions::default())
        .map_err(|error| StateError::Configuration(format!("storage: {error}")))
}

fn container_id(account: &AzureStore, container: &str) -> BlobId {
    BlobId { account: account.account().to_owned(), container: container.to_owned(), key: String::new() }
}

fn in_warehouse(config: &Config) -> Result<StateStore, StateError> {
    let Some(folder) = config.catalog.warehouse_folder() else {
        return Err(StateError::Configuration(
            "there is no place for the state: add the section storage, or name a warehouse: file:///path".into(),
        ));
    };
    let path = std::path::absolute(folder.join(FOLDER))
        .map_err(|error| StateError::Configuration(format!("catalog.warehouse: {error}")))?;
    let local = Arc::new(LocalStore::new());
    let root = StateRoot::new(BlobId::local(path.to_string_lossy()));
    Ok(StateStore::new(local.clone(), local, root))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn config(catalog: &str) -> Config {
        let text = format!(
            "catalog: {{type: sql, uri: 'sqlite:////c.db', name: n{catalog}}}\n\
             ingestion: {{datasets: [{{name: readings, table: a.b}}]}}"
        );
        Config::load(&text, &HashMap::new()).unwrap()
    }

    #[tokio::test]
    async fn without_a_storage_account_the_state_is_a_folder_of_the_warehouse() {
        let state = StateStore::open(&config(", warehouse: 'file:///wh/'")).await.unwrap();
        assert_eq!(state.root().tick("compact").blob(), &BlobId::local("/wh/firn-state/ticks/compact"));
    }
}
