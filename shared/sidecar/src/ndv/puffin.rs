//! The Puffin file (Iceberg's Puffin spec): blobs, then a footer in JSON.
//!
//! ```text
//! PFA1 | blob | blob | ... | PFA1 | footer (JSON) | length of the footer (4, little-endian) | flags (4) | PFA1
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use datasketches::theta::CompactThetaSketch;
use firn_model::BlobId;
use firn_storage::crc::crc64;
use serde::{Deserialize, Serialize};

use crate::bundle::created_by;
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarColumn};

const MAGIC: &[u8; 4] = b"PFA1";
/// Type of the blobs.
pub const THETA: &str = "apache-datasketches-theta-v1";

const NDV: &str = "ndv";
const CRC: &str = "firn.crc64";
const DATA_TYPE: &str = "firn.data-type";
const CREATED_BY: &str = "created-by";
const DATA_PATH: &str = "firn.data-path";
const DATA_SIZE: &str = "firn.data-size";
pub(super) const DATA_ROWS: &str = "firn.data-rows";
pub(super) const DATA_FILES: &str = "firn.data-files";

/// A blob of a Puffin file with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PuffinBlob {
    /// What it is.
    pub kind: String,
    /// Field ids of the columns that it was computed from.
    pub fields: Vec<i32>,
    /// Properties: `ndv`, the estimate as a whole number, `firn.crc64` of the bytes, and `firn.data-type`, the Arrow type of the values.
    pub properties: BTreeMap<String, String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl PuffinBlob {
    pub(super) fn of_sketch(column: &SidecarColumn, sketch: &CompactThetaSketch) -> PuffinBlob {
        let bytes = Bytes::from(sketch.serialize());
        let properties = [
            (NDV.to_owned(), format!("{}", sketch.estimate().round() as u64)),
            (CRC.to_owned(), format!("{:016x}", crc64(&bytes))),
            (DATA_TYPE.to_owned(), column.data_type.to_string()),
        ];
        PuffinBlob { kind: THETA.into(), fields: vec![column.field_id], properties: properties.into(), bytes }
    }

    /// Whether it is a sketch of the values of `column` as they are now. Values have other bytes once an `int` is a `long`.
    pub(super) fn is_of(&self, column: &SidecarColumn) -> bool {
        let of_type = self.properties.get(DATA_TYPE).is_some_and(|text| *text == column.data_type.to_string());
        self.kind == THETA && self.fields == [column.field_id] && of_type
    }

    /// The estimate that was written beside the sketch.
    pub fn ndv(&self) -> Option<u64> {
        self.properties.get(NDV)?.parse().ok()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Footer {
    blobs: Vec<BlobMetadata>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BlobMetadata {
    r#type: String,
    fields: Vec<i32>,
    snapshot_id: i64,
    sequence_number: i64,
    offset: u64,
    length: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compression_codec: Option<String>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
}

/// The snapshot that a file is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfSnapshot {
    /// Its id.
    pub snapshot_id: i64,
    /// Its sequence number.
    pub sequence_number: i64,
}

impl OfSnapshot {
    /// Sketches of a file belong to no snapshot; the Puffin spec writes what is not known as -1.
    pub(super) const NONE: OfSnapshot = OfSnapshot { snapshot_id: -1, sequence_number: -1 };
}

/// Properties of the file of sketches of a data file.
pub(super) fn properties_of(data: &DataFile) -> BTreeMap<String, String> {
    [
        (DATA_PATH.to_owned(), data.path.clone()),
        (DATA_SIZE.to_owned(), data.size.to_string()),
        (DATA_ROWS.to_owned(), data.rows.to_string()),
    ]
    .into()
}

/// A whole file, and how many bytes of it are the footer with its magic numbers.
pub(super) fn write(
    blobs: &[PuffinBlob],
    of: OfSnapshot,
    mut properties: BTreeMap<String, String>,
) -> Result<(Bytes, u64), SidecarError> {
    let mut bytes = MAGIC.to_vec();
    let mut metadata = Vec::with_capacity(blobs.len());
    for blob in blobs {
        metadata.push(BlobMetadata {
            r#type: blob.kind.clone(),
            fields: blob.fields.clone(),
            snapshot_id: of.snapshot_id,
            sequence_number: of.sequence_number,
            offset: bytes.len() as u64,
            length: blob.bytes.len() as u64,
            compression_codec: None,
            properties: blob.properties.clone(),
        });
        bytes.extend_from_slice(&blob.bytes);
    }
    properties.insert(CREATED_BY.to_owned(), created_by());
    let footer = Footer { blobs: metadata, properties };
    let footer = serde_json::to_vec(&footer).map_err(|error| SidecarError::Failed(error.to_string()))?;
    let length = i32::try_from(footer.len()).map_err(|_| SidecarError::Failed("the footer has over 2 GB".into()))?;
    let start = bytes.len();
    bytes.extend(MAGIC);
    bytes.extend(footer);
    bytes.extend(length.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(MAGIC);
    let footer_bytes = (bytes.len() - start) as u64;
    Ok((bytes.into(), footer_bytes))
}

/// The blobs of a file of Firn's, and the data file that they were computed from.
pub(super) fn read(id: &BlobId, bytes: &Bytes) -> Result<(Vec<PuffinBlob>, DataFile), SidecarError> {
    let footer = Footer::of(id, bytes)?;
    let data = DataFile {
        path: footer.property(id, DATA_PATH)?.to_owned(),
        size: footer.number(id, DATA_SIZE)?,
        rows: footer.number(id, DATA_ROWS)?,
    };
    Ok((footer.blobs(id, bytes)?, data))
}

/// What a file of Firn's says of a snapshot.
#[derive(Debug)]
pub(super) struct OfWholeSnapshot {
    pub(super) of: OfSnapshot,
    pub(super) files: u64,
    pub(super) rows: u64,
    pub(super) blobs: Vec<PuffinBlob>,
}

/// The blobs of a statistics file of Firn's, and the snapshot that they were computed from.
pub(super) fn read_of_snapshot(id: &BlobId, bytes: &Bytes) -> Result<OfWholeSnapshot, SidecarError> {
    let footer = Footer::of(id, bytes)?;
    let snapshot =
        |blob: &BlobMetadata| OfSnapshot { snapshot_id: blob.snapshot_id, sequence_number: blob.sequence_number };
    let of = footer.blobs.first().map(snapshot);
    let of = of.ok_or_else(|| SidecarError::unusable(id, "it has no blobs, and so no snapshot"))?;
    if footer.blobs.iter().any(|blob| snapshot(blob) != of) {
        return Err(SidecarError::unusable(id, "its blobs are of several snapshots"));
    }
    let (files, rows) = (footer.number(id, DATA_FILES)?, footer.number(id, DATA_ROWS)?);
    Ok(OfWholeSnapshot { of, files, rows, blobs: footer.blobs(id, bytes)? })
}

impl Footer {
    fn of(id: &BlobId, bytes: &Bytes) -> Result<Footer, SidecarError> {
        let json = footer(bytes).map_err(|detail| SidecarError::unusable(id, detail))?;
        serde_json::from_slice(json).map_err(|error| SidecarError::unusable(id, format!("its footer: {error}")))
    }

    fn property(&self, id: &BlobId, key: &str) -> Result<&str, SidecarError> {
        let property = self.properties.get(key).map(String::as_str);
        property.ok_or_else(|| SidecarError::unusable(id, format!("its footer has no property `{key}`")))
    }

    fn number(&self, id: &BlobId, key: &str) -> Result<u64, SidecarError> {
        let number = self.property(id, key)?.parse();
        number.map_err(|_| SidecarError::unusable(id, format!("property `{key}` is no number")))
    }

    /// The blobs with their bytes, each checked.
    fn blobs(&self, id: &BlobId, bytes: &Bytes) -> Result<Vec<PuffinBlob>, SidecarError> {
        self.blobs.iter().map(|blob| blob.read(id, bytes)).collect()
    }
}

impl BlobMetadata {
    fn read(&self, id: &BlobId, bytes: &Bytes) -> Result<PuffinBlob, SidecarError> {
        let wrong = |what: &str| SidecarError::unusable(id, format!("the blob of columns {:?} {what}", self.fields));
        let slice = slice(bytes, self.offset, self.length).ok_or_else(|| wrong("is not in the file"))?;
        if self.compression_codec.is_some() {
            return Err(wrong("is compressed"));
        }
        if self.properties.get(CRC).is_some_and(|crc| *crc != format!("{:016x}", crc64(&slice))) {
            return Err(wrong("is not what was written (CRC-64)"));
        }
        Ok(PuffinBlob {
            kind: self.r#type.clone(),
            fields: self.fields.clone(),
            properties: self.properties.clone(),
            bytes: slice,
        })
    }
}

/// The bytes of the footer's JSON.
fn footer(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let rest = bytes.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix(MAGIC));
    let rest = rest.ok_or("it does not begin and end as a Puffin file does")?;
    let (rest, flags) = rest.split_last_chunk::<4>().ok_or("it is too short")?;
    if *flags != [0; 4] {
        return Err("its footer is compressed");
    }
    let (rest, length) = rest.split_last_chunk::<4>().ok_or("it is too short")?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| "its footer has no length")?;
    let start = rest.len().checked_sub(length).ok_or("its footer would be longer than the file")?;
    let (before, footer) = rest.split_at(start);
    if before.ends_with(MAGIC) { Ok(footer) } else { Err("its footer does not begin as one does") }
}

fn slice(bytes: &Bytes, offset: u64, length: u64) -> Option<Bytes> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}
