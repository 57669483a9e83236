//! A catalog that could not be opened yet, because it does not answer or does not let Firn in.
//!
//! A host that starts meanwhile gets messages all the same. If it could not even look at them, they would be delivered until they are poison;
//! with this catalog each of them is told to come again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::{TableRequirement, TableUpdate};
use tokio::sync::OnceCell;

use super::Catalog;
use crate::error::{NextStep, SwapError, TableError};
use crate::ident::TableIdent;
use crate::loaded::LoadedTable;

type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Catalog>, TableError>> + Send>>;
type Open = Box<dyn Fn() -> Opening + Send + Sync>;

/// Opens a catalog now, or where that only fails for now, at its first use and at each one after that until it has opened.
///
/// # Errors
/// Those of `open` that do not pass.
pub async fn open_or_later<F>(
    name: &str,
    open: impl Fn() -> F + Send + Sync + 'static,
) -> Result<Arc<dyn Catalog>, TableError>
where
    F: Future<Output = Result<Arc<dyn Catalog>, TableError>> + Send + 'static,
{
    match open().await {
        Err(error) if error.next_step() == NextStep::Retry => {
            tracing::error!("the catalog is opened when it is used: {error}");
            let open: Open = Box::new(move || -> Opening { Box::pin(open()) });
            Ok(Arc::new(Later { name: name.to_owned(), open, opened: OnceCell::new() }))
        }
        opened => opened,
    }
}

struct Later {
    name: String,
    open: Open,
    /// None of a try that failed is kept.
    opened: OnceCell<Arc<dyn Catalog>>,
}

impl Later {
    async fn opened(&self) -> Result<&Arc<dyn Catalog>, TableError> {
        self.opened.get_or_try_init(|| (self.open)()).await
    }
}

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Later").field("name", &self.name).field("opened", &self.opened.get()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Catalog for Later {
    fn name(&self) -> &str {
        self.opened.get().map_or(self.name.as_str(), |opened| opened.name())
    }

    fn read_only(&self) -> Option<&str> {
        self.opened.get().and_then(|opened| opened.read_only())
    }

    async fn load(&self, ident: &TableIdent) -> Result<LoadedTable, TableError> {
        self.opened().await?.load(ident).await
    }

    async fn list_namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        self.opened().await?.list_namespaces().await
    }

    async fn list_tables(&self, namespace: &[String]) -> Result<Vec<String>, TableError> {
        self.opened().await?.list_tables(namespace).await
    }

    async fn swap(
        &self,
        table: &LoadedTable,
        updates: Vec<TableUpdate>,
        requirements: Vec<TableRequirement>,
    ) -> Result<LoadedTable, SwapError> {
        match self.opened().await {
            Ok(opened) => opened.swap(table, updates, requirements).await,
            Err(error) => Err(SwapError::NotSent { ident: table.ident.clone(), source: error.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::testing::{Lake, Shape, ident};

    fn denied() -> TableError {
        TableError::CatalogDenied { catalog: "lake".into(), detail: "HTTP 401".into() }
    }

    #[tokio::test]
    async fn it_opens_when_it_can() {
        let lake = Lake::new().await;
        lake.create("t", Shape::partitioned(&[])).await;
        let (real, tries): (Arc<dyn Catalog>, _) = (Arc::new(lake.catalog.clone()), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&tries);
        let later = open_or_later("configured", move || {
            let (real, number) = (Arc::clone(&real), counted.fetch_add(1, Ordering::SeqCst) + 1);
            async move { if number < 3 { Err(denied()) } else { Ok(real) } }
        });
        let later = later.await.unwrap();
        assert_eq!((later.name(), tries.load(Ordering::SeqCst)), ("configured", 1));
        let error = later.load(&ident("t")).await.unwrap_err();
        assert_eq!(error.next_step(), NextStep::Retry, "{error}");
        let table = later.load(&ident("t")).await.unwrap();
        assert_eq!((later.name(), tries.load(Ordering::SeqCst)), (lake.catalog.name(), 3));
        let updates = HashMap::from([("k".to_owned(), "1".to_owned())]);
        let swapped = later.swap(&table, vec![TableUpdate::SetProperties { updates }], vec![]).await.unwrap();
        assert_eq!(swapped.property("k"), Some("1"));
        assert_eq!(later.list_tables(&["db".into()]).await.unwrap(), ["t"]);
        assert_eq!(tries.load(Ordering::SeqCst), 3, "opened once");
    }

    #[tokio::test]
    async fn nothing_is_sent_while_it_is_shut() {
        let lake = Lake::new().await;
        let table = lake.create("t", Shape::partitioned(&[])).await;
        let later = open_or_later("configured", || async { Err(denied()) }).await.unwrap();
        let error = later.swap(&table, vec![], vec![]).await.unwrap_err();
        assert!(matches!(error, SwapError::NotSent { .. }) && error.to_string().contains("HTTP 401"), "{error}");
        assert!(later.list_namespaces().await.is_err());
    }

    #[tokio::test]
    async fn what_does_not_pass_is_said_at_once() {
        let absent = || TableError::CatalogAbsent { catalog: "lake".into(), detail: "no such file".into() };
        let error = open_or_later("configured", move || async move { Err(absent()) }).await.unwrap_err();
        assert_eq!(error.next_step(), NextStep::Absent, "{error}");
    }
}
