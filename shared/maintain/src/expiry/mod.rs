//! Snapshot expiry: metadata only, no file is deleted (design section 7).

pub mod decide;
pub mod run;

pub use decide::{ExpireReason, ExpiryPlan, ExpirySettings, KeepReason, SnapshotDecision, decide_expiry};
pub use run::{ExpiryFailure, ExpiryOutcome, ExpiryTools, TableExpiry, expire_table};
