//! The contract that every store keeps, run against each of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod azurite;
mod contract;
mod local;
mod memory;
