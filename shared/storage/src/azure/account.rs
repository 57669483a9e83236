//! A storage account: where its services are, and how requests to it prove who sends them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::Secret;

use super::connection::{ConnectionError, account_of, clean_endpoint};
use super::identity::{TokenError, TokenSource};

/// The account that the emulator has without configuration.
pub(super) const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// The domain of accounts in Azure's public cloud.
const PUBLIC_DOMAIN: &str = "core.windows.net";

/// How requests prove who sends them.
#[derive(Clone)]
pub(crate) enum Credential {
    /// The account's key (Base64).
    SharedKey(Secret),
    /// A shared access signature: a query without its `?`.
    Sas(Secret),
    /// A token of an identity. It is good for every account on which that identity has a role.
    Token(Arc<TokenSource>),
    /// A shared access signature that somebody else hands out, again and again.
    Vended(Arc<dyn SasSource>),
}

/// Gives the shared access signature that is good now: a query without its `?`, a secret.
#[async_trait]
pub trait SasSource: Send + Sync + fmt::Debug {
    /// The signature for the next request.
    ///
    /// # Errors
    /// [`TokenError`] when the last one has ended and there is no other: a request without a signature would be answered as if
    /// nothing were there.
    async fn sas(&self) -> Result<String, TokenError>;

    /// Another signature after the service refused this one (it was revoked, or ended by the service's clock); None: there is none,
    /// and the refusal stands.
    async fn another(&self, refused: &str) -> Option<String>;
}

/// An account with its credential. Its `Debug` shows no secret.
#[derive(Clone)]
pub struct AzureAccount {
    pub(crate) account: String,
    /// Without a slash at the end.
    pub(crate) blob_endpoint: String,
    /// As written or derived; None: nobody told. Only looked at by who opens a queue.
    pub(super) queue_endpoint: Option<String>,
    pub(crate) credential: Credential,
}

impl fmt::Debug for AzureAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credential = match &self.credential {
            Credential::SharedKey(_) => "AccountKey=***",
            Credential::Sas(_) => "SharedAccessSignature=***",
            Credential::Token(source) => source.name(),
            Credential::Vended(_) => "a vended signature",
        };
        write!(f, "{} at {}, {credential}", self.account, self.blob_endpoint)
    }
}

/// Where an account's services are, as far as a configuration tells it: the name is enough in the public cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountAddress {
    /// Its name; None: as `blob_service` tells.
    pub account: Option<String>,
    /// Address of the blob service in place of the one derived from the name.
    pub blob_service: Option<String>,
    /// Address of the queue service in place of the one derived from the name or the blob service.
    pub queue_service: Option<String>,
}

