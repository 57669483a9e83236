//! The real catalog, with the times of metadata by the clock of the test: the library takes them from the machine.

use async_trait::async_trait;
use bytes::Bytes;
use firn_storage::{Clock, PutCondition};
use firn_table::{Catalog, LoadedTable, SqlCatalog, SwapError, TableError, TableIdent};
use iceberg::{TableRequirement, TableUpdate};
use serde_json::Value;

#[derive(Debug)]
pub struct Timed {
    pub inner: SqlCatalog,
    pub clock: Clock,
}

/// No time of the metadata is later than the clock.
pub fn set_times(json: &mut Value, clock: &Clock) {
    let now = clock.now().timestamp_millis();
    json["last-updated-ms"] = now.into();
    for entry in json["snapshot-log"].as_array_mut().into_iter().flatten() {
        let at = entry["timestamp-ms"].as_i64().unwrap();
        entry["timestamp-ms"] = at.min(now).into();
    }
}

#[async_trait]
impl Catalog for Timed {
    fn name(&self) -> &str {
        "lake"
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        self.inner.load(ident).await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.inner.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        let swapped = self.inner.swap(table, updates, requirements).await?;
        let mut json = serde_json::to_value(swapped.metadata.as_ref()).unwrap();
        set_times(&mut json, &self.clock);
        let id = swapped.blob_id(&swapped.metadata_location).unwrap();
        swapped.blobs().put(&id, Bytes::from(json.to_string()), PutCondition::Any).await.unwrap();
        Ok(self.inner.load(&table.ident).await.unwrap())
    }
}
