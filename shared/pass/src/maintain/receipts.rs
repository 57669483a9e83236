//! Receipts of sweeps: the last ones for a person to read, and those that are too old.

use chrono::TimeDelta;
use firn_config::Config;
use firn_maintain::Receipt;
use firn_maintain::clock::trusted_now;
use firn_maintain::sweep::receipt::receipt_time;
use firn_maintain::sweep::{Deletion, ReceiptPart};
use firn_state::{Listed, Read, StateError, StateStore};
use firn_storage::Clock;

use crate::load::chosen;
use crate::queue::state_error;
use crate::report::PassError;

/// Calls `show` with the last receipt of each dataset that can be read, and the deletions in it. What cannot is named in a warning, and does not
/// hide the others.
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
        shown += u64::from(show_last(&state, listed, show).await?);
    }
    Ok(shown)
}

/// Shows the newest of a dataset's receipts that can be read; false when there is none.
async fn show_last(
    state: &StateStore,
    mut listed: Vec<Listed<Receipt>>,
    show: &mut (dyn FnMut(&Receipt, &[Deletion]) + Send),
) -> Result<bool, PassError> {
    // Those of parts begin with the name of their receipt's folder, and their own is a number.
    listed.retain(|one| one.address.name().ends_with(".json") && id_of(one).is_some());
    listed.sort_by(|one, other| other.address.name().cmp(one.address.name()));
    for one in listed {
        let Some(receipt) = readable(state.read_listed(&one).await)? else { continue };
        show(&receipt, &[]);
        for part in 1..=receipt.parts {
            let address = state.root().receipt::<ReceiptPart>(&receipt.dataset, &receipt.receipt, Some(part));
            if let Some(part) = readable(state.read(&address).await)? {
                show(&receipt, &part.deletions);
            }
        }
        return Ok(true);
    }
    Ok(false)
}

/// None for what is gone, and for what is no receipt any more, of which a warning is left.
fn readable<T>(read: Result<Option<Read<T>>, StateError>) -> Result<Option<T>, PassError> {
    match read {
        Ok(read) => Ok(read.map(|read| read.value)),
        Err(error @ (StateError::Unreadable { .. } | StateError::Newer { .. })) => {
            tracing::warn!(%error, "a receipt was passed over");
            Ok(None)
        }
        Err(error) => Err(state_error(error)),
    }
}

