//! A lake for tests: a SQLite catalog file and tables in memory, written with the iceberg crate's own writers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use firn_storage::MemoryStore;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Literal, MAIN_BRANCH, ManifestFile,
    ManifestListWriter, ManifestWriterBuilder, NestedField, Operation, PrimitiveType, Schema, Snapshot,
    SnapshotReference, SnapshotRetention, SortOrder, Struct, Summary, TableMetadata, TableMetadataBuilder, Transform,
    Type, UnboundPartitionSpec,
};
use iceberg::{TableCreation, TableUpdate};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;
use uuid::Uuid;

use crate::catalog::{Catalog, metadata_file};
use crate::{LoadedTable, SqlCatalog, TableIdent, TableStore};

/// The catalog table as PyIceberg and newer JDBC catalogs create it.
pub(crate) const SCHEMA_V1: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
     table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
     previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), \
     PRIMARY KEY (catalog_name, table_namespace, table_name))";

pub(crate) const CATALOG: &str = "lake";
pub(crate) const LOCATION: &str = "abfss://lake@acct.dfs.core.windows.net/wh";

pub(crate) struct Lake {
    /// Keeps the database file.
    pub(crate) dir: TempDir,
    pub(crate) store: MemoryStore,
    pub(crate) pool: SqlitePool,
    pub(crate) catalog: SqlCatalog,
}

impl Lake {
    pub(crate) async fn new() -> Self {
        Self::with_catalog_schema(SCHEMA_V1).await
    }

    pub(crate) async fn with_catalog_schema(create: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new().filename(dir.path().join("catalog.db")).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::query(create).execute(&pool).await.unwrap();
        let store = MemoryStore::new();
        let database = dir.path().join("catalog.db");
        let catalog = SqlCatalog::open(&database, CATALOG, TableStore::new(Arc::new(store.clone()))).await.unwrap();
        Self { dir, store, pool, catalog }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.path().join("catalog.db")
    }

    /// Creates the table `db.<name>`.
    pub(crate) async fn create(&self, name: &str, shape: Shape) -> LoadedTable {
        let location = format!("{LOCATION}/{name}");
        let creation = TableCreation::builder()
            .name(name.to_owned())
            .location(location.clone())
            .schema(shape.schema)
            .partition_spec(shape.spec)
            .sort_order(shape.sort)
            .properties(shape.properties)
            .format_version(shape.version)
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation).unwrap().build().unwrap().metadata;
        self.register(name, &format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4()), &metadata).await
    }

    /// Puts a metadata file in place and the table into the catalog.
    pub(crate) async fn register(&self, name: &str, at: &str, metadata: &TableMetadata) -> LoadedTable {
        self.put(at, metadata_file::encode(metadata).unwrap()).await;
        self.insert(name, at).await;
        self.catalog.load(&ident(name)).await.unwrap()
    }

    pub(crate) async fn insert(&self, name: &str, at: &str) {
        let insert = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) \
             VALUES ($1, 'db', $2, $3)";
        sqlx::query(insert).bind(CATALOG).bind(name).bind(at).execute(&self.pool).await.unwrap();
    }

    pub(crate) async fn put(&self, url: &str, bytes: impl Into<bytes::Bytes>) {
        let store = TableStore::new(Arc::new(self.store.clone()));
        store.file_io().new_output(url).unwrap().write(bytes.into()).await.unwrap();
    }

    pub(crate) async fn delete(&self, url: &str) {
        TableStore::new(Arc::new(self.store.clone())).file_io().delete(url).await.unwrap();
    }

    pub(crate) async fn update(&self, table: &LoadedTable, updates: Vec<TableUpdate>) -> LoadedTable {
        self.catalog.swap(table, updates, vec![]).await.unwrap()
    }

    /// Commits a snapshot that adds files, each in a manifest of its own spec and kind.
    pub(crate) async fn append(&self, table: &LoadedTable, files: Vec<NewFile>) -> LoadedTable {
        self.append_to(table, MAIN_BRANCH, files).await
    }

    pub(crate) async fn append_to(&self, table: &LoadedTable, branch: &str, files: Vec<NewFile>) -> LoadedTable {
        let mut commit = Commit::new(table);
        let mut groups: Vec<((i32, bool), Vec<DataFile>)> = Vec::new();
        for file in files {
            let group = (file.spec_id, file.file.content_type() != DataContentType::Data);
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, files)) => files.push(file.file),
                None => groups.push((group, vec![file.file])),
            }
        }
        for ((spec_id, deletes), files) in groups {
            let entries = files.into_iter().map(Written::Added).collect();
            commit.write_manifest(spec_id, deletes, entries).await;
        }
        let kept = match table.head(branch).or(table.head(MAIN_BRANCH)) {
            Some(head) => table.manifests(head).await.unwrap(),
            None => vec![],
        };
        commit.manifests.extend(kept);
        commit.finish(self, branch).await
    }
}

