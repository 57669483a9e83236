//! The contract over the store in memory.

use firn_model::BlobId;
use firn_storage::MemoryStore;

use crate::contract::{Case, contract_tests};

async fn case() -> Case {
    let base = BlobId::parse("abfss://lake@acct.dfs.core.windows.net/wh/").unwrap();
    Case { store: Box::new(MemoryStore::new()), base, block: 1000, _keep: Box::new(()) }
}

contract_tests!(case());
