//! A catalog that goes wrong on demand.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use firn_table::{Catalog, LoadedTable, SqlCatalog, SwapError, TableError, TableIdent};
use futures::future::BoxFuture;
use iceberg::spec::{Snapshot, SnapshotReference, SnapshotRetention};
use iceberg::{TableRequirement, TableUpdate};

/// What happens instead of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    Goes,
    Conflict,
    /// Nobody knows, and it was not applied.
    Unknown,
    /// Who asks is not let in.
    Denied,
    /// No answer, ever.
    Hangs,
    Panics,
}

type SwapHook = Arc<dyn Fn(usize) -> BoxFuture<'static, Swap> + Send + Sync>;
type LoadHook = Arc<dyn Fn(usize) -> BoxFuture<'static, bool> + Send + Sync>;

/// Delegates to a real catalog. Calls are counted from 1.
pub struct FaultyCatalog {
    pub real: Arc<SqlCatalog>,
    on_swap: Mutex<Option<SwapHook>>,
    on_load: Mutex<Option<LoadHook>>,
    swaps: AtomicUsize,
    loads: AtomicUsize,
    read_only: AtomicBool,
    shut: AtomicBool,
}

impl FaultyCatalog {
    pub fn new(real: Arc<SqlCatalog>) -> Arc<Self> {
        Arc::new(Self {
            real,
            on_swap: Mutex::default(),
            on_load: Mutex::default(),
            swaps: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            read_only: AtomicBool::new(false),
            shut: AtomicBool::new(false),
        })
    }

    /// From now on the catalog says that it takes no commits.
    pub fn becomes_read_only(&self) {
        self.read_only.store(true, Ordering::SeqCst);
    }

    /// Whether the catalog lets nobody in.
    pub fn shuts(&self, shut: bool) {
        self.shut.store(shut, Ordering::SeqCst);
    }

    /// From now on every swap first asks `hook`, counted anew.
    pub fn on_swap(&self, hook: impl Fn(usize) -> BoxFuture<'static, Swap> + Send + Sync + 'static) {
        self.swaps.store(0, Ordering::SeqCst);
        *self.on_swap.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Every swap ends like this.
    pub fn swaps(&self, swap: Swap) {
        self.on_swap(move |_| Box::pin(async move { swap }));
    }

    /// From now on every load first asks `hook` whether it works, counted anew.
    pub fn on_load(&self, hook: impl Fn(usize) -> BoxFuture<'static, bool> + Send + Sync + 'static) {
        self.loads.store(0, Ordering::SeqCst);
        *self.on_load.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Loads from number `first` on fail.
    pub fn loads_fail_from(&self, first: usize) {
        self.on_load(move |n| Box::pin(async move { n < first }));
    }

    pub fn heal(&self) {
        *self.on_swap.lock().unwrap() = None;
        *self.on_load.lock().unwrap() = None;
    }
}

impl FaultyCatalog {
    /// Another writer's snapshot that changes nothing.
    async fn somebody_is_faster(&self, table: &LoadedTable) {
        let head = table.metadata.current_snapshot().unwrap();
        let id = i64::try_from(uuid::Uuid::new_v4().as_u128() >> 66).unwrap();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(Some(head.snapshot_id()))
            .with_sequence_number(table.metadata.next_sequence_number())
            .with_timestamp_ms(table.metadata.last_updated_ms() + 1)
            .with_manifest_list(head.manifest_list())
            .with_summary(head.summary().clone())
            .with_schema_id(table.metadata.current_schema_id())
            .build();
        let retention =
            SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        let reference = SnapshotReference::new(id, retention);
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef { ref_name: "main".into(), reference },
        ];
        // It may be somebody else who is faster than somebody.
        let _ = self.real.swap(table, updates, Vec::new()).await;
    }
}

impl fmt::Debug for FaultyCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyCatalog")
    }
}

#[async_trait]
impl Catalog for FaultyCatalog {
    fn name(&self) -> &str {
        self.real.name()
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        if self.shut.load(Ordering::SeqCst) {
            return Err(TableError::CatalogDenied {
                catalog: "lake".into(),
                detail: "HTTP 401: check catalog.auth".into(),
            });
        }
        let hook = self.on_load.lock().unwrap().clone();
        let number = self.loads.fetch_add(1, Ordering::SeqCst) + 1;
        match hook {
            Some(hook) if !hook(number).await => {
                Err(TableError::CatalogUnavailable { catalog: "lake".into(), source: "down".into() })
            }
            _ => {
                let mut table = self.real.load(ident).await?;
                table.read_only = self.read_only.load(Ordering::SeqCst).then(|| "this catalog is a view".into());
                Ok(table)
            }
        }
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.real.list_namespaces().await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.real.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        let hook = self.on_swap.lock().unwrap().clone();
        let number = self.swaps.fetch_add(1, Ordering::SeqCst) + 1;
        let swap = match hook {
            Some(hook) => hook(number).await,
            None => Swap::Goes,
        };
        let ident = table.ident.clone();
        match swap {
            Swap::Goes => self.real.swap(table, updates, requirements).await,
            Swap::Conflict => {
                self.somebody_is_faster(table).await;
                Err(SwapError::Conflict { ident, detail: "somebody was faster".into() })
            }
            Swap::Unknown => Err(SwapError::Unknown { ident, source: "no answer".into() }),
            Swap::Denied => Err(SwapError::Denied { ident, source: "HTTP 403".into() }),
            Swap::Hangs => std::future::pending().await,
            Swap::Panics => panic!("a fault of the program"),
        }
    }
}
