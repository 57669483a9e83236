//! The handler's process, kept running as the host does: readiness by polling, restarts, three strikes.

pub mod console;
pub mod exit;
mod process;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::log::{Level, Log};
use crate::stop::{StopFlag, Stopped};
use crate::timing::Timing;
use exit::{AfterEnd, Ended, Strikes};
pub(crate) use process::HandlerCommand;
use process::HandlerProcess;

/// How long the streams of an ended process are read for its last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Where the handler answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serving {
    pub(crate) port: u16,
    /// Counts the processes.
    pub(crate) generation: u64,
}

/// What the supervisor needs of the host.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) timing: Timing,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) log: Log,
    pub(crate) stop: StopFlag,
    pub(crate) client: reqwest::Client,
    pub(crate) problems: Problems,
}

/// What strict mode reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Problems {
    pub(crate) strict: bool,
    found: Arc<Mutex<Vec<String>>>,
}

impl Problems {
    pub(crate) fn new(strict: bool) -> Self {
        Self { strict, found: Arc::default() }
    }

    pub(crate) fn add(&self, problem: String) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Keeps the handler running. Clones share the process; it is killed by [`Supervisor::kill`].
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    around: Surroundings,
    window: Duration,
    serving: watch::Sender<Option<Serving>>,
    restarts: mpsc::UnboundedSender<u64>,
    process: Mutex<Option<HandlerProcess>>,
}

impl Supervisor {
    /// Starts the handler and whatever follows from its ends, on a task of its own. Does not wait until it answers.
    pub(crate) fn start(command: HandlerCommand, window: Duration, around: Surroundings) -> Supervisor {
        let (restarts, requests) = mpsc::unbounded_channel();
        let serving = watch::Sender::new(None);
        let shared = Arc::new(Shared { around, window, serving, restarts, process: Mutex::new(None) });
        tokio::spawn(run(shared.clone(), command, requests));
        Supervisor { shared }
    }

    /// Waits until the handler answers. An early invocation waits here, and gives the host up when it takes too long.
    pub(crate) async fn ready(&self) -> Result<Serving, Stopped> {
        let Shared { around, window, .. } = &*self.shared;
        let mut serving = self.shared.serving.subscribe();
        let limit = *window * around.timing.gate_windows;
        tokio::select! {
            biased;
            stopped = around.stop.stopped() => Err(stopped),
            Some(serving) = first_serving(&mut serving) => Ok(serving),
            () = tokio::time::sleep(limit) => {
                let reason = "Initialization timed out and host is shutting down";
                around.log.host(Level::Error, reason);
                around.stop.stop(reason, false);
                Err(around.stop.stopped().await)
            }
        }
    }

    /// Kills and restarts the handler, uncounted, unless that process is gone already.
    pub(crate) fn restart(&self, generation: u64) {
        let _ = self.shared.restarts.send(generation);
    }

    /// Process id of the handler.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.shared.process().as_ref().map(HandlerProcess::id)
    }

    /// Kills the handler. The stop flag must be set before, or it is started again.
    pub(crate) fn kill(&self) {
        self.shared.process().take();
    }
}

impl Shared {
    fn process(&self) -> MutexGuard<'_, Option<HandlerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the new process, unless the host was stopped meanwhile: then it is killed. True when it was taken.
    fn keep(&self, process: HandlerProcess) -> bool {
        let mut slot = self.process();
        if self.around.stop.why().is_some() {
            return false;
        }
        *slot = Some(process);
        true
    }

    fn ended(&self) -> Option<Ended> {
        match &mut *self.process() {
            Some(process) => process.ended(),
            None => Some(Ended::Killed(9)),
        }
    }

    /// Something that the real host would only show as a hang: strict mode ends the host with the reason.
    fn problem(&self, problem: String) {
        let Surroundings { problems, stop, log, .. } = &self.around;
        log.host(Level::Error, problem.clone());
        if problems.strict {
            problems.add(problem.clone());
            stop.stop(problem, false);
        }
    }
}

/// The address of a handler that answers. None when the supervisor is gone, which it is not while somebody asks.
async fn first_serving(serving: &mut watch::Receiver<Option<Serving>>) -> Option<Serving> {
    serving.wait_for(Option::is_some).await.ok().and_then(|serving| *serving)
}

