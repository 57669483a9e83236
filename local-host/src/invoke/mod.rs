//! One invocation: wait for the handler, call it, judge its answer, write its outputs.

pub mod outputs;
pub mod request;
pub mod response;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::app::{FunctionSpec, MessageEncoding, OutputKind};
use crate::clock::Clock;
use crate::handler::{Problems, Serving, Supervisor};
use crate::log::{Level, Log};
use crate::queue::encoding;
use crate::stop::{StopFlag, Stopped};
use crate::storage::HostStorage;
use crate::timing::{Framing, Timing};
use request::Payload;
use response::{HandlerAnswer, Verdict, judge};

/// What the host calls itself; handlers must not read anything from it.
const HOST_VERSION: &str = "4.1052.200";
const INVOCATION_ID: &str = "X-Azure-Functions-InvocationId";

/// An invocation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Its id, new for each attempt.
    pub id: Uuid,
    /// The function.
    pub function: String,
    /// What came of it.
    pub result: Result<HandlerAnswer, InvocationFailure>,
}

/// Why an invocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvocationFailure {
    /// The host stands still, so nothing runs. Next: look at the reason.
    #[error("the host has stopped: {reason}")]
    HostStopped {
        /// Why.
        reason: String,
        /// Whether somebody asked it to.
        asked: bool,
    },
    /// The trigger's data cannot be given to the function, for example a body that is no UTF-8.
    #[error("{0}")]
    Trigger(String),
    /// The handler could not be reached, or the connection broke: the process is probably gone.
    #[error("the handler gave no answer: {0}")]
    Connection(String),
    /// The handler's answer is a failure, or is none that the host takes.
    #[error("{0}")]
    Answer(String),
    /// Strict mode: the real host would wait for functionTimeout and then kill the handler.
    #[error("{0} (the real host hangs here until functionTimeout and then kills the handler)")]
    Hang(String),
    /// functionTimeout has passed.
    #[error("Timeout value of {0:?} exceeded by the function")]
    Timeout(Duration),
    /// The handler succeeded, but an output could not be written.
    #[error("output binding: {0}")]
    Output(String),
}

impl From<Stopped> for InvocationFailure {
    fn from(stopped: Stopped) -> Self {
        InvocationFailure::HostStopped { reason: stopped.reason, asked: stopped.asked }
    }
}

/// Runs functions. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Invoker {
    pub(crate) supervisor: Supervisor,
    pub(crate) client: reqwest::Client,
    pub(crate) log: Log,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: StopFlag,
    pub(crate) problems: Problems,
    pub(crate) storage: Arc<dyn HostStorage>,
    pub(crate) encoding: MessageEncoding,
    pub(crate) function_timeout: Option<Duration>,
    pub(crate) timing: Timing,
    pub(crate) running: Running,
}

/// Counts the invocations that run.
#[derive(Debug, Clone)]
pub(crate) struct Running(Arc<watch::Sender<usize>>);

/// One that runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Running);

impl Running {
    pub(crate) fn none() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn count(&self) -> usize {
        *self.0.borrow()
    }

    pub(crate) fn begin(&self) -> Ticket {
        self.0.send_modify(|count| *count += 1);
        Ticket(self.clone())
    }

