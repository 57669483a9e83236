//! Section `storage`: the account that holds state and queue, and the credential for it and for the data accounts.

use crate::secret::Secret;
use crate::section::{Section, Unknown};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The whole section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// `account`: name of the storage account.
    pub account: Option<String>,
    /// `blobServiceUri`: in place of the one derived from the account.
    pub blob_service_uri: Option<String>,
    /// `queueServiceUri`: in place of the one derived from the account.
    pub queue_service_uri: Option<String>,
    /// `credential`: how Firn proves who it is; by default the connection string when there is one, else the managed
    /// identity.
    pub credential: Credential,
    /// `clientId`: of a user-assigned identity or an application.
    pub client_id: Option<String>,
    /// `connectionString`: always there when the credential is one.
    pub connection_string: Option<Secret>,
    /// `stateContainer` (firn-state).
    pub state_container: String,
    /// `queue` (firn-compact).
    pub queue: String,
}

/// Kinds of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// `managedIdentity`
    ManagedIdentity,
    /// `workloadIdentity`
    WorkloadIdentity,
    /// `clientSecret`
    ClientSecret,
    /// `developerTools`
    DeveloperTools,
    /// `connectionString`
    ConnectionString,
}

impl Credential {
    const WORDS: [(&'static str, Credential); 5] = [
        ("managedIdentity", Credential::ManagedIdentity),
        ("workloadIdentity", Credential::WorkloadIdentity),
        ("clientSecret", Credential::ClientSecret),
        ("developerTools", Credential::DeveloperTools),
        ("connectionString", Credential::ConnectionString),
    ];

    /// The word used in the file.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

impl Storage {
    /// The queue that the host moves messages to which it gives up: it adds `-poison` to the name.
    pub fn poison_queue(&self) -> String {
        format!("{}{POISON_SUFFIX}", self.queue)
    }

    /// Whether it leads to an emulator on this machine.
    pub fn is_emulator(&self) -> bool {
        self.blob_service_uri.as_deref().is_some_and(is_loopback)
            || self.connection_string.as_ref().is_some_and(|secret| {
                let parts = || connection_parts(secret.expose());
                let development = parts().any(|(key, value)| key == "UseDevelopmentStorage" && value == "true");
                let endpoints = || parts().filter(|(key, _)| matches!(*key, "BlobEndpoint" | "QueueEndpoint"));
                development || (endpoints().next().is_some() && endpoints().all(|(_, uri)| is_loopback(uri)))
            })
    }
}

pub(crate) const KEYS: [&str; 8] = [
    "account",
    "blobServiceUri",
    "queueServiceUri",
    "credential",
    "clientId",
    "connectionString",
    "stateContainer",
    "queue",
];

/// The host derives the name of the poison queue by adding this, and a queue's name has at most 63 characters.
const POISON_SUFFIX: &str = "-poison";
const NAME_LIMIT: usize = 63;

pub(crate) fn read(section: &Section<'_>) -> Storage {
    let connection_string = section.secret("connectionString");
    if let Some(secret) = &connection_string
        && let Err(problem) = check_connection_string(secret.expose())
    {
        section.fault("connectionString", problem);
    }
    let account = section.parsed("account", account);
    let blob_service_uri = section.parsed("blobServiceUri", service_uri);
    let credential = section.word("credential", &Credential::WORDS);
    let has_string = section.has("connectionString");
    match credential {
        Some(Credential::ConnectionString) if !has_string => {
            section.require("connectionString", "credential: connectionString needs it");
        }
        Some(kind) if kind != Credential::ConnectionString && has_string => {
            let message = format!("is not used with credential: {}; remove one of the two", kind.as_str());
            section.fault("connectionString", message);
        }
        _ => {}
    }
    if !has_string && !section.has("account") && !section.has("blobServiceUri") {
        section.require("account", "write account, blobServiceUri or connectionString");
    }
    let default = if has_string { Credential::ConnectionString } else { Credential::ManagedIdentity };
    let storage = Storage {
        account,
        blob_service_uri,
        queue_service_uri: section.parsed("queueServiceUri", service_uri),
        credential: credential.unwrap_or(default),
        client_id: section.text("clientId"),
        connection_string,
        state_container: section
            .parsed("stateContainer", |name| container_or_queue(name, NAME_LIMIT))
            .unwrap_or_else(|| "firn-state".into()),
        queue: section
            .parsed("queue", |name| container_or_queue(name, NAME_LIMIT - POISON_SUFFIX.len()))
            .unwrap_or_else(|| "firn-compact".into()),
    };
    section.finish(&KEYS, Unknown::Refuse);
    storage
}

fn account(name: &str) -> Result<String, String> {
    let good =
        (3..=24).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let wrong = "is not the name of a storage account; write its 3 to 24 lower-case letters and digits, no URL";
    if good { Ok(name.to_owned()) } else { Err(wrong.into()) }
}

/// Container and queue names follow one rule: lower-case letters, digits, single hyphens inside.
fn container_or_queue(name: &str, limit: usize) -> Result<String, String> {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let hyphens = !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    if letters && hyphens && (3..=limit).contains(&name.len()) {
        Ok(name.to_owned())
    } else {
        Err(format!("is not a name that Azure takes; write 3 to {limit} lower-case letters, digits and single hyphens"))
    }
}

fn service_uri(uri: &str) -> Result<String, String> {
    let host = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://").filter(|_| is_loopback(uri)));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') && !host.contains(['?', '#', '@']) => {
            Ok(uri.trim_end_matches('/').to_owned())
        }
        _ => Err("is not the address of a service; write for example https://account.blob.core.windows.net".into()),
    }
}

