//! The loop over a queue: receive, hand out, wait.

use std::sync::Arc;
use std::time::Duration;

use firn_storage::{Queue, QueueError};
use tokio::task::JoinSet;

use super::backoff::Backoff;
use super::message::MessageWork;
use crate::app::QueueSettings;
use crate::invoke::Running;
use crate::log::Level;

/// Listens to the queue of one function.
#[derive(Debug)]
pub(crate) struct QueueListener {
    pub(crate) work: Arc<MessageWork>,
    pub(crate) settings: QueueSettings,
}

impl QueueListener {
    /// Receives and hands out messages until no new work is to be begun; returns when the last one is finished.
    pub(crate) async fn run(self) {
        let mut messages = JoinSet::new();
        let stop = self.work.invoker.stop.clone();
        tokio::select! {
            () = stop.draining() => {}
            () = self.receive(&mut messages) => {}
        }
        while messages.join_next().await.is_some() {}
    }

    async fn receive(&self, messages: &mut JoinSet<()>) {
        let QueueSettings { batch_size, new_batch_threshold, max_polling_interval, .. } = self.settings;
        let timing = &self.work.invoker.timing;
        let longest = timing.polling_cap.map_or(max_polling_interval, |cap| cap.min(max_polling_interval));
        let mut backoff = Backoff::new(timing.minimum_poll, longest);
        // Messages of this function that are being worked on.
        let here = Running::none();
        loop {
            here.at_most(new_batch_threshold).await;
            while messages.try_join_next().is_some() {}
            let received = match self.work.queue.receive(batch_size, timing.receive_visibility).await {
                Ok(received) => received,
                // The host never creates the queue of a trigger.
                Err(QueueError::NotFound { .. }) => Vec::new(),
                Err(error) => {
                    self.work.invoker.log.function(
                        Level::Error,
                        &self.work.function.name,
                        None,
                        format!("cannot receive: {error}"),
                    );
                    Vec::new()
                }
            };
            if received.is_empty() {
                self.work.invoker.clock.sleep(backoff.after_empty(jitter())).await;
                continue;
            }
            backoff.reset();
            for message in received {
                let (work, ticket) = (self.work.clone(), here.begin());
                messages.spawn(async move {
                    work.process(message).await;
                    drop(ticket);
                });
            }
        }
    }
}

fn jitter() -> f64 {
    rand::random_range(0.8..1.2)
}

/// The queues that hold messages, hidden ones too, with their numbers. A queue that is not there holds none.
pub(crate) async fn busy_queues(queues: &[Arc<dyn Queue>]) -> Vec<(String, u64)> {
    let mut busy = Vec::new();
    for queue in queues {
        match queue.length().await {
            Ok(0) | Err(QueueError::NotFound { .. }) => {}
            Ok(length) => busy.push((queue.name().to_owned(), length)),
            // Not known to be empty.
            Err(_) => busy.push((queue.name().to_owned(), 1)),
        }
    }
    busy
}

/// The wait between two looks at a queue that should become empty.
pub(crate) const IDLE_LOOK: Duration = Duration::from_millis(50);
