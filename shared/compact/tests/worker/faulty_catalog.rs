//! A catalog that goes wrong on demand.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use firn_table::{Catalog, LoadedTable, SqlCatalog, SwapError, TableError, TableIdent};
use futures::future::BoxFuture;
use iceberg::{TableRequirement, TableUpdate};

/// What happens instead of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    Goes,
    Conflict,
    /// Nobody knows, and it was not applied.
    Unknown,
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
}

impl FaultyCatalog {
    pub fn new(real: Arc<SqlCatalog>) -> Arc<Self> {
        Arc::new(Self {
            real,
            on_swap: Mutex::default(),
            on_load: Mutex::default(),
            swaps: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
        })
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
        let hook = self.on_load.lock().unwrap().clone();
        let number = self.loads.fetch_add(1, Ordering::SeqCst) + 1;
        match hook {
            Some(hook) if !hook(number).await => {
                Err(TableError::CatalogUnavailable { catalog: "lake".into(), source: "down".into() })
            }
            _ => self.real.load(ident).await,
        }
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
            Swap::Conflict => Err(SwapError::Conflict { ident, detail: "somebody was faster".into() }),
            Swap::Unknown => Err(SwapError::Unknown { ident, source: "no answer".into() }),
            Swap::Hangs => std::future::pending().await,
            Swap::Panics => panic!("a fault of the program"),
        }
    }
}
