//! The handler as the Functions host sees it: over HTTP, over its files, as a process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;
mod process;
mod server;
mod work;
