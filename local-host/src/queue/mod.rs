//! Queue triggers: one listener for each function.

pub mod backoff;
pub mod decide;
pub mod encoding;
mod listener;
mod message;

pub(crate) use listener::{IDLE_LOOK, QueueListener, busy_queues};
pub(crate) use message::{MessageWork, payload_of};
