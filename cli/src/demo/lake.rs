//! A lake that somebody else writes: tables in Azurite, many small appends.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_config::Config;
use firn_storage::BlobStore;
use firn_storage::RoutingStore;
use firn_storage::azure::{AzureOptions, AzureStore, ConnectionString};
use firn_table::{Catalog, LoadedTable, TableIdent, TableStore};
use iceberg::spec::{
    DataFile, DataFileFormat, FormatVersion, Literal, ManifestFile, ManifestList, ManifestListWriter,
    ManifestWriterBuilder, Operation, PartitionKey, Snapshot, SnapshotReference, SnapshotRetention, Struct, Summary,
    TableMetadataBuilder, Transform, UnboundPartitionSpec,
};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{TableCreation, TableUpdate};
use parquet::file::properties::WriterProperties;
use uuid::Uuid;

use super::DemoError;
use super::catalog::DemoCatalog;
use super::rows::{DayRows, DemoTable};

/// Name of the catalog.
pub(crate) const CATALOG: &str = "lake";
/// Namespace of the tables.
pub(crate) const NAMESPACE: &str = "demo";

/// The writer's side of the demo.
#[derive(Debug)]
pub(crate) struct Lake {
    catalog: Arc<dyn Catalog>,
    store: TableStore,
}

impl Lake {
    /// Makes the container and the tables without rows, and opens the catalog of the configuration.
    pub(crate) async fn create(
        config: &Config,
        known: &DemoCatalog,
        warehouse: &str,
        connection: &str,
    ) -> Result<Lake, DemoError> {
        let connection = ConnectionString::parse(connection).map_err(DemoError::of("the connection string"))?;
        let azure = AzureStore::new(&connection, AzureOptions::default()).map_err(DemoError::of("the account"))?;
        let stores: Arc<dyn BlobStore> =
            Arc::new(RoutingStore::new().with_account(azure.account(), Arc::new(azure.clone())));
        let store = TableStore::new(stores).with_default_account(Some(azure.account()));
        let root = store.blob_id(warehouse).map_err(DemoError::of("the warehouse"))?;
        azure.create_container(&root).await.map_err(DemoError::of("the container"))?;
        for table in DemoTable::ALL {
            let first = create_table(&store, table, warehouse).await.map_err(DemoError::of("a table"))?;
            known.register(table.name(), &first).await?;
        }
        let opened = firn_table::catalog::open(&config.catalog, store.clone(), None).await;
        Ok(Lake { catalog: opened.map_err(DemoError::of("the catalog"))?, store })
    }

    /// The table as it is now.
    pub(crate) async fn load(&self, table: DemoTable) -> Result<LoadedTable, DemoError> {
        let ident = TableIdent::new([NAMESPACE], table.name());
        self.catalog.load(&ident).await.map_err(DemoError::of("a table"))
    }

    /// The columns as the table's writer has them.
    pub(crate) async fn arrow_schema(&self, table: DemoTable) -> Result<SchemaRef, DemoError> {
        self.load(table).await?.arrow_schema().map_err(DemoError::of("a schema"))
    }

