//! A catalog behind Iceberg's REST interface: it keeps the metadata files, and judges requirements itself.
//!
//! - [`session`]: a conversation with the server; [`login`]: who asks; [`settings`]: how it wants to be asked; [`transport`]: one request;
//! - [`route`]: paths; [`answer`]: what a status says about a commit;
//! - [`vended`], [`vended_store`]: storage credentials that come with a table.

mod answer;
mod login;
mod route;
mod session;
mod settings;
mod transport;
mod vended;
mod vended_store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use firn_storage::AzureAccount;
use iceberg::{TableRequirement, TableUpdate};
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde::Serialize;
use uuid::Uuid;

use self::answer::{Outcome, outcome, reason};
use self::login::LoginError;
use self::session::{OnceError, Session, SessionError, TableAnswer};
use self::transport::TransportError;
use self::vended_store::Vended;
use super::Catalog;
use crate::error::{SwapError, TableError};
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::loaded::LoadedTable;

/// Where Microsoft Fabric serves tables; it takes no commits and does not announce its routes.
const ONELAKE: &str = "onelake.table.fabric.microsoft.com";

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often a commit is sent under one key while its answer is lost.
const SENDS: u32 = 3;
const RESEND_WAIT: Duration = Duration::from_millis(500);

/// The configuration is read at the start, so a secret that was changed needs a new one.
const LOGIN_REMEDY: &str = "check catalog.auth and what it needs (token, credential, scope) and the rights of this identity; after a change of a \
                            secret restart the handler";
const COMMIT_REMEDY: &str =
    "give the identity of catalog.auth the right to write this table; after a change of a secret restart the handler";

/// A catalog that is spoken to over HTTP.
#[derive(Debug)]
pub struct RestCatalog {
    name: String,
    session: Arc<Session>,
    store: TableStore,
    account: Option<AzureAccount>,
    vended: Mutex<HashMap<TableIdent, Arc<Vended>>>,
    /// Why nothing can be committed.
    read_only: Option<Arc<str>>,
}

impl RestCatalog {
    /// Opens a catalog: asks its configuration endpoint, which is also where a sign-in that is not accepted shows. Tables are reached
    /// through `store`, or with the credentials that the catalog hands out; `account` is that of the storage section, with its
    /// identity.
    ///
    /// # Errors
    /// [`TableError::CatalogAbsent`] when there is no such catalog or the configuration cannot be used, [`TableError::CatalogDenied`] when it
    /// does not accept who asks, [`TableError::CatalogUnavailable`] when it does not answer.
    pub async fn open(
        section: &firn_config::RestCatalog,
        store: TableStore,
        account: Option<&AzureAccount>,
    ) -> Result<Self, TableError> {
        let name = section.called().to_owned();
        let identity = account.and_then(AzureAccount::identity);
        let session = Session::open(section, identity).await.map_err(|error| catalog_error(&name, error))?;
        let read_only = read_only(&section.uri, session.settings.commits).map(Arc::from);
        let (session, account) = (Arc::new(session), account.cloned());
        Ok(Self { name, session, store, account, vended: Mutex::default(), read_only })
    }

    fn loaded(&self, ident: &TableIdent, answer: TableAnswer) -> Result<LoadedTable, TableError> {
        let damaged = |detail: String| TableError::Damaged { ident: ident.clone(), detail };
        let vended = {
            let mut known = self.vended.lock().unwrap_or_else(PoisonError::into_inner);
            let vended = known.entry(ident.clone()).or_insert_with(|| Arc::new(Vended::new(&self.session, ident)));
            Arc::clone(vended)
        };
        let store = vended.store(answer.signatures(), &self.store, self.account.as_ref());
        let store =
            store.map_err(|error| damaged(format!("the catalog's storage credentials cannot be used: {error}")))?;
        let metadata_location = answer.metadata_location;
        let hidden = answer.hidden_reference.map(|name| {
            Arc::from(format!(
                "reference `{name}` of a format version 1 table cannot be kept: upgrade the table to version 2"
            ))
        });
        Ok(LoadedTable {
            ident: ident.clone(),
            metadata_location: metadata_location.ok_or_else(|| damaged("the catalog names no metadata file".into()))?,
            metadata: Arc::new(answer.metadata),
            io: store.file_io(),
            store,
            read_only: self.read_only.clone().or(hidden),
        })
    }

