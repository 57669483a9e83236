//! Events: what the project says about finished work to whoever watches it (design section 8, "Events").
//!
//! One JSON line per terminal event, with a fixed `event` and `outcome`, who (dataset, partition, pass, invocation) and
//! every count. Alerts are queries on these lines, so the words here are an interface. A line is written at once and
//! whole, so that it survives a kill one instruction later.
//!
//! - [`Emitter`] writes lines to stderr (commands) or stdout (the handler and the long-running compactor);
//! - [`PartitionRun`] makes sure that a partition ends with exactly one event, whatever happens to it;
//! - [`PassFinished`] and [`DatasetFailed`] end a pass, [`Parked`], [`MessageDeferred`] and [`MessageFailed`] a message without work;
//! - [`ExpiryFinished`], [`StatisticsFinished`] and [`SweepFinished`] end the maintenance of a table;
//! - [`peak_rss_bytes`] is the memory figure they carry.

mod emitter;
mod event;
mod maintenance;
mod memory;
mod message;
mod partition;
mod pass;

pub use emitter::Emitter;
pub use event::Event;
pub use maintenance::{
    ExpiryFinished, MAINTENANCE_FAILURES_COUNTER, ORPHANS_COUNTER, StatisticsFinished, SweepFinished,
};
pub use memory::peak_rss_bytes;
pub use message::{MessageDeferred, MessageFailed, PARKED_COUNTER, Parked};
pub use partition::{
    CONFLICTS_COUNTER, PartitionFinished, PartitionResult, PartitionRun, PartitionStart, SIDECARS_DROPPED_COUNTER,
    SidecarCounts,
};
pub use pass::{DEADLINE_COUNTER, DatasetFailed, FAILURES_COUNTER, PassFinished, PassOverDeadline};
