//! A queue in the memory of the process, for tests of everything above and for jobs without a storage account.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    DEFAULT_TIME_TO_LIVE, MAX_BATCH, PeekedMessage, Queue, QueueError, QueueMessage, SendOptions, check_text,
    check_times,
};
use crate::clock::{Clock, later};
use crate::store::Deleted;

/// A queue in memory. Clones share the messages.
#[derive(Clone)]
pub struct MemoryQueue {
    name: String,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    created: bool,
    /// In the order in which they were sent.
    messages: Vec<QueueMessage>,
    given: u64,
}

impl State {
    fn next(&mut self) -> u64 {
        self.given += 1;
        self.given
    }
}

impl MemoryQueue {
    /// A queue that does not exist until it is created, as in the service.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_clock(name, Clock::system())
    }

    /// The same, over a clock.
    pub fn with_clock(name: impl Into<String>, clock: Clock) -> Self {
        MemoryQueue { name: name.into(), clock, state: Arc::default() }
    }

    /// The messages that have not expired, as of now.
    fn lock(&self) -> Result<(MutexGuard<'_, State>, DateTime<Utc>), QueueError> {
        // No code panics while it holds the lock, and the list is whole between two statements.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.created {
            return Err(QueueError::NotFound { queue: self.name.clone() });
        }
        let now = self.clock.now();
        state.messages.retain(|message| message.expires > now);
        Ok((state, now))
    }

    fn stale(&self, id: &str) -> QueueError {
        QueueError::Stale { queue: self.name.clone(), id: id.into() }
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self.state.lock().unwrap_or_else(PoisonError::into_inner).messages.len();
        write!(f, "MemoryQueue({}, {messages} messages)", self.name)
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    fn name(&self) -> &str {
        &self.name
    }

    async fn create(&self) -> Result<(), QueueError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).created = true;
        Ok(())
    }

    async fn send(&self, text: &str, options: &SendOptions) -> Result<String, QueueError> {
        check_text(&self.name, text)?;
        let life = options.time_to_live.unwrap_or(DEFAULT_TIME_TO_LIVE);
        check_times(&self.name, options.hidden_for, life)?;
        let (mut state, now) = self.lock()?;
        let number = state.next();
        let message = QueueMessage {
            id: format!("message-{number}"),
            pop_receipt: format!("receipt-{number}"),
            text: text.into(),
            dequeue_count: 0,
            inserted: now,
            expires: later(now, life),
            next_visible: later(now, options.hidden_for),
        };
        let id = message.id.clone();
        state.messages.push(message);
        Ok(id)
    }

    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<QueueMessage>, QueueError> {
        let (mut state, now) = self.lock()?;
        let mut received = Vec::new();
        for at in 0..state.messages.len() {
            if received.len() == max.min(MAX_BATCH) {
                break;
            }
            if state.messages[at].next_visible > now {
                continue;
            }
            let receipt = format!("receipt-{}", state.next());
            let message = &mut state.messages[at];
            message.pop_receipt = receipt;
            message.dequeue_count += 1;
            message.next_visible = later(now, visibility);
            received.push(message.clone());
        }
        Ok(received)
    }

    async fn peek(&self, max: usize) -> Result<Vec<PeekedMessage>, QueueError> {
        let (state, now) = self.lock()?;
        let visible = state.messages.iter().filter(|message| message.next_visible <= now).take(max.min(MAX_BATCH));
        let peeked = visible.map(|message| PeekedMessage {
            id: message.id.clone(),
            text: message.text.clone(),
            dequeue_count: message.dequeue_count,
            inserted: message.inserted,
            expires: message.expires,
        });
        Ok(peeked.collect())
    }

    async fn update(
        &self,
        id: &str,
        receipt: &str,
        text: Option<&str>,
        visibility: Duration,
    ) -> Result<String, QueueError> {
        if let Some(text) = text {
            check_text(&self.name, text)?;
        }
        let (mut state, now) = self.lock()?;
        let new_receipt = format!("receipt-{}", state.next());
        let found = state.messages.iter_mut().find(|message| message.id == id && message.pop_receipt == receipt);
        let message = found.ok_or_else(|| self.stale(id))?;
        if let Some(text) = text {
            message.text = text.into();
        }
        message.next_visible = later(now, visibility);
        message.pop_receipt.clone_from(&new_receipt);
        Ok(new_receipt)
    }

    async fn delete(&self, id: &str, receipt: &str) -> Result<Deleted, QueueError> {
        let (mut state, _) = self.lock()?;
        let Some(at) = state.messages.iter().position(|message| message.id == id) else { return Ok(Deleted::Absent) };
        if state.messages[at].pop_receipt != receipt {
            return Err(self.stale(id));
        }
        state.messages.remove(at);
        Ok(Deleted::Deleted)
    }

    async fn length(&self) -> Result<u64, QueueError> {
        Ok(self.lock()?.0.messages.len() as u64)
    }
}
