//! The replace commit on tables in a local folder with a SQLite catalog: what is in the table afterwards, by value.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

mod conflicts;
mod counting;
mod deletes;
mod doubles;
mod files;
mod lake;
mod look;
mod lost_answers;
mod many;
mod refused;
mod replace;
mod statistics;
mod tuples;
