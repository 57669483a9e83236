//! One process of the handler: how it is started and ended.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::console::{self, LastLines, Stream};
use super::exit::Ended;
use crate::app::{App, expand};
use crate::log::Log;

/// Tells a handler to end when its stdin does. The real host does not set it: there the machine goes with the host.
const END_WITH_STDIN: &str = "FIRN_END_WITH_STDIN";

/// How the handler is started, as the app says it.
#[derive(Debug, Clone)]
pub(crate) struct HandlerCommand {
    app_root: PathBuf,
    executable: String,
    arguments: Vec<String>,
    working_directory: PathBuf,
    /// App settings, in the names that they were given.
    settings: BTreeMap<String, String>,
}

impl HandlerCommand {
    pub(crate) fn of(app: &App) -> Self {
        let host = &app.host;
        let working_directory =
            host.working_directory.as_ref().map_or_else(|| app.root.clone(), |path| app.root.join(path));
        Self {
            app_root: app.root.clone(),
            executable: host.executable.clone(),
            arguments: host.arguments.clone(),
            working_directory,
            settings: app.settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// The variables that tell the handler where it is.
    fn told(&self, port: u16) -> [(&'static str, String); 5] {
        let id = Uuid::new_v4().to_string();
        [
            ("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string()),
            ("FUNCTIONS_HTTPWORKER_PORT", port.to_string()),
            ("FUNCTIONS_CUSTOMHANDLER_WORKER_ID", id.clone()),
            ("FUNCTIONS_HTTPWORKER_ID", id),
            ("FUNCTIONS_APP_ROOT_PATH", self.app_root.display().to_string()),
        ]
    }

    /// The program: a file below the app root when there is one of that name, else a command of the PATH.
    fn program(&self, expanded: &str) -> PathBuf {
        let below = self.app_root.join(expanded);
        if below.is_file() { below } else { PathBuf::from(expanded) }
    }
}

/// A running handler. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct HandlerProcess {
    child: Child,
    readers: Vec<JoinHandle<()>>,
    last_errors: LastLines,
    pub(crate) port: u16,
}

impl HandlerProcess {
    /// Starts it on a free port of 127.0.0.1, which it learns from its environment; stdout and stderr go to the log.
    pub(crate) fn start(command: &HandlerCommand, log: &Log) -> io::Result<HandlerProcess> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let told = command.told(port);
        let value_of = |name: &str| -> Result<String, std::convert::Infallible> {
            let told = told.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
            let set = || {
                command
                    .settings
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.clone())
            };
            // What is not set is empty.
            Ok(told.or_else(set).unwrap_or_default())
        };
        let expanded = |text: &str| expand(text, value_of).unwrap_or_default();
        let mut process = Command::new(command.program(&expanded(&command.executable)));
        // Ctrl-C in a terminal is for the host, which lets work end before it kills the handler.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let mut child = process
            // The host joins them with spaces, without quotes: a space separates.
            .args(
                command
                    .arguments
                    .iter()
                    .flat_map(|text| expanded(text).split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()),
            )
            .current_dir(&command.working_directory)
            .envs(&command.settings)
            .envs(told.iter().map(|(name, value)| (*name, value)))
            // Its end of the pipe closes when this process is gone, however it went.
            .env(END_WITH_STDIN, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let last_errors = LastLines::default();
        let mut readers = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            readers.push(console::follow(Stream::Stdout, stdout, log.clone(), LastLines::default())?);
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(console::follow(Stream::Stderr, stderr, log.clone(), last_errors.clone())?);
        }
        Ok(HandlerProcess { child, readers, last_errors, port })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; None while it runs.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        self.child.try_wait().ok().flatten().map(how)
    }

    /// Kills it (SIGKILL) and waits for its end, at most `limit`.
    pub(crate) fn kill(&mut self, limit: Duration) {
        let _ = self.child.kill();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < limit {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last lines of stderr, once the streams of an ended process are read, for at most `limit`.
    pub(crate) fn last_errors(&self, limit: Duration) -> String {
        let begun = Instant::now();
        while !self.readers.iter().all(JoinHandle::is_finished) && begun.elapsed() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        self.last_errors.text()
    }
}

impl Drop for HandlerProcess {
    fn drop(&mut self) {
        self.kill(Duration::from_secs(1));
    }
}

fn how(status: ExitStatus) -> Ended {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Ended::Killed(signal);
    }
    Ended::Exited(status.code().unwrap_or(-1))
}
