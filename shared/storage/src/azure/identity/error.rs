//! Why there is no token, by what the caller does next.

use std::time::Duration;

use crate::retry::{Failure, Reached};

/// No token. Each message names the credential as it is written in the configuration, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Something that the credential needs is not set, or cannot be what it says. Next: stop; a person sets it.
    #[error("storage.{credential}: {reason}")]
    Settings {
        /// The credential, as `credential: clientSecret`.
        credential: String,
        /// What is missing and the remedy.
        reason: String,
    },
    /// The identity endpoint asks for patience, fails by itself or does not answer. Next: try later; it is not asked before
    /// `retry_after`.
    #[error("storage.{credential}: no token yet ({detail}): {remedy}")]
    Later {
        /// The credential.
        credential: String,
        /// What happened.
        detail: String,
        /// What a person looks at when it lasts.
        remedy: &'static str,
        /// How long until it is asked again.
        retry_after: Duration,
        /// Whether there was an answer at all.
        reached: bool,
    },
    /// The identity is refused. Next: stop; a person corrects it.
    #[error("storage.{credential}: no token ({detail}): {remedy}")]
    Refused {
        /// The credential.
        credential: String,
        /// What the endpoint said.
        detail: String,
        /// What to do.
        remedy: &'static str,
    },
}

impl TokenError {
    /// Whether the same call may succeed later although nobody changes anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, TokenError::Later { .. })
    }

    /// What it means for a request to a store, which was not sent.
    pub(crate) fn failure(&self) -> Failure {
        let detail = self.to_string();
        match self {
            TokenError::Later { retry_after, .. } => Failure {
                reached: Reached::Refused { retry_after: Some(*retry_after) },
                status: None,
                code: None,
                detail,
            },
            // As the service would say it: who asks is not known.
            TokenError::Settings { .. } | TokenError::Refused { .. } => {
                Failure { reached: Reached::Final, status: Some(401), code: None, detail }
            }
        }
    }
}

/// What an identity endpoint told, as it travels through `azure_identity`: its own errors do not keep the wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Told {
    /// What happened, free of secrets.
    pub(crate) detail: String,
    /// The wait that was asked for.
    pub(crate) retry_after: Option<Duration>,
    /// Whether there was an answer.
    pub(crate) reached: bool,
}