/// How a manifest entry is written.
pub(crate) enum Written {
    Added(DataFile),
    /// With snapshot id and sequence number.
    Existing(DataFile, i64, i64),
    /// With sequence number.
    Deleted(DataFile, i64),
}

/// A snapshot in the making, for tests that need certain manifests.
pub(crate) struct Commit<'a> {
    table: &'a LoadedTable,
    pub(crate) snapshot_id: i64,
    pub(crate) manifests: Vec<ManifestFile>,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(table: &'a LoadedTable) -> Self {
        let snapshot_id = 1_000 + table.metadata.snapshots().len() as i64;
        Self { table, snapshot_id, manifests: Vec::new() }
    }

    pub(crate) async fn write_manifest(&mut self, spec_id: i32, deletes: bool, entries: Vec<Written>) {
        let schema = Arc::clone(self.table.metadata.current_schema());
        self.write_manifest_with(schema, spec_id, deletes, entries).await;
    }

    pub(crate) async fn write_manifest_with(
        &mut self,
        schema: Arc<Schema>,
        spec_id: i32,
        deletes: bool,
        entries: Vec<Written>,
    ) {
        let metadata = &self.table.metadata;
        let spec = metadata.partition_spec_by_id(spec_id).unwrap();
        let path = format!("{}/metadata/{}.avro", self.table.location(), Uuid::new_v4());
        let output = self.table.io.new_output(&path).unwrap();
        let builder = ManifestWriterBuilder::new(output, Some(self.snapshot_id), schema, (**spec).clone());
        let mut writer = match (metadata.format_version(), deletes) {
            (FormatVersion::V1, _) => builder.build_v1(),
            (FormatVersion::V2, false) => builder.build_v2_data(),
            (FormatVersion::V2, true) => builder.build_v2_deletes(),
            (FormatVersion::V3, false) => builder.build_v3_data(),
            (FormatVersion::V3, true) => builder.build_v3_deletes(),
        };
        for entry in entries {
            match entry {
                // -1: inherited from the manifest.
                Written::Added(file) => writer.add_file(file, -1).unwrap(),
                Written::Existing(file, snapshot, sequence) => {
                    writer.add_existing_file(file, snapshot, sequence, Some(sequence)).unwrap();
                }
                Written::Deleted(file, sequence) => writer.add_delete_file(file, sequence, Some(sequence)).unwrap(),
            }
        }
        self.manifests.push(writer.write_manifest_file().await.unwrap());
    }

    pub(crate) async fn finish(self, lake: &Lake, branch: &str) -> LoadedTable {
        let metadata = &self.table.metadata;
        let (id, sequence) = (self.snapshot_id, metadata.next_sequence_number());
        let parent = self.table.head(branch).or(self.table.head(MAIN_BRANCH)).map(|snapshot| snapshot.snapshot_id());
        let path = format!("{}/metadata/snap-{id}.avro", self.table.location());
        let output = self.table.io.new_output(&path).unwrap().writer().await.unwrap();
        let mut list = match metadata.format_version() {
            FormatVersion::V1 => ManifestListWriter::v1(output, id, parent),
            FormatVersion::V2 => ManifestListWriter::v2(output, id, parent, sequence),
            FormatVersion::V3 => ManifestListWriter::v3(output, id, parent, sequence, Some(metadata.next_row_id())),
        };
        list.add_manifests(self.manifests.into_iter()).unwrap();
        let next_row_id = list.next_row_id();
        list.close().await.unwrap();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence)
            .with_timestamp_ms(chrono::Utc::now().timestamp_millis().max(metadata.last_updated_ms()))
            .with_manifest_list(path)
            .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
            .with_schema_id(metadata.current_schema_id());
        let snapshot = match next_row_id {
            Some(next) => snapshot.with_row_range(metadata.next_row_id(), next - metadata.next_row_id()).build(),
            None => snapshot.build(),
        };
        let reference = SnapshotReference::new(id, SnapshotRetention::branch(None, None, None));
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference },
        ];
        lake.update(self.table, updates).await
    }
}

