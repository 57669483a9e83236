//! Tokens in place of keys: the identities of Microsoft Entra through `azure_identity`, one token a process and scope.
//!
//! - [`kinds`]: which identity, and what it needs of the environment;
//! - [`source`]: the token that all clients of the process share, asked for once and again ahead of its end;
//! - [`answers`]: what an identity endpoint's answer means; only this decides whether it is asked again.

mod answers;
mod error;
mod kinds;
mod source;

pub use error::TokenError;
pub use kinds::{Identity, IdentityKind};
pub use source::TokenSource;

/// What a token for blobs and queues is asked for.
pub const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use async_trait::async_trait;
    use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
    use azure_core::error::{Error, ErrorKind};
    use azure_core::time::OffsetDateTime;

    use super::error::Told;
    use super::source::TokenSource;

    /// What a scripted credential answers: a token that lives so many seconds, or a failure.
    pub(crate) type Step = Result<u64, Told>;

    #[derive(Debug)]
    pub(crate) struct Scripted {
        steps: Mutex<std::vec::IntoIter<Step>>,
        pub(crate) calls: AtomicUsize,
    }

    #[async_trait]
    impl TokenCredential for Scripted {
        async fn get_token(
            &self,
            scopes: &[&str],
            _: Option<TokenRequestOptions<'_>>,
        ) -> azure_core::Result<AccessToken> {
            assert_eq!(scopes, [super::STORAGE_SCOPE]);
            let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            // Time for others to come along.
            tokio::time::sleep(Duration::from_millis(1)).await;
            match self.steps.lock().unwrap().next().expect("one more step in the script") {
                Ok(seconds) => {
                    let expires = OffsetDateTime::now_utc() + Duration::from_secs(seconds);
                    Ok(AccessToken::new(format!("token {call}"), expires))
                }
                // As azure_identity wraps it.
                Err(told) => {
                    let inner = Error::new(ErrorKind::Other, told);
                    Err(Error::with_error(ErrorKind::Credential, inner, "authentication failed"))
                }
            }
        }
    }

    /// A source over a script, and the credential that counts its calls.
    pub(crate) fn scripted(steps: Vec<Step>) -> (Arc<TokenSource>, Arc<Scripted>) {
        let credential = Arc::new(Scripted { steps: Mutex::new(steps.into_iter()), calls: AtomicUsize::new(0) });
        let source =
            TokenSource::new("credential: managedIdentity".into(), "give the app an identity", credential.clone());
        (Arc::new(source), credential)
    }
}
