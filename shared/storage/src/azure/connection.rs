//! Connection strings of storage accounts.

use std::fmt;
use std::ops::Deref;

use azure_core::credentials::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use firn_model::BlobId;

use super::account::{AzureAccount, Credential, EMULATOR_ACCOUNT};

/// The published key of the emulator's account.
const EMULATOR_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const EMULATOR_HOST: &str = "http://127.0.0.1";

/// Why an account cannot be opened. No message holds a key or a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// A piece between semicolons is not `Name=Value`.
    #[error(
        "storage connection string: piece {0} is not Name=Value; copy the whole string from the portal, `Access keys`"
    )]
    Piece(usize),
    /// A setting is missing.
    #[error("storage connection string: {0} is missing; copy the whole string from the portal, `Access keys`")]
    Missing(&'static str),
    /// The key is not Base64.
    #[error("storage connection string: AccountKey is not Base64; copy it from the portal, `Access keys`")]
    Key,
    /// An endpoint is not a URL of a storage account.
    #[error("storage account: {setting} `{endpoint}`: {reason}")]
    Endpoint {
        /// `BlobEndpoint` or `QueueEndpoint` of a connection string, `blobServiceUri` or `queueServiceUri` of the configuration.
        setting: &'static str,
        /// The endpoint without its query.
        endpoint: String,
        /// What is wrong and the remedy.
        reason: String,
    },
    /// Nothing names the account.
    #[error("the storage account has no name; write account or blobServiceUri")]
    NoAccount,
    /// Nothing says where the queues are.
    #[error(
        "queueServiceUri is missing and blobServiceUri does not tell it; write for example https://account.queue.core.windows.net"
    )]
    NoQueueService,
    /// The HTTP client cannot be made.
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
}

/// A parsed connection string: the account that it leads to. Its `Debug` shows no secret.
#[derive(Clone)]
pub struct ConnectionString(AzureAccount);

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionString({:?})", self.0)
    }
}

impl Deref for ConnectionString {
    type Target = AzureAccount;

    fn deref(&self) -> &AzureAccount {
        &self.0
    }
}

impl From<ConnectionString> for AzureAccount {
    fn from(connection: ConnectionString) -> AzureAccount {
        connection.0
    }
}

