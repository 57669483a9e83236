//! The log: stderr, for people; stdout belongs to the answer of the command.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::output::progress::Progress;

/// Variable with the filter, in the syntax of `tracing`'s `EnvFilter`.
const FILTER: &str = "FIRN_LOG";
/// Warnings of everybody, and what Firn itself says.
const DEFAULT_FILTER: &str = "warn,firn=info";

/// Starts the log. Lines pass through `progress`, so that they do not land in the middle of its bar.
pub(crate) fn start(progress: &Progress) {
    let wanted = std::env::var(FILTER).ok().filter(|filter| !filter.trim().is_empty());
    let parsed = wanted.as_deref().map(EnvFilter::try_new);
    let (filter, problem) = match parsed {
        None => (EnvFilter::new(DEFAULT_FILTER), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(DEFAULT_FILTER), Some(error)),
    };
    let progress = progress.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(move || progress.lines())
        .finish();
    // Only fails when one is set already, which then serves as well.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(error) = problem {
        tracing::warn!(%error, "{FILTER} is not a filter; using {DEFAULT_FILTER}");
    }
}
