//! The token of one identity and scope, shared by every client of the process that talks to the same service.

use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use azure_core::credentials::{AccessToken, Secret, TokenCredential};
use azure_core::time::OffsetDateTime;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::STORAGE_SCOPE;
use super::error::{TokenError, Told};
use crate::error::chain;

/// A token is replaced when it has less left. `azure_identity` hands the old one out until then, so no earlier.
const AHEAD: Duration = Duration::from_secs(300);
/// Longest time for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// The wait after a failure when the endpoint names none; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a refusal is repeated without asking: the workers of a process ask together.
const REFUSED_WAIT: Duration = Duration::from_secs(5);

/// Gives the token of one identity. One request serves all who wait; a token is replaced ahead of its end by one caller
/// while the others go on with the old one; while the endpoint asks for patience nobody asks it.
pub struct TokenSource {
    name: String,
    remedy: &'static str,
    credential: Arc<dyn TokenCredential>,
    scope: String,
    held: RwLock<Option<AccessToken>>,
    asking: Mutex<Asking>,
}

/// What is known of the endpoint. Whoever holds it asks.
#[derive(Debug, Default)]
struct Asking {
    failures: u32,
    /// The last failure, and when to ask again.
    last: Option<(TokenError, Instant)>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl TokenSource {
    /// A source over a credential. `name` is for messages and shows how it is written in the configuration
    /// (`credential: managedIdentity`), `remedy` says what a person looks at when it is refused.
    pub fn new(name: String, remedy: &'static str, credential: Arc<dyn TokenCredential>) -> TokenSource {
        let scope = STORAGE_SCOPE.to_owned();
        TokenSource { name, remedy, credential, scope, held: RwLock::default(), asking: Mutex::default() }
    }

    /// Tokens of the same identity for something else than storage, such as `https://ossrdbms-aad.database.windows.net/.default`.
    #[must_use]
    pub fn for_scope(&self, scope: &str) -> TokenSource {
        TokenSource {
            scope: scope.to_owned(),
            ..TokenSource::new(self.name.clone(), self.remedy, Arc::clone(&self.credential))
        }
    }

    /// The credential, as it is written in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A token that is good now.
    ///
    /// # Errors
    /// [`TokenError`]; a failure to replace a token that still lives is none.
    pub async fn token(&self) -> Result<Secret, TokenError> {
        let held = self.held();
        match held {
            Some(token) if left(&token) > AHEAD => Ok(token.token),
            Some(token) if left(&token) > Duration::ZERO => Ok(self.replaced(token).await),
            _ => {
                let mut asking = self.asking.lock().await;
                match self.held().filter(|token| left(token) > AHEAD) {
                    // Another caller was faster.
                    Some(token) => Ok(token.token),
                    None => self.ask(&mut asking).await.map(|token| token.token),
                }
            }
        }
    }

    /// A newer token for one that lives and ends soon; the same one while another caller asks, or when there is no newer one.
    async fn replaced(&self, token: AccessToken) -> Secret {
        let Ok(mut asking) = self.asking.try_lock() else { return token.token };
        match self.held().filter(|token| left(token) > AHEAD) {
            Some(newer) => newer.token,
            None => match self.ask(&mut asking).await {
                Ok(newer) => newer.token,
                Err(error) => {
                    tracing::warn!(
                        left_seconds = left(&token).as_secs(),
                        "the token could not be replaced yet: {error}"
                    );
                    token.token
                }
            },
        }
    }

    async fn ask(&self, asking: &mut Asking) -> Result<AccessToken, TokenError> {
        let now = Instant::now();
        if let Some((error, not_before)) = &asking.last
            && *not_before > now
        {
            return Err(error.clone().with_wait(*not_before - now));
        }
        let answer = timeout(ANSWER_LIMIT, self.credential.get_token(&[&self.scope], None)).await;
        let error = match answer {
            Ok(Ok(token)) => {
                *asking = Asking::default();
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
                return Ok(token);
            }
            Ok(Err(error)) => self.meaning(&error, asking.failures),
            Err(_) => {
                let detail = format!("no answer in {} s", ANSWER_LIMIT.as_secs());
                self.later(&Told { detail, retry_after: None, reached: false }, asking.failures)
            }
        };
        let wait = match &error {
            TokenError::Later { retry_after, .. } => *retry_after,
            _ => REFUSED_WAIT,
        };
        asking.failures += 1;
        asking.last = Some((error.clone(), Instant::now() + wait));
        Err(error)
    }

    fn meaning(&self, error: &azure_core::Error, failures: u32) -> TokenError {
        match told(error) {
            Some(told) => self.later(told, failures),
            None => {
                TokenError::Refused { credential: self.name.clone(), detail: first_words(error), remedy: self.remedy }
            }
        }
    }

    fn later(&self, told: &Told, failures: u32) -> TokenError {
        let own = FIRST_WAIT.saturating_mul(1 << failures.min(6)).min(LONGEST_WAIT);
        TokenError::Later {
            credential: self.name.clone(),
            detail: told.detail.clone(),
            remedy: self.remedy,
            retry_after: told.retry_after.map_or(own, |asked| asked.max(own)),
            reached: told.reached,
        }
    }

    fn held(&self) -> Option<AccessToken> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TokenError {
    fn with_wait(mut self, wait: Duration) -> TokenError {
        if let TokenError::Later { retry_after, .. } = &mut self {
            *retry_after = wait;
        }
        self
    }
}

fn left(token: &AccessToken) -> Duration {
    (token.expires_on - OffsetDateTime::now_utc()).try_into().unwrap_or_default()
}

/// What the endpoint told, below what azure_identity wraps around it.
fn told(error: &azure_core::Error) -> Option<&Told> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(told) = error.downcast_ref::<Told>() {
            return Some(told);
        }
        cause = error.source();
    }
    None
}

