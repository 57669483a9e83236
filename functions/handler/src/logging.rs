//! The log, as the host reads it: lines of stdout are information, lines of stderr errors, or warnings when they say so.

use tracing::{Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

/// Variable with the filter, in the syntax of `tracing`'s `EnvFilter`.
const FILTER: &str = "FIRN_LOG";
/// Warnings of everybody, and what Firn itself says.
const DEFAULT_FILTER: &str = "warn,firn=info,handler=info";

/// Starts the log.
pub fn start() {
    start_with(DEFAULT_FILTER, |filter| {
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(std::io::stderr.with_max_level(Level::WARN).or_else(std::io::stdout))
            .finish()
    });
}

/// Starts the log that `build` makes of the filter in FIRN_LOG, or of `default_filter` when there is none; one that is no filter is
/// said in the log.
pub fn start_with<S: Subscriber + Send + Sync + 'static>(default_filter: &str, build: impl FnOnce(EnvFilter) -> S) {
    let wanted = std::env::var(FILTER).ok().filter(|filter| !filter.trim().is_empty());
    let parsed = wanted.as_deref().map(EnvFilter::try_new);
    let (filter, problem) = match parsed {
        None => (EnvFilter::new(default_filter), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(default_filter), Some(error)),
    };
    let subscriber = build(filter);
    // Only fails when one is set already, which then serves as well.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(error) = problem {
        tracing::warn!(%error, "{FILTER} is not a filter; using {default_filter}");
    }
}
