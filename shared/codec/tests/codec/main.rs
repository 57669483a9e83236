//! The codec against naive oracles, against the Parquet crate in both directions, and against damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damage;
mod distinct;
mod encoders;
mod hybrid;
mod order;
mod pages;
mod parity;
mod stats;
mod values;
