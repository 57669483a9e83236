//! A catalog with tables in a temporary folder, written by Iceberg's own writers. Data files need not be Parquet: a commit
//! reads metadata only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use firn_model::PartitionKey;
use firn_storage::{BlobStore, Clock, LocalStore, MemoryStore};
use firn_table::commit::{CommitPolicy, ConflictCounter, ReplaceOperation, ReplaceRequest};
use firn_table::new_file::{NewDataFile, NewFileMetrics};
use firn_table::{Catalog, LoadedTable, SqlCatalog, TableIdent, TableStore};
use futures::StreamExt;
use iceberg::io::FileIO;
use iceberg::spec::*;
use iceberg::{TableCreation, TableUpdate};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tempfile::TempDir;

use crate::counting::CountingStore;
use crate::files::*;
use crate::look::*;

/// One table in a catalog of its own.
pub struct Lake {
    _folder: TempDir,
    pub blobs: Arc<CountingStore>,
    pub catalog: SqlCatalog,
    pub ident: TableIdent,
    pub io: FileIO,
}

impl Lake {
    pub async fn new(version: FormatVersion, schema: Schema, spec: UnboundPartitionSpec) -> Lake {
        Lake::with_properties(version, schema, spec, &[]).await
    }

    pub async fn with_properties(
        version: FormatVersion,
        schema: Schema,
        spec: UnboundPartitionSpec,
        properties: &[(&str, &str)],
    ) -> Lake {
        Lake::over(Arc::new(LocalStore::new()), version, schema, spec, properties).await
    }

    /// By `p`, format version 2, files in memory: for tests of thousands of files.
    pub async fn in_memory(properties: &[(&str, &str)]) -> Lake {
        let spec = by(2, "p", Transform::Identity);
        Lake::over(Arc::new(MemoryStore::new()), FormatVersion::V2, schema(), spec, properties).await
    }

    /// As [`Lake::in_memory`], in a store with a clock of its own.
    pub async fn in_memory_at(clock: Clock) -> Lake {
        let spec = by(2, "p", Transform::Identity);
        Lake::over(Arc::new(MemoryStore::with_clock(clock)), FormatVersion::V2, schema(), spec, &[]).await
    }

    async fn over(
        behind: Arc<dyn BlobStore>,
        version: FormatVersion,
        schema: Schema,
        spec: UnboundPartitionSpec,
        properties: &[(&str, &str)],
    ) -> Lake {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("catalog.db");
        let options = SqliteConnectOptions::new().filename(&database).create_if_missing(true);
        let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
        sqlx::query(
            "CREATE TABLE iceberg_tables (catalog_name TEXT NOT NULL, table_namespace TEXT NOT NULL, \
             table_name TEXT NOT NULL, metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT, \
             PRIMARY KEY (catalog_name, table_namespace, table_name))",
        )
        .execute(&pool)
        .await
        .unwrap();
        let location = format!("file://{}/wh/db/t", folder.path().display());
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location(location.clone())
            .schema(schema)
            .partition_spec(spec)
            .properties(properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>())
            .format_version(version)
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
        let blobs = Arc::new(CountingStore::new(behind));
        let store = TableStore::new(blobs.clone());
        let io = store.file_io();
        let first = format!("{location}/metadata/00000-first.metadata.json");
        // A table made a day ago, so that what changes it is not tied to this moment.
        let mut json = serde_json::to_value(&metadata).unwrap();
        json["last-updated-ms"] = (metadata.last_updated_ms() - 86_400_000).into();
        let json = serde_json::to_vec(&json).unwrap();
        io.new_output(&first).unwrap().write(json.into()).await.unwrap();
        sqlx::query("INSERT INTO iceberg_tables VALUES ('lake', 'db', 't', $1, NULL, 'TABLE')")
            .bind(&first)
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
        let catalog = SqlCatalog::open(&database, "lake", store).await.unwrap();
        Lake { _folder: folder, blobs, catalog, ident: TableIdent::new(["db"], "t"), io }
    }

    pub async fn load(&self) -> LoadedTable {
        self.catalog.load(&self.ident).await.unwrap()
    }

    pub async fn location(&self) -> String {
        self.load().await.metadata.location().to_owned()
    }

    /// Applies updates without requirements.
    pub async fn update(&self, updates: Vec<TableUpdate>) -> LoadedTable {
        self.catalog.swap(&self.load().await, updates, vec![]).await.unwrap()
    }

    /// Appends data files to `main` in one snapshot, in the default spec.
    pub async fn append(&self, files: Vec<DataFile>) -> LoadedTable {
        self.commit("main", Change { data: files, ..Change::default() }).await
    }

    /// Adds delete files to `main` in one snapshot, in the default spec.
    pub async fn delete(&self, files: Vec<DataFile>) -> LoadedTable {
        self.commit("main", Change { deletes: files, ..Change::default() }).await
    }

