//! Outputs that merges left behind for certain (`firn_state::abandoned`): they count as seen unreferenced since then.
//!
//! Age, grace and references are asked all the same, and the first sweep of a table deletes them no more than others: a list that is wrong
//! deletes nothing that something refers to.

use chrono::{DateTime, Utc};
use firn_state::{AbandonedOutputs, Listed, SeenFile, StateError, StateStore};
use firn_storage::StorageError;
use firn_table::LoadedTable;

use crate::file_state::FileState;
use crate::identity::Fingerprint;
use crate::sweep::listing::Listing;
use crate::sweep::seen::seen_file;
use crate::sweep::stop::SweepStop;

/// The lists of one table.
#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    lists: Vec<List>,
}

#[derive(Debug)]
struct List {
    document: Listed<AbandonedOutputs>,
    since: DateTime<Utc>,
    prints: Vec<Fingerprint>,
}

impl Abandoned {
    /// Reads them. What cannot be read only delays: its files wait for two sweeps like others.
    pub(crate) async fn of(state: &StateStore, table: &LoadedTable) -> Result<Self, SweepStop> {
        let listed = match state.list_abandoned(&table.uuid()).await {
            // Nothing was written to it yet.
            Err(StateError::Storage(StorageError::NoContainer { .. })) => return Ok(Self::default()),
            listed => listed?,
        };
        let mut lists = Vec::new();
        for document in listed {
            match state.read_listed(&document).await {
                Ok(Some(read)) => {
                    let ids = read.value.paths.iter().filter_map(|path| table.blob_id(path).ok());
                    let prints = ids.map(|id| Fingerprint::of(&id)).collect();
                    lists.push(List { document, since: read.value.at, prints });
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "a list of abandoned outputs is left alone"),
            }
        }
        Ok(Self { lists })
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = SeenFile> + '_ {
        self.lists.iter().flat_map(|list| list.prints.iter().map(|print| seen_file(*print, list.since)))
    }

    /// Removes the lists of which nothing is left to delete.
    pub(crate) async fn forget(&self, state: &StateStore, listing: &Listing) {
        for list in &self.lists {
            let of = |print: &Fingerprint| listing.find(*print).map(|place| listing.remembered(place).state);
            if list.prints.iter().any(|print| of(print) == Some(FileState::Unreferenced)) {
                continue;
            }
            if let Err(error) = state.discard(&list.document.address).await {
                tracing::info!(%error, "a list of abandoned outputs that are gone was not removed");
            }
        }
    }
}
