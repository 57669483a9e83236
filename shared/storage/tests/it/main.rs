//! The contracts of the ports, run against everything that stands behind them, and what Azure makes of faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod azurite;
mod contract;
mod entra;
mod faults;
mod identity;
mod keeper;
mod leases;
mod local;
mod lost_answers;
mod memory;
mod queues;
mod stub;
mod tls_front;
mod undelete;
