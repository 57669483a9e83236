//! What is in a table, by value.

use std::collections::BTreeMap;

use firn_table::LoadedTable;
use iceberg::spec::*;

/// A manifest entry, by value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub status: &'static str,
    pub file: String,
    pub snapshot: i64,
    pub sequence: i64,
    pub file_sequence: i64,
    pub spec: i32,
}

/// Last name of a path.
pub fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

pub const TOTALS: [&str; 6] = [
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
];

pub fn rows_key(file: &DataFile) -> &'static str {
    match file.content_type() {
        DataContentType::Data => "total-records",
        DataContentType::PositionDeletes => "total-position-deletes",
        DataContentType::EqualityDeletes => "total-equality-deletes",
    }
}

pub async fn manifest_files(table: &LoadedTable, snapshot: &Snapshot) -> Vec<ManifestFile> {
    let bytes = table.io.new_input(snapshot.manifest_list()).unwrap().read().await.unwrap();
    let list = ManifestList::parse_with_version(&bytes, table.metadata.format_version()).unwrap();
    list.consume_entries().into_iter().collect()
}

/// Totals counted from the entries.
pub async fn recount(table: &LoadedTable, snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut totals: BTreeMap<String, u64> = TOTALS.iter().map(|key| ((*key).to_owned(), 0)).collect();
    for file in manifest_files(table, snapshot).await {
        let manifest = file.load_manifest(&table.io).await.unwrap();
        for entry in manifest.entries().iter().filter(|entry| entry.is_alive()) {
            let files = match entry.content_type() {
                DataContentType::Data => "total-data-files",
                _ => "total-delete-files",
            };
            *totals.entry(files.to_owned()).or_default() += 1;
            *totals.entry("total-files-size".to_owned()).or_default() += entry.file_size_in_bytes();
            *totals.entry(rows_key(entry.data_file()).to_owned()).or_default() += entry.record_count();
        }
    }
    totals
}

/// All entries of a branch's head, sorted; file names only.
pub async fn entries(table: &LoadedTable, branch: &str) -> Vec<Entry> {
    let head = table.metadata.snapshot_for_ref(branch).unwrap();
    let mut found = Vec::new();
    for file in manifest_files(table, head).await {
        let manifest = file.load_manifest(&table.io).await.unwrap();
        assert_eq!(manifest.metadata().partition_spec().spec_id(), file.partition_spec_id);
        for entry in manifest.entries() {
            found.push(Entry {
                status: match entry.status() {
                    ManifestStatus::Added => "added",
                    ManifestStatus::Existing => "existing",
                    ManifestStatus::Deleted => "deleted",
                },
                file: name(entry.file_path()),
                snapshot: entry.snapshot_id().unwrap(),
                sequence: entry.sequence_number().unwrap(),
                file_sequence: entry.file_sequence_number.unwrap(),
                spec: file.partition_spec_id,
            });
        }
    }
    found.sort();
    found
}

/// Names of the live data files of a branch, sorted.
pub async fn live(table: &LoadedTable, branch: &str) -> Vec<String> {
    let mut names: Vec<String> = entries(table, branch)
        .await
        .into_iter()
        .filter(|entry| entry.status != "deleted")
        .map(|entry| entry.file)
        .collect();
    names.sort();
    names
}

/// Fails unless the summary's totals equal a recount and the counts of the manifest list equal the entries.
pub async fn check_counts(table: &LoadedTable, branch: &str) {
    let head = table.metadata.snapshot_for_ref(branch).unwrap();
    let summary = &head.summary().additional_properties;
    for (key, count) in recount(table, head).await {
        assert_eq!(summary.get(&key), Some(&count.to_string()), "{key} of {summary:?}");
    }
    let mut paths = std::collections::HashSet::new();
    for file in manifest_files(table, head).await {
        let manifest = file.load_manifest(&table.io).await.unwrap();
        let count = |status| {
            let of = manifest.entries().iter().filter(|entry| entry.status() == status);
            of.fold((0_u32, 0_u64), |(files, rows), entry| (files + 1, rows + entry.record_count()))
        };
        let listed = |files: Option<u32>, rows: Option<u64>| (files.unwrap(), rows.unwrap());
        assert_eq!(listed(file.added_files_count, file.added_rows_count), count(ManifestStatus::Added));
        assert_eq!(listed(file.existing_files_count, file.existing_rows_count), count(ManifestStatus::Existing));
        assert_eq!(listed(file.deleted_files_count, file.deleted_rows_count), count(ManifestStatus::Deleted));
        let oldest = manifest.entries().iter().filter(|e| e.is_alive()).filter_map(|e| e.sequence_number()).min();
        if let Some(oldest) = oldest {
            assert_eq!(file.min_sequence_number, oldest, "{}", file.manifest_path);
        }
        for entry in manifest.entries().iter().filter(|entry| entry.is_alive()) {
            assert!(paths.insert(entry.file_path().to_owned()), "{} is live twice", entry.file_path());
        }
    }
}