    /// Adds a snapshot to a branch; a branch that does not exist starts at the head of `main`.
    pub async fn commit(&self, branch: &str, change: Change) -> LoadedTable {
        let table = self.load().await;
        let metadata = &table.metadata;
        let parent = metadata.snapshot_for_ref(branch).or_else(|| metadata.current_snapshot()).cloned();
        let id = metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).max().unwrap_or(100) + 1;
        let mut manifests = Vec::new();
        let spec = metadata.default_partition_spec().as_ref().clone();
        for (files, deletes) in [(&change.data, false), (&change.deletes, true)] {
            let at_once = if change.manifest_for_each_file { 1 } else { files.len().max(1) };
            for (n, files) in files.chunks(at_once).enumerate() {
                let path = format!("{}/metadata/{id}-{deletes}-{n}.avro", metadata.location());
                let output = self.io.new_output(path).unwrap();
                let schema = metadata.current_schema().clone();
                let builder = ManifestWriterBuilder::new(output, Some(id), schema, spec.clone());
                let mut writer = match (metadata.format_version(), deletes) {
                    (FormatVersion::V1, _) => builder.build_v1(),
                    (FormatVersion::V2, false) => builder.build_v2_data(),
                    (FormatVersion::V2, true) => builder.build_v2_deletes(),
                    (FormatVersion::V3, false) => builder.build_v3_data(),
                    (FormatVersion::V3, true) => builder.build_v3_deletes(),
                };
                for file in files {
                    writer.add_file(file.clone(), -1).unwrap();
                }
                manifests.push(writer.write_manifest_file().await.unwrap());
            }
        }
        let new = manifests.len();
        if let Some(parent) = &parent {
            manifests.extend(manifest_files(&table, parent).await);
        }
        if change.rewrite_old_deletes {
            for file in manifests.iter_mut().skip(new).filter(|file| file.content == ManifestContentType::Deletes) {
                *file = self.rewritten(&table, id, file).await;
            }
        }
        let list = format!("{}/metadata/snap-{id}.avro", metadata.location());
        let output = self.io.new_output(&list).unwrap().writer().await.unwrap();
        let parent_id = parent.as_ref().map(|parent| parent.snapshot_id());
        let sequence = metadata.next_sequence_number();
        let mut writer = match metadata.format_version() {
            FormatVersion::V1 => ManifestListWriter::v1(output, id, parent_id),
            FormatVersion::V2 => ManifestListWriter::v2(output, id, parent_id, sequence),
            FormatVersion::V3 => ManifestListWriter::v3(output, id, parent_id, sequence, Some(metadata.next_row_id())),
        };
        writer.add_manifests(manifests.into_iter()).unwrap();
        let next_row = writer.next_row_id();
        writer.close().await.unwrap();
        let mut summary = HashMap::new();
        if change.totals {
            let mut totals = match &parent {
                Some(parent) => recount(&table, parent).await,
                None => BTreeMap::new(),
            };
            for (files, key) in [(&change.data, "total-data-files"), (&change.deletes, "total-delete-files")] {
                *totals.entry(key.to_owned()).or_default() += files.len() as u64;
                for file in files {
                    *totals.entry("total-files-size".to_owned()).or_default() += file.file_size_in_bytes();
                    *totals.entry(rows_key(file).to_owned()).or_default() += file.record_count();
                }
            }
            for key in TOTALS {
                summary.insert(key.to_owned(), totals.get(key).copied().unwrap_or(0).to_string());
            }
        }
        let now = chrono::Utc::now().timestamp_millis() + change.clock_ahead_ms;
        let builder = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence)
            .with_timestamp_ms(now.max(metadata.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(Summary { operation: Operation::Append, additional_properties: summary })
            .with_schema_id(metadata.current_schema_id());
        let snapshot = match next_row {
            Some(next) => builder.with_row_range(metadata.next_row_id(), next - metadata.next_row_id()).build(),
            None => builder.build(),
        };
        let reference = SnapshotReference::new(id, change.retention);
        self.update(vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference },
        ])
        .await
    }

    /// A delete manifest written again with the same entries, as writers do that merge manifests.
    async fn rewritten(&self, table: &LoadedTable, id: i64, file: &ManifestFile) -> ManifestFile {
        let manifest = file.load_manifest(&self.io).await.unwrap();
        let spec = table.metadata.partition_spec_by_id(file.partition_spec_id).unwrap().as_ref().clone();
        let output = self.io.new_output(format!("{}/metadata/{id}-again.avro", table.metadata.location())).unwrap();
        let mut writer =
            ManifestWriterBuilder::new(output, Some(id), manifest.metadata().schema().clone(), spec).build_v2_deletes();
        for entry in manifest.entries() {
            let number = entry.sequence_number().unwrap();
            let snapshot = entry.snapshot_id().unwrap();
            writer.add_existing_file(entry.data_file().clone(), snapshot, number, entry.file_sequence_number).unwrap();
        }
        writer.write_manifest_file().await.unwrap()
    }

    /// A request that merges `inputs` of the head of `main` into one output of all their rows, which is stored.
    pub async fn request(&self, inputs: &[&str], hash: &str) -> ReplaceRequest {
        self.request_on("main", inputs, hash).await
    }

    pub async fn request_on(&self, branch: &str, inputs: &[&str], hash: &str) -> ReplaceRequest {
        let base = self.load().await;
        let head = base.metadata.snapshot_for_ref(branch).unwrap().clone();
        let mut found = Vec::new();
        for file in manifest_files(&base, &head).await {
            let manifest = file.load_manifest(&self.io).await.unwrap();
            for entry in manifest.entries().iter().filter(|entry| entry.is_alive()) {
                if inputs.contains(&name(entry.file_path()).as_str()) {
                    found.push((entry.clone(), file.partition_spec_id));
                }
            }
        }
        assert_eq!(found.len(), inputs.len(), "{inputs:?}");
        let (first, spec_id) = found[0].clone();
        let rows = found.iter().map(|(entry, _)| entry.record_count()).sum();
        let number = found.iter().filter_map(|(entry, _)| entry.sequence_number()).max().unwrap();
        let output = format!("{}/data/{hash}-{}.parquet", base.metadata.location(), uuid::Uuid::new_v4());
        self.io.new_output(&output).unwrap().write(vec![7_u8; 10].into()).await.unwrap();
        ReplaceRequest {
            partition: Arc::new(key_of(&base, spec_id, first.data_file().partition())),
            base,
            newest: None,
            branch: branch.to_owned(),
            inputs: found.iter().map(|(entry, _)| entry.file_path().to_owned()).collect(),
            outputs: vec![NewDataFile {
                path: output,
                size: 10,
                rows,
                metrics: NewFileMetrics::default(),
                sort_order_id: None,
            }],
            data_sequence_number: number,
            rows_removed: 0,
            operation: ReplaceOperation::Replace,
            summary: BTreeMap::new(),
            inputs_hash: hash.to_owned(),
        }
    }

    /// Every file below the table's metadata folder.
    pub async fn metadata_files(&self) -> Vec<String> {
        let table = self.load().await;
        let folder = table.blob_id(&format!("{}/metadata/", table.metadata.location())).unwrap();
        let mut names: Vec<String> = self.blobs.list(&folder).map(|blob| name(&blob.unwrap().id.key)).collect().await;
        names.sort();
        names
    }
}

