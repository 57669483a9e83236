//! What Firn remembers between ticks and messages: typed documents in blobs, each with a version, changed by If-Match and
//! If-None-Match only; and the decisions about them as pure functions (design section 4).
//!
//! A reader follows one partition through its files: [`send`] (the planner: new, again, raise the rule, leave), [`start`] (the
//! worker before the work), [`finish`] (after it, and the poison queue), all over the record in [`inflight`].
//!
//! - [`account`]: the storage account of a configuration;
//! - [`store`]: reading and changing documents; [`address`]: where each lies; [`document`]: how it is written;
//! - [`ticks`], [`passes`], [`parked`], [`sweep`], [`abandoned`]: the other documents;
//! - [`error`]: failures, by what the caller does next.

pub mod abandoned;
pub mod account;
pub mod address;
pub mod document;
pub mod error;
pub mod finish;
pub mod inflight;
mod open;
pub mod parked;
pub mod passes;
pub mod send;
pub mod start;
pub mod store;
pub mod sweep;
#[cfg(test)]
mod testing;
pub mod ticks;
mod time;

pub use abandoned::AbandonedOutputs;
pub use account::account_of;
pub use address::{Address, StateRoot};
pub use document::Document;
pub use error::StateError;
pub use finish::{PoisonDecision, decide_poison, retry_delay};
pub use inflight::{ATTEMPT_LIMIT, InflightRecord, RecordOutcome, Selection, hash_inputs};
pub use parked::{NOT_A_MESSAGE, ParkedRecord, parked_id_of_body};
pub use passes::PassRecord;
pub use send::{LeftoverDecision, SendDecision, SendReason, Situation, SkipReason, decide_leftover, decide_send};
pub use start::{DeliveredPartition, HeldDecision, StartDecision, SupersededReason, decide_held, decide_start};
pub use store::{Listed, Read, StateStore, Version};
pub use sweep::{SeenFile, SweepRecord};
pub use ticks::{
    COMPACT_TICKS, DatasetCursor, EXPIRE_TICKS, Look, Looks, MaintenanceTick, ORPHAN_TICKS, Settled, TickRecord,
};
