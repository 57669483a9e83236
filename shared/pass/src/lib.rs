//! One pass over the datasets: schedule, load, plan, record, and merge here or enqueue (design sections 3, 4 and 9).

mod manual;
mod report;
mod request;
mod verify;
mod wiring;

pub use manual::manual;
pub use report::{FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, Report, VerifyCheck};
pub use request::{DateRange, ManualRequest, PartitionCondition, RequestError};
pub use verify::verify;