/// What [`Lake::commit`] adds.
pub struct Change {
    pub data: Vec<DataFile>,
    pub deletes: Vec<DataFile>,
    pub totals: bool,
    pub clock_ahead_ms: i64,
    pub rewrite_old_deletes: bool,
    pub manifest_for_each_file: bool,
    pub retention: SnapshotRetention,
}

impl Default for Change {
    fn default() -> Self {
        Change {
            data: vec![],
            deletes: vec![],
            totals: true,
            clock_ahead_ms: 0,
            rewrite_old_deletes: false,
            manifest_for_each_file: false,
            retention: SnapshotRetention::Branch {
                min_snapshots_to_keep: None,
                max_snapshot_age_ms: None,
                max_ref_age_ms: None,
            },
        }
    }
}

/// The model's key of a tuple of string, int, long or date values.
pub fn key_of(table: &LoadedTable, spec_id: i32, tuple: &Struct) -> PartitionKey {
    use firn_model::{PartitionValue, Scalar};
    let spec = table.metadata.partition_spec_by_id(spec_id).unwrap();
    if spec.is_unpartitioned() {
        return PartitionKey::unpartitioned(spec_id);
    }
    let values = spec.fields().iter().zip(tuple.iter()).map(|(field, value)| {
        let value = value.map(|value| match value.as_primitive_literal().unwrap() {
            PrimitiveLiteral::String(text) => Scalar::String(text),
            PrimitiveLiteral::Int(number) => Scalar::Int(number),
            PrimitiveLiteral::Long(number) => Scalar::Long(number),
            other => panic!("{other:?}"),
        });
        PartitionValue { name: field.name.clone(), value }
    });
    PartitionKey::new(spec_id, values.collect())
}

/// A policy that does not wait.
pub fn at_once() -> CommitPolicy {
    CommitPolicy {
        base_wait: Duration::ZERO,
        conflict_wait: Duration::ZERO,
        conflicts: ConflictCounter::default(),
        ..CommitPolicy::default()
    }
}

/// A table partitioned by `p`, format version 2.
pub async fn by_p() -> Lake {
    Lake::new(FormatVersion::V2, schema(), by(2, "p", Transform::Identity)).await
}
