//! Addresses and clients of an account's containers and blobs.

use std::sync::Arc;

use azure_core::http::policies::Policy;
use azure_core::http::{ClientOptions, RetryOptions, Transport, Url};
use azure_storage_blob::{BlobClient, BlobClientOptions, BlobContainerClient, BlobContainerClientOptions};
use firn_model::BlobId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::AzureOptions;
use super::account::AzureAccount;
use super::connection::ConnectionError;
use super::signing;
use crate::error::{StorageError, chain};

/// The newest version of the service that the emulator knows; it refuses the one that the SDK sends by itself.
pub(super) const EMULATOR_VERSION: &str = "2025-11-05";

/// Everything outside RFC 3986 `unreserved` is encoded, the slash too: one segment of a URL, which nothing normalises.
pub(super) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Makes clients that share one connection pool. No client's URL holds a secret.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) account: String,
    pub(super) endpoint: String,
    pub(super) version: Option<String>,
    pub(super) options: ClientOptions,
}

impl Clients {
    pub(super) fn new(account: &AzureAccount, options: &AzureOptions) -> Result<Clients, ConnectionError> {
        let client_options = client_options(signing::blob_steps(account), &account.blob_endpoint, options)?;
        Ok(Clients {
            account: account.account.clone(),
            endpoint: account.blob_endpoint.clone(),
            version: service_version(account, options),
            options: client_options,
        })
    }

    /// The client for a blob.
    pub(super) fn blob(&self, id: &BlobId) -> Result<BlobClient, StorageError> {
        self.blob_by(id, self.options.clone())
    }

    /// As [`Clients::blob`], with a step that comes before the signature.
    pub(super) fn blob_with(&self, id: &BlobId, step: Arc<dyn Policy>) -> Result<BlobClient, StorageError> {
        self.blob_by(id, self.options_with(step))
    }

    fn options_with(&self, step: Arc<dyn Policy>) -> ClientOptions {
        let mut options = self.options.clone();
        options.per_call_policies.push(step);
        options
    }

    fn blob_by(&self, id: &BlobId, client_options: ClientOptions) -> Result<BlobClient, StorageError> {
        if matches!(id.key.as_str(), "" | "." | "..") {
            return Err(StorageError::invalid(id, "no blob can have this name"));
        }
        let mut options = BlobClientOptions { client_options, ..Default::default() };
        if let Some(version) = &self.version {
            options.version.clone_from(version);
        }
        let url = self.url(id, &format!("/{}", utf8_percent_encode(&id.key, SEGMENT)))?;
        BlobClient::new(url, None, Some(options)).map_err(|error| StorageError::invalid(id, chain(&error)))
    }

    /// The client for the container of a blob.
    pub(super) fn container(&self, id: &BlobId) -> Result<BlobContainerClient, StorageError> {
        self.container_by(id, self.options.clone())
    }

    /// As [`Clients::container`], with a step that comes before the signature.
    pub(super) fn container_with(
        &self,
        id: &BlobId,
        step: Arc<dyn Policy>,
    ) -> Result<BlobContainerClient, StorageError> {
        self.container_by(id, self.options_with(step))
    }

    fn container_by(&self, id: &BlobId, client_options: ClientOptions) -> Result<BlobContainerClient, StorageError> {
        let mut options = BlobContainerClientOptions { client_options, ..Default::default() };
        if let Some(version) = &self.version {
            options.version.clone_from(version);
        }
        let url = self.url(id, "")?;
        BlobContainerClient::new(url, None, Some(options)).map_err(|error| StorageError::invalid(id, chain(&error)))
    }

    fn url(&self, id: &BlobId, path: &str) -> Result<Url, StorageError> {
        if id.account != self.account {
            return Err(StorageError::invalid(id, format!("not in storage account `{}`", self.account)));
        }
        if matches!(id.container.as_str(), "" | "." | "..") {
            return Err(StorageError::invalid(id, "no container can have this name"));
        }
        let text = format!("{}/{}{path}", self.endpoint, utf8_percent_encode(&id.container, SEGMENT));
        Url::parse(&text).map_err(|error| StorageError::invalid(id, format!("endpoint `{}`: {error}", self.endpoint)))
    }
}

