//! What a listed file looks like, by its name and place alone. Only what looks like the table's own can be a candidate.

use firn_model::BlobId;
use uuid::Uuid;

use crate::sweep::places::Places;

/// Endings of files with rows.
const DATA: [&str; 3] = [".parquet", ".avro", ".orc"];
/// Endings of metadata files.
const METADATA: [&str; 3] = [".avro", ".puffin", ".stats"];
/// Writers of tables of version 3 put deletion vectors beside the data.
const VECTORS: &str = ".puffin";
/// Endings of table metadata, plain and compressed: `.gz` stands before the ending in newer writers, behind it in older ones (Iceberg spec,
/// "Appendix F", and `write.metadata.compression-codec`).
const TABLE_METADATA: [&str; 2] = [".metadata.json", ".metadata.json.gz"];
/// Endings of sidecars.
const SIDECARS: [&str; 4] = ["tantivy", "bloom", "ndv", "none"];

/// What a file looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileClass {
    /// A data or delete file below a data path of the table.
    Data,
    /// A manifest, manifest list, metadata file or statistics below the metadata path, or deletion vectors below a data path.
    Metadata,
    /// A sidecar of the data file with this UUID.
    Sidecar(Uuid),
    /// Statistics of a snapshot that Firn made, beside the sidecars.
    Statistics,
    /// A folder.
    Folder,
    /// Anything else.
    Unknown,
}

impl FileClass {
    /// Whether it is a sidecar.
    pub fn is_sidecar(self) -> bool {
        matches!(self, FileClass::Sidecar(_))
    }
}

/// Whether a name is that of a table's metadata file, compressed or not.
pub fn is_metadata_file(name: &str) -> bool {
    TABLE_METADATA.iter().any(|ending| name.ends_with(ending))
}

/// Folders in which other table formats keep what they know.
const OTHER_FORMATS: [&str; 2] = ["_delta_log", ".hoodie"];

/// Whether a key is in the log of another table format: the table is a view of that one, or was.
pub fn is_of_another_format(key: &str) -> bool {
    let Some((folders, _)) = key.rsplit_once('/') else { return false };
    folders.rsplit('/').any(|folder| OTHER_FORMATS.contains(&folder))
}

/// The class of a listed file.
pub fn classify(id: &BlobId, places: &Places) -> FileClass {
    if id.key.ends_with('/') {
        return FileClass::Folder;
    }
    if let Some(name) = places.sidecars.rest(id) {
        return match sidecar(name) {
            Some(uuid) => FileClass::Sidecar(uuid),
            None if is_statistics(name) => FileClass::Statistics,
            None => FileClass::Unknown,
        };
    }
    // Before data: a data path may be the whole location.
    if let Some(name) = places.metadata.rest(id) {
        return if is_metadata_file(name) || METADATA.iter().any(|ending| name.ends_with(ending)) {
            FileClass::Metadata
        } else {
            FileClass::Unknown
        };
    }
    let below_data = places.data.iter().filter_map(|folder| folder.rest(id)).next();
    match below_data {
        Some(name) if DATA.iter().any(|ending| name.ends_with(ending)) && !is_hidden(name) => FileClass::Data,
        Some(name) if name.ends_with(VECTORS) && !is_hidden(name) => FileClass::Metadata,
        _ => FileClass::Unknown,
    }
}

/// Iceberg's own cleanup passes over names that begin with `_` or `.`: other programs keep their files there. A partition folder
/// (`_day=…`) is none of them.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| (part.starts_with('_') && !part.contains('=')) || part.starts_with('.'))
}

/// `<uuid>.<tantivy|bloom|ndv|none>`.
fn sidecar(name: &str) -> Option<Uuid> {
    let (stem, ending) = name.split_once('.')?;
    let exact = SIDECARS.contains(&ending) && stem.len() == 36;
    if exact { Uuid::try_parse(stem).ok() } else { None }
}

/// `<snapshot id>-<uuid>.stats`.
fn is_statistics(name: &str) -> bool {
    let parts = name.strip_suffix(".stats").and_then(|stem| stem.split_once('-'));
    parts.is_some_and(|(snapshot, uuid)| {
        snapshot.parse::<u64>().is_ok() && uuid.len() == 36 && Uuid::try_parse(uuid).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::places::tests::places;

    #[test]
    fn only_what_looks_like_the_tables_own_is_a_candidate() {
        let places = places("az://c/wh/t", &[]);
        let class =
            |key: &str| classify(&BlobId { account: "acct".into(), container: "c".into(), key: key.into() }, &places);
        let uuid = "6f1c0f5e-5a37-4f0a-9d7e-0a1b2c3d4e5f";
        for key in ["data/a.parquet", "data/day=1/a.avro", "data/0110/x.orc", "data/_day=1/a.parquet"] {
            assert_eq!(class(&format!("wh/t/{key}")), FileClass::Data, "{key}");
        }
        for key in [
            "metadata/a-m0.avro",
            "metadata/00001-x.metadata.json",
            "metadata/n.gz.metadata.json",
            "metadata/n.metadata.json.gz",
            "metadata/s.puffin",
            "metadata/s.stats",
            "data/day=1/vectors.puffin",
        ] {
            assert_eq!(class(&format!("wh/t/{key}")), FileClass::Metadata, "{key}");
        }
        for key in [
            "a.parquet",
            "data/notes.txt",
            "data/a.parquet.tmp",
            "data/a.PARQUET",
            "data/_temporary/0/a.parquet",
            "data/.staging/a.parquet",
            "data/.staging/a.puffin",
            "s.puffin",
            "data/_SUCCESS",
            "metadata/version-hint.text",
            "metadata/a.parquet",
            "_firn/notes.txt",
            "_firn/x.bloom",
            "_firn/x.stats",
            "_firn/7-x.stats",
            "_delta_log/0.parquet",
        ] {
            assert_eq!(class(&format!("wh/t/{key}")), FileClass::Unknown, "{key}");
        }
        for ending in SIDECARS {
            let own = Uuid::parse_str(uuid).unwrap();
            assert_eq!(class(&format!("wh/t/_firn/{uuid}.{ending}")), FileClass::Sidecar(own));
        }
        assert_eq!(class(&format!("wh/t/_firn/{uuid}c.tantivy")), FileClass::Unknown, "another name that begins alike");
        assert_eq!(class(&format!("wh/t/_firn/{uuid}.json")), FileClass::Unknown);
        assert_eq!(class(&format!("wh/t/_firn/{uuid}.stats")), FileClass::Unknown, "of no snapshot");
        assert_eq!(class(&format!("wh/t/_firn/7-{uuid}.stats")), FileClass::Statistics);
        assert_eq!(class("wh/t/data/day=1/"), FileClass::Folder);
    }

    #[test]
    fn a_data_path_that_holds_the_metadata_hides_no_manifest() {
        let places = places("az://c/wh/t", &[("write.data.path", "az://c/wh/t")]);
        let class =
            |key: &str| classify(&BlobId { account: "acct".into(), container: "c".into(), key: key.into() }, &places);
        assert_eq!(class("wh/t/metadata/a-m0.avro"), FileClass::Metadata);
        assert_eq!(class("wh/t/a.parquet"), FileClass::Data);
    }
}
