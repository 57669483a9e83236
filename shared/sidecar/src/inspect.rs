//! What is in a sidecar, for a person.

use std::sync::Arc;

use firn_model::BlobId;
use firn_storage::BlobStore;
use serde::Serialize;

use crate::bloom::BloomSidecar;
use crate::bundle::BundleReader;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarKind};
use crate::ndv::NdvSidecar;
use crate::text;

/// What a sidecar says of itself; its parts were read and are what was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    /// What it is.
    pub kind: SidecarKind,
    /// Its own size.
    pub bytes: u64,
    /// The data file that it was built for.
    pub data: DataFile,
    /// Its columns.
    pub columns: Vec<InspectedColumn>,
    /// Of an index: words that were too long for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_words: Option<u64>,
    /// Of a bundle: its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<InspectedPart>,
}

/// A column of a sidecar.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectedColumn {
    /// Name when the sidecar was built; a sketch knows only the field id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Field id.
    pub field_id: i32,
    /// Values that are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nulls: Option<u64>,
    /// Of a bloom filter: its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_bytes: Option<u64>,
    /// Of a sketch: about how many different values there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
}

/// A part of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedPart {
    /// Name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// Reads a sidecar of any kind and checks all of it.
///
/// # Errors
/// [`SidecarError::Absent`], [`SidecarError::Unusable`] for what is no sidecar or is damaged, or what the store says.
pub async fn inspect(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<Inspected, SidecarError> {
    if id.key.ends_with(".ndv") {
        return inspect_ndv(store, id).await;
    }
    let bundle = BundleReader::open_any(store, id).await?;
    bundle.verify().await?;
    let footer = bundle.footer().clone();
    let column = |name: &str, field_id, nulls| InspectedColumn {
        name: Some(name.to_owned()),
        field_id,
        nulls: Some(nulls),
        filter_bytes: None,
        distinct: None,
    };
    let (columns, dropped_words) = match footer.kind {
        SidecarKind::Text => {
            let about = text::about(&bundle)?;
            let columns = about.columns.iter().map(|of| column(&of.name, of.field_id, of.nulls)).collect();
            (columns, Some(about.dropped_words))
        }
        SidecarKind::Bloom => {
            let filters = BloomSidecar::of(bundle.clone())?;
            let of = |of: &crate::bloom::BloomColumn| InspectedColumn {
                filter_bytes: bundle.entry(&of.part).ok().map(|part| part.length),
                ..column(&of.name, of.field_id, of.nulls)
            };
            (filters.about().columns.iter().map(of).collect(), None)
        }
        SidecarKind::Ndv => return Err(SidecarError::unusable(id, "sketches are not in a bundle")),
    };
    Ok(Inspected {
        kind: footer.kind,
        bytes: bundle.size(),
        data: footer.data,
        columns,
        dropped_words,
        parts: footer.parts.into_iter().map(|part| InspectedPart { name: part.name, bytes: part.length }).collect(),
    })
}

async fn inspect_ndv(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<Inspected, SidecarError> {
    let bytes = store.properties(id).await.map_err(SidecarError::of_read)?.size;
    let sidecar = NdvSidecar::open_any(store, id).await?;
    let mut columns = Vec::new();
    for field_id in sidecar.blobs().iter().flat_map(|blob| blob.fields.iter().copied()) {
        let distinct = sidecar.distinct(field_id)?.map(|estimate| estimate.round() as u64);
        columns.push(InspectedColumn { name: None, field_id, nulls: None, filter_bytes: None, distinct });
    }
    Ok(Inspected {
        kind: SidecarKind::Ndv,
        bytes,
        data: sidecar.data().clone(),
        columns,
        dropped_words: None,
        parts: Vec::new(),
    })
}
