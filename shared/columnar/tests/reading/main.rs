//! Reading Parquet by field id, in windows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

mod damage;
mod evolution;
mod legacy;
mod memory;
mod random;
mod requests;
mod steps;
mod support;
