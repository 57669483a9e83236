//! What the blob service of an account is set to.

use azure_core::http::headers::HeaderName;
use azure_storage_blob::{BlobServiceClient, BlobServiceClientOptions};
use chrono::{DateTime, Utc};
use firn_model::BlobId;

use super::AzureStore;
use crate::error::{StorageError, chain};
use crate::retry::Failure;

const DATE: HeaderName = HeaderName::from_static("date");

impl AzureStore {
    /// For how many days the account keeps deleted blobs; None: it does not.
    ///
    /// # Errors
    /// As any other call; [`StorageError::Denied`] for an identity with data roles only: settings are not data.
    pub async fn soft_delete_days(&self) -> Result<Option<u32>, StorageError> {
        let service = BlobId { account: self.account().to_owned(), container: String::new(), key: String::new() };
        let client = self.inner.clients.service(&service)?;
        let attempt = || async {
            let answer = client.get_properties(None).await.map_err(|error| Failure::of(&error))?;
            let properties = answer.into_model().map_err(|error| Failure::of(&error))?;
            let kept = properties.delete_retention_policy.filter(|policy| policy.enabled == Some(true));
            Ok(kept.and_then(|policy| policy.days).and_then(|days| u32::try_from(days).ok()))
        };
        self.inner.call("read settings", &service, attempt).await
    }
}

impl super::Inner {
    /// The time that the service's answers have (`Date`).
    pub(super) async fn time(&self, id: &BlobId) -> Result<DateTime<Utc>, StorageError> {
        let client = self.clients.container(id)?;
        self.call("ask for the time of", id, || async {
            let answer = client.get_properties(None).await.map_err(|error| Failure::of(&error))?;
            let text =
                answer.headers().get_optional_str(&DATE).ok_or_else(|| Failure::lasting("the answer has no date"))?;
            let time =
                DateTime::parse_from_rfc2822(text).map_err(|error| Failure::lasting(format!("`{text}`: {error}")))?;
            Ok(time.to_utc())
        })
        .await
    }
}

impl super::client::Clients {
    fn service(&self, id: &BlobId) -> Result<BlobServiceClient, StorageError> {
        let mut options = BlobServiceClientOptions { client_options: self.options.clone(), ..Default::default() };
        if let Some(version) = &self.version {
            options.version.clone_from(version);
        }
        let url = azure_core::http::Url::parse(&self.endpoint)
            .map_err(|error| StorageError::invalid(id, format!("endpoint `{}`: {error}", self.endpoint)))?;
        BlobServiceClient::new(url, None, Some(options)).map_err(|error| StorageError::invalid(id, chain(&error)))
    }
}
