//! The port to a queue of short texts, as Azure Queue Storage has them: at least once, in no promised order.

mod memory;

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::store::Deleted;

pub use memory::MemoryQueue;

/// The largest message in bytes of UTF-8.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Most messages that one call receives or peeks at; more are cut down to it.
pub const MAX_BATCH: usize = 32;

/// Longest time that a message can stay hidden.
pub const MAX_HIDDEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// The life of a message that names none.
pub const DEFAULT_TIME_TO_LIVE: Duration = Duration::from_secs(7 * 24 * 3600);

/// How a message is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// Nobody receives it before this time has passed; shorter than its life.
    pub hidden_for: Duration,
    /// It vanishes after this time; None: [`DEFAULT_TIME_TO_LIVE`].
    pub time_to_live: Option<Duration>,
}

/// A message that was received: hidden from others until `next_visible`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage {
    /// The id that [`Queue::send`] returned.
    pub id: String,
    /// Proves that one received it last; changes with each receive and update.
    pub pop_receipt: String,
    /// The text exactly as it was sent.
    pub text: String,
    /// How often it was received, this time included.
    pub dequeue_count: u64,
    /// When it was sent.
    pub inserted: DateTime<Utc>,
    /// When it vanishes.
    pub expires: DateTime<Utc>,
    /// When others can receive it.
    pub next_visible: DateTime<Utc>,
}

/// A message that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeekedMessage {
    /// The id that [`Queue::send`] returned.
    pub id: String,
    /// The text exactly as it was sent.
    pub text: String,
    /// How often it was received so far.
    pub dequeue_count: u64,
    /// When it was sent.
    pub inserted: DateTime<Utc>,
    /// When it vanishes.
    pub expires: DateTime<Utc>,
}

/// Why a queue could not do what it was asked, by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// No such queue. Next: create it, or stop: a person corrects the name.
    #[error("queue `{queue}` does not exist: create it or correct storage.queue")]
    NotFound {
        /// The queue.
        queue: String,
    },
    /// The credentials do not allow it. Next: stop; a person corrects key or role.
    #[error("queue `{queue}`: access denied ({detail}): check the credentials of this account and their roles")]
    Denied {
        /// The queue.
        queue: String,
        /// What the service said.
        detail: String,
    },
    /// The service asks for patience and the time for retries is used up. Next: try later.
    #[error("queue `{queue}`: the storage account is busy ({detail}): try again later")]
    Throttled {
        /// The queue.
        queue: String,
        /// What the service said.
        detail: String,
    },
    /// The service cannot be reached or fails, after all retries. What was asked for may have happened, a send too: whoever
    /// sends again must bear a message that arrives twice. Next: try later.
    #[error("queue `{queue}` is unavailable ({detail}): check the endpoint and the network, then try again")]
    Unavailable {
        /// The queue.
        queue: String,
        /// What happened, how often and how long it was tried.
        detail: String,
    },
    /// The text is longer than [`MAX_MESSAGE_BYTES`]. Next: send less.
    #[error("queue `{queue}`: a message of {bytes} bytes is too large, 65536 is the most: send less")]
    TooLarge {
        /// The queue.
        queue: String,
        /// Bytes of the text.
        bytes: usize,
    },
    /// Another received the message since, or it is gone: the receipt is not the last one. Next: forget the message.
    #[error("queue `{queue}`: message {id} was received by another or is gone: forget it")]
    Stale {
        /// The queue.
        queue: String,
        /// The message.
        id: String,
    },
    /// Anything else. Next: stop and show it.
    #[error("queue `{queue}`: {detail}")]
    Other {
        /// The queue.
        queue: String,
        /// What happened.
        detail: String,
    },
}

impl QueueError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, QueueError::Throttled { .. } | QueueError::Unavailable { .. })
    }
}

/// A queue. Every method retries what is worth a retry by itself.
#[async_trait]
pub trait Queue: Send + Sync + Debug {
    /// The queue's name.
    fn name(&self) -> &str;

    /// Creates the queue; fine when it is there.
    async fn create(&self) -> Result<(), QueueError>;

    /// Sends a text and returns the message's id. A send whose answer was lost is repeated, so a message may arrive twice.
    ///
    /// # Errors
    /// [`QueueError::TooLarge`]; [`QueueError::Other`] for characters that XML cannot hold (control characters) and for
    /// times that the service does not take.
    async fn send(&self, text: &str, options: &SendOptions) -> Result<String, QueueError>;

    /// Receives up to `max` messages, or none, and hides them for `visibility` (1 s to [`MAX_HIDDEN`]). Does not wait.
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<QueueMessage>, QueueError>;

    /// Looks at up to `max` visible messages and changes nothing.
    async fn peek(&self, max: usize) -> Result<Vec<PeekedMessage>, QueueError>;

    /// Hides a received message for `visibility` from now on (nothing: visible at once), with another text if given, and
    /// returns its new receipt.
    ///
    /// # Errors
    /// [`QueueError::Stale`].
    async fn update(
        &self,
        id: &str,
        receipt: &str,
        text: Option<&str>,
        visibility: Duration,
    ) -> Result<String, QueueError>;

    /// Deletes a received message. [`Deleted::Absent`]: there is none of that id with that receipt.
    ///
    /// # Errors
    /// [`QueueError::Stale`] where the service can tell that another received it since; Azure may call that absent.
    async fn delete(&self, id: &str, receipt: &str) -> Result<Deleted, QueueError>;

    /// How many messages there are, hidden ones too, as the service counts: roughly.
    async fn length(&self) -> Result<u64, QueueError>;
}

/// Refuses a text that no service would take.
pub(crate) fn check_text(queue: &str, text: &str) -> Result<(), QueueError> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(QueueError::TooLarge { queue: queue.into(), bytes: text.len() });
    }
    let allowed = |at: char| matches!(at, '\t' | '\n' | '\r') || (at >= ' ' && !matches!(at, '\u{fffe}' | '\u{ffff}'));
    match text.chars().find(|at| !allowed(*at)) {
        Some(at) => {
            let detail = format!("a message cannot hold the character {at:?}: encode the text");
            Err(QueueError::Other { queue: queue.into(), detail })
        }
        None => Ok(()),
    }
}

/// Refuses times that no service would take.
pub(crate) fn check_times(queue: &str, hidden_for: Duration, time_to_live: Duration) -> Result<(), QueueError> {
    let failed = |detail: String| Err(QueueError::Other { queue: queue.into(), detail });
    if hidden_for > MAX_HIDDEN {
        return failed(format!("a message is hidden for at most 7 days, not {} s", hidden_for.as_secs()));
    }
    if time_to_live.as_secs() == 0 || hidden_for.as_secs() >= time_to_live.as_secs() {
        let (hidden, life) = (hidden_for.as_secs(), time_to_live.as_secs());
        return failed(format!("a message hidden for {hidden} s would not be seen in its life of {life} s"));
    }
    Ok(())
}
