//! What tells whether a partition asks for the same work as before.

use sha2::{Digest, Sha256};

use crate::decision::Group;

/// SHA-256 (64 hex digits) over the sorted paths of all files that a plan selects.
///
/// The in-flight record of a partition keeps it: attempts are counted, and parked work rests, until it changes (design
/// section 4). It does not depend on how the files are cut into groups, so a smaller budget is no new work.
pub fn inputs_hash(groups: &[Group]) -> String {
    let mut paths: Vec<&str> = groups.iter().flat_map(|group| group.files()).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    let mut hasher = Sha256::new();
    for path in paths {
        // With its length before it no path can be taken for two.
        hasher.update((path.len() as u64).to_be_bytes());
        hasher.update(path.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use firn_model::{FileFacts, FileFormat, PartitionKey};

    fn group(paths: &[&str]) -> Group {
        let file = |path: &&str| FileFacts {
            path: (*path).to_owned(),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: 1,
            added_snapshot_id: None,
            added_position: None,
            size: 1,
            rows: 1,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: vec![],
            key_range: None,
        };
        Group::new(paths.iter().map(file).collect())
    }

    #[test]
    fn the_files_count_and_not_their_order_or_groups() {
        let hash = inputs_hash(&[group(&["a", "b", "c"])]);
        assert_eq!(hash, inputs_hash(&[group(&["c", "a"]), group(&["b"])]));
        assert_ne!(hash, inputs_hash(&[group(&["a", "b"])]));
        assert_ne!(hash, inputs_hash(&[group(&["ab", "c"])]));
        assert_ne!(inputs_hash(&[group(&["ab", "c"])]), inputs_hash(&[group(&["a", "bc"])]));
        assert_eq!(hash.len(), 64);
    }

    #[test]
    fn the_hash_of_stored_records_stays_readable() {
        // A record written by an earlier version must still mean the same files.
        assert_eq!(
            inputs_hash(&[group(&["file:///t/a.parquet", "file:///t/b.parquet"])]),
            "dfc72de9812f0d620966cd082c4e93b9a0e41d7965fa6fc854200d8f8b24bba9"
        );
    }
}
