//! The contract that every store keeps, run against each of them, and what Azure's store makes of faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod azurite;
mod contract;
mod faults;
mod local;
mod lost_answers;
mod memory;
mod stub;