/// What a new table looks like.
pub(crate) struct Shape {
    pub(crate) schema: Schema,
    pub(crate) spec: UnboundPartitionSpec,
    pub(crate) sort: SortOrder,
    pub(crate) properties: HashMap<String, String>,
    pub(crate) version: FormatVersion,
}

impl Shape {
    /// Columns 1 name string, 2 time timestamp, 3 value double, 4 region string, 5 n int; partitioned by these
    /// (source id, field name, transform).
    pub(crate) fn partitioned(fields: &[(i32, &str, Transform)]) -> Self {
        Self {
            schema: readings_schema(),
            spec: spec(fields),
            sort: SortOrder::unsorted_order(),
            properties: HashMap::new(),
            version: FormatVersion::V2,
        }
    }

    pub(crate) fn version(self, version: FormatVersion) -> Self {
        Self { version, ..self }
    }

    pub(crate) fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }
}

pub(crate) fn ident(name: &str) -> TableIdent {
    TableIdent::new(["db"], name)
}

pub(crate) fn spec(fields: &[(i32, &str, Transform)]) -> UnboundPartitionSpec {
    let mut builder = UnboundPartitionSpec::builder();
    for (source, name, transform) in fields {
        builder = builder.add_partition_field(*source, *name, *transform).unwrap();
    }
    builder.build()
}

pub(crate) fn readings_schema() -> Schema {
    schema_of(&[
        (1, "name", PrimitiveType::String),
        (2, "time", PrimitiveType::Timestamp),
        (3, "value", PrimitiveType::Double),
        (4, "region", PrimitiveType::String),
        (5, "n", PrimitiveType::Int),
    ])
}

pub(crate) fn schema_of(columns: &[(i32, &str, PrimitiveType)]) -> Schema {
    let field = |(id, name, of): &(i32, &str, PrimitiveType)| {
        Arc::new(NestedField::optional(*id, *name, Type::Primitive(of.clone())))
    };
    Schema::builder().with_fields(columns.iter().map(field)).build().unwrap()
}

/// A file to append.
#[derive(Clone)]
pub(crate) struct NewFile {
    pub(crate) spec_id: i32,
    pub(crate) file: DataFile,
}

/// A data file of 10 rows and `size` bytes in a partition, with whatever else `build` sets.
pub(crate) fn data(
    spec_id: i32,
    path: &str,
    tuple: Struct,
    size: u64,
    build: impl FnOnce(&mut DataFileBuilder),
) -> NewFile {
    file(DataContentType::Data, spec_id, path, tuple, size, build)
}

pub(crate) fn file(
    content: DataContentType,
    spec_id: i32,
    path: &str,
    tuple: Struct,
    size: u64,
    build: impl FnOnce(&mut DataFileBuilder),
) -> NewFile {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(format!("{LOCATION}/{path}"))
        .file_format(DataFileFormat::Parquet)
        .partition(tuple)
        .record_count(10)
        .file_size_in_bytes(size)
        .partition_spec_id(spec_id);
    build(&mut builder);
    NewFile { spec_id, file: builder.build().unwrap() }
}

/// A partition tuple.
pub(crate) fn tuple(values: impl IntoIterator<Item = Option<Literal>>) -> Struct {
    Struct::from_iter(values)
}