/// Login, host and port of an address, as they stand in it.
pub(crate) fn authority(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.split(['/', '\\', '?', '#']).next().unwrap_or("")
}

pub(crate) fn is_loopback(uri: &str) -> bool {
    // What stands before `@` is a login, not the host.
    let host = authority(uri).rsplit('@').next().unwrap_or("");
    let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
    matches!(name, Some("127.0.0.1" | "localhost" | "[::1"))
}

fn connection_parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter_map(|part| part.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
}

/// Whether the storage layer can do something with it. Never quotes any of it.
fn check_connection_string(text: &str) -> Result<(), String> {
    let value = |wanted: &str| connection_parts(text).find(|(key, _)| *key == wanted).map(|(_, value)| value);
    let has = |key: &str| value(key).is_some_and(|value| !value.is_empty());
    let development = value("UseDevelopmentStorage") == Some("true");
    if value("AccountKey").is_some_and(|key| BASE64_STANDARD.decode(key).is_err()) {
        return Err("has an AccountKey that is not Base64 (its value is not shown); copy it whole from the storage account's access \
                    keys"
            .into());
    }
    let named = has("AccountName") || has("BlobEndpoint");
    let signed = has("AccountKey") || has("SharedAccessSignature");
    if development || (named && signed) {
        return Ok(());
    }
    Err("is not a connection string (its value is not shown); copy it from the storage account's access keys, or write \
         UseDevelopmentStorage=true for the emulator"
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_azure() {
        assert!(account("lake01").is_ok());
        for wrong in ["la", "Lake", "lake-1", "https://lake.blob.core.windows.net", &"a".repeat(25)] {
            assert!(account(wrong).is_err(), "{wrong}");
        }
        assert!(container_or_queue("firn-state", 63).is_ok());
        for wrong in ["wh", "-ab", "ab-", "a--b", "Ab1", "a_b", &"a".repeat(64)] {
            assert!(container_or_queue(wrong, 63).is_err(), "{wrong}");
        }
        assert!(container_or_queue(&"q".repeat(56), 56).is_ok());
        assert!(container_or_queue(&"q".repeat(57), 56).is_err());
    }

    #[test]
    fn service_addresses_are_https_but_on_this_machine() {
        let uri = "https://lake.blob.core.windows.net";
        assert_eq!(service_uri(&format!("{uri}/")), Ok(uri.into()));
        assert!(service_uri("http://127.0.0.1:10000/devstoreaccount1").is_ok());
        assert!(service_uri("http://[::1]:10000/devstoreaccount1").is_ok());
        for wrong in [
            "http://lake.blob.core.windows.net",
            "lake",
            "https://",
            "https://a?sig=x",
            "https://a@b",
            "http://127.0.0.1.evil.net",
        ] {
            assert!(service_uri(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn connection_strings_are_checked_and_never_shown() {
        for good in [
            "UseDevelopmentStorage=true",
            "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=aGk=;EndpointSuffix=core.windows.net",
            "BlobEndpoint=https://lake.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x",
        ] {
            assert_eq!(check_connection_string(good), Ok(()), "{good}");
        }
        for wrong in [
            "hunter2",
            "AccountName=hunter2",
            "AccountKey=hunter2",
            "AccountName=lake;AccountKey=hunter2",
            "UseDevelopmentStorage=hunter2",
        ] {
            let problem = check_connection_string(wrong).unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn an_emulator_is_on_this_machine() {
        let storage = |text: &str| Storage {
            account: None,
            blob_service_uri: None,
            queue_service_uri: None,
            credential: Credential::ConnectionString,
            client_id: None,
            connection_string: Some(Secret::new(text)),
            state_container: String::new(),
            queue: String::new(),
        };
        assert!(storage("UseDevelopmentStorage=true").is_emulator());
        assert!(storage("AccountName=a;AccountKey=b;BlobEndpoint=http://127.0.0.1:1/a;").is_emulator());
        let by_address =
            |uri: &str| Storage { connection_string: None, blob_service_uri: Some(uri.into()), ..storage("") };
        assert!(by_address("https://127.0.0.1:1/devstoreaccount1").is_emulator());
        assert!(!by_address("https://a.blob.core.windows.net").is_emulator());
        assert!(!storage("AccountName=a;AccountKey=b").is_emulator());
        assert!(!storage("AccountName=a;AccountKey=b;BlobEndpoint=https://a.blob.core.windows.net").is_emulator());
    }
}
