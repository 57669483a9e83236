//! Tables beside this one: a folder that two share cannot be cleaned, because the files of one are nobody's to the other.

use std::collections::HashMap;

use firn_storage::{BlobStore, StorageError};
use firn_table::{Catalog, LoadedTable, TableError, TableIdent, TablePlaces};
use futures::{StreamExt, TryStreamExt, stream};

use crate::sweep::class::is_metadata_file;
use crate::sweep::places::{Folder, Places};
use crate::sweep::stop::SweepStop;

/// Tables loaded at the same time.
const LOADS: usize = 8;
/// Files of a folder above the table that are looked through for the metadata of another table.
const LOOKED_THROUGH: usize = 5_000;

/// Where the tables of the catalog lie, in all of its namespaces: tables with a data path of their own share it across them. Kept for one
/// pass.
#[derive(Debug, Default)]
pub struct Neighbours {
    places: HashMap<TableIdent, Result<Places, String>>,
    /// Every table of the catalog, once they were listed.
    tables: Option<Vec<TableIdent>>,
}

impl Neighbours {
    /// Checks that no other table lies in a folder of `table`; `configured` are the tables of the datasets.
    ///
    /// # Errors
    /// [`SweepStop`] when one does, or when it cannot be known.
    pub async fn check(
        &mut self,
        catalog: &dyn Catalog,
        table: &LoadedTable,
        places: &Places,
        configured: &[TableIdent],
    ) -> Result<(), SweepStop> {
        let known = match &self.tables {
            Some(known) => known,
            None => self.tables.insert(every_table(catalog).await?),
        };
        if !known.contains(&table.ident) {
            return Err(SweepStop::NotListed { table: table.ident.clone() });
        }
        self.places.insert(table.ident.clone(), Ok(places.clone()));
        let mut idents: Vec<TableIdent> = known.iter().chain(configured).cloned().collect();
        idents.retain(|ident| !self.places.contains_key(ident));
        let loads = stream::iter(idents).map(|ident| async move {
            let loaded = catalog.load(&ident).await;
            (ident, loaded)
        });
        let mut loads = loads.buffer_unordered(LOADS);
        while let Some((ident, loaded)) = loads.next().await {
            let found = match loaded {
                Ok(other) => places_of(&other).map_err(|error| error.to_string()),
                Err(TableError::TableAbsent { .. }) => continue,
                Err(error) => Err(error.to_string()),
            };
            self.places.insert(ident, found);
        }
        for (other, found) in self.places.iter().filter(|(other, _)| **other != table.ident) {
            match found {
                Ok(theirs) => {
                    if let Some((mine, its)) = places.overlap(theirs) {
                        return Err(SweepStop::Shared {
                            mine: mine.to_string(),
                            its: its.to_string(),
                            other: other.clone(),
                        });
                    }
                }
                Err(detail) if places.reach_out() => {
                    return Err(SweepStop::NeighbourUnknown { other: other.clone(), detail: detail.clone() });
                }
                // In the table's own location another one would show by its metadata.
                Err(detail) => tracing::warn!(table = %other, detail, "a neighbour cannot be read"),
            }
        }
        Ok(())
    }
}

/// All tables of a catalog, or none.
async fn every_table(catalog: &dyn Catalog) -> Result<Vec<TableIdent>, SweepStop> {
    let unlisted = |source| SweepStop::NeighboursUnlisted { source };
    let namespaces = catalog.list_namespaces().await.map_err(unlisted)?;
    let lists = stream::iter(namespaces).map(|namespace| async move {
        let names = catalog.list_tables(&namespace).await.map_err(unlisted)?;
        let ident = |name: String| TableIdent::new(namespace.iter().cloned(), name);
        Ok::<_, SweepStop>(names.into_iter().map(ident).collect::<Vec<_>>())
    });
    let tables: Vec<Vec<TableIdent>> = lists.buffer_unordered(LOADS).try_collect().await?;
    Ok(tables.into_iter().flatten().collect())
}

/// The folders of a table.
///
/// # Errors
/// What is wrong with one of its paths.
pub fn places_of(table: &LoadedTable) -> Result<Places, SweepStop> {
    let of = TablePlaces::of(&table.metadata);
    Places::of(&of, |path| table.store.blob_id(path))
        .map_err(|source| SweepStop::UnknownUrl { path: of.location.clone(), source })
}

/// Checks that no folder above those of the table is that of another one, whichever catalog knows it.
///
/// # Errors
/// [`SweepStop::TableAround`], or what the store says.
pub async fn check_above(store: &dyn BlobStore, places: &Places) -> Result<(), SweepStop> {
    let mut above: Vec<Folder> = Vec::new();
    for folder in &places.listed {
        for parent in std::iter::successors(folder.parent(), Folder::parent) {
            let metadata = parent.below("metadata");
            if metadata != places.metadata && !above.contains(&metadata) {
                above.push(metadata);
            }
        }
    }
    let looks = stream::iter(above).map(|folder| async move { first_metadata_in(store, &folder).await });
    let found: Vec<Option<String>> = looks.buffered(LOADS).try_collect().await?;
    match found.into_iter().flatten().next() {
        None => Ok(()),
        Some(found) => Err(SweepStop::TableAround { found }),
    }
}

/// A metadata file directly in a folder.
async fn first_metadata_in(store: &dyn BlobStore, folder: &Folder) -> Result<Option<String>, SweepStop> {
    let mut listed = store.list(folder.prefix()).take(LOOKED_THROUGH);
    while let Some(blob) = listed.next().await {
        let blob = match blob {
            Ok(blob) => blob,
            // Not allowed to look there, or one odd name: whoever lies there is not seen, as with a catalog of its own.
            Err(error @ (StorageError::Denied { .. } | StorageError::Invalid { .. })) => {
                tracing::info!(%error, "passed over in the look for other tables");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let directly = folder.rest(&blob.id).is_some_and(|rest| !rest.contains('/') && is_metadata_file(rest));
        if directly {
            return Ok(Some(blob.id.to_string()));
        }
    }
    Ok(None)
}
