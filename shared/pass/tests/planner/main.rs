//! The planner of the host path over tables, state and queue in memory: what it sends, records and leaves, when, and what a
//! death in between leaves behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

mod by_hand;
mod damaged;
mod lake;
mod maintenance;
mod scale;
mod schedule;
mod sending;
mod ticks;
mod tiers;
