//! The queue of the work and the one of what the host gave up.

use std::fmt;

use firn_config::Storage;
use firn_storage::{AzureAccount, AzureQueue, Queue, QueueError};

use super::finding::Finding;
use super::way::Way;
use crate::output::table::plural;

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
    /// Somebody creates it when it is needed.
    ComesLater {
        name: String,
        who: &'static str,
    },
    Denied {
        name: String,
        way: Way,
        detail: String,
    },
    /// The account tells no queue endpoint, or it does not answer.
    Unusable {
        name: String,
        detail: String,
    },
}

/// Looks at both. Reading is all that can be tried: a message would be worked on.
pub(super) async fn look(access: &AzureAccount, storage: &Storage) -> [QueueState; 2] {
    let first_run = "the first run of Firn that needs it creates it on the emulator";
    let work = state_of(access, &storage.queue).await;
    let work = if storage.is_emulator() { work.created_by(first_run) } else { work };
    // The host creates this queue itself when it gives a message up.
    let who = "the Functions host creates it before it gives a message up, and infra with the deployment";
    [work, poison(state_of(access, &storage.poison_queue()).await).created_by(who)]
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
        Err(QueueError::Denied { detail, .. }) => {
            QueueState::Denied { name: owned(), way: Way::to_account(access), detail }
        }
        Err(error) => QueueState::Unusable { name: owned(), detail: error.to_string() },
    }
}

fn poison(state: QueueState) -> QueueState {
    match state {
        QueueState::There { name, messages } if messages > 0 => QueueState::PoisonWaits { name, messages },
        other => other,
    }
}

impl QueueState {
    /// The same where somebody is known to create it when it is absent.
    fn created_by(self, who: &'static str) -> Self {
        match self {
            QueueState::Absent { name } => QueueState::ComesLater { name, who },
            other => other,
        }
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueState::There { name, messages } => {
                write!(f, "{name}: {}; sending is not tried", plural(*messages, "message"))
            }
            QueueState::PoisonWaits { name, messages } => write!(
                f,
                "{name}: {} that the host gave up: is compact-poison disabled? look at firn invoke status, then firn requeue",
                plural(*messages, "message")
            ),
            QueueState::Absent { name } => {
                write!(f, "{name} is not there: create it (infra does), or correct storage.queue")
            }
            QueueState::ComesLater { name, who } => write!(f, "{name} is not there yet: {who}"),
            QueueState::Denied { name, way, detail } => {
                write!(f, "{name}: access denied ({detail}): {}", way.remedy("Storage Queue Data Contributor"))
            }
            QueueState::Unusable { name, detail } => write!(f, "{name}: {detail}"),
        }
    }
}

impl Finding for QueueState {
    fn ok(&self) -> bool {
        matches!(self, QueueState::There { .. } | QueueState::ComesLater { .. })
    }

    fn warns(&self) -> bool {
        matches!(self, QueueState::ComesLater { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_somebody_creates_is_a_warning() {
        let absent = || QueueState::Absent { name: "firn-compact-poison".into() };
        assert!(!absent().ok() && absent().to_string().contains("create it (infra does)"));
        let later = absent().created_by("the Functions host creates it");
        assert!(later.ok() && later.warns(), "{later:?}");
        assert_eq!(later.to_string(), "firn-compact-poison is not there yet: the Functions host creates it");
        let there = || QueueState::There { name: "q".into(), messages: 1 };
        assert_eq!(there().created_by("nobody"), there());
        assert_eq!(there().to_string(), "q: 1 message; sending is not tried");
    }

    #[test]
    fn messages_wait_in_one_queue_and_are_wrong_in_the_other() {
        let there = |messages| QueueState::There { name: "q".into(), messages };
        assert!(there(7).ok() && poison(there(0)).ok());
        let waits = poison(there(2));
        assert_eq!(waits, QueueState::PoisonWaits { name: "q".into(), messages: 2 });
        assert!(!waits.ok() && waits.to_string().contains("firn requeue"));
    }
}
