//! Reading Parquet by field id, in windows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub, dead_code)]

mod random;
mod steps;
mod support;
