//! The queue worker on stores in memory: every row of the outcome table, duplicates, lost leases, kills.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_debug_implementations, unreachable_pub)]

mod by_hand;
mod contention;
mod dying;
mod faulty_catalog;
mod kills;
mod lake;
mod outcomes;
mod parking;
mod poison;
mod scene;
mod sharing;
mod side_by_side;
