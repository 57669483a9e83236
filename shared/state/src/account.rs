//! The storage account of a configuration, by connection string or by identity.

use firn_config::{Credential, Storage};
use firn_storage::{AccountAddress, AzureAccount, ConnectionString, Identity, IdentityKind};

use crate::error::StateError;

/// The account that holds state and queue. Nothing is sent yet.
///
/// # Errors
/// [`StateError::Configuration`], which names the key: a connection string that is none, an address without TLS, a variable that
/// the credential needs and nobody set.
pub fn account_of(storage: &Storage) -> Result<AzureAccount, StateError> {
    let kind = match storage.credential {
        Credential::ConnectionString => return by_string(storage),
        Credential::ManagedIdentity => IdentityKind::ManagedIdentity,
        Credential::WorkloadIdentity => IdentityKind::WorkloadIdentity,
        Credential::ClientSecret => IdentityKind::ClientSecret,
        Credential::DeveloperTools => IdentityKind::DeveloperTools,
    };
    let identity = Identity { kind, client_id: storage.client_id.clone() };
    let source = identity.open().map_err(|error| StateError::Configuration(error.to_string()))?;
    let address = AccountAddress {
        account: storage.account.clone(),
        blob_service: storage.blob_service_uri.clone(),
        queue_service: storage.queue_service_uri.clone(),
    };
    AzureAccount::with_identity(&address, source)
        .map_err(|error| StateError::Configuration(format!("storage: {error}")))
}

fn by_string(storage: &Storage) -> Result<AzureAccount, StateError> {
    let wrong =
        |problem: &dyn std::fmt::Display| StateError::Configuration(format!("storage.connectionString: {problem}"));
    let secret = storage.connection_string.as_ref().ok_or_else(|| wrong(&"is missing"))?;
    ConnectionString::parse(secret.expose()).map(AzureAccount::from).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use firn_config::Config;

    use super::*;

    fn opened(storage: &str) -> Result<AzureAccount, StateError> {
        let text = format!(
            "storage: {storage}\ncatalog: {{type: sql, uri: 'sqlite:////c.db', name: n}}\n\
             ingestion: {{datasets: [{{name: readings, table: a.b}}]}}"
        );
        account_of(&Config::load(&text, &HashMap::new()).unwrap().storage.unwrap())
    }

    #[test]
    fn every_credential_leads_to_the_account() {
        for (storage, credential) in [
            ("{account: acct}", "credential: managedIdentity"),
            ("{account: acct, clientId: c}", "credential: managedIdentity (clientId c)"),
            (
                "{blobServiceUri: 'https://acct.blob.core.windows.net', credential: developerTools}",
                "credential: developerTools",
            ),
            ("{connectionString: 'AccountName=acct;AccountKey=aGk='}", "AccountKey=***"),
        ] {
            let account = opened(storage).unwrap();
            let shown = format!("{account:?}");
            assert_eq!(shown, format!("acct at https://acct.blob.core.windows.net, {credential}"));
            assert_eq!(account.queue_endpoint().unwrap(), "https://acct.queue.core.windows.net");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = opened("{account: acct, credential: clientSecret}").unwrap_err().to_string();
        assert!(error.starts_with("storage.credential: clientSecret: environment variable AZURE_"), "{error}");
        let error = opened("{blobServiceUri: 'http://127.0.0.1:1/acct'}").unwrap_err().to_string();
        assert!(error.contains("a token is only sent over TLS"), "{error}");
    }
}
