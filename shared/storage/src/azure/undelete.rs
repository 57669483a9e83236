//! Brings deleted blobs back, which an account keeps in one of three ways.
//!
//! - Soft delete alone: Undelete Blob restores the blob.
//! - With blob versioning a deleted blob lives on as its versions, and Undelete Blob restores no current one: the newest is copied over
//!   the name ("Soft delete for blobs", "Blob soft delete and versioning").
//! - With a hierarchical namespace each deletion has an id, by which it is asked for (`x-ms-undelete-source`). The SDK does not know it: the
//!   request goes through its pipeline with the header added.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, Url};
use azure_storage_blob::models::{
    BlobClientGetPropertiesResultHeaders, BlobClientStartCopyFromUrlOptions, BlobContainerClientListBlobsOptions,
    CopyStatus, ListBlobsIncludeItem,
};
use azure_storage_blob::{BlobClient, BlobContainerClient};
use firn_model::BlobId;
use futures::TryStreamExt;
use percent_encoding::utf8_percent_encode;

use super::Inner;
use super::account::Credential;
use super::client::SEGMENT;
use crate::error::StorageError;
use crate::retry::Failure;

/// Looks at a copy that is not through at once; within an account that is rare.
const COPY_LOOKS: u32 = 600;
const COPY_WAIT: Duration = Duration::from_secs(1);

/// What a request gets besides what the SDK writes.
#[derive(Debug, Clone)]
enum Extra {
    /// A header.
    Header(&'static str, String),
    /// A part of the query.
    Query(&'static str, &'static str),
}

#[async_trait]
impl Policy for Extra {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        match self {
            Extra::Header(name, value) => request.insert_header(*name, value.clone()),
            Extra::Query(name, value) => {
                request.url_mut().query_pairs_mut().append_pair(name, value);
            }
        }
        next[0].send(context, request, &next[1..]).await
    }
}

impl Inner {
    /// Brings a blob back that was deleted while the account kept deleted blobs. Ok: it is there.
    pub(super) async fn undelete(&self, id: &BlobId) -> Result<(), StorageError> {
        let said = match self.plain_undelete(&self.clients.blob(id)?, id).await {
            Err(error) if error.is_retryable() || matches!(error, StorageError::NoContainer { .. }) => {
                return Err(error);
            }
            said => said,
        };
        if self.is_there(id).await? {
            return Ok(());
        }
        if let Some(version) = given(self.newest_version(id).await)? {
            self.promote(id, &version).await?;
        } else if let Some(deletion) = given(self.last_deletion(id).await)? {
            let parts: Vec<String> =
                id.key.split('/').map(|part| utf8_percent_encode(part, SEGMENT).to_string()).collect();
            let source = format!("{}?deletionid={deletion}", parts.join("/"));
            let client = self.clients.blob_with(id, Arc::new(Extra::Header("x-ms-undelete-source", source)))?;
            self.plain_undelete(&client, id).await?;
        }
        match (self.is_there(id).await?, said) {
            (true, _) => Ok(()),
            (false, Ok(())) => Err(StorageError::Other {
                blob: Box::new(id.clone()),
                detail: "the service took the undelete, and the blob is not there".into(),
            }),
            (false, Err(error)) => Err(error),
        }
    }

    async fn plain_undelete(&self, client: &BlobClient, id: &BlobId) -> Result<(), StorageError> {
        let attempt = || async { client.undelete(None).await.map(|_| ()).map_err(|error| Failure::of(&error)) };
        self.call("undelete", id, attempt).await
    }

