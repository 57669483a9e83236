//! One message from its receipt to its end.

use std::sync::Mutex;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::Utc;
use firn_storage::{Queue, QueueError, QueueMessage};
use tokio::sync::oneshot;

use super::decide::{Begin, Finish, RunEnd, decide_begin, decide_finish};
use super::encoding::{decode, encode};
use crate::app::{Connection, FunctionSpec, QueueSettings};
use crate::invoke::request::{MessageFacts, Payload, system};
use crate::invoke::{Invocation, InvocationFailure, Invoker};
use crate::log::Level;

/// After a renewal that failed the next try comes sooner.
const RENEW_AGAIN: Duration = Duration::from_secs(60);

/// What works on the messages of one function.
#[derive(Debug)]
pub(crate) struct MessageWork {
    pub(crate) invoker: Invoker,
    pub(crate) function: FunctionSpec,
    pub(crate) binding: String,
    pub(crate) binary: bool,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) connection: Connection,
    pub(crate) poison: Option<String>,
    pub(crate) settings: QueueSettings,
}

impl MessageWork {
    /// Runs the function over a message and finishes it as the outcome says.
    pub(crate) async fn process(&self, message: QueueMessage) {
        // Counts until the message is finished, so that a drained host has finished its messages.
        let _ticket = self.invoker.running.begin();
        let Some(bytes) = decode(self.settings.message_encoding, &message.text) else {
            self.to_poison(&message, &message.pop_receipt, &message.text).await;
            return;
        };
        let has_poison = self.poison.is_some();
        let max = self.settings.max_dequeue_count;
        if decide_begin(message.dequeue_count, max, has_poison) == Begin::Poison {
            self.to_poison(&message, &message.pop_receipt, &self.again(&bytes)).await;
            return;
        }
        let receipt = Mutex::new(message.pop_receipt.clone());
        let (ended, end) = oneshot::channel();
        let invoke = async {
            let invocation = self.invoke(&message, &bytes).await;
            drop(ended);
            invocation
        };
        let (invocation, ()) = tokio::join!(invoke, self.keep_hidden(&message.id, &receipt, end));
        let receipt = receipt.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = run_end(&invocation);
        match decide_finish(end, message.dequeue_count, max, has_poison, self.settings.visibility_timeout) {
            Finish::Delete => self.done(self.queue.delete(&message.id, &receipt).await.map(|_| ()), "delete"),
            Finish::Poison => self.to_poison(&message, &receipt, &self.again(&bytes)).await,
            Finish::Release(hidden) => {
                let released = self.queue.update(&message.id, &receipt, None, hidden).await;
                self.done(released.map(|_| ()), "release");
            }
            Finish::Leave => {}
        }
    }

    async fn invoke(&self, message: &QueueMessage, bytes: &[u8]) -> Invocation {
        let facts = MessageFacts {
            id: Some(message.id.clone()),
            pop_receipt: Some(message.pop_receipt.clone()),
            dequeue_count: u32::try_from(message.dequeue_count).unwrap_or(u32::MAX),
            inserted: message.inserted,
            expires: (message.expires < chrono::DateTime::<Utc>::MAX_UTC).then_some(message.expires),
            next_visible: Some(message.next_visible),
        };
        let payload = self.payload(bytes, &facts);
        let reason = format!("New queue message detected on '{}'.", self.queue.name());
        self.invoker.invoke(&self.function, payload, &reason).await
    }

    fn payload(&self, bytes: &[u8], facts: &MessageFacts) -> Result<Payload, String> {
        payload_of(&self.function.name, &self.binding, self.binary, bytes, facts, self.invoker.clock.now())
    }

    /// Hides the message again before its time ends, until `end`. A renewal that was begun is never given up half-way: its
    /// receipt would be lost, and the message could not be deleted any more.
    async fn keep_hidden(&self, id: &str, receipt: &Mutex<String>, mut end: oneshot::Receiver<()>) {
        let timing = &self.invoker.timing;
        let mut wait = timing.renew_every;
        loop {
            tokio::select! {
                _ = &mut end => return,
                () = self.invoker.clock.sleep(wait) => {}
            }
            let current = receipt.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match self.queue.update(id, &current, None, timing.receive_visibility).await {
                Ok(new) => {
                    *receipt.lock().unwrap_or_else(PoisonError::into_inner) = new;
                    wait = timing.renew_every;
                }
                Err(error @ (QueueError::Stale { .. } | QueueError::NotFound { .. })) => {
                    self.log(Level::Warning, format!("the message is not kept hidden any more: {error}"));
                    return;
                }
                Err(error) => {
                    self.log(Level::Error, format!("cannot keep a message hidden: {error}"));
                    wait = RENEW_AGAIN.min(timing.renew_every);
                }
            }
        }
    }

    /// The text under which the same bytes go to the poison queue.
    fn again(&self, bytes: &[u8]) -> String {
        encode(self.settings.message_encoding, bytes)
    }

    /// A new message with the same body, nothing else, then the old one is deleted. A message that has nowhere to go stays
    /// hidden until its time ends.
    async fn to_poison(&self, message: &QueueMessage, receipt: &str, text: &str) {
        let Some(poison) = &self.poison else { return };
        let max = self.settings.max_dequeue_count;
        self.log(
            Level::Warning,
            format!("Message has reached MaxDequeueCount of {max}. Moving message to queue '{poison}'."),
        );
        if let Err(why) = self.copy_to(poison, text).await {
            // Nothing handles this error in the real host, so it goes down.
            let reason = format!("cannot write to queue '{poison}': {why}");
            self.log(Level::Error, reason.clone());
            self.invoker.stop.stop(reason, false);
            return;
        }
        self.done(self.queue.delete(&message.id, receipt).await.map(|_| ()), "delete");
    }

    async fn copy_to(&self, poison: &str, text: &str) -> Result<(), String> {
        let queue = self.invoker.storage.queue(&self.connection.0, poison).await?;
        queue.create().await.map_err(|error| error.to_string())?;
        queue.send(text, &Default::default()).await.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// A message that another has by now, or that is gone, is no error.
    fn done(&self, result: Result<(), QueueError>, doing: &str) {
        match result {
            Ok(()) | Err(QueueError::Stale { .. } | QueueError::NotFound { .. }) => {}
            Err(error) => self.log(Level::Error, format!("cannot {doing} a message: {error}")),
        }
    }

    fn log(&self, level: Level, message: String) {
        self.invoker.log.function(level, &self.function.name, None, message);
    }
}

/// The payload for a message's bytes. Err: they are no text, and the trigger asks for one.
pub(crate) fn payload_of(
    function: &str,
    binding: &str,
    binary: bool,
    bytes: &[u8],
    facts: &MessageFacts,
    now: chrono::DateTime<Utc>,
) -> Result<Payload, String> {
    let sys = system(function, now);
    if binary {
        return Ok(Payload::queue_bytes(binding, bytes, facts, sys));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Payload::queue_text(binding, text, facts, sys)),
        Err(_) => Err(format!("binding '{binding}': the message is no UTF-8; set dataType to binary")),
    }
}

fn run_end(invocation: &Invocation) -> RunEnd {
    match &invocation.result {
        Ok(_) => RunEnd::Succeeded,
        Err(InvocationFailure::HostStopped { asked: true, .. }) => RunEnd::HostStops,
        Err(InvocationFailure::HostStopped { asked: false, .. }) => RunEnd::HostGaveUp,
        Err(_) => RunEnd::Failed,
    }
}
