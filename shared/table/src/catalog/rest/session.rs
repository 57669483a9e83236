//! A conversation with a REST catalog: who asks, how the server wants to be asked, and questions that may be asked again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use firn_config::{RestAuth, RestCatalog};
use firn_storage::TokenSource;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{FormatVersion, TableMetadata};
use rand::Rng;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::{may_pass, reason};
use super::login::{Login, LoginError};
use super::route::{self, Routes};
use super::settings::{ServerSettings, or_default, texts};
use super::transport::{Answer, Request, Transport, TransportError, headers, is_loopback};
use super::vended::{Place, Signature, StorageCredential, signatures};
use crate::catalog::metadata_file::HiddenReferences;
use crate::error::Source;
use crate::ident::TableIdent;

/// How often a question is asked in all before the catalog counts as not answering.
const ASKS: u32 = 4;
/// Questions under way at the same time.
const AT_ONCE: usize = 8;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// A server that asks for more patience is asked again by the next message, not by this one.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Asks for storage credentials with a table.
const DELEGATION: HeaderName = HeaderName::from_static("x-iceberg-access-delegation");

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// The catalog does not answer, or asks for patience: try again later.
    #[error("{0}")]
    Unavailable(Source),
    /// There is no token, or the server does not accept it: a person corrects it, and no message is to blame.
    #[error("{0}")]
    Refused(String),
    /// The configuration cannot be used.
    #[error("{0}")]
    Settings(String),
    /// Not there.
    #[error("{0}")]
    Absent(String),
    /// An answer that cannot be used.
    #[error("{0}")]
    Odd(String),
}

/// What a server answers to a load or a commit.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct TableAnswer {
    #[serde(default)]
    pub(super) metadata_location: Option<String>,
    pub(super) metadata: TableMetadata,
    #[serde(default, deserialize_with = "texts")]
    config: HashMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    storage_credentials: Vec<StorageCredential>,
    /// A tag, a branch or settings of `main` in a version 1 table, which the metadata above lacks.
    #[serde(skip)]
    pub(super) hidden_reference: Option<String>,
}

#[derive(Deserialize)]
struct HiddenAnswer {
    metadata: HiddenReferences,
}

impl TableAnswer {
    pub(super) fn signatures(&self) -> BTreeMap<Place, Signature> {
        signatures(&self.config, &self.storage_credentials)
    }
}

/// An open catalog.
#[derive(Debug)]
pub(super) struct Session {
    transport: Transport,
    login: Login,
    headers: HeaderMap,
    routes: Routes,
    pub(super) settings: ServerSettings,
}

impl Session {
    /// Asks the server how it wants to be asked.
    pub(super) async fn open(section: &RestCatalog, identity: Option<&Arc<TokenSource>>) -> Result<Self, SessionError> {
        let login = Login::new(section, identity).map_err(SessionError::Settings)?;
        let own: Vec<(String, String)> =
            section.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let map = headers(&own).map_err(SessionError::Settings)?;
        let transport = Transport::new(is_loopback(&section.uri)).map_err(SessionError::Unavailable)?;
        let first = Session {
            transport,
            login,
            headers: map,
            routes: Routes::new(&section.uri, None, ""),
            settings: ServerSettings::read(b"{}", &[]).map_err(|error| SessionError::Odd(error.to_string()))?,
        };
        let url = route::config(&section.uri, section.warehouse.as_deref());
        let answer = first.ask(Method::GET, &url, None).await?;
        let settings = ServerSettings::read(&answer.body, &own)
            .map_err(|error| SessionError::Odd(format!("{url} is not a catalog's configuration: {error}")))?;
        let uri = settings.uri.clone().unwrap_or_else(|| section.uri.clone());
        let secret = section.auth != RestAuth::None || !section.headers.is_empty();
        if secret && !uri.starts_with("https://") && !is_loopback(&uri) {
            return Err(SessionError::Settings(format!(
                "the server sends its clients to {uri}, and a token or a header of the configuration is only sent over TLS: let it name an \
                 address with https://"
            )));
        }
        let mut map = headers(&settings.headers).map_err(SessionError::Odd)?;
        if section.vended_credentials {
            map.insert(DELEGATION, HeaderValue::from_static("vended-credentials"));
        }
        let routes = Routes::new(&uri, settings.prefix.as_deref(), &settings.separator);
        Ok(Session { headers: map, routes, settings, ..first })
    }

