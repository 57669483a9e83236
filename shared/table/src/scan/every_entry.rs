//! Every entry of a manifest, removed ones too, with no more than what reachability asks for.

use apache_avro::Reader;

use super::entry::{Record, STATUS_ADDED, STATUS_DELETED, STATUS_EXISTING};
use crate::avro::readable;

/// An entry of any status.
#[derive(Debug)]
pub(crate) struct AnyEntry<'a> {
    /// Path exactly as it stands.
    pub(crate) path: &'a str,
    /// Added or existing; false: this manifest says that the file was removed.
    pub(crate) live: bool,
    /// The snapshot that the entry names; None: it inherits that of its manifest.
    pub(crate) snapshot_id: Option<i64>,
}

/// Decodes a manifest and hands each entry to `each`, one at a time. Partition values are not looked at, so a spec or type that this
/// version does not know hides no file.
///
/// # Errors
/// A sentence on what cannot be understood. Then nothing is known of the files of this manifest.
pub(crate) fn every_entry(bytes: &[u8], mut each: impl FnMut(AnyEntry<'_>)) -> Result<(), String> {
    let avro = |error: apache_avro::Error| format!("is no readable Avro file: {error}");
    for value in Reader::new(readable(bytes)?).map_err(avro)? {
        let mut entry = Record::of(value.map_err(avro)?)?;
        let live = match entry.long("status")? {
            Some(STATUS_ADDED | STATUS_EXISTING) => true,
            Some(STATUS_DELETED) => false,
            other => return Err(format!("has an entry with status {other:?}")),
        };
        let snapshot_id = entry.long("snapshot_id")?;
        let file = Record::of(entry.take("data_file").ok_or("has an entry without data_file")?)?;
        let path = file.text("file_path")?.ok_or("has an entry without file_path")?;
        each(AnyEntry { path, live, snapshot_id });
    }
    Ok(())
}
