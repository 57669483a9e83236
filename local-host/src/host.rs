//! A host: an app's functions, running.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_storage::Queue;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::{App, AppError, AuthLevel, FunctionSpec, Trigger};
use crate::handler::{HandlerCommand, Problems, Supervisor, Surroundings};
use crate::http::keys::Keys;
use crate::http::{Served, serve};
use crate::invoke::{Invocation, Invoker, Running};
use crate::log::{Level, Log};
use crate::manual::Manual;
use crate::options::HostOptions;
use crate::queue::decide::poison_queue;
use crate::queue::{IDLE_LOOK, MessageWork, QueueListener, busy_queues};
use crate::stop::StopFlag;
use crate::storage::HostBlobs;
use crate::timer::{StatusBlob, TimerListener};

/// The setting with the storage account of timers.
const HOST_STORAGE: &str = "AzureWebJobsStorage";
/// The setting that names the host.
const HOST_ID: &str = "AzureFunctionsWebHost__hostid";
/// A call of the handler ends by itself this long after functionTimeout.
const CLIENT_MARGIN: Duration = Duration::from_secs(60);
/// After everything was killed, how long the last messages may take to be released.
const LAST_STEPS: Duration = Duration::from_secs(20);

/// Why a host does not start. Next: a person corrects what the message names.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The app's files or settings.
    #[error(transparent)]
    App(#[from] AppError),
    /// A storage account.
    #[error("{what}: {why}")]
    Storage {
        /// Which setting or queue.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// The port.
    #[error("port {port} of 127.0.0.1: {source}; choose another, or 0 for a free one")]
    Port {
        /// The port asked for.
        port: u16,
        /// Cause.
        source: std::io::Error,
    },
    /// The folder for keys.
    #[error("the host's folder for keys {folder}: {source}; make it writable, or name another with FIRN_LOCAL_DIR")]
    State {
        /// The folder.
        folder: String,
        /// Cause.
        source: std::io::Error,
    },
    /// No HTTP client can be made.
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
}

/// Why [`RunningHost::wait_idle`] gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotIdle {
    /// The host stands still, so nothing gets done any more.
    #[error("the host has stopped: {0}")]
    Stopped(String),
    /// The time is over.
    #[error("still {running} running, and messages in {queues:?}")]
    Busy {
        /// Invocations that run.
        running: usize,
        /// Queues with messages, hidden ones too.
        queues: Vec<(String, u64)>,
    },
}

/// A function as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionLine {
    /// Its name.
    pub name: String,
    /// What makes it run: `queue firn-compact`, `timer 0 */5 * * * *`, `http GET`.
    pub trigger: String,
    /// Address of an HTTP function, without a key.
    pub url: Option<String>,
}

pub(crate) fn functions_of(app: &App, url: &str) -> Vec<FunctionLine> {
    let line = |function: &FunctionSpec| {
        let (trigger, url) = match &function.trigger {
            Trigger::Queue { queue, .. } => (format!("queue {queue}"), None),
            Trigger::Timer { schedule, .. } => (format!("timer {}", schedule.as_str()), None),
            Trigger::Http { methods, route, .. } => {
                let prefix = Some(app.host.route_prefix.as_str()).filter(|prefix| !prefix.is_empty());
                let path = prefix.into_iter().chain([route.as_str()]).collect::<Vec<_>>().join("/");
                let methods = if methods.is_empty() { "any".to_owned() } else { methods.join(",") };
                (format!("http {methods}"), Some(format!("{url}/{path}")))
            }
        };
        FunctionLine { name: function.name.clone(), trigger, url }
    };
    app.functions.iter().map(line).collect()
}

/// The host: the way in is [`Host::start`].
#[derive(Debug)]
pub struct Host;

impl Host {
    /// Starts the handler, the listeners and the HTTP server. Does not wait until the handler answers.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(options: HostOptions) -> Result<RunningHost, StartError> {
        // Only valid UTF-8 is a setting.
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let app = App::load(&options.app_root, &options.settings, environment)?;
        let keys = match &options.state_folder {
            None => Keys::generate(),
            Some(folder) => Keys::kept_in(folder)
                .map_err(|source| StartError::State { folder: folder.display().to_string(), source })?,
        };
        let host_id = app.settings.get(HOST_ID).map_or_else(|| host_id(&app.root), str::to_owned);
        let host_blobs = open_host_blobs(&app, &options).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
        let port_error = |source| StartError::Port { port: options.port, source };
        let listener = listener.map_err(port_error)?;
        let url = format!("http://127.0.0.1:{}", listener.local_addr().map_err(port_error)?.port());
        let invoker = invoker(&app, &options)?;
        let mut host = Starting { app, invoker, tasks: Vec::new(), queues: Vec::new(), manual: Manual::default() };
        // The tasks begin after everything was opened: a failed start leaves no listener behind.
        match host.listeners(host_blobs.as_ref(), &host_id).await {
            Ok(()) => {}
            Err(error) => {
                host.invoker.stop.stop("the host did not start", true);
                host.invoker.supervisor.kill();
                return Err(error);
            }
        }
        let Starting { app, invoker, mut tasks, queues, manual } = host;
        let served = Arc::new(Served { app, keys, invoker, manual, host_id, url });
        let server = tokio::spawn(serve(listener, served.clone()));
        let listeners = tasks.drain(..).map(tokio::spawn).collect();
        Ok(RunningHost { served, server, listeners, queues })
    }
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

