//! One version of a table, as the catalog had it when it was loaded.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef as ArrowSchemaRef;
use firn_model::BlobId;
use firn_storage::BlobStore;
use iceberg::io::FileIO;
use iceberg::spec::{FormatVersion, SnapshotRef, TableMetadata};

use crate::arrow_types;
use crate::catalog::metadata_file;
use crate::error::TableError;
use crate::ident::TableIdent;
use crate::io::TableStore;
use crate::partition_type::{SpecTypes, spec_types};

/// One version of a table. It never changes; a later version is a new load.
#[derive(Debug, Clone)]
pub struct LoadedTable {
    /// Its name in the catalog.
    pub ident: TableIdent,
    /// The metadata file that the catalog named.
    pub metadata_location: String,
    /// What that file says.
    pub metadata: Arc<TableMetadata>,
    /// Reads and writes the table's metadata files for the iceberg crate.
    pub io: FileIO,
    /// Where the table's files are.
    pub store: TableStore,
    /// Why its catalog takes no commits; None: it does.
    pub read_only: Option<Arc<str>>,
}

impl LoadedTable {
    /// The current schema as an Arrow schema; every field, nested ones too, carries its field id under
    /// `PARQUET:field_id`. UUIDs are marked as Arrow's canonical extension type `arrow.uuid`.
    ///
    /// # Errors
    /// [`TableError::Damaged`] when a type has no Arrow form.
    pub fn arrow_schema(&self) -> Result<ArrowSchemaRef, TableError> {
        let schema = arrow_types::arrow_schema(self.metadata.current_schema())
            .map_err(|error| self.damaged(format!("the current schema has no Arrow form: {error}")))?;
        Ok(Arc::new(schema))
    }

    /// A table property.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.metadata.properties().get(key).map(String::as_str)
    }

    /// False when the owner of the table has switched Firn off for it with `firn.enabled=false`.
    pub fn is_enabled(&self) -> bool {
        !self.property("firn.enabled").is_some_and(|value| value.trim().eq_ignore_ascii_case("false"))
    }

    /// The snapshot that a branch points to; None for a branch that does not exist or a table without rows.
    pub fn head(&self, branch: &str) -> Option<&SnapshotRef> {
        self.metadata.snapshot_for_ref(branch)
    }

    /// The table's UUID, lower case with hyphens.
    pub fn uuid(&self) -> String {
        self.metadata.uuid().to_string()
    }

    /// The version of a table that another metadata file holds, whether a catalog ever named it or not. Its UUID tells whether it is this
    /// table.
    ///
    /// # Errors
    /// [`TableError::Read`] when the file cannot be read, [`TableError::Metadata`] when it is no metadata file.
    pub async fn version_at(&self, location: &str) -> Result<LoadedTable, TableError> {
        let bytes = self.read("a metadata file", location).await?;
        let metadata = metadata_file::decode(&bytes).map_err(|source| TableError::Metadata {
            ident: self.ident.clone(),
            location: location.to_owned(),
            source,
        })?;
        Ok(LoadedTable { metadata_location: location.to_owned(), metadata: Arc::new(metadata), ..self.clone() })
    }

    /// The table's format version.
    pub fn format_version(&self) -> FormatVersion {
        self.metadata.format_version()
    }

    /// The store that holds the table's files.
    pub fn blobs(&self) -> &Arc<dyn BlobStore> {
        self.store.blobs()
    }

    /// The identity of a path that the table's metadata holds.
    ///
    /// # Errors
    /// [`TableError::Url`] when it names no blob that Firn can reach.
    pub fn blob_id(&self, path: &str) -> Result<BlobId, TableError> {
        self.store.blob_id(path).map_err(|source| TableError::Url { ident: self.ident.clone(), source })
    }

    /// The types of every partition spec, by spec id.
    ///
    /// # Errors
    /// See [`crate::partition_type::spec_types`].
    pub fn spec_types(&self) -> Result<HashMap<i32, Arc<SpecTypes>>, TableError> {
        spec_types(&self.ident, &self.metadata)
    }

    /// The table location without a trailing slash.
    pub fn location(&self) -> &str {
        self.metadata.location()
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> TableError {
        TableError::Damaged { ident: self.ident.clone(), detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Lake, Shape};

    #[tokio::test]
    async fn the_arrow_schema_carries_field_ids() {
        let lake = Lake::new().await;
        let table = lake.create("t", Shape::partitioned(&[])).await;
        let schema = table.arrow_schema().unwrap();
        let ids: Vec<(&str, &str)> = schema
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.metadata()["PARQUET:field_id"].as_str()))
            .collect();
        assert_eq!(ids, [("name", "1"), ("time", "2"), ("value", "3"), ("region", "4"), ("n", "5")]);
    }

    #[tokio::test]
    async fn properties_are_read_and_switch_firn_off() {
        let lake = Lake::new().await;
        let table = |name: &'static str, key: &'static str, value: &'static str| {
            lake.create(name, Shape::partitioned(&[]).property(key, value))
        };
        let plain = table("a", "k", "v").await;
        assert!(plain.is_enabled());
        assert_eq!((plain.property("k"), plain.property("l")), (Some("v"), None));
        assert!(!table("b", "firn.enabled", "False").await.is_enabled());
        assert!(table("c", "firn.enabled", "true").await.is_enabled());
    }
}
