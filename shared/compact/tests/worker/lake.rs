//! Tables of real Parquet files in a SQLite catalog, written with other libraries than Firn's own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use firn_storage::BlobStore;
use firn_table::{Catalog, LoadedTable, SqlCatalog, SwapError, TableIdent, TableStore};
use iceberg::spec::*;
use iceberg::{TableCreation, TableUpdate};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

/// One table `db.t` with columns `id` long and `p` string.
#[derive(Debug)]
pub struct Lake {
    pub catalog: Arc<SqlCatalog>,
    pub ident: TableIdent,
    pub database: PathBuf,
    next_id: AtomicI64,
}

/// Above the ids of a lake that was opened before, and below those that Firn draws.
fn first_id() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

pub fn ident() -> TableIdent {
    TableIdent::new(["db"], "t")
}

impl Lake {
    /// Creates the table in a catalog of its own in `folder`; its files go below `location` of `store`.
    pub async fn create(
        folder: &Path,
        store: Arc<dyn BlobStore>,
        location: &str,
        spec: UnboundPartitionSpec,
        properties: &[(&str, &str)],
    ) -> Lake {
        let database = folder.join("catalog.db");
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
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location(location.to_owned())
            .schema(schema())
            .partition_spec(spec)
            .properties(properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>())
            .format_version(FormatVersion::V2)
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
        let store = TableStore::new(store);
        let first = format!("{location}/metadata/00000-first.metadata.json");
        let json = serde_json::to_vec(&metadata).unwrap();
        store.file_io().new_output(&first).unwrap().write(json.into()).await.unwrap();
        sqlx::query("INSERT INTO iceberg_tables VALUES ('lake', 'db', 't', $1, NULL, 'TABLE')")
            .bind(&first)
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
        Lake::open(&database, store).await
    }

    /// Opens the catalog that another process created.
    pub async fn open(database: &Path, store: TableStore) -> Lake {
        let catalog = Arc::new(SqlCatalog::open(database, "lake", store).await.unwrap());
        Lake { catalog, ident: ident(), database: database.to_owned(), next_id: AtomicI64::new(first_id()) }
    }

    pub async fn load(&self) -> LoadedTable {
        self.catalog.load(&self.ident).await.unwrap()
    }

    /// Appends files of `rows` rows to partition `p`, one snapshot each, ids counting from `first`.
    pub async fn append(&self, p: &str, files: usize, rows: i64, first: i64) {
        for n in 0..files {
            let from = first + i64::try_from(n).unwrap() * rows;
            let ids: Vec<i64> = (from..from + rows).collect();
            self.append_file(p, parquet(&ids, p), ids.len() as u64).await;
        }
    }

    /// Appends one file of `rows` rows as a writer beside others does: until its commit is taken.
    pub async fn append_beside(&self, p: &str, rows: i64, first: i64) {
        let ids: Vec<i64> = (first..first + rows).collect();
        while let Err(error) = self.try_append(p, parquet(&ids, p), ids.len() as u64).await {
            assert!(matches!(error, SwapError::Conflict { .. }), "{error}");
        }
    }

    /// Appends one file with these bytes.
    pub async fn append_file(&self, p: &str, bytes: Vec<u8>, rows: u64) {
        self.try_append(p, bytes, rows).await.unwrap();
    }

    async fn try_append(&self, p: &str, bytes: Vec<u8>, rows: u64) -> Result<(), SwapError> {
        let table = self.load().await;
        let metadata = &table.metadata;
        // Below the ids that Firn draws, and another one for each try: its files are created, never replaced.
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = format!("{}/data/{id}.parquet", metadata.location());
        let size = bytes.len() as u64;
        table.io.new_output(&path).unwrap().write(bytes.into()).await.unwrap();
        let partitioned = !metadata.default_partition_spec().is_unpartitioned();
        let tuple = Struct::from_iter(partitioned.then(|| Some(Literal::string(p))));
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(path)
            .file_format(DataFileFormat::Parquet)
            .partition(tuple)
            .record_count(rows)
            .file_size_in_bytes(size)
            .build()
            .unwrap();
        self.commit(&table, id, file).await
    }

