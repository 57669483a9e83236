//! The real catalog, with the times of metadata by the clock of the test: the library takes them from the machine.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use firn_storage::{Clock, PutCondition};
use firn_table::{Catalog, LoadedTable, SqlCatalog, SwapError, TableError, TableIdent};
use futures::future::BoxFuture;
use iceberg::{TableRequirement, TableUpdate};
use serde_json::Value;

use crate::lake::Lake;

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

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.inner.list_namespaces().await
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

/// What becomes of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// Another writer is faster.
    Conflict,
    /// It is applied, and the answer is lost.
    Applied,
    /// It is lost, and so is the answer.
    Lost,
    /// There was no connection.
    NotSent,
    /// The catalog does not take it.
    Refused,
}

/// What the catalog says of its namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Namespaces {
    #[default]
    All,
    /// Only these.
    Only(Vec<Vec<String>>),
    /// It does not say.
    Denied,
    /// It never answers.
    Hang,
}

/// Something that happens right before a load.
pub type Hook<'a> = Box<dyn Fn() -> BoxFuture<'a, ()> + Send + Sync + 'a>;

/// The catalog of a lake, which does as a test says.
pub struct Scripted<'a> {
    pub lake: &'a Lake,
    pub read_only: Option<&'static str>,
    pub namespaces: Namespaces,
    /// What becomes of the next swaps; then they go through.
    pub swaps: Mutex<VecDeque<Swap>>,
    /// Swaps that were sent.
    pub sent: AtomicU64,
    pub loads: AtomicU64,
    /// Before the load of this number.
    pub at_load: Option<(u64, Hook<'a>)>,
    /// Before each load.
    pub at_each_load: Option<Hook<'a>>,
    /// Before the swap of this number is judged.
    pub at_swap: Option<(u64, Hook<'a>)>,
}

impl<'a> Scripted<'a> {
    pub fn new(lake: &'a Lake) -> Self {
        Self {
            lake,
            read_only: None,
            namespaces: Namespaces::All,
            swaps: Mutex::default(),
            sent: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            at_load: None,
            at_each_load: None,
            at_swap: None,
        }
    }

    pub fn swapping(lake: &'a Lake, swaps: &[Swap]) -> Self {
        Self { swaps: Mutex::new(swaps.iter().copied().collect()), ..Self::new(lake) }
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Scripted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

#[async_trait]
impl Catalog for Scripted<'_> {
    fn name(&self) -> &str {
        "lake"
    }

    fn read_only(&self) -> Option<&str> {
        self.read_only
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        let number = self.loads.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(hook) = &self.at_each_load {
            hook().await;
        }
        if let Some((_, hook)) = self.at_load.as_ref().filter(|(at, _)| *at == number) {
            hook().await;
        }
        let loaded = self.lake.catalog.load(ident).await?;
        Ok(LoadedTable { read_only: self.read_only.map(Into::into), ..loaded })
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        match &self.namespaces {
            Namespaces::All => self.lake.catalog.list_namespaces().await,
            Namespaces::Only(these) => Ok(these.clone()),
            Namespaces::Denied => {
                Err(TableError::CatalogAbsent { catalog: "lake".into(), detail: "403 ForbiddenException".into() })
            }
            Namespaces::Hang => std::future::pending().await,
        }
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.lake.catalog.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((_, hook)) = self.at_swap.as_ref().filter(|(at, _)| *at == number) {
            hook().await;
        }
        let ident = table.ident.clone();
        let lost = |ident| SwapError::Unknown { ident, source: "502 Bad Gateway".into() };
        let swap = self.swaps.lock().unwrap().pop_front();
        match swap {
            None => self.lake.catalog.swap(table, updates, requirements).await,
            Some(Swap::Conflict) => Err(SwapError::Conflict { ident, detail: "409".into() }),
            Some(Swap::Applied) => {
                self.lake.catalog.swap(table, updates, requirements).await?;
                Err(lost(ident))
            }
            Some(Swap::Lost) => Err(lost(ident)),
            Some(Swap::NotSent) => Err(SwapError::NotSent { ident, source: "connection refused".into() }),
            Some(Swap::Refused) => Err(SwapError::Permanent { ident, source: "400".into() }),
        }
    }
}
