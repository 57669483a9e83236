//! Tables and snapshots, written with the iceberg crate's own writers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use firn_table::LoadedTable;
use iceberg::spec::*;
use iceberg::{TableCreation, TableUpdate};

/// What a commit does to the files of a branch.
#[derive(Debug, Clone, Default)]
pub struct Change<'a> {
    pub add: &'a [&'a str],
    /// Deletion vectors of them go too.
    pub remove: &'a [&'a str],
    /// Deletion vectors: of which data file, and in which Puffin file.
    pub vectors: &'a [(&'a str, &'a str)],
    /// The snapshot is in no branch (write-audit-publish).
    pub staged: bool,
}

/// The URL of a data file that a test names.
pub fn url(table: &LoadedTable, file: &str) -> String {
    if file.contains("://") { file.to_owned() } else { format!("{}/data/{file}", table.location()) }
}

/// What a catalog is told of a new table with the column `n`.
pub fn first_metadata(
    table: &str,
    location: &str,
    properties: &[(&str, &str)],
    version: FormatVersion,
) -> TableMetadata {
    let field = NestedField::optional(1, "n", Type::Primitive(PrimitiveType::Int));
    let creation = TableCreation::builder()
        .name(table.to_owned())
        .location(location.to_owned())
        .schema(Schema::builder().with_fields([Arc::new(field)]).build().unwrap())
        .properties(properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>())
        .format_version(version)
        .build();
    TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata
}

/// Writes manifests and list of a snapshot; the updates make it the head of a branch.
pub async fn snapshot_with(
    table: &LoadedTable,
    id: i64,
    now: DateTime<Utc>,
    branch: &str,
    change: Change<'_>,
) -> Vec<TableUpdate> {
    let metadata = &table.metadata;
    let parent = metadata.snapshot_for_ref(branch).or(metadata.current_snapshot()).cloned();
    let removed: BTreeSet<String> = change.remove.iter().map(|file| url(table, file)).collect();
    let mut manifests = Vec::new();
    if !change.add.is_empty() {
        let mut writer = manifest(table, id, ManifestContentType::Data);
        for file in change.add {
            writer.add_file(data_file(&url(table, file)), -1).unwrap();
        }
        manifests.push(writer.write_manifest_file().await.unwrap());
    }
    if !change.vectors.is_empty() {
        let mut writer = manifest(table, id, ManifestContentType::Deletes);
        for (number, (file, puffin)) in (0..).zip(change.vectors) {
            writer.add_file(vector(&url(table, file), puffin, number), -1).unwrap();
        }
        manifests.push(writer.write_manifest_file().await.unwrap());
    }
    for old in match &parent {
        Some(parent) => table.manifests(parent).await.unwrap(),
        None => vec![],
    } {
        if removed.is_empty() {
            if old.has_added_files() || old.has_existing_files() {
                manifests.push(old);
            }
            continue;
        }
        let read = old.load_manifest(&table.io).await.unwrap();
        let goes = |entry: &ManifestEntryRef| {
            let of = entry.data_file().referenced_data_file();
            removed.contains(entry.file_path()) || of.is_some_and(|file| removed.contains(&file))
        };
        if !read.entries().iter().any(|entry| entry.is_alive() && goes(entry)) {
            if read.entries().iter().any(|entry| entry.is_alive()) {
                manifests.push(old);
            }
            continue;
        }
        let mut writer = manifest(table, id, old.content);
        for entry in read.entries().iter().filter(|entry| entry.is_alive()) {
            let number = entry.sequence_number().unwrap_or(old.sequence_number);
            let snapshot = entry.snapshot_id().unwrap_or(old.added_snapshot_id);
            let file = entry.data_file().clone();
            match goes(entry) {
                true => writer.add_delete_file(file, number, Some(number)).unwrap(),
                false => writer.add_existing_file(file, snapshot, number, Some(number)).unwrap(),
            }
        }
        manifests.push(writer.write_manifest_file().await.unwrap());
    }
    let list = format!("{}/metadata/snap-{id}-{}.avro", table.location(), uuid::Uuid::new_v4());
    let output = table.io.new_output(&list).unwrap().writer().await.unwrap();
    let parent_id = parent.as_ref().map(|parent| parent.snapshot_id());
    let number = metadata.next_sequence_number();
    let first_row = metadata.next_row_id();
    let mut writer = match metadata.format_version() {
        FormatVersion::V1 => ManifestListWriter::v1(output, id, parent_id),
        FormatVersion::V2 => ManifestListWriter::v2(output, id, parent_id, number),
        FormatVersion::V3 => ManifestListWriter::v3(output, id, parent_id, number, Some(first_row)),
    };
    writer.add_manifests(manifests.into_iter()).unwrap();
    let next_row = writer.next_row_id();
    writer.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(parent_id)
        .with_sequence_number(number)
        .with_timestamp_ms(now.timestamp_millis().max(metadata.last_updated_ms()))
        .with_manifest_list(list)
        .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
        .with_schema_id(metadata.current_schema_id());
    let snapshot = match next_row {
        Some(next) => snapshot.with_row_range(first_row, next - first_row).build(),
        None => snapshot.build(),
    };
    let mut updates = vec![TableUpdate::AddSnapshot { snapshot }];
    if !change.staged {
        let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
        updates.push(TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference });
    }
    updates
}

fn manifest(table: &LoadedTable, id: i64, content: ManifestContentType) -> ManifestWriter {
    let path = format!("{}/metadata/{}-m0.avro", table.location(), uuid::Uuid::new_v4());
    let spec = table.metadata.default_partition_spec().as_ref().clone();
    let schema = table.metadata.current_schema().clone();
    let builder = ManifestWriterBuilder::new(table.io.new_output(path).unwrap(), Some(id), schema, spec);
    match (table.metadata.format_version(), content) {
        (FormatVersion::V1, _) => builder.build_v1(),
        (FormatVersion::V2, ManifestContentType::Data) => builder.build_v2_data(),
        (FormatVersion::V2, ManifestContentType::Deletes) => builder.build_v2_deletes(),
        (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
        (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
    }
}

/// A deletion vector, one of many in its Puffin file.
fn vector(of: &str, puffin: &str, number: i64) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::PositionDeletes)
        .file_path(puffin.to_owned())
        .file_format(DataFileFormat::Puffin)
        .referenced_data_file(Some(of.to_owned()))
        .content_offset(Some(4 + 40 * number))
        .content_size_in_bytes(Some(40))
        .partition(Struct::empty())
        .record_count(1)
        .file_size_in_bytes(100)
        .partition_spec_id(0)
        .build()
        .unwrap()
}

fn data_file(url: &str) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(url.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .record_count(1)
        .file_size_in_bytes(1)
        .partition_spec_id(0)
        .build()
        .unwrap()
}