/// Deletes receipts that are older than `days` by the time that sweeps trust too: a clock that is ahead must not take away what undoes them.
/// One that cannot be deleted is tried again by the next run.
pub(crate) async fn forget_old(state: &StateStore, days: u64, clock: &Clock) {
    let now = match trusted_now(state, clock.now()).await {
        Ok(Ok(now)) => now,
        Ok(Err(apart)) => {
            tracing::warn!(own = %apart.own, store = %apart.store, "no receipt is too old: the clock of this machine cannot be right");
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "receipts were not looked through for old ones");
            return;
        }
    };
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use chrono::{DateTime, Utc};
    use firn_maintain::sweep::receipt::receipt_id;
    use firn_model::BlobId;
    use firn_state::StateRoot;
    use firn_storage::{BlobStore, MemoryStore};
    use futures::TryStreamExt;

    use super::*;

    const DAYS: u64 = 90;

    /// A store with the receipts of sweeps that began at these times, each with a part.
    async fn with_receipts(clock: &Clock, times: &[DateTime<Utc>]) -> (MemoryStore, StateStore) {
        let blobs = MemoryStore::with_clock(clock.clone());
        let root = BlobId { account: "acct".into(), container: "firn-state".into(), key: String::new() };
        let state = StateStore::new(Arc::new(blobs.clone()), Arc::new(blobs.clone()), StateRoot::new(root));
        for time in times {
            let id = receipt_id(*time);
            state.write(&state.root().receipt("t", &id, None), &Receipt::default()).await.unwrap();
            state.write(&state.root().receipt("t", &id, Some(1)), &ReceiptPart::default()).await.unwrap();
        }
        (blobs, state)
    }

    async fn receipts(blobs: &MemoryStore) -> Vec<String> {
        let all = BlobId { account: "acct".into(), container: "firn-state".into(), key: "receipts/".into() };
        let listed: Vec<_> = blobs.list(&all).try_collect().await.unwrap();
        listed.into_iter().map(|blob| blob.id.key["receipts/t/".len()..][..16].to_owned()).collect()
    }

    #[tokio::test]
    async fn the_newest_receipt_that_can_be_read_is_shown() {
        let start: DateTime<Utc> = "2026-11-01T12:00:00Z".parse().unwrap();
        let (blobs, state) = with_receipts(&Clock::manual(start), &[]).await;
        let put = async |id: &BlobId, text: &'static [u8]| {
            blobs.put(id, text.into(), firn_storage::PutCondition::Any).await.unwrap();
        };
        let ids = [0, 1, 2].map(|hours| receipt_id(start + TimeDelta::hours(hours)));
        for id in &ids {
            let receipt = Receipt { receipt: id.clone(), dataset: "t".into(), parts: 2, ..Receipt::default() };
            state.write(&state.root().receipt("t", id, None), &receipt).await.unwrap();
            let deletions = vec![Deletion { path: format!("of {id}"), ..Deletion::default() }];
            state
                .write(&state.root().receipt("t", id, Some(2)), &ReceiptPart { deletions, ..ReceiptPart::default() })
                .await
                .unwrap();
        }
        put(state.root().receipt::<Receipt>("t", &ids[2], None).blob(), b"{").await;
        put(state.root().receipt::<ReceiptPart>("t", &ids[1], Some(1)).blob(), b"not a part").await;

        let mut shown = Vec::new();
        let listed = state.list_receipts(Some("t")).await.unwrap();
        let mut show = |receipt: &Receipt, deletions: &[Deletion]| {
            let paths: Vec<_> = deletions.iter().map(|deletion| deletion.path.clone()).collect();
            shown.push((receipt.receipt.clone(), paths));
        };
        assert!(show_last(&state, listed, &mut show).await.unwrap());
        assert_eq!(shown, [(ids[1].clone(), vec![]), (ids[1].clone(), vec![format!("of {}", ids[1])])]);

        for id in &ids[..2] {
            put(state.root().receipt::<Receipt>("t", id, None).blob(), b"").await;
        }
        let listed = state.list_receipts(Some("t")).await.unwrap();
        assert!(!show_last(&state, listed, &mut |_, _| panic!("nothing can be read")).await.unwrap());
    }

    #[tokio::test]
    async fn receipts_go_when_they_are_older_than_asked_by_the_clock_that_counts() {
        let start: DateTime<Utc> = "2026-11-01T12:00:00Z".parse().unwrap();
        let clock = Clock::manual(start);
        let second = TimeDelta::seconds(1);
        let days = TimeDelta::days(90);
        let (blobs, state) = with_receipts(&clock, &[start - days - second, start - days, start]).await;
        forget_old(&state, DAYS, &clock).await;
        let kept = ["20260803T120000Z", "20260803T120000Z", "20261101T120000Z", "20261101T120000Z"];
        assert_eq!(receipts(&blobs).await, kept, "with their parts");

        // A machine that is months ahead of the store forgets nothing, one that is minutes ahead goes by the store.
        forget_old(&state, DAYS, &Clock::manual(start + TimeDelta::days(91))).await;
        forget_old(&state, DAYS, &Clock::manual(start + TimeDelta::minutes(5))).await;
        assert_eq!(receipts(&blobs).await, kept);
        clock.advance(Duration::from_secs(1));
        forget_old(&state, DAYS, &clock).await;
        assert_eq!(receipts(&blobs).await, kept[2..]);
        forget_old(&state, u64::MAX, &clock).await;
        assert_eq!(receipts(&blobs).await, kept[2..]);
    }
}