async fn run(shared: Arc<Shared>, command: HandlerCommand, mut requests: mpsc::UnboundedReceiver<u64>) {
    let stop = shared.around.stop.clone();
    tokio::select! {
        _ = stop.stopped() => {}
        () = keep_running(&shared, &command, &mut requests) => {}
    }
    shared.process().take();
}

async fn keep_running(shared: &Shared, command: &HandlerCommand, requests: &mut mpsc::UnboundedReceiver<u64>) {
    let Surroundings { timing, clock, log, stop, .. } = &shared.around;
    let mut strikes = Strikes::default();
    for generation in 1.. {
        let port = match HandlerProcess::start(command, log) {
            Ok(process) => {
                let port = process.port;
                log.host(Level::Debug, format!("handler process {} started on port {port}", process.id()));
                if !shared.keep(process) {
                    return;
                }
                port
            }
            // The real host raises no event here, so nothing starts it again, and the first invocation ends the host.
            Err(error) => {
                shared.problem(format!(
                    "the handler cannot be started ({error}): check defaultExecutablePath and the file's execute bit"
                ));
                return std::future::pending().await;
            }
        };
        let serving = Serving { port, generation };
        let ended = match until_ready(shared, port).await {
            Ok(()) => {
                log.host(Level::Debug, format!("handler answers on port {port}"));
                shared.serving.send_replace(Some(serving));
                until_ended(shared, generation, requests).await
            }
            Err(ended) => ended,
        };
        let said = end_process(shared, &ended).await;
        match strikes.decide(&ended, clock.now(), timing.strikes, timing.strikes_forgotten_after) {
            AfterEnd::Restart => {
                log.host(Level::Warning, format!("the handler {ended}{said}; it is started again"));
                shared.serving.send_replace(None);
            }
            AfterEnd::Shutdown => {
                let reason = "Exceeded http worker restart retry count. Shutting down Functions Host";
                log.host(Level::Error, format!("the handler {ended}{said}. {reason}"));
                stop.stop(format!("{reason}: the handler {ended}{said}"), false);
                return;
            }
            // The host goes on believing that the handler listens.
            AfterEnd::Nothing => {
                shared.problem(format!(
                    "the handler {ended}, which the host never restarts: every invocation fails from now on"
                ));
                while requests.recv().await.is_some_and(|wanted| wanted != generation) {}
                shared.serving.send_replace(None);
            }
        }
    }
}

/// Polls `GET /` until any answer: its status says nothing.
async fn until_ready(shared: &Shared, port: u16) -> Result<(), Ended> {
    let Surroundings { timing, client, .. } = &shared.around;
    let deadline = Instant::now() + shared.window;
    let url = format!("http://127.0.0.1:{port}/");
    loop {
        match tokio::time::timeout_at(deadline, client.get(&url).send()).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_)) => {}
            Err(_) => return Err(Ended::NotReady(shared.window)),
        }
        if let Some(ended) = shared.ended() {
            return Err(ended);
        }
        if Instant::now() >= deadline {
            return Err(Ended::NotReady(shared.window));
        }
        tokio::time::sleep(timing.ready_poll).await;
    }
}

async fn until_ended(shared: &Shared, generation: u64, requests: &mut mpsc::UnboundedReceiver<u64>) -> Ended {
    loop {
        if let Some(ended) = shared.ended() {
            return ended;
        }
        tokio::select! {
            request = requests.recv() => if request == Some(generation) {
                return Ended::FunctionTimeout;
            },
            () = tokio::time::sleep(shared.around.timing.ready_poll) => {}
        }
    }
}

/// Kills what is left of it and returns its last words.
async fn end_process(shared: &Shared, ended: &Ended) -> String {
    let Some(mut process) = shared.process().take() else { return String::new() };
    let limit = shared.around.timing.kill_wait;
    let quote = *ended != Ended::FunctionTimeout;
    let ending = tokio::task::spawn_blocking(move || {
        process.kill(limit);
        if quote { process.last_errors(LAST_WORDS) } else { String::new() }
    });
    match ending.await.unwrap_or_default() {
        said if said.is_empty() => said,
        said => format!(" ({said})"),
    }
}
