//! The metadata file of a table: its bytes and the name of the next version.
//!
//! The iceberg crate can do both only for names of its own making, and it writes snapshots in the order of a hash map; other
//! readers list them in the order of the file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use iceberg::compression::CompressionCodec;
use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Source;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a metadata file, gzipped or not (the magic number tells, because writers disagree on the name).
pub(crate) fn decode(bytes: &[u8]) -> Result<TableMetadata, Source> {
    Ok(serde_json::from_slice(&json(bytes)?)?)
}

fn json(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Source> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut json = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut json)?;
    Ok(Cow::Owned(json))
}

/// References of a version 1 table, which the iceberg crate neither reads nor writes; other writers do.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct HiddenReferences {
    #[serde(default)]
    refs: Option<BTreeMap<String, SnapshotReference>>,
}

impl HiddenReferences {
    /// The name of one that would be lost, or whose snapshot could be expired, because nobody sees it. `main` without settings of its own
    /// is the current snapshot and is not lost.
    pub(crate) fn lost(self) -> Option<String> {
        let unset =
            SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        let mut lost = self.refs.unwrap_or_default().into_iter();
        lost.find(|(name, reference)| name != MAIN_BRANCH || reference.retention != unset).map(|(name, _)| name)
    }
}

/// The name of a reference in a version 1 metadata file that [`encode`] would lose.
pub(crate) fn reference_lost(bytes: &[u8]) -> Result<Option<String>, Source> {
    let found: HiddenReferences = serde_json::from_slice(&json(bytes)?)?;
    Ok(found.lost())
}

/// The bytes of a metadata file, compressed as `write.metadata.compression-codec` says.
pub(crate) fn encode(metadata: &TableMetadata) -> Result<Vec<u8>, Source> {
    let mut json = serde_json::to_value(metadata)?;
    if let Some(Value::Array(snapshots)) = json.get_mut("snapshots") {
        let number = |snapshot: &Value, key: &str| snapshot.get(key).and_then(Value::as_i64).unwrap_or(0);
        snapshots.sort_by_key(|snapshot| (number(snapshot, "sequence-number"), number(snapshot, "timestamp-ms")));
    }
    let bytes = serde_json::to_vec(&json)?;
    match metadata.metadata_compression_codec()? {
        CompressionCodec::Gzip(_) => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes)?;
            Ok(encoder.finish()?)
        }
        _ => Ok(bytes),
    }
}

/// Where the version after `current` is written: `<metadata path>/<version>-<uuid>[.gz].metadata.json`, the metadata path
/// being `write.metadata.path` or the `metadata` folder of the table, as Iceberg's own catalogs do.
pub(crate) fn next_location(current: &str, metadata: &TableMetadata) -> Result<String, Source> {
    let folder = match metadata.properties().get("write.metadata.path") {
        Some(path) => path.trim_end_matches('/').to_owned(),
        None => format!("{}/metadata", metadata.location()),
    };
    let suffix = match metadata.metadata_compression_codec()? {
        CompressionCodec::Gzip(_) => ".gz",
        _ => "",
    };
    // A name without a number (a foreign catalog's): the length of the log still makes names ascend.
    let version = version(current).unwrap_or(metadata.metadata_log().len() as u64);
    Ok(format!("{folder}/{:05}-{}{suffix}.metadata.json", version + 1, Uuid::new_v4()))
}

