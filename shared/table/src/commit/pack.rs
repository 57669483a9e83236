//! Which manifests are written again and how their entries are spread over new ones (design section 6).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iceberg::spec::ManifestFile;

use super::locate::holds_live_files;

/// No commit takes more small manifests along than this, so that it stays quick on a table with thousands of them.
const FOLD_AT_MOST: usize = 200;

const TARGET_BYTES: &str = "commit.manifest.target-size-bytes";
const MIN_COUNT_TO_MERGE: &str = "commit.manifest.min-count-to-merge";
const MERGE_ENABLED: &str = "commit.manifest-merge.enabled";

/// The table properties on manifests, with Iceberg's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManifestSettings {
    pub(crate) target_bytes: u64,
    /// More small manifests of one spec than this, and a commit takes some of them along; None: never.
    fold_above: Option<usize>,
}

impl ManifestSettings {
    pub(crate) fn of(properties: &HashMap<String, String>) -> Self {
        fn number<T: std::str::FromStr>(properties: &HashMap<String, String>, key: &str, default: T) -> T {
            properties.get(key).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
        }
        let merges = properties.get(MERGE_ENABLED).is_none_or(|value| !value.eq_ignore_ascii_case("false"));
        Self {
            target_bytes: number(properties, TARGET_BYTES, 8 * 1024 * 1024).max(1),
            fold_above: merges.then(|| number(properties, MIN_COUNT_TO_MERGE, 100)),
        }
    }
}

/// Small manifests that this commit takes along although it replaces none of their files: without that, every merged
/// partition leaves one more manifest, and a table's manifests would grow with its commits. At most one manifest's worth,
/// smallest first, so that a commit stays cheap.
pub(crate) fn fold(data: &[&ManifestFile], spec_id: i32, settings: ManifestSettings) -> HashSet<String> {
    let Some(fold_above) = settings.fold_above else { return HashSet::new() };
    let length = |file: &ManifestFile| u64::try_from(file.manifest_length).unwrap_or(u64::MAX);
    let mut small: Vec<&ManifestFile> = data
        .iter()
        .copied()
        .filter(|file| file.partition_spec_id == spec_id && holds_live_files(file))
        .filter(|file| length(file) <= settings.target_bytes / 4)
        .collect();
    if small.len() <= fold_above {
        return HashSet::new();
    }
    small.sort_by_key(|file| length(file));
    small.truncate(FOLD_AT_MOST);
    let mut room = settings.target_bytes;
    small
        .into_iter()
        .take_while(|file| {
            let fits = length(file) <= room;
            room = room.saturating_sub(length(file));
            fits
        })
        .map(|file| file.manifest_path.clone())
        .collect()
}

/// Cuts a run of entries into manifests of about `target` bytes, in order, each with at least one entry.
pub(crate) fn cut(sizes: &[u64], target: u64) -> Vec<Range<usize>> {
    let mut manifests = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (index, size) in sizes.iter().enumerate() {
        if index > start && bytes.saturating_add(*size) > target {
            manifests.push(start..index);
            (start, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(*size);
    }
    if start < sizes.len() {
        manifests.push(start..sizes.len());
    }
    manifests
}

#[cfg(test)]
mod tests {
    use iceberg::spec::ManifestContentType;
    use proptest::prelude::*;

    use super::*;

    fn manifest(n: usize, length: i64, spec: i32, live: u32) -> ManifestFile {
        ManifestFile {
            manifest_path: format!("m{n}"),
            manifest_length: length,
            partition_spec_id: spec,
            content: ManifestContentType::Data,
            sequence_number: 1,
            min_sequence_number: 1,
            added_snapshot_id: 1,
            added_files_count: Some(live),
            existing_files_count: Some(0),
            deleted_files_count: Some(1),
            added_rows_count: Some(0),
            existing_rows_count: Some(0),
            deleted_rows_count: Some(0),
            partitions: None,
            key_metadata: None,
            first_row_id: None,
        }
    }

    fn settings(properties: &[(&str, &str)]) -> ManifestSettings {
        ManifestSettings::of(&properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn few_manifests_are_left_alone_and_many_are_taken_along() {
        let defaults = settings(&[]);
        let many: Vec<ManifestFile> = (0..101).map(|n| manifest(n, 7000, 0, 1)).collect();
        let all: Vec<&ManifestFile> = many.iter().collect();
        assert_eq!(fold(&all[..100], 0, defaults).len(), 0);
        assert_eq!(fold(&all, 0, defaults).len(), 101);
        let crowd: Vec<ManifestFile> = (0..1000).map(|n| manifest(n, 7000, 0, 1)).collect();
        assert_eq!(fold(&crowd.iter().collect::<Vec<_>>(), 0, defaults).len(), 200);
        assert_eq!(fold(&all, 1, defaults).len(), 0, "another spec");
        assert_eq!(fold(&all, 0, settings(&[("commit.manifest-merge.enabled", "FALSE")])).len(), 0);
        assert_eq!(fold(&all[..5], 0, settings(&[("commit.manifest.min-count-to-merge", "4")])).len(), 5);
        assert_eq!(fold(&all, 0, settings(&[("commit.manifest.target-size-bytes", "28001")])).len(), 4);
    }

    #[test]
    fn large_and_dead_manifests_are_not_taken_along() {
        let properties = [("commit.manifest.min-count-to-merge", "1"), ("commit.manifest.target-size-bytes", "4000")];
        let files = [manifest(0, 1000, 0, 1), manifest(1, 1001, 0, 1), manifest(2, 10, 0, 0), manifest(3, 900, 0, 1)];
        let found = fold(&files.iter().collect::<Vec<_>>(), 0, settings(&properties));
        assert_eq!(found, HashSet::from(["m0".to_owned(), "m3".to_owned()]));
    }

    proptest! {
        #[test]
        fn cuts_cover_everything_in_order_and_are_full(sizes in prop::collection::vec(0_u64..50, 0..60), target in 1_u64..100) {
            let manifests = cut(&sizes, target);
            let covered: Vec<usize> = manifests.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..sizes.len()).collect::<Vec<_>>());
            let bytes = |range: &Range<usize>| sizes[range.clone()].iter().sum::<u64>();
            for (index, range) in manifests.iter().enumerate() {
                prop_assert!(!range.is_empty());
                prop_assert!(bytes(range) <= target || range.len() == 1);
                if let Some(next) = manifests.get(index + 1) {
                    prop_assert!(bytes(range) + sizes[next.start] > target);
                }
            }
        }
    }
}