struct Starting {
    app: App,
    invoker: Invoker,
    tasks: Vec<Task>,
    queues: Vec<Arc<dyn Queue>>,
    manual: Manual,
}

impl Starting {
    async fn listeners(&mut self, host_blobs: Option<&HostBlobs>, host_id: &str) -> Result<(), StartError> {
        for function in self.app.functions.clone() {
            let name = function.name.clone();
            match &function.trigger {
                Trigger::Http { .. } => {}
                Trigger::Queue { binding, queue, connection, binary } => {
                    let port = self.invoker.storage.queue(&connection.0, queue).await;
                    let what = || format!("function {name}, queue {queue}");
                    let port = port.map_err(|why| StartError::Storage { what: what(), why })?;
                    self.queues.push(port.clone());
                    let settings = self.app.host.queues.clone();
                    let work = MessageWork {
                        invoker: self.invoker.clone(),
                        binding: binding.clone(),
                        binary: *binary,
                        queue: port,
                        connection: connection.clone(),
                        poison: poison_queue(queue),
                        settings: settings.clone(),
                        function,
                    };
                    self.tasks.push(Box::pin(QueueListener { work: Arc::new(work), settings }.run()));
                }
                Trigger::Timer { binding, schedule, run_on_startup, use_monitor } => {
                    let Some(place) = host_blobs else { continue };
                    let status = StatusBlob::of(place, host_id, &name);
                    if *use_monitor {
                        self.manual.statuses.insert(name.clone(), status.clone());
                    }
                    let timer = TimerListener {
                        invoker: self.invoker.clone(),
                        binding: binding.clone(),
                        schedule: schedule.clone(),
                        run_on_startup: *run_on_startup,
                        monitored: *use_monitor,
                        place: place.clone(),
                        status,
                        lock: TimerListener::lock_of(place, host_id, &name),
                        function,
                    };
                    self.tasks.push(Box::pin(timer.run()));
                }
            }
        }
        Ok(())
    }
}

async fn open_host_blobs(app: &App, options: &HostOptions) -> Result<Option<HostBlobs>, StartError> {
    let timers: BTreeSet<&str> = app
        .functions
        .iter()
        .filter(|function| matches!(function.trigger, Trigger::Timer { .. }))
        .map(|function| function.name.as_str())
        .collect();
    let Some(first) = timers.first() else { return Ok(None) };
    let connection = app.settings.connection(HOST_STORAGE, &format!("timer {first}"))?;
    let opened = options.storage.host_blobs(connection).await;
    opened.map(Some).map_err(|why| StartError::Storage { what: format!("app setting {HOST_STORAGE}"), why })
}

fn invoker(app: &App, options: &HostOptions) -> Result<Invoker, StartError> {
    // One TLS provider in the process. An error says that another part has installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder().no_proxy();
    if let Some(limit) = app.host.function_timeout {
        client = client.timeout(limit + CLIENT_MARGIN);
    }
    let client = client.build().map_err(|error| StartError::Client(error.to_string()))?;
    let (log, stop, problems) = (Log::new(options.log.clone()), StopFlag::new(), Problems::new(options.strict));
    let around = Surroundings {
        timing: options.timing.clone(),
        clock: options.clock.clone(),
        log: log.clone(),
        stop: stop.clone(),
        client: client.clone(),
        problems: problems.clone(),
    };
    let window = app.host.initialization_timeout.unwrap_or(options.timing.initialization);
    let supervisor = Supervisor::start(HandlerCommand::of(app), window, around);
    Ok(Invoker {
        supervisor,
        client,
        log,
        clock: options.clock.clone(),
        stop,
        problems,
        storage: options.storage.clone(),
        encoding: app.host.queues.message_encoding,
        function_timeout: app.host.function_timeout,
        timing: options.timing.clone(),
        running: Running::none(),
    })
}

