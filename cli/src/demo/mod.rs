//! `firn demo`: the whole main job on this machine (design section 10).
//!
//! Azurite is started, a writer fills two tables with many small files, the local Functions host runs the real handler, its timer plans, the
//! queue is drained, and what must hold afterwards is checked.
//!
//! - [`rows`]: what is written; [`lake`]: by whom; [`catalog`]: where it is known; [`app`]: the app that the host runs; [`check`]: what is read back;
//! - [`mod@run`]: from the start to the answer; [`report`]: how it is told.

mod app;
mod catalog;
mod check;
mod lake;
pub(crate) mod report;
mod rows;
mod run;
mod search;

use std::fmt::Display;

pub(crate) use run::run;

/// Why the demo could not go on.
#[derive(Debug)]
pub(crate) struct DemoError(String);

impl DemoError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Names what failed in front of the reason.
    pub(crate) fn of<E: Display>(what: &'static str) -> impl Fn(E) -> DemoError {
        move |error| DemoError(format!("{what}: {error}"))
    }
}

impl Display for DemoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