impl AzureAccount {
    /// The account at `address`, asked with tokens of `identity`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectionError`]: neither name nor blob service; an address that is none or has no TLS (a token is only sent over TLS).
    pub fn with_identity(
        address: &AccountAddress,
        identity: Arc<TokenSource>,
    ) -> Result<AzureAccount, ConnectionError> {
        let named = address.account.as_ref().map(|account| account.to_ascii_lowercase());
        let (blob_endpoint, derived) = match (&address.blob_service, &named) {
            (Some(endpoint), _) => (
                clean_endpoint("blobServiceUri", endpoint)?,
                endpoint.contains(".blob.").then(|| endpoint.replacen(".blob.", ".queue.", 1)),
            ),
            (None, Some(account)) => (
                format!("https://{account}.blob.{PUBLIC_DOMAIN}"),
                Some(format!("https://{account}.queue.{PUBLIC_DOMAIN}")),
            ),
            (None, None) => return Err(ConnectionError::NoAccount),
        };
        let queue_endpoint = match &address.queue_service {
            Some(endpoint) => Some(clean_endpoint("queueServiceUri", endpoint)?),
            None => derived,
        };
        for (setting, endpoint) in
            [("blobServiceUri", Some(&blob_endpoint)), ("queueServiceUri", queue_endpoint.as_ref())]
        {
            if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.to_ascii_lowercase().starts_with("https://")) {
                let reason = format!(
                    "a token is only sent over TLS; write https:// or use a connectionString in place of {}",
                    identity.name()
                );
                return Err(ConnectionError::Endpoint { setting, endpoint: endpoint.clone(), reason });
            }
        }
        let account = match named {
            Some(account) => account,
            None => account_of(&blob_endpoint)?,
        };
        Ok(AzureAccount { account, blob_endpoint, queue_endpoint, credential: Credential::Token(identity) })
    }

    /// The blobs of an account, asked with signatures that are handed out for it. `blob_endpoint` is its blob service; None: that of
    /// the public cloud.
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectionError`]: an address that is none.
    pub fn with_vended(
        account: &str,
        blob_endpoint: Option<&str>,
        signatures: Arc<dyn SasSource>,
    ) -> Result<AzureAccount, ConnectionError> {
        let account = account.to_ascii_lowercase();
        let blob_endpoint = match blob_endpoint {
            Some(endpoint) => clean_endpoint("blobServiceUri", endpoint)?,
            None => format!("https://{account}.blob.{PUBLIC_DOMAIN}"),
        };
        Ok(AzureAccount { account, blob_endpoint, queue_endpoint: None, credential: Credential::Vended(signatures) })
    }

    /// Another account, asked with the same credential and in the same cloud; None: the credential is good for this account only.
    pub fn sibling(&self, account: &str) -> Option<AzureAccount> {
        let Credential::Token(identity) = &self.credential else { return None };
        let account = account.to_ascii_lowercase();
        let blob_endpoint = sibling_endpoint(&self.account, &self.blob_endpoint, &account);
        let credential = Credential::Token(identity.clone());
        Some(AzureAccount { account, blob_endpoint, queue_endpoint: None, credential })
    }

    /// The storage account, lower case.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The address of the blob service, without the query.
    pub fn blob_endpoint(&self) -> &str {
        &self.blob_endpoint
    }

    /// The address of the queue service, without the query.
    ///
    /// # Errors
    /// [`ConnectionError::Missing`] when there is only a blob endpoint that tells nothing of queues,
    /// [`ConnectionError::Endpoint`].
    pub fn queue_endpoint(&self) -> Result<String, ConnectionError> {
        let by_token = matches!(self.credential, Credential::Token(_));
        let missing =
            if by_token { ConnectionError::NoQueueService } else { ConnectionError::Missing("QueueEndpoint") };
        clean_endpoint("QueueEndpoint", self.queue_endpoint.as_deref().ok_or(missing)?)
    }

    /// The identity that asks for tokens; None: a key or a signature.
    pub fn identity(&self) -> Option<&Arc<TokenSource>> {
        match &self.credential {
            Credential::Token(identity) => Some(identity),
            Credential::SharedKey(_) | Credential::Sas(_) | Credential::Vended(_) => None,
        }
    }

    /// Whether this is the emulator's account, which does not know the newest version of the service.
    pub(crate) fn is_emulator(&self) -> bool {
        self.account == EMULATOR_ACCOUNT
    }
}

/// The blob service of account `other`, given that of `account`: the name in the host, or behind it in an emulator. A domain
/// of one's own tells nothing of others.
fn sibling_endpoint(account: &str, endpoint: &str, other: &str) -> String {
    let lower = endpoint.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix(&format!("https://{account}.")).filter(|rest| rest.contains("blob.")) {
        return format!("https://{other}.{rest}");
    }
    match lower.strip_suffix(&format!("/{account}")) {
        Some(host) => format!("{host}/{other}"),
        None => format!("https://{other}.blob.{PUBLIC_DOMAIN}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::identity::tests::scripted;

    fn open(account: Option<&str>, blob: Option<&str>, queue: Option<&str>) -> Result<AzureAccount, ConnectionError> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let address =
            AccountAddress { account: owned(account), blob_service: owned(blob), queue_service: owned(queue) };
        AzureAccount::with_identity(&address, scripted(vec![]).0)
    }

    #[test]
    fn addresses_come_from_name_or_services() {
        let china = "https://lake.blob.core.chinacloudapi.cn";
        let local = "https://127.0.0.1:3/devstoreaccount1";
        for (account, blob, queue, expected) in [
            (
                Some("Lake"),
                None,
                None,
                ("lake", "https://lake.blob.core.windows.net", "https://lake.queue.core.windows.net"),
            ),
            (None, Some(china), None, ("lake", china, "https://lake.queue.core.chinacloudapi.cn")),
            (
                None,
                Some(local),
                Some("https://127.0.0.1:4/devstoreaccount1/"),
                ("devstoreaccount1", local, "https://127.0.0.1:4/devstoreaccount1"),
            ),
            (
                Some("a"),
                Some("https://data.example.com"),
                Some("https://q.example.com"),
                ("a", "https://data.example.com", "https://q.example.com"),
            ),
        ] {
            let opened = open(account, blob, queue).unwrap();
            let queue = opened.queue_endpoint().unwrap();
            assert_eq!((opened.account(), opened.blob_endpoint(), queue.as_str()), expected);
        }
        assert_eq!(open(None, None, None).unwrap_err(), ConnectionError::NoAccount);
        let without_queue = open(Some("a"), Some("https://data.example.com"), None).unwrap();
        assert_eq!(without_queue.queue_endpoint().unwrap_err(), ConnectionError::NoQueueService);
    }

    #[test]
    fn a_token_is_never_sent_in_the_clear() {
        for (blob, queue) in [
            ("http://127.0.0.1:3/devstoreaccount1", None),
            ("https://127.0.0.1:3/devstoreaccount1", Some("http://127.0.0.1:4/devstoreaccount1")),
        ] {
            let error = open(None, Some(blob), queue).unwrap_err().to_string();
            assert!(error.contains("a token is only sent over TLS"), "{error}");
        }
    }

    #[test]
    fn siblings_are_in_the_same_cloud() {
        for (account, endpoint, expected) in [
            ("lake", "https://lake.blob.core.windows.net", "https://data.blob.core.windows.net"),
            ("lake", "https://Lake.z5.blob.storage.azure.net", "https://data.z5.blob.storage.azure.net"),
            ("lake", "https://lake.blob.core.usgovcloudapi.net", "https://data.blob.core.usgovcloudapi.net"),
            ("devstoreaccount1", "https://127.0.0.1:3/devstoreaccount1", "https://127.0.0.1:3/data"),
            ("lake", "https://blobs.example.com", "https://data.blob.core.windows.net"),
        ] {
            assert_eq!(sibling_endpoint(account, endpoint, "data"), expected);
        }
        assert_eq!(open(Some("lake"), None, None).unwrap().sibling("Data").unwrap().account(), "data");
        let by_key = crate::ConnectionString::parse("AccountName=lake;AccountKey=Zm9v").unwrap();
        assert!(by_key.sibling("data").is_none());
    }
}
