//! The live data files of a snapshot, manifest by manifest: memory holds the files of one manifest, however many the table has.

use std::vec::IntoIter;

use super::entry::{Content, Entry};
use super::head;
use super::manifests::{Selected, holds_deletes, reduce, select};
use crate::error::TableError;
use crate::loaded::LoadedTable;

/// A live data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    /// Path exactly as the manifest has it.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Record count.
    pub rows: u64,
    /// Its format, in lower case.
    pub format: String,
}

/// The live data files of the head of a branch, not read yet.
pub struct LiveFiles<'t> {
    table: &'t LoadedTable,
    snapshot_id: i64,
    sequence_number: i64,
    delete_files: u64,
    waiting: IntoIter<Selected>,
}

impl<'t> LiveFiles<'t> {
    /// Reads the manifest list of a branch's head; None when the table has no snapshot.
    ///
    /// # Errors
    /// [`TableError::BranchAbsent`], or what is wrong with the manifest list.
    pub async fn of(table: &'t LoadedTable, branch: &str) -> Result<Option<Self>, TableError> {
        let Some(snapshot) = head(table, branch)? else { return Ok(None) };
        let specs = table.spec_types()?;
        let manifests = table.manifests(snapshot).await?;
        let deletes = manifests.iter().filter(|manifest| holds_deletes(manifest));
        // A count that is not known is of at least one file where there may be any.
        let live = deletes.filter(|manifest| manifest.has_added_files() || manifest.has_existing_files());
        let count = |files: Option<u32>| u64::from(files.unwrap_or(1));
        let delete_files = live.map(|one| count(one.added_files_count) + count(one.existing_files_count)).sum();
        let selected = select(table, &specs, manifests, |manifest, _| !holds_deletes(manifest))?;
        Ok(Some(Self {
            table,
            snapshot_id: snapshot.snapshot_id(),
            sequence_number: snapshot.sequence_number(),
            delete_files,
            waiting: selected.into_iter(),
        }))
    }

    /// The snapshot.
    pub fn snapshot_id(&self) -> i64 {
        self.snapshot_id
    }

    /// Its sequence number.
    pub fn sequence_number(&self) -> i64 {
        self.sequence_number
    }

    /// Live delete files of the snapshot, by the counts of the manifest list.
    pub fn delete_files(&self) -> u64 {
        self.delete_files
    }

    /// The files of the next manifest; None after the last.
    ///
    /// # Errors
    /// What is wrong with the manifest.
    pub async fn next(&mut self) -> Result<Option<Vec<LiveFile>>, TableError> {
        let Some(manifest) = self.waiting.next() else { return Ok(None) };
        let each = |files: &mut Vec<LiveFile>, entry: Entry, _: &_| {
            if entry.content == Content::Data {
                let (size, rows, format) = (entry.size()?, entry.rows()?, entry.format()?);
                files.push(LiveFile { path: entry.path()?.to_owned(), size, rows, format });
            }
            Ok(())
        };
        let mut files = Vec::new();
        reduce(self.table, vec![manifest], Vec::new, each, |found| files = found).await?;
        Ok(Some(files))
    }
}

impl std::fmt::Debug for LiveFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveFiles")
            .field("snapshot_id", &self.snapshot_id)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::DataContentType;

    use crate::testing::{Lake, Shape, data, file, tuple};

    use super::*;

    #[tokio::test]
    async fn every_live_file_comes_once() {
        let lake = Lake::new().await;
        let table = lake.create("t", Shape::partitioned(&[])).await;
        assert!(LiveFiles::of(&table, "main").await.unwrap().is_none());
        let new = |name: &str| data(0, &format!("t/data/{name}"), tuple([]), 7, |_| {});
        let table = lake.append(&table, vec![new("a"), new("b")]).await;
        let table = lake.append(&table, vec![new("c")]).await;
        let mut live = LiveFiles::of(&table, "main").await.unwrap().unwrap();
        assert_eq!(Some(live.snapshot_id()), table.head("main").map(|head| head.snapshot_id()));
        assert_eq!(live.delete_files(), 0);
        let (mut names, mut manifests) = (Vec::new(), 0);
        while let Some(files) = live.next().await.unwrap() {
            manifests += 1;
            names.extend(files.iter().map(|file| file.path.rsplit_once('/').unwrap().1.to_owned()));
            assert!(files.iter().all(|file| file.format == "parquet" && file.rows == 10 && file.size == 7));
        }
        names.sort();
        assert_eq!((manifests, names), (2, ["a", "b", "c"].map(str::to_owned).to_vec()));
        assert!(matches!(LiveFiles::of(&table, "dev").await, Err(TableError::BranchAbsent { .. })));

        let delete = file(DataContentType::PositionDeletes, 0, "t/data/d", tuple([]), 3, |_| {});
        let table = lake.append(&table, vec![delete.clone(), delete]).await;
        let live = LiveFiles::of(&table, "main").await.unwrap().unwrap();
        assert_eq!(live.delete_files(), 2);
    }
}
