//! What the end-to-end tests share: the `firn` program as a user runs it, and the invariants after it.
//!
//! Every function here panics when something is not as it should be: it is called by tests only.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail with the reason")]

pub mod backup;
pub mod hosted;
pub mod mischief;
pub mod program;
pub mod random;
pub mod scene;
pub mod spark;
pub mod watcher;

pub use backup::Backup;
pub use hosted::{Hosted, HostedOptions};
pub use mischief::{Conflicts, Mischief};
pub use program::{Run, firn, firn_path};
pub use random::Random;
pub use scene::Scene;
pub use spark::Spark;
pub use watcher::Watcher;