/// The host's name where no setting gives one: the app's folder on this machine.
fn host_id(root: &Path) -> String {
    let digest = Sha256::digest(root.display().to_string().as_bytes());
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("local-{hash}")
}

/// A host that runs. Dropping it kills the handler and ends everything at once; [`RunningHost::stop`] lets work end.
#[derive(Debug)]
pub struct RunningHost {
    served: Arc<Served>,
    server: JoinHandle<()>,
    listeners: Vec<JoinHandle<()>>,
    queues: Vec<Arc<dyn Queue>>,
}

impl RunningHost {
    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.served.url
    }

    /// The key that opens everything.
    pub fn master_key(&self) -> &str {
        &self.served.keys.master
    }

    /// The key of HTTP functions.
    pub fn function_key(&self) -> &str {
        &self.served.keys.function
    }

    /// The name under which timers keep their status and lease.
    pub fn host_id(&self) -> &str {
        &self.served.host_id
    }

    /// The functions, by name.
    pub fn functions(&self) -> Vec<FunctionLine> {
        functions_of(&self.served.app, &self.served.url)
    }

    /// The address of an HTTP function with the key that it needs; None when there is no such HTTP function.
    pub fn function_url(&self, name: &str) -> Option<String> {
        let function = self.served.app.function(name)?;
        let Trigger::Http { auth_level, .. } = &function.trigger else { return None };
        let line = self.functions().into_iter().find(|line| line.name == function.name)?;
        let key = match auth_level {
            AuthLevel::Anonymous => return line.url,
            AuthLevel::Function => self.function_key(),
            AuthLevel::Admin => self.master_key(),
        };
        line.url.map(|url| format!("{url}?code={key}"))
    }

    /// Process id of the handler while one runs.
    pub fn handler_process(&self) -> Option<u32> {
        self.served.invoker.supervisor.process_id()
    }

    /// Runs a function now and waits for what comes of it. None when there is none of this name.
    pub async fn invoke(&self, function: &str, input: &str) -> Option<Invocation> {
        let function = self.served.app.function(function)?.clone();
        Some(self.served.manual.invoke(&self.served.invoker, &function, input).await)
    }

    /// What strict mode found: things that the real host would only show as a hang.
    pub fn problems(&self) -> Vec<String> {
        self.served.invoker.problems.all()
    }

    /// Waits until the handler answers.
    ///
    /// # Errors
    /// Why the host stopped instead.
    pub async fn ready(&self) -> Result<(), String> {
        self.served.invoker.supervisor.ready().await.map(|_| ()).map_err(|stopped| stopped.reason)
    }

    /// Waits until the host gives up by itself, and says why.
    pub async fn stopped(&self) -> String {
        self.served.invoker.stop.stopped().await.reason
    }

    /// Waits until nothing runs and all queues that functions listen to are empty, hidden messages included.
    ///
    /// # Errors
    /// [`NotIdle`] after `limit`, or when the host stopped.
    pub async fn wait_idle(&self, limit: Duration) -> Result<(), NotIdle> {
        let begun = Instant::now();
        loop {
            if let Some(stopped) = self.served.invoker.stop.why() {
                return Err(NotIdle::Stopped(stopped.reason));
            }
            // The queues first: what runs may send to them until it ends.
            let running = self.served.invoker.running.count();
            let queues = busy_queues(&self.queues).await;
            if running == 0 && queues.is_empty() && self.served.invoker.running.count() == 0 {
                return Ok(());
            }
            if begun.elapsed() >= limit {
                return Err(NotIdle::Busy { running, queues });
            }
            tokio::time::sleep(IDLE_LOOK).await;
        }
    }

    /// Takes no new work, waits a little for what runs, kills the handler, and returns when messages are released and leases
    /// given back.
    pub async fn stop(mut self) {
        let invoker = &self.served.invoker;
        invoker.stop.drain();
        let _ = tokio::time::timeout(invoker.timing.drain, invoker.running.at_most(0)).await;
        invoker.stop.stop("the host was asked to stop", true);
        invoker.supervisor.kill();
        for mut listener in std::mem::take(&mut self.listeners) {
            if tokio::time::timeout(LAST_STEPS, &mut listener).await.is_err() {
                listener.abort();
                invoker.log.host(Level::Warning, "a listener did not end in time");
            }
        }
        self.server.abort();
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        self.served.invoker.stop.stop("the host was dropped", true);
        self.served.invoker.supervisor.kill();
        for listener in &self.listeners {
            listener.abort();
        }
        self.server.abort();
    }
}