    /// Returns when none runs more than `most`.
    pub(crate) async fn at_most(&self, most: usize) {
        // The sender lives in `self`.
        let _ = self.0.subscribe().wait_for(|count| *count <= most).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Invoker {
    /// Runs `function` once. `reason` says in the log why.
    pub(crate) async fn invoke(
        &self,
        function: &FunctionSpec,
        payload: Result<Payload, String>,
        reason: &str,
    ) -> Invocation {
        let _ticket = self.running.begin();
        let id = Uuid::new_v4();
        let name = &function.name;
        self.log.function(
            Level::Information,
            name,
            Some(id),
            format!("Executing 'Functions.{name}' (Reason='{reason}', Id={id})"),
        );
        let result = match payload {
            Ok(payload) => self.run(function, id, &payload).await,
            Err(why) => Err(InvocationFailure::Trigger(why)),
        };
        match &result {
            Ok(_) => {
                self.log.function(
                    Level::Information,
                    name,
                    Some(id),
                    format!("Executed 'Functions.{name}' (Succeeded, Id={id})"),
                );
            }
            Err(failure) => {
                let message = format!("Executed 'Functions.{name}' (Failed, Id={id}): {failure}");
                self.log.function(Level::Error, name, Some(id), message);
            }
        }
        Invocation { id, function: name.clone(), result }
    }

    async fn run(
        &self,
        function: &FunctionSpec,
        id: Uuid,
        payload: &Payload,
    ) -> Result<HandlerAnswer, InvocationFailure> {
        let serving = self.supervisor.ready().await?;
        let call = self.call(&function.name, id, payload, serving);
        let mut call = tokio::spawn(call);
        let timeout = async {
            match self.function_timeout {
                Some(limit) => self.clock.sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            answer = &mut call => answer.unwrap_or_else(|error| Err(InvocationFailure::Connection(error.to_string())))?,
            stopped = self.stop.stopped() => {
                call.abort();
                return Err(stopped.into());
            }
            () = timeout => {
                self.after_timeout(call, serving);
                return Err(InvocationFailure::Timeout(self.function_timeout.unwrap_or_default()));
            }
        };
        for line in &answer.logs {
            self.log.function(Level::Information, &function.name, Some(id), line.clone());
        }
        self.write_outputs(function, &answer).await.map_err(InvocationFailure::Output)?;
        Ok(answer)
    }

    /// Calls the handler. Never returns where the real host never would, unless strict.
    fn call(
        &self,
        function: &str,
        id: Uuid,
        payload: &Payload,
        serving: Serving,
    ) -> impl Future<Output = Result<HandlerAnswer, InvocationFailure>> + Send + 'static {
        let body = payload.to_json().to_string();
        let body = match self.timing.framing {
            Framing::ContentLength => reqwest::Body::from(body),
            Framing::Chunked => {
                reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(body.into_bytes())]))
            }
        };
        let request = self
            .client
            .post(format!("http://127.0.0.1:{}/{function}", serving.port))
            .header(INVOCATION_ID, id.to_string())
            .header("X-Azure-Functions-HostVersion", HOST_VERSION)
            .header(USER_AGENT, format!("Azure-Functions-Host/{HOST_VERSION}"))
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .body(body);
        let (log, problems, function) = (self.log.clone(), self.problems.clone(), function.to_owned());
        async move {
            let lost = |error: reqwest::Error| InvocationFailure::Connection(chain(&error));
            let answer = request.send().await.map_err(lost)?;
            let (status, content_type) = (answer.status().as_u16(), content_type(answer.headers()));
            let body = answer.bytes().await.map_err(lost)?;
            match judge(status, content_type.as_deref(), &body) {
                Verdict::Answered(answer) => Ok(answer),
                Verdict::Failed(why) => Err(InvocationFailure::Answer(why)),
                Verdict::Hangs(why) if problems.strict => {
                    problems.add(format!("function {function}: {why}"));
                    Err(InvocationFailure::Hang(why))
                }
                Verdict::Hangs(why) => {
                    log.function(Level::Debug, &function, Some(id), format!("{why}; this invocation never ends"));
                    std::future::pending().await
                }
            }
        }
    }

    /// The handler may still answer within the grace; else its one process is killed, with everything that runs in it.
    fn after_timeout(&self, call: JoinHandle<Result<HandlerAnswer, InvocationFailure>>, serving: Serving) {
        let (supervisor, grace) = (self.supervisor.clone(), self.timing.grace);
        tokio::spawn(async move {
            if tokio::time::timeout(grace, call).await.is_err() {
                supervisor.restart(serving.generation);
            }
        });
    }

    /// Writes queue outputs: by their names in `Outputs`, `$return` from `ReturnValue`, whose members stand for `Outputs` where
    /// it is an object and no output is named `$return`. An output that was written stays when another fails.
    async fn write_outputs(&self, function: &FunctionSpec, answer: &HandlerAnswer) -> Result<(), String> {
        for output in &function.outputs {
            let OutputKind::Queue { queue, connection, binary } = &output.kind else { continue };
            let Some(value) = output_value(function, answer, &output.name) else { continue };
            let messages = outputs::messages_of(value, *binary).map_err(|why| format!("{}: {why}", output.name))?;
            if messages.is_empty() {
                continue;
            }
            let port = self.storage.queue(&connection.0, queue).await?;
            port.create().await.map_err(|error| error.to_string())?;
            for bytes in messages {
                let text = encoding::encode(self.encoding, &bytes);
                port.send(&text, &Default::default()).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// The value for an output: names are compared with case.
pub(crate) fn output_value<'a>(
    function: &FunctionSpec,
    answer: &'a HandlerAnswer,
    name: &str,
) -> Option<&'a serde_json::Value> {
    if name == "$return" {
        return Some(&answer.return_value);
    }
    let named_return = function.outputs.iter().any(|output| output.name == "$return");
    let returned = answer.return_value.as_object().filter(|_| !named_return);
    answer.outputs.get(name).or_else(|| returned?.get(name))
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(CONTENT_TYPE)?.to_str().unwrap_or("unreadable").to_owned())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
