//! One file per command: read what it needs, run it, answer, say how the program ends.

pub(crate) mod compact;
pub(crate) mod compactor;
pub(crate) mod doctor;
pub(crate) mod enqueue;
pub(crate) mod expire;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod invoke;
pub(crate) mod local;
pub(crate) mod orphans;
pub(crate) mod package;
pub(crate) mod requeue;
pub(crate) mod restore;
pub(crate) mod search;
pub(crate) mod statistics;
pub(crate) mod verify;

use std::future::Future;
use std::io::IsTerminal;
use std::path::PathBuf;

use firn_config::{Config, near};
use firn_pass::{MaintainSummary, PassError};
use firn_telemetry::Emitter;

use crate::args::{Format, WithConfig};
use crate::exit::Exit;
use crate::output::maintained::MaintainAnswer;
use crate::output::progress::Progress;

/// Variable that names the configuration where `--config` does not.
const CONFIG_VARIABLE: &str = "FIRN_CONFIG";

/// What every command needs beside its own arguments.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) format: Format,
    pub(crate) progress: Progress,
}

impl Context {
    /// Events go to stderr, for whoever collects it. A person at a terminal sees the same in the tables.
    pub(crate) fn emitter(&self) -> Emitter {
        if self.format == Format::Text && std::io::stderr().is_terminal() {
            Emitter::to(std::io::sink())
        } else {
            Emitter::stderr()
        }
    }
}

/// Says on stderr what is wrong.
pub(crate) fn complain(message: impl std::fmt::Display) {
    for line in message.to_string().lines() {
        eprintln!("error: {line}");
    }
}

/// The end of a maintenance command: the last line of its answer, what went wrong, and the exit code.
pub(crate) fn maintenance_ended(answer: &mut MaintainAnswer, result: &Result<MaintainSummary, PassError>) -> Exit {
    answer.ended(result);
    if let Err(error) = result {
        complain(error);
    }
    Exit::of_maintenance(result)
}

/// Reads the configuration and refuses a dataset that is not there.
pub(crate) fn load_config(args: &WithConfig, dataset: Option<&str>) -> Result<Config, Exit> {
    let path = config_path(args, std::env::var(CONFIG_VARIABLE).ok()).map_err(refuse)?;
    let config = Config::from_file(&path).map_err(refuse)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    match dataset {
        Some(name) if config.dataset(name).is_none() => Err(refuse(unknown_dataset(&config, name))),
        _ => Ok(config),
    }
}

pub(crate) fn refuse(message: impl std::fmt::Display) -> Exit {
    complain(message);
    Exit::Usage
}

pub(crate) fn config_path(args: &WithConfig, variable: Option<String>) -> Result<PathBuf, String> {
    let from_variable = variable.filter(|value| !value.trim().is_empty());
    match (&args.config, from_variable) {
        (Some(path), _) => Ok(path.clone()),
        (None, Some(url)) if url.contains("://") => {
            Err(format!("{CONFIG_VARIABLE} \"{url}\": a URL comes with a later version; write the path of a file"))
        }
        (None, Some(path)) => Ok(PathBuf::from(path)),
        (None, None) => Err(format!("--config is missing; write --config firn.yaml or set {CONFIG_VARIABLE}")),
    }
}

fn unknown_dataset(config: &Config, name: &str) -> String {
    let known: Vec<&str> = config.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
    let hint = near(name, known.iter().copied()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("--dataset \"{name}\" is not in {}, which has {}{hint}", config.file, known.join(", "))
}

/// Runs `work` until it ends or the process is told to stop (Ctrl-C, SIGTERM); then `work` is dropped. A commit is one
/// swap in the catalog, so whatever moment that is, the table is whole.
pub(crate) async fn until_interrupted<T>(work: impl Future<Output = Result<T, PassError>>) -> Result<T, PassError> {
    tokio::select! {
        result = work => result,
        () = told_to_stop() => Err(PassError::Unavailable(
            "interrupted; what was committed stays, nothing is half done; run again to go on".into(),
        )),
    }
}

/// Ready when the process is told to stop (Ctrl-C, SIGTERM).
pub(crate) async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // Where a handler cannot be installed the signal ends the process, as it does without one.
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => {}
            Ok(()) = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_variable() {
        let args = |config: Option<&str>| WithConfig { config: config.map(PathBuf::from) };
        let path = |config, variable: Option<&str>| config_path(&args(config), variable.map(str::to_owned));
        assert_eq!(path(Some("a"), Some("b")), Ok("a".into()));
        assert_eq!(path(None, Some("b")), Ok("b".into()));
        assert!(path(None, Some(" ")).unwrap_err().starts_with("--config is missing"));
        assert!(path(None, None).unwrap_err().starts_with("--config is missing"));
        assert!(path(None, Some("https://a/b")).unwrap_err().contains("comes with a later version"));
    }

    #[test]
    fn an_unknown_dataset_names_the_known_ones() {
        let text = "catalog: {type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}\n\
                    ingestion: {datasets: [{name: readings, table: a.b}, {name: spans, table: a.c}]}";
        let config = Config::load(text, &std::collections::HashMap::new()).unwrap();
        assert_eq!(
            unknown_dataset(&config, "span"),
            "--dataset \"span\" is not in firn.yaml, which has readings, spans; did you mean spans?"
        );
        assert_eq!(unknown_dataset(&config, "x"), "--dataset \"x\" is not in firn.yaml, which has readings, spans");
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_ends_the_work_and_says_so() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut work = std::pin::pin!(until_interrupted(std::future::pending::<Result<(), PassError>>()));
            // The first poll installs the handlers; a signal before that would end this process.
            std::future::poll_fn(|context| {
                assert!(work.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            let process = std::process::id().to_string();
            assert!(std::process::Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
            let error = work.await.unwrap_err();
            assert!(
                matches!(&error, PassError::Unavailable(message) if message.starts_with("interrupted;")),
                "{error:?}"
            );
            assert_eq!(until_interrupted(std::future::ready(Ok(7))).await, Ok(7));
        });
    }
}
