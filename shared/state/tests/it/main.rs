//! Tests of the state over its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod documents;
mod interleavings;
mod world;