    /// One request, sent once more with another token when the first was not accepted: then it was not applied.
    pub(super) async fn once(
        &self,
        method: Method,
        url: &str,
        body: Option<&Bytes>,
        extra: Option<(HeaderName, HeaderValue)>,
    ) -> Result<Answer, OnceError> {
        let mut token = self.login.token(&self.transport).await.map_err(OnceError::Login)?;
        let mut map = self.headers.clone();
        map.extend(extra);
        for last in [false, true] {
            let request =
                Request { method: method.clone(), url, token: token.as_ref(), headers: &map, body: body.cloned() };
            let answer = self.transport.send(&request).await.map_err(OnceError::Transport)?;
            let Some(refused) = token.as_ref().filter(|_| matches!(answer.status, 401 | 403 | 419) && !last) else {
                return Ok(answer);
            };
            match self.login.another(&self.transport, refused).await.map_err(OnceError::Login)? {
                Some(newer) => token = Some(newer),
                None => return Ok(answer),
            }
        }
        Err(OnceError::Login(LoginError::Later("no token was accepted".to_owned())))
    }

    /// A question that changes nothing, asked again while an answer may come.
    async fn ask(&self, method: Method, url: &str, body: Option<&Bytes>) -> Result<Answer, SessionError> {
        let mut tries = 1;
        loop {
            let mut asked = Duration::ZERO;
            let failure: Source = match self.once(method.clone(), url, body, None).await {
                Ok(answer) if answer.status < 300 => return Ok(answer),
                Ok(answer) => {
                    asked = answer.retry_after.unwrap_or_default();
                    let said = format!("{url}: {}", reason(answer.status, &answer.body));
                    match answer.status {
                        401 | 403 | 419 => return Err(SessionError::Refused(said)),
                        404 => return Err(SessionError::Absent(said)),
                        status if may_pass(status) => said.into(),
                        _ => return Err(SessionError::Odd(said)),
                    }
                }
                Err(OnceError::Login(LoginError::Refused(said))) => return Err(SessionError::Refused(said)),
                Err(OnceError::Login(LoginError::Later(said))) => said.into(),
                Err(OnceError::Transport(TransportError::NotSent(error) | TransportError::Lost(error))) => {
                    format!("{url}: {error}").into()
                }
            };
            if tries == ASKS || asked > LONGEST_WAIT {
                return Err(SessionError::Unavailable(failure));
            }
            let jitter = rand::rng().random_range(0.5..1.5);
            tokio::time::sleep((FIRST_WAIT * (1 << tries)).mul_f64(jitter).max(asked)).await;
            tries += 1;
        }
    }

    pub(super) fn table_url(&self, ident: &TableIdent) -> String {
        self.routes.table(ident)
    }

    pub(super) async fn table(&self, ident: &TableIdent) -> Result<TableAnswer, SessionError> {
        let url = self.table_url(ident);
        let answer = self.ask(Method::GET, &url, None).await?;
        let odd = |error: serde_json::Error| match error.is_data() {
            true => SessionError::Odd(format!("{url}: {error}")),
            // No JSON at all, or cut: the page of a proxy, which says nothing of the table.
            false => SessionError::Unavailable(format!("{url}: the answer is not a catalog's: {error}").into()),
        };
        let mut found: TableAnswer = serde_json::from_slice(&answer.body).map_err(odd)?;
        if found.metadata.format_version() == FormatVersion::V1 {
            let hidden: HiddenAnswer = serde_json::from_slice(&answer.body).map_err(odd)?;
            found.hidden_reference = hidden.metadata.lost();
        }
        Ok(found)
    }

