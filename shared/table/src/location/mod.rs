//! Where files of a table belong (design section 6: "in the table's own layout").

mod human;
pub(crate) mod layout;
mod sidecar;

use firn_model::PartitionKey;

use crate::error::TableError;
use crate::loaded::LoadedTable;

pub use sidecar::sidecar_uuid;

/// The full path of a new data file of `partition`, in the form of URL that the table location (or `write.data.path`) uses.
///
/// Follows `write.data.path` with its older names, `write.object-storage.enabled` with
/// `write.object-storage.partitioned-paths`, and encodes partition directories as Iceberg's Java library does.
///
/// # Errors
/// [`TableError::Damaged`] when the table's layout is made by code that Firn does not have, or the partition's spec is not
/// in the table's metadata.
pub fn output_path(table: &LoadedTable, partition: &PartitionKey, file_name: &str) -> Result<String, TableError> {
    let metadata = &table.metadata;
    let damaged = |detail: String| TableError::Damaged { ident: table.ident.clone(), detail };
    let spec = metadata.partition_spec_by_id(partition.spec_id).ok_or_else(|| {
        damaged(format!("partition ({partition}) has spec {}, which the table's metadata lacks", partition.spec_id))
    })?;
    layout::data_path(metadata.location(), metadata.properties(), spec, partition, file_name)
        .map_err(|error| damaged(error.to_string()))
}

/// The hash at the start of a file name of Firn's own (`<hash>-<uuid>.parquet`), compared with `hash`. The
/// object-storage layout may put bits and a dash before it.
pub fn is_output_of(path: &str, hash: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let starts = |name: &str| name.strip_prefix(hash).is_some_and(|rest| rest.starts_with('-'));
    let is_bits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0' | b'1'));
    starts(name) || name.split_once('-').is_some_and(|(bits, rest)| is_bits(bits) && starts(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_known_by_their_hash() {
        assert!(is_output_of("abfss://c@a/t/data/d=1/abc-123.parquet", "abc"));
        assert!(is_output_of("abfss://c@a/t/data/0101/0110/1001/10110010-abc-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/data/abcd-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/abc-data/x-123.parquet", "abc"));
        assert!(!is_output_of("abfss://c@a/t/data/xyz-abc-123.parquet", "abc"));
    }
}
