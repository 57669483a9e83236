//! Whether the identity gets a token.

use std::fmt;

use firn_storage::{AzureAccount, TokenError};

use super::finding::Finding;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The account is asked with a key or a signature.
    NotNeeded,
    /// As the configuration writes the credential.
    Given(String),
    /// The error has credential and remedy.
    Refused(TokenError),
}

/// Asks once: a person waits for the answer.
pub(super) async fn look(access: &AzureAccount) -> Token {
    match access.identity() {
        None => Token::NotNeeded,
        Some(identity) => match identity.token().await {
            Ok(_) => Token::Given(identity.name().to_owned()),
            Err(error) => Token::Refused(error),
        },
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::NotNeeded => f.write_str("not needed: a connection string"),
            Token::Given(credential) => write!(f, "{credential}: token received"),
            Token::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl Finding for Token {
    fn ok(&self) -> bool {
        !matches!(self, Token::Refused(_))
    }
}
