//! One pass over the datasets: schedule, load, plan, record, and merge here or enqueue (design sections 3, 4 and 9).

mod due;
mod events;
mod explain;
mod here;
mod load;
mod long_running;
mod maintain;
mod manual;
mod queue;
mod report;
mod request;
mod search;
mod verify;
mod wiring;

pub use firn_compact::ColumnDistinct;

pub use explain::{ExplainedPartition, explain};
pub use long_running::long_running;
pub use maintain::by_hand::{expire, orphans, statistics};
pub use maintain::receipts::last_receipts;
pub use maintain::restore::{RestoreSummary, restore};
pub use maintain::tick::{MaintainTick, expire_tick, orphans_tick};
pub use maintain::{ExpiryLine, MaintainReport, MaintainSummary, StatisticsLine, TableLine};
pub use manual::manual;
pub use queue::by_message::Planner;
pub use queue::enqueue::enqueue;
pub use queue::requeue::{RequeueOutcome, RequeueRequest, RequeueSummary, RequeuedEntry, requeue};
pub use queue::summary::{EnqueueSummary, SendCounts, TickSummary};
pub use queue::tick::tick;
pub use report::{
    EnqueuedPartition, FailedDataset, FinishedPartition, NoReport, PassError, PassSummary, PlannedPartition, Report,
    VerifyCheck,
};
pub use request::{DateRange, ManualRequest, PartitionCondition, RequestError};
pub use search::{FoundRow, SearchRequest, SearchSummary, search};
pub use verify::verify;
pub use wiring::{open_host, open_store};
