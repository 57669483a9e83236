//! Receipts of sweeps: the last ones for a person to read, and those that are too old.

use chrono::{DateTime, TimeDelta, Utc};
use firn_config::Config;
use firn_maintain::Receipt;
use firn_maintain::sweep::receipt::receipt_time;
use firn_maintain::sweep::{Deletion, ReceiptPart};
use firn_state::{Listed, StateError, StateStore};

use crate::load::chosen;
use crate::queue::state_error;
use crate::report::PassError;

/// Calls `show` with the last receipt of each dataset, and the deletions in it.
///
/// # Errors
/// [`PassError::Usage`] for a dataset that is not configured, [`PassError::Unavailable`] when the state does not answer.
pub async fn last_receipts(
    config: &Config,
    dataset: Option<&str>,
    show: &mut (dyn FnMut(&Receipt, &[Deletion]) + Send),
) -> Result<u64, PassError> {
    let state = StateStore::look(config).map_err(state_error)?;
    let mut shown = 0;
    for dataset in chosen(config, dataset)? {
        let listed: Vec<Listed<Receipt>> = match state.list_receipts(Some(&dataset.name)).await {
            Err(StateError::Storage(firn_storage::StorageError::NoContainer { .. })) => Vec::new(),
            listed => listed.map_err(state_error)?,
        };
        let newest =
            listed.iter().filter(|one| one.address.name().ends_with(".json")).filter(|one| id_of(one).is_some());
        let Some(newest) = newest.max_by_key(|one| one.address.name().to_owned()) else { continue };
        let Some(receipt) = state.read_listed(newest).await.map_err(state_error)? else { continue };
        let receipt = receipt.value;
        show(&receipt, &[]);
        for part in 1..=receipt.parts {
            let address = state.root().receipt::<ReceiptPart>(&receipt.dataset, &receipt.receipt, Some(part));
            if let Some(part) = state.read(&address).await.map_err(state_error)? {
                show(&receipt, &part.value.deletions);
            }
        }
        shown += 1;
    }
    Ok(shown)
}

/// Deletes receipts that are older than `days`. One that cannot be deleted is tried again by the next run.
pub(crate) async fn forget_old(state: &StateStore, days: u64, now: DateTime<Utc>) {
    let most = i64::try_from(days).ok().and_then(TimeDelta::try_days).unwrap_or(TimeDelta::MAX);
    let listed: Vec<Listed<serde_json::Value>> = match state.list_receipts(None).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(%error, "receipts were not looked through for old ones");
            return;
        }
    };
    for one in listed {
        let began = id_of(&one).and_then(|id| receipt_time(&id));
        if began.is_some_and(|began| now - began > most)
            && let Err(error) = state.discard(&one.address).await
        {
            tracing::warn!(%error, "an old receipt was not deleted");
        }
    }
}

/// The id of a receipt by the name of its document, or of one of its parts.
fn id_of<T>(listed: &Listed<T>) -> Option<String> {
    let mut names = listed.address.blob().key.rsplit('/');
    let name = names.next()?.trim_end_matches(".json").to_owned();
    let of_part = names.next().map(str::to_owned);
    [Some(name), of_part].into_iter().flatten().find(|text| receipt_time(text).is_some())
}
