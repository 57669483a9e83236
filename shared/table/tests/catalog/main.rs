//! One contract for every catalog, and what each one's server can do to a commit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

mod bench;
mod contract;
mod double;
mod rest;
mod vended;