    async fn is_there(&self, id: &BlobId) -> Result<bool, StorageError> {
        match self.properties(id).await {
            Ok(_) => Ok(true),
            Err(StorageError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The newest version of a blob that has no current one.
    async fn newest_version(&self, id: &BlobId) -> Result<Option<String>, StorageError> {
        let client = self.clients.container(id)?;
        let pages = self.raw_pages(&client, id, Some(ListBlobsIncludeItem::Versions)).await?;
        // Ids are times, all of one form.
        Ok(pages.iter().flat_map(|page| values_of(page, &id.key, "VersionId")).max())
    }

    /// The id of the last deletion of a path in an account with a hierarchical namespace.
    async fn last_deletion(&self, id: &BlobId) -> Result<Option<String>, StorageError> {
        let client = self.clients.container_with(id, Arc::new(Extra::Query("showonly", "deleted")))?;
        let pages = self.raw_pages(&client, id, None).await?;
        // Ids are times as whole numbers.
        let ids = pages.iter().flat_map(|page| values_of(page, &id.key, "DeletionId"));
        Ok(ids.max_by_key(|id| (id.len(), id.clone())))
    }

    /// Pages of a listing of what begins with the key, as they came: the SDK's model lacks part of them.
    async fn raw_pages(
        &self,
        client: &BlobContainerClient,
        id: &BlobId,
        include: Option<ListBlobsIncludeItem>,
    ) -> Result<Vec<String>, StorageError> {
        self.call("list what is kept of", id, || async {
            let options = BlobContainerClientListBlobsOptions {
                include: include.map(|item| vec![item]),
                prefix: Some(id.key.clone()),
                ..Default::default()
            };
            let listing = client.list_blobs(Some(options)).map_err(|error| Failure::of(&error))?;
            let mut pages = listing.into_pages();
            let mut texts = Vec::new();
            while let Some(page) = pages.try_next().await.map_err(|error| Failure::of(&error))? {
                texts.push(page.into_body().into_string().map_err(|error| Failure::of(&error))?);
            }
            Ok(texts)
        })
        .await
    }

    /// Makes a version the current one: a copy over the name, which nobody else has taken.
    async fn promote(&self, id: &BlobId, version: &str) -> Result<(), StorageError> {
        let client = self.clients.blob(id)?;
        let source = client.with_version(version).map_err(|error| StorageError::invalid(id, error.to_string()))?;
        let source = self.signed(id, source.url().clone()).await?;
        let copied = self
            .call("restore a version of", id, || async {
                let options =
                    BlobClientStartCopyFromUrlOptions { if_none_match: Some("*".into()), ..Default::default() };
                client.start_copy_from_url(source.clone(), Some(options)).await.map_err(|error| Failure::of(&error))?;
                Ok(())
            })
            .await;
        match copied {
            // A try whose answer was lost, or somebody else: whichever, it is there.
            Ok(()) | Err(StorageError::AlreadyExists { .. } | StorageError::Precondition { .. }) => {}
            Err(error) => return Err(error),
        }
        for _ in 0..COPY_LOOKS {
            match self.call("look at a copy", id, || copy_status(&client)).await? {
                None | Some(CopyStatus::Success) => return Ok(()),
                Some(CopyStatus::Pending) => tokio::time::sleep(COPY_WAIT).await,
                Some(other) => {
                    let detail = format!("the copy of version {version} ended as {other:?}");
                    return Err(StorageError::Other { blob: Box::new(id.clone()), detail });
                }
            }
        }
        let detail = format!("the copy of version {version} goes on; look at it later");
        Err(StorageError::Other { blob: Box::new(id.clone()), detail })
    }

    /// An address that the service itself may read: keys and tokens are good for it as they are, a signature is part of it.
    async fn signed(&self, id: &BlobId, mut url: Url) -> Result<String, StorageError> {
        let signature = match &self.account.credential {
            Credential::SharedKey(_) | Credential::Token(_) => return Ok(url.into()),
            Credential::Sas(signature) => signature.secret().to_owned(),
            Credential::Vended(source) => source.sas().await.map_err(|error| StorageError::Unavailable {
                blob: Box::new(id.clone()),
                detail: format!("no signature: {error}"),
            })?,
        };
        let query = url.query().map(|query| format!("{query}&{signature}")).unwrap_or(signature);
        url.set_query(Some(&query));
        Ok(url.into())
    }
}

async fn copy_status(client: &BlobClient) -> Result<Option<CopyStatus>, Failure> {
    let answer = client.get_properties(None).await.map_err(|error| Failure::of(&error))?;
    answer.copy_status().map_err(|error| Failure::of(&error))
}

/// A question that not every account understands: one without versions or without a hierarchical namespace may refuse it.
fn given(asked: Result<Option<String>, StorageError>) -> Result<Option<String>, StorageError> {
    match asked {
        Err(error) if !error.is_retryable() => {
            tracing::info!(%error, "nothing more is known of what the account keeps");
            Ok(None)
        }
        asked => asked,
    }
}

/// The texts of an element in the blobs of a page that have exactly this name.
fn values_of(page: &str, name: &str, element: &str) -> Vec<String> {
    let blobs = page.split("<Blob>").skip(1).filter_map(|rest| rest.split("</Blob>").next());
    let of_name = blobs.filter(|blob| text_of(blob, "Name").is_some_and(|found| found == name));
    of_name.filter_map(|blob| text_of(blob, element)).collect()
}

fn text_of(xml: &str, element: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{element}>"))?;
    let (text, _) = rest.split_once(&format!("</{element}>"))?;
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    Some(plain.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_blob_of_the_exact_name_counts() {
        let page = "<EnumerationResults><Blobs>\
            <Blob><Name>d/a &amp; b.parquet</Name><VersionId>2026-11-01T00:00:00.0000000Z</VersionId></Blob>\
            <Blob><Name>d/a &amp; b.parquet</Name><VersionId>2026-11-02T00:00:00.0000000Z</VersionId></Blob>\
            <Blob><Name>d/a &amp; b.parquet.bak</Name><VersionId>2026-11-03T00:00:00.0000000Z</VersionId></Blob>\
            <Blob><Name>d/a &amp; b.parquet</Name><DeletionId>132445221234567890</DeletionId></Blob>\
            </Blobs></EnumerationResults>";
        let found = values_of(page, "d/a & b.parquet", "VersionId");
        assert_eq!(found, ["2026-11-01T00:00:00.0000000Z", "2026-11-02T00:00:00.0000000Z"]);
        assert_eq!(values_of(page, "d/a & b.parquet", "DeletionId"), ["132445221234567890"]);
        assert_eq!(values_of(page, "d/a", "VersionId"), [""; 0]);
    }
}
