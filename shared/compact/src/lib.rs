//! One partition, from its live files to a commit: re-plan, merge, prove, upload, commit (design section 1).
//!
//! - [`partition`]: the way of one partition, with the outcome for whoever asked;
//! - [`group`]: one group of files: open, merge, read again, commit;
//! - [`naming`]: what an output is called, and what makes two merges the same;
//! - [`upload`]: outputs stream to the store while they are encoded; [`sidecars`]: what is built beside them, [`backfill`]: and beside files
//!   that are not merged; [`statistics`]: sketches of a whole table;
//! - [`ranges`]: key ranges that footers prove, for the rules full and cold; [`table_time`]: how far a table is in time;
//! - [`settings`]: the dataset's keys and the table's properties, as the merge wants them;
//! - [`services`]: what a run works with; [`control`]: what it is told and tells on its way;
//! - [`turns`], [`lease_turns`], [`memory_budget`]: what runs of one table and of one process share;
//! - [`allocator`]: settings without which freed memory stays with the process;
//! - [`host`]: what the host's functions work with; [`worker`]: one message of the queue.

pub mod allocator;
pub mod backfill;
mod commit;
pub mod control;
pub mod group;
pub mod host;
pub mod lease_turns;
pub mod memory_budget;
mod metrics_modes;
pub mod naming;
mod open;
pub mod partition;
pub mod ranges;
pub mod report;
pub mod services;
pub mod settings;
pub mod sidecars;
pub mod statistics;
pub mod table_time;
pub mod turns;
pub mod upload;
pub mod worker;

pub use control::{Abandoned, GroupPlace, NoRecord, RunControl, Step, StepSink};
pub use host::{FanOut, FanOutError, FannedOut, HostServices, NoFanOut};
pub use lease_turns::LeaseTurns;
pub use memory_budget::{MemoryBudget, Reservation};
pub use naming::facts_hash;
pub use open::name_mapping;
pub use partition::{PartitionJob, only_if_writable, plan_facts, run_partition, run_partition_with};
pub use ranges::prove_key_ranges;
pub use report::{Failure, GroupReport, PartitionReport};
pub use services::Services;
pub use settings::{JobSettings, ineffective_properties, plan_settings};
pub use statistics::{
    ColumnDistinct, StatisticsFailure, StatisticsJob, StatisticsOff, StatisticsOutcome, StatisticsReport,
    table_statistics,
};
pub use table_time::TableTime;
pub use turns::{CommitTurns, Turn};
pub use worker::{Delivered, WorkAnswer, WorkOutcome, poison, work};
