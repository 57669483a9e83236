//! The identities that a configuration can name, and what each needs of the environment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azure_core::credentials::TokenCredential;
use azure_core::http::{ClientOptions, RetryOptions, Transport};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions, DeveloperToolsCredential,
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
    WorkloadIdentityCredentialOptions,
};

use super::answers::Answers;
use super::error::TokenError;
use super::source::TokenSource;
use crate::error::chain;

/// Variables of the identity of an application, as all of Azure's libraries name them.
const CLIENT_ID: &str = "AZURE_CLIENT_ID";
const CLIENT_SECRET: &str = "AZURE_CLIENT_SECRET";
const TENANT_ID: &str = "AZURE_TENANT_ID";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Longest time until a connection to the identity endpoint stands. It lies beside the app, or is a public service.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// Kinds of identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdentityKind {
    /// That of the app or the virtual machine.
    ManagedIdentity,
    /// That of a Kubernetes service account.
    WorkloadIdentity,
    /// An application with a secret.
    ClientSecret,
    /// Who is logged in with the Azure CLI or the Azure Developer CLI.
    DeveloperTools,
}

impl IdentityKind {
    fn word(self) -> &'static str {
        match self {
            IdentityKind::ManagedIdentity => "managedIdentity",
            IdentityKind::WorkloadIdentity => "workloadIdentity",
            IdentityKind::ClientSecret => "clientSecret",
            IdentityKind::DeveloperTools => "developerTools",
        }
    }

    /// What a person does when the identity is refused.
    fn remedy(self) -> &'static str {
        match self {
            IdentityKind::ManagedIdentity => {
                "assign the identity to the app and write its client id as storage.clientId; outside Azure use developerTools"
            }
            IdentityKind::WorkloadIdentity => {
                "check the federated credential of the application and the service account's annotations"
            }
            IdentityKind::ClientSecret => {
                "check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET; a secret expires and is renewed in the application's registration"
            }
            IdentityKind::DeveloperTools => "log in with az login or azd auth login",
        }
    }
}

/// An identity as a configuration names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its kind.
    pub kind: IdentityKind,
    /// `clientId`: of a user-assigned identity or an application; None: the only identity of the app, or `AZURE_CLIENT_ID`.
    pub client_id: Option<String>,
}

/// The sources of this process: one token for one identity, however many clients are opened.
static SOURCES: Mutex<BTreeMap<Identity, Arc<TokenSource>>> = Mutex::new(BTreeMap::new());

impl Identity {
    /// The source of its tokens for storage, the same for every caller in this process. Nothing is sent yet.
    ///
    /// # Errors
    /// [`TokenError::Settings`]: a variable that it needs is not set.
    pub fn open(&self) -> Result<Arc<TokenSource>, TokenError> {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = sources.get(self) {
            return Ok(source.clone());
        }
        let credential = self.credential(&|name| std::env::var(name).ok()).map_err(|reason| self.wrong(reason))?;
        let source = Arc::new(TokenSource::new(self.name(), self.kind.remedy(), credential));
        sources.insert(self.clone(), source.clone());
        Ok(source)
    }

    fn name(&self) -> String {
        let word = self.kind.word();
        match &self.client_id {
            Some(id) => format!("credential: {word} (clientId {id})"),
            None => format!("credential: {word}"),
        }
    }

    fn wrong(&self, reason: String) -> TokenError {
        TokenError::Settings { credential: self.name(), reason }
    }

    fn credential(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Arc<dyn TokenCredential>, String> {
        let needed = |name: &str| {
            let value = variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("environment variable {name} is not set; set it, or choose another credential"))
        };
        let client_id = || match &self.client_id {
            Some(id) => Ok(id.clone()),
            None => needed(CLIENT_ID).map_err(|_| {
                format!("no client id; write storage.clientId or set the environment variable {CLIENT_ID}")
            }),
        };
        let failed = |error: azure_core::Error| chain(&error);
        Ok(match self.kind {
            IdentityKind::ManagedIdentity => {
                let options = ManagedIdentityCredentialOptions {
                    user_assigned_id: self.client_id.clone().map(UserAssignedId::ClientId),
                    // Its endpoint is on this machine or beside it.
                    client_options: client_options(false)?,
                };
                ManagedIdentityCredential::new(Some(options)).map_err(failed)?
            }
            IdentityKind::WorkloadIdentity => {
                let options = WorkloadIdentityCredentialOptions {
                    credential_options: ClientAssertionCredentialOptions { client_options: client_options(true)? },
                    client_id: Some(client_id()?),
                    tenant_id: Some(needed(TENANT_ID)?),
                    token_file_path: Some(needed(TOKEN_FILE)?.into()),
                };
                WorkloadIdentityCredential::new(Some(options)).map_err(failed)?
            }
            IdentityKind::ClientSecret => {
                let options = ClientSecretCredentialOptions { client_options: client_options(true)? };
                let secret = needed(CLIENT_SECRET)?.into();
                ClientSecretCredential::new(&needed(TENANT_ID)?, client_id()?, secret, Some(options)).map_err(failed)?
            }
            IdentityKind::DeveloperTools => DeveloperToolsCredential::new(None).map_err(failed)?,
        })
    }
}