    /// The signatures of a table as they are handed out now.
    pub(super) async fn signatures(&self, ident: &TableIdent) -> Result<BTreeMap<Place, Signature>, SessionError> {
        Ok(self.table(ident).await?.signatures())
    }

    /// Names of the tables in a namespace, sorted; a namespace that is not there has none.
    pub(super) async fn tables(&self, namespace: &[String]) -> Result<Vec<String>, SessionError> {
        #[derive(Deserialize)]
        struct Name {
            name: String,
        }
        let url = |page: Option<&str>| self.routes.tables(namespace, page);
        let found: Vec<Name> = self.pages(url, "identifiers").await?.unwrap_or_default();
        let mut names: Vec<String> = found.into_iter().map(|found| found.name).collect();
        names.sort();
        Ok(names)
    }

    /// Every namespace, sorted. One level after the other: a server lists what is directly in a namespace.
    pub(super) async fn namespaces(&self) -> Result<Vec<Vec<String>>, SessionError> {
        let url = |page: Option<&str>| self.routes.namespaces(&[], page);
        let first: Vec<Vec<String>> = match self.pages(url, "namespaces").await? {
            Some(first) => first,
            None => return Err(SessionError::Absent(format!("{}: not found", self.routes.namespaces(&[], None)))),
        };
        let mut found: BTreeSet<Vec<String>> = first.into_iter().collect();
        let mut level: Vec<Vec<String>> = found.iter().cloned().collect();
        while !level.is_empty() {
            let inner = stream::iter(level).map(|parent| self.directly_in(parent));
            let inner: Vec<_> = inner.buffer_unordered(AT_ONCE).try_collect().await?;
            level = inner.into_iter().flatten().filter(|one| found.insert(one.clone())).collect();
        }
        Ok(found.into_iter().collect())
    }

    async fn directly_in(&self, parent: Vec<String>) -> Result<Vec<Vec<String>>, SessionError> {
        let url = |page: Option<&str>| self.routes.namespaces(&parent, page);
        // One that is gone by now has none.
        let mut inner: Vec<Vec<String>> = self.pages(url, "namespaces").await?.unwrap_or_default();
        // A server without nested namespaces may not look at the parent and list all.
        inner.retain(|one| one.len() > parent.len() && one.starts_with(&parent));
        Ok(inner)
    }

    /// A list that comes in pages, under `key`; None: what it is of is not there.
    async fn pages<T: DeserializeOwned>(
        &self,
        url: impl Fn(Option<&str>) -> String,
        key: &str,
    ) -> Result<Option<Vec<T>>, SessionError> {
        let (mut all, mut next, mut seen) = (Vec::new(), None::<String>, HashSet::new());
        loop {
            let url = url(next.as_deref());
            let answer = match self.ask(Method::GET, &url, None).await {
                Err(SessionError::Absent(_)) if next.is_none() => return Ok(None),
                answer => answer?,
            };
            let odd = |error: serde_json::Error| SessionError::Odd(format!("{url}: {error}"));
            let mut page: serde_json::Map<String, Value> = serde_json::from_slice(&answer.body).map_err(odd)?;
            if let Some(list) = page.remove(key).filter(|list| !list.is_null()) {
                all.extend(serde_json::from_value::<Vec<T>>(list).map_err(odd)?);
            }
            match page.get("next-page-token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
                None => return Ok(Some(all)),
                // All of the list or nothing: half of it must not look like the whole.
                Some(token) if !seen.insert(token.to_owned()) => {
                    return Err(SessionError::Odd(format!("{url}: the same page again")));
                }
                Some(token) => next = Some(token.to_owned()),
            }
        }
    }
}

/// Why one request has no answer.
#[derive(Debug)]
pub(super) enum OnceError {
    /// There was no token, so nothing was sent.
    Login(LoginError),
    Transport(TransportError),
}
