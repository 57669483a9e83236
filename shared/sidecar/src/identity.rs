//! Which sidecar belongs to which data file.

use std::fmt;

use arrow_schema::{DataType, Schema};
use firn_columnar::field_id;
use firn_model::BlobId;
use serde::{Deserialize, Serialize};

/// Folder of the sidecars below a table's location. Iceberg's own orphan procedure skips names that start with `_`.
pub const FOLDER: &str = "_firn";

/// The data file that a sidecar was built for. A reader that finds another one treats the sidecar as absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Canonical path ([`BlobId`] as text).
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
}

impl DataFile {
    /// A file of so many bytes and rows.
    pub fn new(id: &BlobId, size: u64, rows: u64) -> DataFile {
        DataFile { path: id.to_string(), size, rows }
    }

    /// Why `self`, for which a sidecar was built, is not `wanted`; None when it is.
    pub(crate) fn differs_from(&self, wanted: &DataFile) -> Option<String> {
        if self == wanted {
            return None;
        }
        Some(format!(
            "it was built for `{}` of {} bytes and {} rows, not for `{}` of {} bytes and {} rows",
            self.path, self.size, self.rows, wanted.path, wanted.size, wanted.rows
        ))
    }
}

/// Kinds of sidecars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SidecarKind {
    /// Full-text index.
    Text,
    /// Bloom filters.
    Bloom,
    /// Sketches of distinct values.
    Ndv,
}

impl SidecarKind {
    /// All kinds.
    pub const ALL: [SidecarKind; 3] = [SidecarKind::Text, SidecarKind::Bloom, SidecarKind::Ndv];

    /// Ending of the names of this kind.
    pub fn extension(self) -> &'static str {
        match self {
            SidecarKind::Text => "tantivy",
            SidecarKind::Bloom => "bloom",
            SidecarKind::Ndv => "ndv",
        }
    }
}

impl fmt::Display for SidecarKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SidecarKind::Text => "full-text index",
            SidecarKind::Bloom => "bloom filter",
            SidecarKind::Ndv => "distinct-value sketch",
        })
    }
}

/// `<location>/_firn/<uuid>.<ending>`: where the sidecar of a data file lies. `uuid` is the data file's (`sidecar_uuid` of `firn-table`),
/// `location` the table's, with or without a slash behind it.
pub fn sidecar_id(location: &BlobId, uuid: &impl fmt::Display, kind: SidecarKind) -> BlobId {
    marker_id(location, uuid, kind.extension())
}

/// The same with another ending.
pub fn marker_id(location: &BlobId, uuid: &impl fmt::Display, ending: &str) -> BlobId {
    location.with_key(format!("{}/{FOLDER}/{uuid}.{ending}", location.key.trim_end_matches('/')))
}

/// A column that sidecars are built over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarColumn {
    /// Name in the table.
    pub name: String,
    /// Field id: what stays when a column is renamed.
    pub field_id: i32,
    /// Type of its arrays.
    pub data_type: DataType,
}

impl SidecarColumn {
    /// The top-level column `name` of a schema whose fields carry `PARQUET:field_id`; None when there is none.
    pub fn of(schema: &Schema, name: &str) -> Option<SidecarColumn> {
        let field = schema.field_with_name(name).ok()?;
        Some(SidecarColumn { name: name.to_owned(), field_id: field_id(field)?, data_type: field.data_type().clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_lie_below_the_location_of_the_table() {
        let location = BlobId { account: "a".into(), container: "lake".into(), key: "wh/t/".into() };
        let id = sidecar_id(&location, &"6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f", SidecarKind::Text);
        assert_eq!(id.key, "wh/t/_firn/6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f.tantivy");
        assert_eq!(SidecarKind::ALL.map(SidecarKind::extension), ["tantivy", "bloom", "ndv"]);
    }

    #[test]
    fn another_file_is_told_with_what_differs() {
        let file = DataFile { path: "p".into(), size: 7, rows: 2 };
        assert_eq!(file.differs_from(&file), None);
        let other = DataFile { rows: 3, ..file.clone() };
        assert_eq!(
            file.differs_from(&other).unwrap(),
            "it was built for `p` of 7 bytes and 2 rows, not for `p` of 7 bytes and 3 rows"
        );
    }
}
