//! The time that ages are counted to.

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::BlobId;
use firn_state::{StateError, StateStore};
use firn_storage::BlobStore;

/// How far the clock of this machine may be from the store's before nothing is decided by it.
const FAR: TimeDelta = TimeDelta::minutes(10);

/// Two clocks that are far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    /// This machine.
    pub own: DateTime<Utc>,
    /// The store.
    pub store: DateTime<Utc>,
}

/// The earlier of this machine's time and the store's: with it files and snapshots look younger, never older, than they are.
///
/// # Errors
/// What the store says; inside, [`Apart`] when one of the clocks must be wrong.
pub async fn trusted_now(state: &StateStore, own: DateTime<Utc>) -> Result<Result<DateTime<Utc>, Apart>, StateError> {
    let store = state.store_time().await?;
    Ok(earlier(own, store))
}

/// As [`trusted_now`], without a write: by what the store of the tables says when it is asked. One that says nothing leaves this machine's.
///
/// # Errors
/// [`Apart`] when one of the clocks must be wrong.
pub async fn looked_at_now(store: &dyn BlobStore, beside: &BlobId, own: DateTime<Utc>) -> Result<DateTime<Utc>, Apart> {
    match store.time(beside).await {
        Ok(Some(time)) => earlier(own, time),
        Ok(None) => Ok(own),
        // Not allowed to look at the container: a dry run deletes nothing.
        Err(error) => {
            tracing::info!(%error, "ages are counted to the time of this machine");
            Ok(own)
        }
    }
}

fn earlier(own: DateTime<Utc>, store: DateTime<Utc>) -> Result<DateTime<Utc>, Apart> {
    if (own - store).abs() > FAR { Err(Apart { own, store }) } else { Ok(own.min(store)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K72: a machine whose clock jumped deletes nothing.
    #[test]
    fn the_earlier_clock_counts_and_a_jump_stops() {
        let store: DateTime<Utc> = "2026-11-01T12:00:00Z".parse().unwrap();
        let at = |minutes| store + TimeDelta::minutes(minutes);
        assert_eq!(earlier(at(3), store), Ok(store));
        assert_eq!(earlier(at(-3), store), Ok(at(-3)));
        for minutes in [11, -11, 60 * 24 * 365] {
            assert_eq!(earlier(at(minutes), store), Err(Apart { own: at(minutes), store }));
        }
    }
}
