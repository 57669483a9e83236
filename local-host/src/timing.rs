//! Every interval of the host in one place. The defaults are the real host's.

use std::time::Duration;

/// How the body of an invocation is framed: the real host sends chunks in Azure and a length under Core Tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`, as in Azure.
    #[default]
    Chunked,
    /// `Content-Length`, as under Core Tools.
    ContentLength,
}

/// Intervals and limits of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Between two looks whether the handler answers.
    pub ready_poll: Duration,
    /// The readiness window where host.json names none (`customHandler.initializationTimeout`).
    pub initialization: Duration,
    /// An early invocation waits for the handler this many readiness windows: the first start and three restarts.
    pub gate_windows: u32,
    /// Counted ends of the handler that stop the host.
    pub strikes: usize,
    /// Counted ends are forgotten when the last one is longer ago.
    pub strikes_forgotten_after: Duration,
    /// After a time-out the handler may still answer for this long; then it is killed.
    pub grace: Duration,
    /// How long a killed handler is waited for.
    pub kill_wait: Duration,
    /// How long a received message stays hidden, and is hidden again by each renewal.
    pub receive_visibility: Duration,
    /// Between two renewals.
    pub renew_every: Duration,
    /// The first wait after an empty receive, and the step of the back-off.
    pub minimum_poll: Duration,
    /// Upper bound for the wait after empty receives beside host.json's `maxPollingInterval`. None: only host.json's.
    pub polling_cap: Option<Duration>,
    /// How long a timer's lease lasts, 15 to 60 s; renewed at a third. Also the wait between two tries to get it.
    pub timer_lease: Duration,
    /// How long [`RunningHost::stop`](crate::RunningHost::stop) waits for running invocations before the handler is killed.
    pub drain: Duration,
    /// How bodies are framed.
    pub framing: Framing,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            ready_poll: Duration::from_millis(25),
            initialization: Duration::from_secs(30),
            gate_windows: 4,
            strikes: 3,
            strikes_forgotten_after: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(2),
            kill_wait: Duration::from_secs(1),
            receive_visibility: Duration::from_secs(600),
            renew_every: Duration::from_secs(300),
            minimum_poll: Duration::from_millis(100),
            polling_cap: None,
            timer_lease: Duration::from_secs(60),
            drain: Duration::from_secs(5),
            framing: Framing::Chunked,
        }
    }
}

impl Timing {
    /// As the host runs on a developer's machine: timers' leases of 15 s, and no wait of more than 2 s between two looks
    /// into a queue.
    pub fn development() -> Self {
        Self { timer_lease: Duration::from_secs(15), polling_cap: Some(Duration::from_secs(2)), ..Self::default() }
    }
}
