//! Rule backfill: files that get a text index although nothing is merged (compactor specification, "Text index backfill").

use firn_model::{FileFacts, FileFormat, SelectReason};

use crate::decision::{Group, PartitionDecision};

/// Whether a file gets an index, as far as it shows without reading it: by whom it was written stands in its footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexNeed {
    /// It has none and is small enough.
    Missing,
    /// It has one, or a note that says why it has none.
    Settled,
    /// It is larger than `targetSizeMb`.
    TooLarge,
    /// It is no Parquet file.
    OtherFormat,
}

impl IndexNeed {
    /// What of a file; `settled`: there is an index or a note.
    pub fn of(file: &FileFacts, target_bytes: u64, settled: bool) -> IndexNeed {
        if file.format != FileFormat::Parquet {
            return IndexNeed::OtherFormat;
        }
        match (settled, file.size > target_bytes) {
            (true, _) => IndexNeed::Settled,
            (false, true) => IndexNeed::TooLarge,
            (false, false) => IndexNeed::Missing,
        }
    }
}

/// What rule backfill does with the files of a partition that nothing else is done with: None when it needs nothing.
pub fn plan_backfill(
    files: &[FileFacts],
    target_bytes: u64,
    settled: impl Fn(&FileFacts) -> bool,
) -> Option<PartitionDecision> {
    let missing = |file: &&FileFacts| IndexNeed::of(file, target_bytes, settled(file)) == IndexNeed::Missing;
    let missing: Vec<FileFacts> = files.iter().filter(missing).cloned().collect();
    if missing.is_empty() {
        return None;
    }
    let reason = SelectReason::NoTextIndex { files: missing.len() };
    Some(PartitionDecision::Selected { reason, groups: vec![Group::new(missing)] })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_model::PartitionKey;

    use super::*;

    fn file(path: &str, size: u64) -> FileFacts {
        FileFacts {
            path: path.into(),
            partition: Arc::new(PartitionKey::unpartitioned(0)),
            data_sequence_number: 1,
            added_snapshot_id: None,
            added_position: None,
            size,
            rows: 1,
            format: FileFormat::Parquet,
            sort_order_id: None,
            key_bounds: vec![],
            key_range: None,
        }
    }

    #[test]
    fn files_without_an_index_up_to_the_target_are_taken() {
        let files = [file("a", 100), file("b", 101), file("c", 7), file("d", 0)];
        let decision = plan_backfill(&files, 100, |file| file.path == "c").unwrap();
        let PartitionDecision::Selected { reason, groups } = decision else { panic!("{decision}") };
        assert_eq!(reason.to_string(), "2 files without a text index");
        let paths: Vec<&str> = groups[0].files().iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a", "d"]);
        assert_eq!(plan_backfill(&files, 100, |_| true), None);
        assert_eq!(plan_backfill(&[], 100, |_| false), None);
        let avro = FileFacts { format: FileFormat::Avro, ..file("e", 1) };
        assert_eq!(IndexNeed::of(&avro, 100, false), IndexNeed::OtherFormat);
        assert_eq!(IndexNeed::of(&files[1], 100, false), IndexNeed::TooLarge);
    }
}
