//! `firn restore`: the undo of one sweep.

use firn_config::Config;
use firn_maintain::Receipt;
use firn_maintain::restore::{Restored, RestoredFile, restore as restore_files};
use firn_state::{Listed, StateStore};
use firn_storage::Clock;
use firn_table::TableIdent;

use crate::load::pass_error;
use crate::queue::state_error;
use crate::report::PassError;
use crate::wiring;

/// What a restore came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// Files that are back.
    pub restored: u64,
    /// Files that are there and were left as they are.
    pub left: u64,
    /// Files that are not kept any more, or that the store refused.
    pub failed: u64,
}

/// Brings back what the sweep with this receipt deleted. `told` hears of each file.
///
/// # Errors
/// [`PassError::Usage`] for a receipt that is not there, [`PassError::Unavailable`] when catalog, table or state do not answer.
pub async fn restore(
    config: &Config,
    receipt: &str,
    told: &mut (dyn FnMut(&RestoredFile) + Send),
) -> Result<RestoreSummary, PassError> {
    let state = StateStore::look(config).map_err(state_error)?;
    let found = find(&state, receipt).await?;
    let services = wiring::open(config).await?;
    let ident: TableIdent = found.table.parse().map_err(|error| PassError::Unavailable(format!("{error}")))?;
    let table = services.catalog.load(&ident).await.map_err(pass_error)?;
    if found.table_uuid.as_ref() != Some(&table.uuid()) {
        let message = format!("receipt {receipt}: table {ident} is another one now, UUID {}", table.uuid());
        return Err(PassError::Unavailable(message));
    }
    let mut summary = RestoreSummary::default();
    let mut count = |file: RestoredFile| {
        match file.restored {
            Restored::Back => summary.restored += 1,
            Restored::There => summary.left += 1,
            Restored::Gone | Restored::NotBack | Restored::Refused(_) => summary.failed += 1,
        }
        told(&file);
    };
    restore_files(&state, &table, &found, Clock::system().now(), &mut count).await.map_err(state_error)?;
    Ok(summary)
}

/// The receipt with this id, or with this name in the state.
async fn find(state: &StateStore, wanted: &str) -> Result<Receipt, PassError> {
    let id = wanted.rsplit('/').next().unwrap_or(wanted);
    let id = id.strip_suffix(".json").unwrap_or(id);
    let listed: Vec<Listed<Receipt>> = state.list_receipts(None).await.map_err(state_error)?;
    let name = format!("{id}.json");
    let Some(found) = listed.iter().find(|one| one.address.name() == name) else {
        return Err(PassError::Usage(format!(
            "there is no receipt \"{wanted}\"; firn orphans --last shows the last one of each dataset, the state has all of them in \
             receipts/"
        )));
    };
    match state.read_listed(found).await.map_err(state_error)? {
        Some(read) => Ok(read.value),
        None => Err(PassError::Usage(format!("receipt \"{wanted}\" is gone"))),
    }
}
