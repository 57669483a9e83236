//! What the functions of the host work with: the planner's ticks and the queue's workers. Wired once per binary.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use firn_config::Config;
use firn_model::Message;
use firn_state::StateStore;
use firn_storage::{Clock, Queue};
use firn_telemetry::Emitter;

use crate::memory_budget::MemoryBudget;
use crate::services::Services;
use crate::turns::CommitTurns;

/// Services of a process that works on the queue.
#[derive(Debug, Clone)]
pub struct HostServices {
    /// Catalog, temporary disk, threads and the process's stop flag.
    pub compact: Services,
    /// Ticks, records, parked entries.
    pub state: Arc<StateStore>,
    /// The queue of messages.
    pub queue: Arc<dyn Queue>,
    /// Where the host puts messages that it gives up. Here it is only looked at: the host creates it, and `compact-poison` empties it.
    pub poison: Arc<dyn Queue>,
    /// The configuration.
    pub config: Arc<Config>,
    /// Where events go.
    pub emitter: Emitter,
    /// The time by which records are judged.
    pub clock: Clock,
    /// Commits of one table take turns; None: they do not.
    pub turns: Option<Arc<dyn CommitTurns>>,
    /// The memory of the process; each invocation reserves its `memoryMb` before it starts.
    pub memory: MemoryBudget,
    /// How long one message may be worked on: 80 % of the host's `functionTimeout`. None: without limit.
    pub run_limit: Option<Duration>,
    /// Plans what a message by hand asks for.
    pub fan_out: Arc<dyn FanOut>,
}

/// Plans and enqueues what a message by hand asks for: a whole dataset, or a dry run. The planner's layer lies above this one, so
/// the worker calls it through this port.
#[async_trait]
pub trait FanOut: Send + Sync + Debug {
    /// Runs the pass that `message` asks for. It emits its own terminal event.
    ///
    /// # Errors
    /// What the worker does with the message.
    async fn fan_out(
        &self,
        services: &HostServices,
        message: &Message,
        invocation: &str,
    ) -> Result<FannedOut, FanOutError>;
}

/// A pass by message that went through.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FannedOut {
    /// The pass.
    pub pass: String,
    /// One sentence for the answer.
    pub reason: String,
    /// Its counts, for the answer.
    pub counts: serde_json::Map<String, serde_json::Value>,
}

/// Why a pass by message did not go through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FanOutError {
    /// It cannot be done as it was asked: the message is parked with this reason.
    #[error("{0}")]
    Refused(String),
    /// Something did not answer: the message is sent again for later.
    #[error("{0}")]
    Later(String),
}

/// A process that plans nothing by message.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFanOut;

#[async_trait]
impl FanOut for NoFanOut {
    async fn fan_out(&self, _: &HostServices, _: &Message, _: &str) -> Result<FannedOut, FanOutError> {
        Err(FanOutError::Refused("this process does not plan: name one partition".into()))
    }
}
