//! What is in a sidecar, in a note or in table statistics, for a person.

use std::sync::Arc;

use firn_model::BlobId;
use firn_storage::BlobStore;
use serde::Serialize;

use crate::bloom::BloomSidecar;
use crate::bundle::BundleReader;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarKind};
use crate::ndv::{NdvSidecar, StatisticsSketches};
use crate::note::{NOTE_ENDING, NoIndex};
use crate::text;

/// What a file below `_firn/` says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Inspection {
    /// Statistics of a snapshot.
    Statistics(InspectedStatistics),
    /// A note that a file has no index.
    Note(NoIndex),
    /// A sidecar, which says its kind itself.
    #[serde(untagged)]
    Sidecar(Inspected),
}

/// What statistics say of themselves; their sketches were read and are what was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectedStatistics {
    /// Size of the file.
    pub bytes: u64,
    /// The snapshot.
    pub snapshot_id: i64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// Data files of the snapshot.
    pub data_files: u64,
    /// Rows of the snapshot.
    pub data_rows: u64,
    /// Its columns.
    pub columns: Vec<InspectedColumn>,
}

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

/// Ending of the names of table statistics.
const STATISTICS_ENDING: &str = "stats";

/// Reads a sidecar of any kind, a note or table statistics, and checks all of it. The ending of the name says which it is.
///
/// # Errors
/// [`SidecarError::Absent`], [`SidecarError::Unusable`] for what is none of them or is damaged, or what the store says.
pub async fn inspect(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<Inspection, SidecarError> {
    match id.key.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "ndv" => inspect_ndv(store, id).await.map(Inspection::Sidecar),
        STATISTICS_ENDING => inspect_statistics(&*store, id).await.map(Inspection::Statistics),
        NOTE_ENDING => NoIndex::read(&*store, id).await.map(Inspection::Note),
        _ => inspect_bundle(store, id).await.map(Inspection::Sidecar),
    }
}

async fn inspect_bundle(store: Arc<dyn BlobStore>, id: &BlobId) -> Result<Inspected, SidecarError> {
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
        columns.push(InspectedColumn::of_sketch(field_id, distinct));
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

async fn inspect_statistics(store: &dyn BlobStore, id: &BlobId) -> Result<InspectedStatistics, SidecarError> {
    let sketches = StatisticsSketches::open(store, id).await?;
    let column = |(field_id, distinct): (i32, f64)| InspectedColumn::of_sketch(field_id, Some(distinct.round() as u64));
    Ok(InspectedStatistics {
        bytes: sketches.bytes(),
        snapshot_id: sketches.of().snapshot_id,
        sequence_number: sketches.of().sequence_number,
        data_files: sketches.files(),
        data_rows: sketches.rows(),
        columns: sketches.distinct()?.into_iter().map(column).collect(),
    })
}

impl InspectedColumn {
    fn of_sketch(field_id: i32, distinct: Option<u64>) -> InspectedColumn {
        InspectedColumn { name: None, field_id, nulls: None, filter_bytes: None, distinct }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;
    use firn_storage::{MemoryStore, PutCondition};
    use serde_json::json;

    use super::*;
    use crate::identity::SidecarColumn;
    use crate::ndv::{NdvBuilder, NdvUnion, OfSnapshot};
    use crate::note::DecidedOn;

    fn column() -> SidecarColumn {
        SidecarColumn { name: "id".into(), field_id: 3, data_type: DataType::Int64 }
    }

    /// Statistics over two files, which share some of their values.
    fn statistics() -> Vec<u8> {
        let mut union = NdvUnion::new(vec![column()]).unwrap();
        for values in [0..60, 40..100] {
            let rows = (values.end - values.start) as u64;
            let mut builder = NdvBuilder::new(vec![column()], 1 << 20).unwrap();
            builder.add(&[Arc::new(Int64Array::from_iter_values(values)) as ArrayRef]).unwrap();
            let data = DataFile { path: "/t/data/a.parquet".into(), size: 7, rows };
            let sidecar = builder.finish().opened(&BlobId::local("/a.ndv"), data);
            union.add(&sidecar.sketches(&[column()]).unwrap().unwrap(), rows).unwrap();
        }
        union.finish(OfSnapshot { snapshot_id: 4711, sequence_number: 9 }).unwrap().bytes.to_vec()
    }

    async fn inspected(name: &str, bytes: Vec<u8>) -> Result<serde_json::Value, SidecarError> {
        let (store, id) = (Arc::new(MemoryStore::default()), BlobId::local(format!("/t/_firn/{name}")));
        store.put(&id, bytes.into(), PutCondition::Any).await.unwrap();
        Ok(serde_json::to_value(inspect(store, &id).await?).unwrap())
    }

    #[tokio::test]
    async fn statistics_of_a_snapshot_are_told_and_damaged_ones_found_out() {
        let bytes = statistics();
        let size = bytes.len();
        assert_eq!(
            inspected("4711-a.stats", bytes.clone()).await.unwrap(),
            json!({
                "kind": "statistics", "bytes": size, "snapshotId": 4711, "sequenceNumber": 9, "dataFiles": 2,
                "dataRows": 120, "columns": [{"fieldId": 3, "distinct": 100}],
            })
        );
        for at in (0..size).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            // What a footer says in words may be damaged unseen; it never is another number of values.
            match inspected("4711-a.stats", damaged).await {
                Ok(read) => assert_eq!(read["columns"][0]["distinct"], 100, "byte {at}"),
                Err(error) => assert!(matches!(error, SidecarError::Unusable { .. }), "byte {at}: {error}"),
            }
        }
        let short = inspected("4711-a.stats", bytes[..size - 9].to_vec()).await.unwrap_err();
        assert!(matches!(short, SidecarError::Unusable { .. }), "{short}");
        // Sketches of one file are no statistics.
        let mut builder = NdvBuilder::new(vec![column()], 1 << 20).unwrap();
        builder.add(&[Arc::new(Int64Array::from_iter_values(0..9)) as ArrayRef]).unwrap();
        let data = DataFile { path: "/t/data/a.parquet".into(), size: 7, rows: 9 };
        let of_file = builder.finish().to_bytes(&data).unwrap().to_vec();
        let error = inspected("a.stats", of_file.clone()).await.unwrap_err();
        assert!(error.to_string().contains("firn.data-files"), "{error}");
        assert_eq!(inspected("a.ndv", of_file).await.unwrap()["columns"], json!([{"fieldId": 3, "distinct": 9}]));
    }

    #[tokio::test]
    async fn a_note_is_told_with_its_reason() {
        let data = DataFile { path: "/t/data/a.parquet".into(), size: 7, rows: 2 };
        let note = NoIndex::new(data, "it does not fit", DecidedOn::new(&[column()], &[".*"], 512, 400));
        let told = inspected("a.none", serde_json::to_vec(&note).unwrap()).await.unwrap();
        assert_eq!((&told["kind"], &told["reason"]), (&json!("note"), &json!("it does not fit")));
        assert_eq!(told["decidedOn"]["writers"], json!([".*"]));
        assert!(inspected("a.none", b"junk".to_vec()).await.is_err());
    }
}
