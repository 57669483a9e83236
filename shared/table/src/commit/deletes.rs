//! Delete files that came to a branch since a merge was planned (design section 6; Iceberg spec, "Scan Planning").
//!
//! A merge that did not see such a delete would bring deleted rows back. What is not known to spare every input is taken for
//! a conflict.

use std::collections::HashSet;

use firn_model::PartitionKey;
use iceberg::spec::{DataContentType, Datum, ManifestEntry, PrimitiveLiteral, Struct};

use super::tuple::is_tuple_of;

/// Field id of `file_path` in a position delete file.
const FILE_PATH: i32 = iceberg::metadata_columns::RESERVED_FIELD_ID_DELETE_FILE_PATH;

/// A live delete file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveDelete {
    pub(crate) path: String,
    /// Where a deletion vector starts in its file: several vectors share one.
    pub(crate) content_offset: Option<i64>,
    pub(crate) equality: bool,
    pub(crate) sequence_number: Option<i64>,
    pub(crate) spec_id: i32,
    pub(crate) spec_is_unpartitioned: bool,
    pub(crate) tuple: Struct,
    pub(crate) referenced: Option<String>,
    pub(crate) path_bounds: Option<(String, String)>,
}

impl LiveDelete {
    pub(crate) fn new(entry: &ManifestEntry, spec_id: i32, spec_is_unpartitioned: bool) -> Self {
        let file = entry.data_file();
        let text = |bound: Option<&Datum>| match bound?.literal() {
            PrimitiveLiteral::String(text) => Some(text.clone()),
            _ => None,
        };
        Self {
            path: file.file_path().to_owned(),
            content_offset: file.content_offset(),
            equality: file.content_type() == DataContentType::EqualityDeletes,
            sequence_number: entry.sequence_number(),
            spec_id,
            spec_is_unpartitioned,
            tuple: file.partition().clone(),
            referenced: file.referenced_data_file(),
            path_bounds: text(file.lower_bounds().get(&FILE_PATH)).zip(text(file.upper_bounds().get(&FILE_PATH))),
        }
    }

    /// Path, with the offset of a vector: what tells one delete from another.
    pub(crate) fn identity(&self) -> (String, Option<i64>) {
        (self.path.clone(), self.content_offset)
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        match self.content_offset {
            Some(offset) => format!("{} at {offset}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The group that a delete is held against.
#[derive(Debug)]
pub(crate) struct DeleteTarget<'a> {
    pub(crate) partition: &'a PartitionKey,
    pub(crate) inputs: &'a HashSet<String>,
    /// Data sequence number that the outputs will have, the highest of the inputs.
    pub(crate) data_sequence_number: i64,
    /// Whether the merge drops rows: then rows of the outputs are no longer those of the inputs one by one.
    pub(crate) drops_rows: bool,
}

/// Whether a delete file that the merge did not see makes the merge wrong.
pub(crate) fn conflicts(delete: &LiveDelete, group: &DeleteTarget<'_>) -> bool {
    if delete.equality {
        return equality_conflicts(delete, group);
    }
    // A position delete reaches a file by its path; one that names a single file does so in any partition.
    if let Some(referenced) = &delete.referenced {
        return group.inputs.contains(referenced);
    }
    if let Some((lower, upper)) = &delete.path_bounds {
        if lower == upper {
            return group.inputs.contains(lower);
        }
        if !group.inputs.iter().any(|input| lower <= input && input <= upper) {
            return false;
        }
    }
    may_share_partition(delete, group.partition)
}

/// An equality delete that is newer than the outputs will be reaches their rows as it would have reached the inputs', so the
/// merge stays right. One that is not newer, or rows that were dropped by comparing them, make it a conflict.
fn equality_conflicts(delete: &LiveDelete, group: &DeleteTarget<'_>) -> bool {
    let reaches = delete.spec_is_unpartitioned || may_share_partition(delete, group.partition);
    let newer = delete.sequence_number.is_some_and(|number| number > group.data_sequence_number);
    reaches && (group.drops_rows || !newer)
}

fn may_share_partition(delete: &LiveDelete, partition: &PartitionKey) -> bool {
    delete.spec_id != partition.spec_id || is_tuple_of(partition, &delete.tuple)
}

#[cfg(test)]
mod tests {
    use firn_model::{PartitionValue, Scalar};
    use iceberg::spec::Literal;

    use super::*;

    fn key() -> PartitionKey {
        PartitionKey::new(0, vec![PartitionValue { name: "p".into(), value: Some(Scalar::Int(1)) }])
    }

    fn delete(equality: bool, p: i32) -> LiveDelete {
        LiveDelete {
            path: "d".into(),
            content_offset: None,
            equality,
            sequence_number: Some(9),
            spec_id: 0,
            spec_is_unpartitioned: false,
            tuple: [Some(Literal::int(p))].into_iter().collect(),
            referenced: None,
            path_bounds: None,
        }
    }

    fn conflict(delete: &LiveDelete, number: i64, drops_rows: bool) -> bool {
        let inputs = HashSet::from(["data/b".to_owned(), "data/d".to_owned()]);
        let partition = key();
        let group = DeleteTarget { partition: &partition, inputs: &inputs, data_sequence_number: number, drops_rows };
        conflicts(delete, &group)
    }

    #[test]
    fn position_deletes_are_excluded_by_reference_bounds_or_partition_only() {
        let bounds = |lower: &str, upper: &str| LiveDelete {
            path_bounds: Some((lower.into(), upper.into())),
            ..delete(false, 1)
        };
        let reference = |path: &str, p| LiveDelete { referenced: Some(path.into()), ..delete(false, p) };
        assert!(conflict(&delete(false, 1), 5, false), "unknown counts as conflict");
        assert!(!conflict(&delete(false, 2), 5, false), "another partition");
        assert!(conflict(&LiveDelete { spec_id: 1, ..delete(false, 2) }, 5, false), "another spec is not compared");
        assert!(conflict(&reference("data/b", 1), 5, false));
        assert!(conflict(&reference("data/b", 2), 5, false), "the name of the file is stronger than the partition");
        assert!(!conflict(&reference("data/c", 1), 5, false));
        assert!(conflict(&bounds("data/a", "data/c"), 5, false));
        assert!(!conflict(&bounds("data/e", "data/f"), 5, false));
        assert!(!conflict(&bounds("data/c", "data/c"), 5, false));
        assert!(conflict(&bounds("data/d", "data/d"), 5, false));
        assert!(!conflict(&LiveDelete { tuple: delete(false, 2).tuple, ..bounds("data/a", "data/c") }, 5, false));
    }

    #[test]
    fn equality_deletes_newer_than_the_outputs_still_reach_them() {
        assert!(!conflict(&delete(true, 1), 8, false));
        assert!(conflict(&delete(true, 1), 9, false), "not newer than the outputs");
        assert!(conflict(&delete(true, 1), 8, true), "rows were dropped by comparing them");
        assert!(!conflict(&delete(true, 2), 9, true), "another partition");
        let global = LiveDelete { spec_id: 7, spec_is_unpartitioned: true, tuple: Struct::empty(), ..delete(true, 1) };
        assert!(conflict(&global, 9, false));
        assert!(conflict(&LiveDelete { sequence_number: None, ..delete(true, 1) }, 1, false));
    }
}