    async fn commit(&self, table: &LoadedTable, id: i64, file: DataFile) -> Result<(), SwapError> {
        let metadata = &table.metadata;
        let parent = metadata.current_snapshot().cloned();
        let output = table.io.new_output(format!("{}/metadata/{id}-m0.avro", metadata.location())).unwrap();
        let spec = metadata.default_partition_spec().as_ref().clone();
        let mut writer =
            ManifestWriterBuilder::new(output, Some(id), metadata.current_schema().clone(), spec).build_v2_data();
        writer.add_file(file, -1).unwrap();
        let mut manifests = vec![writer.write_manifest_file().await.unwrap()];
        if let Some(parent) = &parent {
            let bytes = table.io.new_input(parent.manifest_list()).unwrap().read().await.unwrap();
            manifests.extend(ManifestList::parse_with_version(&bytes, FormatVersion::V2).unwrap().consume_entries());
        }
        let list = format!("{}/metadata/snap-{id}.avro", metadata.location());
        let output = table.io.new_output(&list).unwrap().writer().await.unwrap();
        let parent_id = parent.as_ref().map(|parent| parent.snapshot_id());
        let mut writer = ManifestListWriter::v2(output, id, parent_id, metadata.next_sequence_number());
        writer.add_manifests(manifests.into_iter()).unwrap();
        writer.close().await.unwrap();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(metadata.next_sequence_number())
            .with_timestamp_ms(chrono::Utc::now().timestamp_millis().max(metadata.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
            .with_schema_id(metadata.current_schema_id())
            .build();
        let retention =
            SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        let reference = SnapshotReference::new(id, retention);
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
        ];
        self.catalog.swap(table, updates, vec![]).await.map(|_| ())
    }

    /// Live files and the ids in them, sorted.
    pub async fn contents(&self) -> (usize, Vec<i64>) {
        let table = self.load().await;
        let Some(head) = table.metadata.current_snapshot() else { return (0, Vec::new()) };
        let bytes = table.io.new_input(head.manifest_list()).unwrap().read().await.unwrap();
        let list = ManifestList::parse_with_version(&bytes, FormatVersion::V2).unwrap();
        let (mut files, mut ids) = (0, Vec::new());
        for manifest in list.consume_entries() {
            let manifest = manifest.load_manifest(&table.io).await.unwrap();
            for entry in manifest.entries().iter().filter(|entry| entry.is_alive()) {
                files += 1;
                let bytes = table.io.new_input(entry.file_path()).unwrap().read().await.unwrap();
                ids.extend(ids_in(bytes));
            }
        }
        ids.sort_unstable();
        (files, ids)
    }

    pub async fn snapshots(&self) -> usize {
        self.load().await.metadata.snapshots().count()
    }
}

fn ids_in(bytes: bytes::Bytes) -> Vec<i64> {
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let mut ids = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let column = batch.column_by_name("id").unwrap().as_any().downcast_ref::<Int64Array>().unwrap().clone();
        ids.extend(column.values().iter().copied());
    }
    ids
}

/// `id` long, `p` string.
fn schema() -> Schema {
    let field = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    Schema::builder()
        .with_fields([field(1, "id", PrimitiveType::Long), field(2, "p", PrimitiveType::String)])
        .build()
        .unwrap()
}

/// Partitioned by `p`.
pub fn by_p() -> UnboundPartitionSpec {
    UnboundPartitionSpec::builder().add_partition_field(2, "p", Transform::Identity).unwrap().build()
}

fn field(id: i32, name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
        .with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

/// A Parquet file of these ids.
pub fn parquet(ids: &[i64], p: &str) -> Vec<u8> {
    let ids = Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef;
    parquet_of(DataType::Int64, ids, p)
}

/// A file whose `id` has a type that cannot become the table's.
pub fn incompatible(rows: usize, p: &str) -> Vec<u8> {
    let texts: Vec<String> = (0..rows).map(|n| format!("x{n}")).collect();
    parquet_of(DataType::Utf8, Arc::new(StringArray::from(texts)), p)
}

fn parquet_of(id_type: DataType, ids: ArrayRef, p: &str) -> Vec<u8> {
    let schema = Arc::new(ArrowSchema::new(vec![field(1, "id", id_type), field(2, "p", DataType::Utf8)]));
    let texts = Arc::new(StringArray::from(vec![p; ids.len()])) as ArrayRef;
    let batch = RecordBatch::try_new(schema.clone(), vec![ids, texts]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}