/// The version of the service to ask for instead of the SDK's.
pub(super) fn service_version(account: &AzureAccount, options: &AzureOptions) -> Option<String> {
    let emulator = || account.is_emulator().then(|| EMULATOR_VERSION.to_owned());
    options.service_version.clone().or_else(emulator)
}

/// Settings of the SDK's clients for one service of an account.
pub(super) fn client_options(
    steps: Vec<Arc<dyn Policy>>,
    endpoint: &str,
    options: &AzureOptions,
) -> Result<ClientOptions, ConnectionError> {
    Ok(ClientOptions {
        per_try_policies: steps,
        // `RetryPolicy` repeats whole calls, the body of the answer included.
        retry: RetryOptions::none(),
        transport: Some(Transport::new(Arc::new(http_client(endpoint, options)?))),
        ..ClientOptions::default()
    })
}

fn http_client(endpoint: &str, options: &AzureOptions) -> Result<reqwest::Client, ConnectionError> {
    // One TLS provider in the process. An error says that another part has installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(options.retry.connect_timeout)
        // The service redirects nobody; following would carry the signature along.
        .redirect(reqwest::redirect::Policy::none());
    if is_loopback(endpoint) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConnectionError::Client(chain(&error)))
}

fn is_loopback(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    ["127.", "localhost:", "localhost/", "[::1]"].iter().any(|start| host.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(text: &str) -> Clients {
        Clients::new(&crate::ConnectionString::parse(text).unwrap(), &AzureOptions::default()).unwrap()
    }

    #[test]
    fn a_key_is_one_encoded_segment() {
        let clients = clients("AccountName=acct;AccountKey=Zm9v");
        let url = |key: &str| {
            let id = BlobId { account: "acct".into(), container: "c".into(), key: key.into() };
            clients.blob(&id).map(|client| client.url().to_string())
        };
        let base = "https://acct.blob.core.windows.net/c";
        for (key, path) in [
            ("a/b", "a%2Fb"),
            ("a b%20#?+&", "a%20b%2520%23%3F%2B%26"),
            ("a/../b/./c", "a%2F..%2Fb%2F.%2Fc"),
            ("tab\tline\nend", "tab%09line%0Aend"),
            ("/lead", "%2Flead"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(url(key).unwrap(), format!("{base}/{path}"));
        }
        for key in ["", ".", ".."] {
            assert!(matches!(url(key), Err(StorageError::Invalid { .. })), "{key:?}");
        }
    }

    #[test]
    fn urls_of_clients_hold_no_signature() {
        let clients = clients("AccountName=acct;SharedAccessSignature=sv=1&sig=topsecret");
        let id = BlobId::parse("abfss://c@acct.dfs.core.windows.net/k").unwrap();
        assert_eq!(clients.blob(&id).unwrap().url().as_str(), "https://acct.blob.core.windows.net/c/k");
        assert!(!format!("{clients:?}").contains("topsecret"));
    }

    #[test]
    fn ids_of_another_account_are_refused() {
        let id = BlobId::parse("abfss://c@other.dfs.core.windows.net/k").unwrap();
        let error = clients("AccountName=acct;AccountKey=Zm9v").blob(&id).map(|_| ()).unwrap_err();
        assert!(error.to_string().ends_with("not in storage account `acct`"), "{error}");
    }

    #[test]
    fn only_this_machine_is_reached_without_proxy() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:10000/a", true),
            ("http://localhost:10000/a", true),
            ("http://[::1]:1/a", true),
            ("https://localhost.example.com", false),
            ("https://a.blob.core.windows.net", false),
        ] {
            assert_eq!(is_loopback(endpoint), expected, "{endpoint}");
        }
    }
}