/// The number of a metadata file: `00012-<uuid>.metadata.json` and Hadoop's `v12.metadata.json` are both version 12. `None` for a name
/// without one: some catalogs name by chance alone.
pub fn version(location: &str) -> Option<u64> {
    let name = location.rsplit('/').next()?;
    let name = name.strip_prefix('v').unwrap_or(name);
    let end = name.find(|c: char| !c.is_ascii_digit())?;
    if !name[end..].starts_with(['-', '.']) {
        return None;
    }
    name[..end].parse().ok().filter(|version| *version < u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use iceberg::TableCreation;
    use iceberg::spec::{
        FormatVersion, Operation, Schema, Snapshot, SnapshotReference, SnapshotRetention, Summary, TableMetadataBuilder,
    };

    use super::*;

    fn metadata(properties: &[(&str, &str)], snapshots: i64) -> TableMetadata {
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location("file:///wh/t".to_owned())
            .schema(Schema::builder().build().unwrap())
            .properties(properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>())
            .format_version(FormatVersion::V2)
            .build();
        let mut builder = TableMetadataBuilder::from_table_creation(creation).unwrap();
        for id in 1..=snapshots {
            let snapshot = Snapshot::builder()
                .with_snapshot_id(id)
                .with_parent_snapshot_id((id > 1).then(|| id - 1))
                .with_sequence_number(id)
                .with_timestamp_ms(1_790_000_000_000 + id)
                .with_manifest_list(format!("file:///wh/t/metadata/snap-{id}.avro"))
                .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
                .build();
            builder = builder.add_snapshot(snapshot).unwrap();
            let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
            builder = builder.set_ref("main", reference).unwrap();
        }
        builder.build().unwrap().metadata
    }

    #[test]
    fn references_of_version_1_are_not_lost_silently() {
        let lost = |json: &str| reference_lost(json.as_bytes()).unwrap();
        let main = r#""main":{"snapshot-id":1,"type":"branch"}"#;
        assert_eq!(lost("{}"), None);
        assert_eq!(lost(r#"{"refs":null}"#), None);
        assert_eq!(lost(&format!(r#"{{"refs":{{{main}}}}}"#)), None);
        assert_eq!(
            lost(&format!(r#"{{"refs":{{{main},"eoy":{{"snapshot-id":1,"type":"tag"}}}}}}"#)),
            Some("eoy".into())
        );
        let settings = r#"{"refs":{"main":{"snapshot-id":1,"type":"branch","min-snapshots-to-keep":9}}}"#;
        assert_eq!(lost(settings), Some("main".into()));
    }

    #[test]
    fn versions_of_every_naming_are_counted_on() {
        for (name, expected) in [
            ("file:///wh/t/metadata/00007-2cd22b57-5127-4198-92ba-e4e67c79821b.metadata.json", Some(7)),
            ("file:///wh/t/metadata/00007-2cd22b57-5127-4198-92ba-e4e67c79821b.gz.metadata.json", Some(7)),
            ("file:///wh/t/metadata/v12.metadata.json", Some(12)),
            ("file:///wh/t/metadata/v12.gz.metadata.json", Some(12)),
            ("file:///wh/t/metadata/100000-x.metadata.json", Some(100_000)),
            ("file:///wh/t/metadata/current.metadata.json", None),
            ("file:///wh/t/metadata/12abc.metadata.json", None),
            ("file:///wh/t/metadata/99999999999999999999999-x.metadata.json", None),
        ] {
            assert_eq!(version(name), expected, "{name}");
        }
    }

    #[test]
    fn the_next_name_follows_the_number_the_path_and_the_codec() {
        let plain = next_location("file:///old/metadata/v3.metadata.json", &metadata(&[], 0)).unwrap();
        assert!(plain.starts_with("file:///wh/t/metadata/00004-"), "{plain}");
        assert!(plain.ends_with(".metadata.json") && !plain.contains(".gz."), "{plain}");
        let properties = [("write.metadata.path", "file:///md/"), ("write.metadata.compression-codec", "gzip")];
        let moved = next_location("file:///old/metadata/00009-x.metadata.json", &metadata(&properties, 0)).unwrap();
        assert!(moved.starts_with("file:///md/00010-") && moved.ends_with(".gz.metadata.json"), "{moved}");
        let foreign = next_location("file:///old/metadata/current.json", &metadata(&[], 0)).unwrap();
        assert!(foreign.starts_with("file:///wh/t/metadata/00001-"), "{foreign}");
    }

    #[test]
    fn bytes_read_back_and_snapshots_stand_in_order() {
        for properties in [vec![], vec![("write.metadata.compression-codec", "gzip")]] {
            let written = metadata(&properties, 12);
            let bytes = encode(&written).unwrap();
            assert_eq!(bytes.starts_with(&GZIP_MAGIC), !properties.is_empty());
            assert_eq!(decode(&bytes).unwrap(), written);
        }
        let json: Value = serde_json::from_slice(&encode(&metadata(&[], 12)).unwrap()).unwrap();
        let ids: Vec<i64> =
            json["snapshots"].as_array().unwrap().iter().map(|s| s["snapshot-id"].as_i64().unwrap()).collect();
        assert_eq!(ids, (1..=12).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_metadata_is_an_error() {
        let mut gzip = encode(&metadata(&[("write.metadata.compression-codec", "gzip")], 1)).unwrap();
        gzip.truncate(gzip.len() / 2);
        assert!(decode(&gzip).is_err());
        assert!(decode(b"{}").is_err());
    }
}