fn client_options(through_proxy: bool) -> Result<ClientOptions, String> {
    // One TLS provider in the process. An error says that another part has installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        // Following would carry the secret along.
        .redirect(reqwest::redirect::Policy::none());
    if !through_proxy {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| format!("cannot make an HTTP client: {}", chain(&error)))?;
    Ok(ClientOptions {
        per_try_policies: vec![Arc::new(Answers)],
        retry: RetryOptions::none(),
        transport: Some(Transport::new(Arc::new(client))),
        ..ClientOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(kind: IdentityKind, client_id: Option<&str>, set: &[(&str, &str)]) -> Result<(), String> {
        let identity = Identity { kind, client_id: client_id.map(str::to_owned) };
        let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        identity.credential(&variable).map(|_| ()).map_err(|reason| identity.wrong(reason).to_string())
    }

    #[test]
    fn each_kind_says_what_it_needs() {
        let tenant = (TENANT_ID, "11111111-1111-1111-1111-111111111111");
        let (client, secret, file) = ((CLIENT_ID, "c"), (CLIENT_SECRET, "hunter2"), (TOKEN_FILE, "/no/such/file"));
        assert_eq!(opened(IdentityKind::ManagedIdentity, None, &[]), Ok(()));
        assert_eq!(opened(IdentityKind::ManagedIdentity, Some("c"), &[]), Ok(()));
        assert_eq!(opened(IdentityKind::DeveloperTools, None, &[]), Ok(()));
        assert_eq!(opened(IdentityKind::ClientSecret, None, &[tenant, client, secret]), Ok(()));
        assert_eq!(opened(IdentityKind::ClientSecret, Some("c"), &[tenant, secret]), Ok(()));
        for (kind, set, expected) in [
            (
                IdentityKind::ClientSecret,
                vec![tenant, client],
                "storage.credential: clientSecret: environment variable AZURE_CLIENT_SECRET is not set; set it, or choose another credential",
            ),
            (
                IdentityKind::ClientSecret,
                vec![client, secret],
                "storage.credential: clientSecret: environment variable AZURE_TENANT_ID is not set; set it, or choose another credential",
            ),
            (
                IdentityKind::ClientSecret,
                vec![tenant, secret],
                "storage.credential: clientSecret: no client id; write storage.clientId or set the environment variable AZURE_CLIENT_ID",
            ),
            (
                IdentityKind::WorkloadIdentity,
                vec![tenant, client],
                "storage.credential: workloadIdentity: environment variable AZURE_FEDERATED_TOKEN_FILE is not set; set it, or choose another credential",
            ),
        ] {
            assert_eq!(opened(kind, None, &set).unwrap_err(), expected);
        }
        // What is wrong with them shows when the token is asked for, or here; never with the secret.
        let wrong = opened(IdentityKind::WorkloadIdentity, None, &[tenant, client, file]);
        assert!(wrong.is_ok() || wrong.unwrap_err().contains("/no/such/file"));
        let wrong = opened(IdentityKind::ClientSecret, None, &[(TENANT_ID, "a b"), client, secret]).unwrap_err();
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }

    #[test]
    fn one_source_for_one_identity() {
        let identity = |client: Option<&str>| Identity {
            kind: IdentityKind::ManagedIdentity,
            client_id: client.map(str::to_owned),
        };
        let first = identity(Some("kinds-test")).open().unwrap();
        assert!(Arc::ptr_eq(&first, &identity(Some("kinds-test")).open().unwrap()));
        let other = identity(None).open().unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(first.name(), "credential: managedIdentity (clientId kinds-test)");
        assert_eq!(other.name(), "credential: managedIdentity");
    }
}