    /// One commit with a data file for each day.
    pub(crate) async fn append(&self, table: DemoTable, files: Vec<DayRows>) -> Result<(), DemoError> {
        let loaded = self.load(table).await?;
        let snapshot = self.write(&loaded, files).await.map_err(DemoError::of("an append"))?;
        let retention =
            SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        let reference = SnapshotReference::new(snapshot.snapshot_id(), retention);
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: "main".into(), reference },
        ];
        self.catalog.swap(&loaded, updates, Vec::new()).await.map(|_| ()).map_err(DemoError::of("an append"))
    }

    /// Writes data files, a manifest for them and the manifest list.
    async fn write(&self, table: &LoadedTable, files: Vec<DayRows>) -> iceberg::Result<Snapshot> {
        let metadata = &table.metadata;
        let io = self.store.file_io();
        let mut written = Vec::new();
        for file in files {
            written.extend(self.data_file(table, file).await?);
        }
        let (added, rows) = (written.len() as u64, written.iter().map(DataFile::record_count).sum::<u64>());
        let bytes: u64 = written.iter().map(DataFile::file_size_in_bytes).sum();
        let name = Uuid::new_v4();
        let id = i64::from_be_bytes(first_eight(&name)) & i64::MAX;
        let output = io.new_output(format!("{}/metadata/{name}-m0.avro", metadata.location()))?;
        let spec = metadata.default_partition_spec().as_ref().clone();
        let mut manifest =
            ManifestWriterBuilder::new(output, Some(id), metadata.current_schema().clone(), spec).build_v2_data();
        for file in written {
            manifest.add_file(file, -1)?;
        }
        let mut manifests: Vec<ManifestFile> = vec![manifest.write_manifest_file().await?];
        let parent = metadata.current_snapshot();
        if let Some(parent) = parent {
            manifests.extend(manifests_of(table, parent).await?);
        }
        let list = format!("{}/metadata/snap-{id}-0-{name}.avro", metadata.location());
        let parent_id = parent.map(|parent| parent.snapshot_id());
        let sequence = metadata.next_sequence_number();
        let mut writer = ManifestListWriter::v2(io.new_output(&list)?.writer().await?, id, parent_id, sequence);
        writer.add_manifests(manifests.into_iter())?;
        writer.close().await?;
        let before = |key: &str| -> u64 {
            let text = parent.and_then(|parent| parent.summary().additional_properties.get(key));
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let mut summary = HashMap::new();
        for (word, more) in [("data-files", added), ("records", rows), ("files-size", bytes)] {
            summary.insert(format!("added-{word}"), more.to_string());
            let total = format!("total-{word}");
            summary.insert(total.clone(), (before(&total) + more).to_string());
        }
        for key in ["total-delete-files", "total-position-deletes", "total-equality-deletes"] {
            summary.insert(key.to_owned(), "0".to_owned());
        }
        let now = chrono::Utc::now().timestamp_millis().max(metadata.last_updated_ms());
        Ok(Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence)
            .with_timestamp_ms(now)
            .with_manifest_list(list)
            .with_summary(Summary { operation: Operation::Append, additional_properties: summary })
            .with_schema_id(metadata.current_schema_id())
            .build())
    }

    /// By the writer of the iceberg crate: files that Firn did not write.
    async fn data_file(&self, table: &LoadedTable, file: DayRows) -> iceberg::Result<Vec<DataFile>> {
        let metadata = &table.metadata;
        let schema = metadata.current_schema().clone();
        let tuple = Struct::from_iter([Some(Literal::date(file.day))]);
        let key = PartitionKey::new(metadata.default_partition_spec().as_ref().clone(), schema.clone(), tuple);
        let place = DefaultLocationGenerator::new(metadata)?;
        let name = DefaultFileNameGenerator::new(Uuid::new_v4().to_string(), None, DataFileFormat::Parquet);
        let parquet = ParquetWriterBuilder::new(WriterProperties::builder().build(), schema);
        let rolling = RollingFileWriterBuilder::new_with_default_file_size(parquet, self.store.file_io(), place, name);
        let mut writer = DataFileWriterBuilder::new(rolling).build(Some(key)).await?;
        writer.write(file.rows).await?;
        writer.close().await
    }
}

/// The manifests of a snapshot.
pub(crate) async fn manifests_of(table: &LoadedTable, snapshot: &Snapshot) -> iceberg::Result<Vec<ManifestFile>> {
    let bytes = table.io.new_input(snapshot.manifest_list())?.read().await?;
    let list = ManifestList::parse_with_version(&bytes, table.metadata.format_version())?;
    Ok(list.consume_entries().into_iter().collect())
}

fn first_eight(name: &Uuid) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&name.as_bytes()[..8]);
    bytes
}

/// Writes the first metadata of a table, partitioned by the day of field 2; returns its location.
async fn create_table(store: &TableStore, table: DemoTable, warehouse: &str) -> iceberg::Result<String> {
    let location = format!("{warehouse}/{NAMESPACE}/{}", table.name());
    let spec = UnboundPartitionSpec::builder().add_partition_field(2, "day", Transform::Day)?.build();
    let creation = TableCreation::builder()
        .name(table.name().to_owned())
        .location(location.clone())
        .schema(table.schema()?)
        .partition_spec(spec)
        .format_version(FormatVersion::V2)
        .build();
    let metadata = TableMetadataBuilder::from_table_creation(creation)?.build()?.metadata;
    let first = format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4());
    let json = serde_json::to_vec(&metadata)?;
    store.file_io().new_output(&first)?.write(json.into()).await?;
    Ok(first)
}
