//! Listings, page by page; each page is retried on its own.

use std::sync::Arc;

use azure_storage_blob::BlobContainerClient;
use azure_storage_blob::models::{
    BlobContainerClientListBlobsOptions, BlobItem, ListBlobsIncludeItem, ListBlobsResponse,
};
use firn_model::BlobId;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::{Inner, etag, time};
use crate::error::StorageError;
use crate::retry::Failure;
use crate::store::ListedBlob;

/// Accounts with a hierarchical namespace list their folders as empty blobs with this metadata.
const FOLDER_MARK: &str = "hdi_isfolder";

/// Where the next page begins.
enum Marker {
    Start,
    After(String),
    End,
}

pub(super) fn list(inner: Arc<Inner>, prefix: BlobId) -> BoxStream<'static, Result<ListedBlob, StorageError>> {
    let client = match inner.clients.container(&prefix) {
        Ok(client) => Arc::new(client),
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    // The end of a listing is a page without a marker; a page without blobs is not.
    let pages = stream::try_unfold(Marker::Start, move |marker| {
        let (inner, client, prefix) = (inner.clone(), client.clone(), prefix.clone());
        async move {
            let after = match marker {
                Marker::Start => None,
                Marker::After(after) => Some(after),
                Marker::End => return Ok(None),
            };
            let page = inner.call("list", &prefix, || page(&client, &prefix, after.clone())).await?;
            let blobs: Vec<_> = page.blob_items.into_iter().filter_map(|item| listed(&prefix, item)).map(Ok).collect();
            let next = match page.next_marker {
                Some(marker) if !marker.is_empty() => Marker::After(marker),
                _ => Marker::End,
            };
            Ok(Some((stream::iter(blobs), next)))
        }
    });
    pages.try_flatten().boxed()
}

async fn page(
    client: &BlobContainerClient,
    prefix: &BlobId,
    marker: Option<String>,
) -> Result<ListBlobsResponse, Failure> {
    let options = BlobContainerClientListBlobsOptions {
        include: Some(vec![ListBlobsIncludeItem::Metadata]),
        prefix: (!prefix.key.is_empty()).then(|| prefix.key.clone()),
        marker,
        ..Default::default()
    };
    let listing = client.list_blobs(Some(options)).map_err(|error| Failure::of(&error))?;
    match listing.into_pages().try_next().await.map_err(|error| Failure::of(&error))? {
        Some(page) => page.into_model().map_err(|error| Failure::of(&error)),
        None => Err(Failure::lasting("the listing has no first page")),
    }
}

/// A blob of a page; `None` for a folder.
fn listed(prefix: &BlobId, item: BlobItem) -> Option<ListedBlob> {
    let metadata = item.metadata.and_then(|metadata| metadata.values).unwrap_or_default();
    let is_folder = |(name, value): (&String, &String)| {
        name.eq_ignore_ascii_case(FOLDER_MARK) && value.eq_ignore_ascii_case("true")
    };
    if metadata.iter().any(is_folder) {
        return None;
    }
    let properties = item.properties.unwrap_or_default();
    Some(ListedBlob {
        id: prefix.with_key(item.name?),
        size: properties.content_length.unwrap_or_default(),
        etag: etag(properties.etag.as_ref()),
        last_modified: time(properties.last_modified),
    })
}
