//! The log: stderr, for people; stdout belongs to the answer of the command.

use crate::output::progress::Progress;

/// Warnings of everybody, and what Firn itself says.
const DEFAULT_FILTER: &str = "warn,firn=info";

/// Starts the log. Lines pass through `progress`, so that they do not land in the middle of its bar.
pub(crate) fn start(progress: &Progress) {
    let progress = progress.clone();
    firn_handler::logging::start_with(DEFAULT_FILTER, |filter| {
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(move || progress.lines())
            .finish()
    });
}
