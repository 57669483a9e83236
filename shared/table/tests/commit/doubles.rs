//! A catalog whose swaps go wrong in a chosen way.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use firn_table::{Catalog, LoadedTable, SwapError, TableError, TableIdent};
use futures::future::BoxFuture;
use iceberg::{TableRequirement, TableUpdate};

use crate::lake::{Change, Lake};

/// How one swap goes.
pub enum Fault<'a> {
    /// Somebody else's change comes first.
    After(BoxFuture<'a, ()>),
    /// Applied, and the answer is lost.
    AppliedButLost,
    /// Lost on the way there.
    LostBefore,
    /// Applied, delivered again, and the second delivery refused.
    AppliedThenRefused,
    /// Answered with success and the unchanged table.
    Ignored,
    /// Refused.
    Refused,
    /// Nothing was sent.
    NotSent,
    /// Refused for good.
    Forbidden,
    /// Not accepted because of who asks.
    Denied,
    /// Applied, delivered again, and the second delivery not accepted.
    AppliedThenDenied,
    /// The next loads fail, and so does this, because of who asks.
    DeniedThenDown,
    /// Refused by a server that is still working on it, and applied before the next swap.
    RefusedWhileUnderWay,
    /// The next loads fail, then as `AppliedThenRefused`.
    AppliedThenRefusedThenDown,
}

/// Somebody else's snapshot on `main`, committed while a swap is on its way.
pub fn meanwhile(lake: &Lake, change: Change) -> Fault<'_> {
    Fault::After(Box::pin(async move {
        lake.commit("main", change).await;
    }))
}

/// A swap that was sent.
type UnderWay = (LoadedTable, Vec<TableUpdate>, Vec<TableRequirement>);

/// Faults for the first swaps, in order; later swaps and all else go to the catalog behind.
pub struct Faulty<'a> {
    pub behind: &'a dyn Catalog,
    faults: Mutex<VecDeque<Fault<'a>>>,
    down: Mutex<bool>,
    pub requirements: Mutex<Vec<Vec<TableRequirement>>>,
    under_way: Mutex<Option<UnderWay>>,
}

impl std::fmt::Debug for Faulty<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faulty")
    }
}

impl<'a> Faulty<'a> {
    pub fn new(behind: &'a dyn Catalog, faults: Vec<Fault<'a>>) -> Self {
        Self {
            behind,
            faults: Mutex::new(faults.into()),
            down: Mutex::new(false),
            requirements: Mutex::default(),
            under_way: Mutex::default(),
        }
    }

    /// Applies what is still under way.
    pub async fn land(&self) {
        let landed = self.under_way.lock().unwrap().take();
        if let Some((table, updates, requirements)) = landed {
            self.behind.swap(&table, updates, requirements).await.unwrap();
        }
    }
}

#[async_trait]
impl Catalog for Faulty<'_> {
    fn name(&self) -> &str {
        self.behind.name()
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        if *self.down.lock().unwrap() {
            return Err(TableError::CatalogUnavailable { catalog: "lake".into(), source: "down".into() });
        }
        self.behind.load(ident).await
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.behind.list_namespaces().await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.behind.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        self.requirements.lock().unwrap().push(requirements.clone());
        self.land().await;
        let ident = table.ident.clone();
        let fault = self.faults.lock().unwrap().pop_front();
        let conflict = || SwapError::Conflict { ident: ident.clone(), detail: "409".into() };
        let denied = || SwapError::Denied { ident: ident.clone(), source: "401".into() };
        let lost = || SwapError::Unknown { ident: ident.clone(), source: "502 Bad Gateway".into() };
        match fault {
            None => self.behind.swap(table, updates, requirements).await,
            Some(Fault::After(change)) => {
                change.await;
                self.behind.swap(table, updates, requirements).await
            }
            Some(Fault::AppliedButLost) => {
                self.behind.swap(table, updates, requirements).await?;
                Err(lost())
            }
            Some(Fault::LostBefore) => Err(lost()),
            Some(Fault::AppliedThenRefused) => {
                self.behind.swap(table, updates, requirements).await?;
                Err(conflict())
            }
            Some(Fault::AppliedThenRefusedThenDown) => {
                self.behind.swap(table, updates, requirements).await?;
                *self.down.lock().unwrap() = true;
                Err(conflict())
            }
            Some(Fault::Ignored) => Ok(table.clone()),
            Some(Fault::Refused) => Err(conflict()),
            Some(Fault::RefusedWhileUnderWay) => {
                *self.under_way.lock().unwrap() = Some((table.clone(), updates, requirements));
                Err(conflict())
            }
            Some(Fault::NotSent) => Err(SwapError::NotSent { ident, source: "no route".into() }),
            Some(Fault::Forbidden) => Err(SwapError::Permanent { ident, source: "403".into() }),
            Some(Fault::Denied) => Err(denied()),
            Some(Fault::AppliedThenDenied) => {
                self.behind.swap(table, updates, requirements).await?;
                Err(denied())
            }
            Some(Fault::DeniedThenDown) => {
                *self.down.lock().unwrap() = true;
                Err(denied())
            }
        }
    }
}
