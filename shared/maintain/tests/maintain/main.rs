//! Expiry and sweeps over whole tables, in memory: what a table needs stays, what nobody needs goes, and every doubt keeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, unreachable_pub, missing_docs)]

mod ahead;
mod catalog;
mod double;
mod expiry;
mod expiry_conflicts;
mod hold;
mod lake;
mod many;
mod moments;
mod neighbours;
mod pinned;
mod places;
mod random;
mod real_stores;
mod refusals;
mod safety;
mod sweep;
mod undo;
mod writer;
mod writing;