/// The message without its pointer to the troubleshooting pages, on one line.
fn first_words(error: &azure_core::Error) -> String {
    let text = chain(error);
    let text = text.split("\nTo troubleshoot").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::azure::identity::tests::scripted;

    fn busy(retry_after: Option<u64>) -> Told {
        Told { detail: "id: HTTP 429".into(), retry_after: retry_after.map(Duration::from_secs), reached: true }
    }

    async fn token(source: &TokenSource) -> String {
        source.token().await.unwrap().secret().to_owned()
    }

    #[tokio::test]
    async fn one_request_serves_many_callers() {
        let (source, credential) = scripted(vec![Ok(3600)]);
        let tokens = futures::future::join_all((0..50).map(|_| token(&source))).await;
        assert!(tokens.iter().all(|token| token == "token 1"), "{tokens:?}");
        assert_eq!(token(&source).await, "token 1");
        assert_eq!(credential.calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_token_is_replaced_ahead_of_its_end_by_one_caller() {
        let (source, credential) = scripted(vec![Ok(299), Ok(3600)]);
        assert_eq!(token(&source).await, "token 1");
        let tokens = futures::future::join_all((0..10).map(|_| token(&source))).await;
        assert_eq!(tokens.iter().filter(|token| *token == "token 2").count(), 1, "the others do not wait: {tokens:?}");
        assert_eq!(token(&source).await, "token 2");
        assert_eq!(credential.calls.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_token_that_lives_is_used_while_there_is_no_newer_one() {
        let (source, credential) = scripted(vec![Ok(60), Err(busy(Some(30)))]);
        for _ in 0..5 {
            assert_eq!(token(&source).await, "token 1");
        }
        assert_eq!(credential.calls.load(Ordering::SeqCst), 2, "asked once, then patience");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_was_asked_for_is_kept_by_all() {
        let (source, credential) = scripted(vec![Err(busy(Some(30))), Ok(3600)]);
        let waits = futures::future::join_all((0..5).map(|_| source.token())).await;
        for error in waits {
            let Err(TokenError::Later { retry_after, .. }) = error else { panic!("{error:?}") };
            assert!(retry_after > Duration::from_secs(29) && retry_after <= Duration::from_secs(30), "{retry_after:?}");
        }
        assert_eq!(credential.calls.load(Ordering::SeqCst), 1);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(token(&source).await, "token 2");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_when_none_is_named() {
        let (source, _) = scripted((0..9).map(|_| Err(busy(None))).collect());
        let mut waits = Vec::new();
        for _ in 0..9 {
            let Err(TokenError::Later { retry_after, .. }) = source.token().await else { panic!() };
            waits.push(retry_after.as_secs());
            tokio::time::sleep(retry_after).await;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[derive(Debug)]
    struct Scopes;

    #[async_trait::async_trait]
    impl TokenCredential for Scopes {
        async fn get_token(
            &self,
            scopes: &[&str],
            _: Option<azure_core::credentials::TokenRequestOptions<'_>>,
        ) -> azure_core::Result<AccessToken> {
            Ok(AccessToken::new(scopes.join(" "), OffsetDateTime::now_utc() + Duration::from_secs(3600)))
        }
    }

    #[tokio::test]
    async fn each_service_gets_tokens_of_its_own() {
        let storage = TokenSource::new("credential: managedIdentity".into(), "", Arc::new(Scopes));
        let database = storage.for_scope("https://database/.default");
        assert_eq!(
            (token(&storage).await.as_str(), token(&database).await.as_str()),
            (STORAGE_SCOPE, "https://database/.default")
        );
        assert_eq!(database.name(), storage.name());
    }

    #[test]
    fn errors_name_credential_and_remedy() {
        let (source, _) = scripted(vec![]);
        let later = source.meaning(&azure_core::Error::new(azure_core::error::ErrorKind::Other, busy(None)), 0);
        assert_eq!(
            later.to_string(),
            "storage.credential: managedIdentity: no token yet (id: HTTP 429): give the app an identity"
        );
        let error = azure_core::Error::with_message(
            azure_core::error::ErrorKind::Credential,
            "it failed.\nno such identity\nTo troubleshoot, visit https://aka.ms/x",
        );
        assert_eq!(
            source.meaning(&error, 0).to_string(),
            "storage.credential: managedIdentity: no token (it failed.; no such identity): give the app an identity"
        );
    }
}
