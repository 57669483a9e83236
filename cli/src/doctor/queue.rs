//! The queue of the work and the one of what the host gave up.

use std::fmt;

use firn_storage::{AzureAccount, AzureQueue, Queue, QueueError};

use super::finding::Finding;

/// What the host adds to a queue's name.
const POISON: &str = "-poison";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// It answers, and holds so many messages.
    There {
        name: String,
        messages: u64,
    },
    /// Messages that the host gave up wait, although the function that takes them should have.
    PoisonWaits {
        name: String,
        messages: u64,
    },
    Absent {
        name: String,
    },
    Denied {
        name: String,
        detail: String,
    },
    /// The account tells no queue endpoint, or it does not answer.
    Unusable {
        name: String,
        detail: String,
    },
}

/// Looks at both. Reading is all that can be tried: a message would be worked on.
pub(super) async fn look(access: &AzureAccount, name: &str) -> [QueueState; 2] {
    [state_of(access, name).await, poison(state_of(access, &format!("{name}{POISON}")).await)]
}

async fn state_of(access: &AzureAccount, name: &str) -> QueueState {
    let owned = || name.to_owned();
    let queue = match AzureQueue::open(access, name) {
        Ok(queue) => queue,
        Err(error) => return QueueState::Unusable { name: owned(), detail: error.to_string() },
    };
    let looked = async {
        queue.peek(1).await?;
        queue.length().await
    };
    match looked.await {
        Ok(messages) => QueueState::There { name: owned(), messages },
        Err(QueueError::NotFound { .. }) => QueueState::Absent { name: owned() },
        Err(error @ QueueError::Denied { .. }) => QueueState::Denied { name: owned(), detail: error.to_string() },
        Err(error) => QueueState::Unusable { name: owned(), detail: error.to_string() },
    }
}

fn poison(state: QueueState) -> QueueState {
    match state {
        QueueState::There { name, messages } if messages > 0 => QueueState::PoisonWaits { name, messages },
        other => other,
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueState::There { name, messages } => write!(f, "{name}: {messages} messages; sending is not tried"),
            QueueState::PoisonWaits { name, messages } => write!(
                f,
                "{name}: {messages} messages that the host gave up: is compact-poison disabled? look at firn invoke status, then \
                 firn requeue"
            ),
            QueueState::Absent { name } => write!(
                f,
                "{name} is not there: create it (infra does; on an emulator any run of Firn), or correct storage.queue"
            ),
            QueueState::Denied { name, detail } => {
                write!(f, "{name}: {detail}: give the identity the role Storage Queue Data Contributor on it")
            }
            QueueState::Unusable { name, detail } => write!(f, "{name}: {detail}"),
        }
    }
}

impl Finding for QueueState {
    fn ok(&self) -> bool {
        matches!(self, QueueState::There { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_in_one_queue_and_are_wrong_in_the_other() {
        let there = |messages| QueueState::There { name: "q".into(), messages };
        assert!(there(7).ok() && poison(there(0)).ok());
        let waits = poison(there(2));
        assert_eq!(waits, QueueState::PoisonWaits { name: "q".into(), messages: 2 });
        assert!(!waits.ok() && waits.to_string().contains("firn requeue"));
    }
}