impl ConnectionString {
    /// Parses `Name=Value;…` as the portal shows it: `AccountName` with `AccountKey` or `SharedAccessSignature`, with
    /// `BlobEndpoint` or `DefaultEndpointsProtocol` (https) and `EndpointSuffix` (core.windows.net); or
    /// `UseDevelopmentStorage=true`, with `DevelopmentStorageProxyUri` for an emulator on another host. Other settings are
    /// ignored, names are compared without case.
    ///
    /// # Errors
    /// [`ConnectionError`], which names the setting.
    pub fn parse(text: &str) -> Result<ConnectionString, ConnectionError> {
        let mut pieces = Vec::new();
        for (index, piece) in text.split(';').enumerate().filter(|(_, piece)| !piece.trim().is_empty()) {
            pieces.push(piece.trim().split_once('=').ok_or(ConnectionError::Piece(index + 1))?);
        }
        let get = |name: &str| {
            pieces.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        if get("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(emulator(get("DevelopmentStorageProxyUri").unwrap_or(EMULATOR_HOST)));
        }
        let protocol = get("DefaultEndpointsProtocol").unwrap_or("https");
        let suffix = get("EndpointSuffix").unwrap_or("core.windows.net");
        let (blob_endpoint, derived) = match (get("BlobEndpoint"), get("AccountName")) {
            // A queue endpoint beside a blob endpoint of an emulator or a domain of one's own cannot be guessed.
            (Some(endpoint), _) => (
                clean_endpoint("BlobEndpoint", endpoint)?,
                endpoint.contains(".blob.").then(|| endpoint.replacen(".blob.", ".queue.", 1)),
            ),
            (None, Some(account)) => (
                clean_endpoint("BlobEndpoint", &format!("{protocol}://{account}.blob.{suffix}"))?,
                Some(format!("{protocol}://{account}.queue.{suffix}")),
            ),
            (None, None) => return Err(ConnectionError::Missing("AccountName")),
        };
        let queue_endpoint = get("QueueEndpoint").map(str::to_owned).or(derived);
        let account = match get("AccountName") {
            Some(account) => account.to_ascii_lowercase(),
            None => account_of(&blob_endpoint)?,
        };
        let credential = match (get("AccountKey"), get("SharedAccessSignature")) {
            (Some(key), _) if STANDARD.decode(key).is_ok() => Credential::SharedKey(Secret::new(key.to_owned())),
            (Some(_), _) => return Err(ConnectionError::Key),
            (None, Some(sas)) => Credential::Sas(Secret::new(sas.trim_start_matches('?').to_owned())),
            (None, None) => return Err(ConnectionError::Missing("AccountKey or SharedAccessSignature")),
        };
        Ok(ConnectionString(AzureAccount { account, blob_endpoint, queue_endpoint, credential }))
    }
}

fn emulator(host: &str) -> ConnectionString {
    ConnectionString(AzureAccount {
        account: EMULATOR_ACCOUNT.into(),
        blob_endpoint: format!("{}:10000/{EMULATOR_ACCOUNT}", host.trim_end_matches('/')),
        queue_endpoint: Some(format!("{}:10001/{EMULATOR_ACCOUNT}", host.trim_end_matches('/'))),
        credential: Credential::SharedKey(Secret::new(EMULATOR_KEY)),
    })
}

pub(super) fn clean_endpoint(setting: &'static str, endpoint: &str) -> Result<String, ConnectionError> {
    // A signature may hang on the endpoint; it belongs into SharedAccessSignature and must not show in any message.
    let clean = endpoint.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let failed = |reason: String| ConnectionError::Endpoint { setting, endpoint: clean.into(), reason };
    if clean.len() < endpoint.trim_end_matches('/').len() {
        return Err(failed("it has a query; put a signature into SharedAccessSignature".into()));
    }
    match clean.split_once("://") {
        Some((scheme, host))
            if ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) && !host.is_empty() =>
        {
            Ok(clean.to_owned())
        }
        _ if setting.to_ascii_lowercase().starts_with("queue") => {
            Err(failed("write https://account.queue.core.windows.net".into()))
        }
        _ => Err(failed("write https://account.blob.core.windows.net".into())),
    }
}

