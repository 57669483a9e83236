//! How a REST catalog learns who asks.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use firn_config::{RestAuth, RestCatalog, Secret};
use firn_storage::TokenSource;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::answer::{may_pass, reason};
use super::route;
use super::transport::{Transport, TransportError};

/// A token is replaced when it has less left.
const AHEAD: Duration = Duration::from_secs(60);
/// How long a token is good when the server does not say.
const UNSAID: Duration = Duration::from_secs(600);
/// Nobody holds a token for longer, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What Iceberg's clients ask for when nobody says what.
const DEFAULT_SCOPE: &str = "catalog";

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    /// Try again later.
    #[error("no token yet: {0}")]
    Later(String),
    /// A person corrects it.
    #[error("no token: {0}")]
    Refused(String),
}

/// Who asks.
#[derive(Debug)]
pub(super) enum Login {
    /// Nobody.
    None,
    /// A fixed token.
    Bearer(Secret),
    /// A client that gets tokens for its secret.
    Client(ClientCredentials),
    /// The identity of the storage section.
    Identity(Arc<TokenSource>),
}

impl Login {
    pub(super) fn new(section: &RestCatalog, identity: Option<&Arc<TokenSource>>) -> Result<Self, String> {
        Ok(match (section.auth, &section.token, &section.credential) {
            (RestAuth::None, ..) => Login::None,
            (RestAuth::Bearer, Some(token), _) => Login::Bearer(token.clone()),
            (RestAuth::Oauth2, _, Some(credential)) => Login::Client(ClientCredentials {
                address: section.oauth2_server_uri.clone().unwrap_or_else(|| route::tokens(&section.uri)),
                credential: credential.clone(),
                scope: section.scope.clone().unwrap_or_else(|| DEFAULT_SCOPE.to_owned()),
                held: RwLock::default(),
                asking: Mutex::default(),
            }),
            (RestAuth::Entra, ..) => match (identity, &section.scope) {
                (Some(identity), Some(scope)) => Login::Identity(Arc::new(identity.for_scope(scope))),
                _ => return Err("auth: entra needs a scope, and an identity in the storage section".to_owned()),
            },
            (RestAuth::Bearer, None, _) => return Err("auth: bearer needs a token".to_owned()),
            (RestAuth::Oauth2, _, None) => return Err("auth: oauth2 needs a credential".to_owned()),
        })
    }

    /// The token for the next request; None: none is sent.
    pub(super) async fn token(&self, transport: &Transport) -> Result<Option<Secret>, LoginError> {
        match self {
            Login::None => Ok(None),
            Login::Bearer(token) => Ok(Some(token.clone())),
            Login::Client(client) => client.token(transport, None).await.map(Some),
            Login::Identity(source) => match source.token().await {
                Ok(token) => Ok(Some(Secret::new(token.secret()))),
                Err(error) if error.is_retryable() => Err(LoginError::Later(error.to_string())),
                Err(error) => Err(LoginError::Refused(error.to_string())),
            },
        }
    }

    /// Another token than the one that a request was refused with; None: there is no other.
    pub(super) async fn another(&self, transport: &Transport, refused: &Secret) -> Result<Option<Secret>, LoginError> {
        let newer = match self {
            Login::Client(client) => Some(client.token(transport, Some(refused)).await?),
            Login::None | Login::Bearer(_) | Login::Identity(_) => self.token(transport).await?,
        };
        Ok(newer.filter(|token| token != refused))
    }
}

/// OAuth2 client credentials (RFC 6749, section 4.4), as Iceberg's REST specification uses them.
#[derive(Debug)]
pub(super) struct ClientCredentials {
    address: String,
    /// `id:secret`, or the secret alone.
    credential: Secret,
    scope: String,
    held: RwLock<Option<(Secret, Instant)>>,
    /// Whoever holds it asks.
    asking: Mutex<()>,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
    /// Seconds; some servers write a text or a fraction.
    #[serde(default)]
    expires_in: Value,
}

/// How long a token is good.
fn lifetime(said: &Value) -> Duration {
    let seconds =
        said.as_f64().or_else(|| said.as_str()?.trim().parse().ok()).filter(|seconds: &f64| !seconds.is_nan());
    match seconds {
        // One that has ended already is good for the request that it was asked for.
        Some(seconds) if seconds <= 0.0 => Duration::ZERO,
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_or(LONGEST, |said| said.min(LONGEST)),
        None => UNSAID,
    }
}

impl ClientCredentials {
    /// The held token while it is good and not the refused one, else a new one, which one caller asks for.
    async fn token(&self, transport: &Transport, refused: Option<&Secret>) -> Result<Secret, LoginError> {
        let good = || {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner).clone();
            held.filter(|(token, until)| *until > Instant::now() && Some(token) != refused).map(|(token, _)| token)
        };
        if let Some(token) = good() {
            return Ok(token);
        }
        let _asking = self.asking.lock().await;
        // Another caller was faster.
        if let Some(token) = good() {
            return Ok(token);
        }
        let (token, lives) = self.ask(transport).await?;
        let until = Instant::now() + lives.saturating_sub(AHEAD.min(lives / 2));
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), until));
        Ok(token)
    }

    async fn ask(&self, transport: &Transport) -> Result<(Secret, Duration), LoginError> {
        let mut form = vec![("grant_type", "client_credentials"), ("scope", self.scope.as_str())];
        match self.credential.expose().split_once(':') {
            Some((id, secret)) => form.extend([("client_id", id), ("client_secret", secret)]),
            None => form.push(("client_secret", self.credential.expose())),
        }
        let form: Vec<String> = form.iter().map(|(key, value)| format!("{key}={}", route::encode(value))).collect();
        let address = &self.address;
        let answer = transport.post_form(address, form.join("&")).await.map_err(|error| match error {
            TransportError::NotSent(error) | TransportError::Lost(error) => {
                LoginError::Later(format!("{address}: {error}"))
            }
        })?;
        let said = || format!("{address}: {}", reason(answer.status, &answer.body));
        match answer.status {
            200..=299 => {}
            status if may_pass(status) => return Err(LoginError::Later(said())),
            _ => return Err(LoginError::Refused(said())),
        }
        // Nothing of an answer that may hold a token is shown.
        let token: Token = serde_json::from_slice(&answer.body)
            .map_err(|_| LoginError::Refused(format!("{address}: the answer holds no access_token")))?;
        Ok((Secret::new(token.access_token), lifetime(&token.expires_in)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_life_of_a_token_is_read_in_every_form() {
        for (said, seconds) in [
            (json!(3600), 3600.0),
            (json!("3600"), 3600.0),
            (json!(1.5), 1.5),
            (json!(0), 0.0),
            (json!(-5), 0.0),
            (Value::Null, 600.0),
            (json!("soon"), 600.0),
            (json!(u64::MAX), 86_400.0),
            (json!(1e300), 86_400.0),
        ] {
            assert_eq!(lifetime(&said), Duration::from_secs_f64(seconds), "{said}");
        }
        let token: Token = serde_json::from_str(r#"{"access_token":"t"}"#).unwrap();
        assert_eq!(lifetime(&token.expires_in), UNSAID);
    }
}
