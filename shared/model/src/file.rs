//! What the planner knows of a data file or a delete file, taken from manifest entries.

use std::sync::Arc;

use crate::key::{Bounds, KeyRange};
use crate::partition::PartitionKey;

/// File format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet, the only format that Firn merges.
    Parquet,
    /// Apache ORC.
    Orc,
    /// Apache Avro.
    Avro,
}

/// One live data file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFacts {
    /// Path exactly as the manifest has it: replaced files are matched by this string and no other.
    pub path: String,
    /// Partition spec and tuple of the manifest entry, never parsed from the path.
    pub partition: Arc<PartitionKey>,
    /// Data sequence number (0 in format version 1).
    pub data_sequence_number: i64,
    /// Snapshot that added the file, when the entry knows it.
    pub added_snapshot_id: Option<i64>,
    /// Position of that snapshot in the branch's history (0 = oldest known); None when it was expired. Orders files of
    /// sequence number 0.
    pub added_position: Option<u64>,
    /// Size in bytes.
    pub size: u64,
    /// Record count.
    pub rows: u64,
    /// File format.
    pub format: FileFormat,
    /// Sort order id the writer claims.
    pub sort_order_id: Option<i32>,
    /// Per column of the row order: proved bounds, or None.
    pub key_bounds: Vec<Option<Bounds>>,
    /// Composite key range, when a footer of Firn's own proved it.
    pub key_range: Option<KeyRange>,
}

/// Kind of a delete file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeleteKind {
    /// Position deletes in a Parquet, Avro or ORC file.
    Position,
    /// Equality deletes.
    Equality,
    /// A deletion vector (format version 3).
    Vector,
}

/// One live delete file.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteFacts {
    /// Path exactly as the manifest has it.
    pub path: String,
    /// Kind.
    pub kind: DeleteKind,
    /// Partition spec and tuple; equality deletes of an unpartitioned spec apply to the whole table.
    pub partition: Arc<PartitionKey>,
    /// Data sequence number.
    pub data_sequence_number: i64,
    /// The one data file it refers to, when the entry says so.
    pub referenced_data_file: Option<String>,
    /// Bounds of the `file_path` column (field id 2147483546) when both are known: (lower, upper), UTF-8 bytes.
    pub file_path_bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// Offset of a deletion vector in its Puffin file.
    pub content_offset: Option<i64>,
}

impl DeleteFacts {
    /// Whether this delete can apply to a row of `file` (Iceberg spec, "Scan Planning"): position deletes and vectors reach
    /// files of sequence number at or below their own, in the same spec and partition; equality deletes reach files of
    /// lower sequence number, in the same spec and partition or, from an unpartitioned spec, everywhere. What is not known to
    /// exclude the file counts as applying.
    pub fn may_apply_to(&self, file: &FileFacts) -> bool {
        match self.kind {
            DeleteKind::Equality => {
                file.data_sequence_number < self.data_sequence_number
                    && (self.partition.is_unpartitioned() || self.partition == file.partition)
            }
            DeleteKind::Position | DeleteKind::Vector => {
                file.data_sequence_number <= self.data_sequence_number
                    && (self.partition.is_unpartitioned() || self.partition == file.partition)
                    && self.may_reference(&file.path)
            }
        }
    }

    /// Whether a position delete or vector may name `path`; unknown counts as yes.
    pub fn may_reference(&self, path: &str) -> bool {
        if let Some(referenced) = &self.referenced_data_file {
            return referenced == path;
        }
        match &self.file_path_bounds {
            Some((lower, upper)) => lower.as_slice() <= path.as_bytes() && path.as_bytes() <= upper.as_slice(),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::PartitionKey;

    fn file(seq: i64) -> FileFacts {
        FileFacts {
            path: "file:///t/data/b.parquet".into(),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: seq,
            added_snapshot_id: None,
            added_position: None,
            size: 1,
            rows: 1,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: vec![],
            key_range: None,
        }
    }

    fn delete(kind: DeleteKind, seq: i64) -> DeleteFacts {
        DeleteFacts {
            path: "file:///t/data/d.parquet".into(),
            kind,
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: seq,
            referenced_data_file: None,
            file_path_bounds: None,
            content_offset: None,
        }
    }

    #[test]
    fn equality_deletes_reach_lower_numbers_only_and_position_deletes_their_own_too() {
        assert!(!delete(DeleteKind::Equality, 5).may_apply_to(&file(5)));
        assert!(delete(DeleteKind::Equality, 6).may_apply_to(&file(5)));
        assert!(delete(DeleteKind::Position, 5).may_apply_to(&file(5)));
        assert!(!delete(DeleteKind::Position, 4).may_apply_to(&file(5)));
    }

    #[test]
    fn a_position_delete_is_excluded_only_by_what_is_known() {
        let mut known = delete(DeleteKind::Position, 9);
        known.file_path_bounds = Some((b"file:///t/data/c".to_vec(), b"file:///t/data/d".to_vec()));
        assert!(!known.may_apply_to(&file(1)));
        known.file_path_bounds = Some((b"file:///t/data/a".to_vec(), b"file:///t/data/c".to_vec()));
        assert!(known.may_apply_to(&file(1)));
        known.referenced_data_file = Some("file:///t/data/x.parquet".into());
        assert!(!known.may_apply_to(&file(1)));
    }
}
