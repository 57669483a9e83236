//! Passes that send messages instead of merging (design section 4).
//!
//! - [`tick`]: what the timer starts: every rule that is due, over every dataset;
//! - [`enqueue`]: what a person asks for, from the command line; [`by_message`]: the same by a message;
//! - [`fan_out`]: one dataset: load, plan, record, send; [`records`]: its in-flight records; [`dispatch`]: one partition;
//! - [`room`]: what is sent when more is selected than a pass may send;
//! - [`settled`]: the shortcut for a table that has not changed; [`looks`]: that for finished partitions of one that has;
//! - [`requeue`]: parked work back into the queue;
//! - [`open_passes`]: passes whose partitions are still on the queue, and the deadline that is counted.

pub(crate) mod by_message;
pub(crate) mod dispatch;
pub(crate) mod enqueue;
pub(crate) mod fan_out;
mod looks;
pub(crate) mod open_passes;
pub(crate) mod records;
pub(crate) mod requeue;
mod room;
mod settled;
pub(crate) mod summary;
pub(crate) mod tick;

use firn_state::{Address, Document, Read, StateError, StateStore};
use firn_storage::QueueError;

use crate::report::PassError;

/// What a pass says of state that cannot be read or changed.
pub(crate) fn state_error(error: StateError) -> PassError {
    match error {
        StateError::Configuration(message) => PassError::Usage(message),
        other => PassError::Unavailable(other.to_string()),
    }
}

/// A record of ticks. One that is damaged holds nothing up: it is deleted, and ticks go on as on the first day.
pub(crate) async fn read_tick<T: Document>(
    state: &StateStore,
    address: &Address<T>,
) -> Result<Option<Read<T>>, PassError> {
    match state.read(address).await {
        Err(error @ StateError::Unreadable { .. }) => {
            tracing::error!(%error, "the record of ticks was damaged: it begins anew");
            state.clear_damaged(address).await.map_err(state_error)?;
            state.read(address).await.map_err(state_error)
        }
        read => read.map_err(state_error),
    }
}

/// What a pass says of a queue that does not answer.
pub(crate) fn queue_error(error: QueueError) -> PassError {
    PassError::Unavailable(error.to_string())
}