    /// Sends a commit: once, or under a key that makes a second delivery harmless again while its answer is lost.
    async fn send(&self, ident: &TableIdent, body: &Bytes) -> Result<Bytes, SwapError> {
        let url = self.session.table_url(ident);
        let key = self.session.settings.idempotency.then(|| Uuid::now_v7().to_string());
        let key = key.and_then(|key| HeaderValue::from_str(&key).ok());
        let sends = if key.is_some() { SENDS } else { 1 };
        let mut sent = 0;
        loop {
            sent += 1;
            let extra = key.clone().map(|key| (IDEMPOTENCY_KEY, key));
            let unknown = match self.session.once(Method::POST, &url, Some(body), extra).await {
                Ok(answer) => {
                    let said = reason(answer.status, &answer.body);
                    let ident = ident.clone();
                    match outcome(answer.status) {
                        Outcome::Done => return Ok(answer.body),
                        // From here on only the first send says that nothing was applied: a server answers 409 also to a key whose
                        // first request it is still working on.
                        _ if sent > 1 => said.into(),
                        Outcome::Conflict => return Err(SwapError::Conflict { ident, detail: said }),
                        Outcome::Permanent => return Err(SwapError::Permanent { ident, source: said.into() }),
                        Outcome::NotAllowed => {
                            return Err(SwapError::Denied { ident, source: format!("{said}: {COMMIT_REMEDY}").into() });
                        }
                        Outcome::Unknown => said.into(),
                    }
                }
                Err(OnceError::Login(error)) if sent == 1 => {
                    let ident = ident.clone();
                    return Err(match error {
                        LoginError::Later(_) => SwapError::NotSent { ident, source: error.into() },
                        LoginError::Refused(_) => {
                            SwapError::Denied { ident, source: format!("{error}: {LOGIN_REMEDY}").into() }
                        }
                    });
                }
                Err(OnceError::Transport(TransportError::NotSent(source))) if sent == 1 => {
                    return Err(SwapError::NotSent { ident: ident.clone(), source });
                }
                Err(OnceError::Login(error)) => error.into(),
                Err(OnceError::Transport(TransportError::NotSent(source) | TransportError::Lost(source))) => source,
            };
            if sent == sends {
                return Err(SwapError::Unknown { ident: ident.clone(), source: unknown });
            }
            tokio::time::sleep(RESEND_WAIT * sent).await;
        }
    }
}

/// Why a catalog takes no commits; None: it does.
fn read_only(uri: &str, commits: bool) -> Option<&'static str> {
    let host = uri.split_once("://").map_or(uri, |(_, rest)| rest).split(['/', ':']).next().unwrap_or_default();
    if host.eq_ignore_ascii_case(ONELAKE) {
        return Some("OneLake's catalog is read-only");
    }
    (!commits).then_some("the catalog announces no route for commits, so it is read-only")
}

fn catalog_error(name: &str, error: SessionError) -> TableError {
    let catalog = name.to_owned();
    match error {
        SessionError::Unavailable(source) => TableError::CatalogUnavailable { catalog, source },
        SessionError::Refused(said) => TableError::CatalogDenied { catalog, detail: format!("{said}: {LOGIN_REMEDY}") },
        SessionError::Settings(said) => TableError::CatalogAbsent { catalog, detail: said },
        SessionError::Absent(said) | SessionError::Odd(said) => {
            let remedy = "check catalog.uri (what stands before /v1/config) and catalog.warehouse";
            TableError::CatalogAbsent { catalog, detail: format!("{said}: {remedy}") }
        }
    }
}

#[derive(Serialize)]
struct CommitRequest<'a> {
    identifier: Identifier<'a>,
    requirements: &'a [TableRequirement],
    updates: &'a [TableUpdate],
}

#[derive(Serialize)]
struct Identifier<'a> {
    namespace: &'a [String],
    name: &'a str,
}

#[async_trait]
impl Catalog for RestCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        match self.session.table(ident).await {
            Ok(answer) => self.loaded(ident, answer),
            Err(SessionError::Absent(_)) => {
                let known = self.list_tables(ident.namespace_levels()).await?;
                Err(TableError::TableAbsent { ident: ident.clone(), catalog: self.name.clone(), known })
            }
            Err(SessionError::Odd(detail)) => Err(TableError::Damaged { ident: ident.clone(), detail }),
            Err(error) => Err(catalog_error(&self.name, error)),
        }
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.session.namespaces().await.map_err(|error| catalog_error(&self.name, error))
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.session.tables(namespace).await.map_err(|error| catalog_error(&self.name, error))
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        let ident = &table.ident;
        let permanent = |source| SwapError::Permanent { ident: ident.clone(), source };
        if let Some(reason) = &self.read_only {
            return Err(permanent(reason.to_string().into()));
        }
        let request = CommitRequest {
            identifier: Identifier { namespace: ident.namespace_levels(), name: ident.name() },
            requirements: &requirements,
            updates: &updates,
        };
        let body = Bytes::from(serde_json::to_vec(&request).map_err(|error| permanent(error.into()))?);
        let answer = self.send(ident, &body).await?;
        // It was applied; an answer that cannot be read only keeps us from knowing what is there now.
        let unknown = |source| SwapError::Unknown { ident: ident.clone(), source };
        let answer: TableAnswer = serde_json::from_slice(&answer).map_err(|error| unknown(error.into()))?;
        let Some(metadata_location) = answer.metadata_location else {
            return Err(unknown("the answer to the commit names no metadata file".into()));
        };
        Ok(LoadedTable { metadata_location, metadata: Arc::new(answer.metadata), ..table.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_committed_to_is_known_before() {
        for (uri, commits, expected) in [
            ("https://onelake.table.fabric.microsoft.com/iceberg", true, true),
            ("https://OneLake.table.fabric.microsoft.com:443/iceberg", true, true),
            ("https://example.com/onelake.table.fabric.microsoft.com", true, false),
            ("https://example.com", false, true),
            ("https://example.com", true, false),
        ] {
            assert_eq!(read_only(uri, commits).is_some(), expected, "{uri} {commits}");
        }
    }
}