/// The account of an endpoint that stands alone.
pub(super) fn account_of(endpoint: &str) -> Result<String, ConnectionError> {
    // A container and key make it a blob's URL, whose identity names the account.
    BlobId::parse(&format!("{endpoint}/container/key")).map(|id| id.account).map_err(|_| ConnectionError::Endpoint {
        setting: "BlobEndpoint",
        endpoint: endpoint.into(),
        reason: "cannot tell the account from it; add AccountName".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, String) {
        let account = AzureAccount::from(ConnectionString::parse(text).unwrap());
        let credential = match &account.credential {
            Credential::SharedKey(key) => format!("key {}", key.secret()),
            Credential::Sas(sas) => format!("sas {}", sas.secret()),
            Credential::Token(_) | Credential::Vended(_) => String::new(),
        };
        (account.account, account.blob_endpoint, credential)
    }

    fn expected(account: &str, endpoint: &str, credential: &str) -> (String, String, String) {
        (account.into(), endpoint.into(), credential.into())
    }

    #[test]
    fn forms_of_the_portal_and_of_the_emulator() {
        let acct = "https://acct.blob.core.windows.net";
        for (text, wanted) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=Zm9vYmE=;EndpointSuffix=core.windows.net",
                expected("acct", acct, "key Zm9vYmE="),
            ),
            ("accountname=Acct;ACCOUNTKEY=Zm9v;", expected("acct", "https://Acct.blob.core.windows.net", "key Zm9v")),
            (
                "AccountName=acct;AccountKey=Zm9v;EndpointSuffix=core.chinacloudapi.cn",
                expected("acct", "https://acct.blob.core.chinacloudapi.cn", "key Zm9v"),
            ),
            (
                "BlobEndpoint=https://acct.blob.core.windows.net/;QueueEndpoint=x;SharedAccessSignature=?sv=1&sig=a%2Bb%3D",
                expected("acct", acct, "sas sv=1&sig=a%2Bb%3D"),
            ),
            (
                "BlobEndpoint=http://127.0.0.1:3/devstoreaccount1;AccountName=devstoreaccount1;AccountKey=Zm9v",
                expected("devstoreaccount1", "http://127.0.0.1:3/devstoreaccount1", "key Zm9v"),
            ),
            (
                "BlobEndpoint=https://data.example.com;AccountName=acct;AccountKey=Zm9v",
                expected("acct", "https://data.example.com", "key Zm9v"),
            ),
            (
                "UseDevelopmentStorage=true",
                expected("devstoreaccount1", "http://127.0.0.1:10000/devstoreaccount1", &format!("key {EMULATOR_KEY}")),
            ),
            (
                " UseDevelopmentStorage = True ; DevelopmentStorageProxyUri = http://azurite/ ;",
                expected("devstoreaccount1", "http://azurite:10000/devstoreaccount1", &format!("key {EMULATOR_KEY}")),
            ),
        ] {
            assert_eq!(parsed(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_without_secrets() {
        let fails = |text: &str| ConnectionString::parse(text).unwrap_err();
        assert_eq!(fails(""), ConnectionError::Missing("AccountName"));
        assert_eq!(fails("AccountName=a;secret"), ConnectionError::Piece(2));
        assert_eq!(fails("AccountName=a;AccountKey=Zm9v=="), ConnectionError::Key);
        assert_eq!(fails("AccountName=a"), ConnectionError::Missing("AccountKey or SharedAccessSignature"));
        assert_eq!(fails("UseDevelopmentStorage=false"), ConnectionError::Missing("AccountName"));
        for text in ["BlobEndpoint=ftp://a;AccountKey=Zm9v", "BlobEndpoint=https://data.example.com;AccountKey=Zm9v"] {
            assert!(matches!(fails(text), ConnectionError::Endpoint { .. }), "{text}");
        }
        let with_query =
            fails("BlobEndpoint=https://a.blob.core.windows.net/?sig=topsecret;AccountKey=Zm9v").to_string();
        assert!(with_query.contains("SharedAccessSignature") && !with_query.contains("topsecret"), "{with_query}");
    }

    #[test]
    fn the_queue_endpoint_is_that_of_the_same_account() {
        let endpoint = |text: &str| ConnectionString::parse(text).unwrap().queue_endpoint();
        for (text, expected) in [
            (
                "AccountName=Acct;AccountKey=Zm9v;EndpointSuffix=core.chinacloudapi.cn",
                "https://Acct.queue.core.chinacloudapi.cn",
            ),
            (
                "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sig=x",
                "https://a.queue.core.windows.net",
            ),
            (
                "BlobEndpoint=http://127.0.0.1:3/devstoreaccount1;QueueEndpoint=http://127.0.0.1:4/devstoreaccount1/;AccountKey=Zm9v",
                "http://127.0.0.1:4/devstoreaccount1",
            ),
            ("UseDevelopmentStorage=true", "http://127.0.0.1:10001/devstoreaccount1"),
        ] {
            assert_eq!(endpoint(text).as_deref(), Ok(expected), "{text}");
        }
        let custom = "BlobEndpoint=https://data.example.com;AccountName=a;AccountKey=Zm9v";
        assert_eq!(endpoint(custom), Err(ConnectionError::Missing("QueueEndpoint")));
        let wrong = endpoint(&format!("{custom};QueueEndpoint=x")).unwrap_err().to_string();
        assert!(wrong.contains("QueueEndpoint `x`: write https://account.queue.core.windows.net"), "{wrong}");
    }

    #[test]
    fn debug_shows_no_secret() {
        for text in ["AccountName=a;AccountKey=c2VjcmV0", "AccountName=a;SharedAccessSignature=sig=c2VjcmV0"] {
            let shown = format!("{:?}", ConnectionString::parse(text).unwrap());
            assert!(!shown.contains("c2VjcmV0") && shown.contains("https://a.blob.core.windows.net"), "{shown}");
        }
    }
}
