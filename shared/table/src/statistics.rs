//! A statistics file of a snapshot into the metadata (Iceberg spec, "Table Statistics"): one commit, no snapshot of its own.

use iceberg::spec::StatisticsFile;
use iceberg::{TableRequirement, TableUpdate};

use crate::catalog::Catalog;
use crate::commit::CommitPolicy;
use crate::error::{SwapError, TableError};
use crate::loaded::LoadedTable;

/// Statistics that are in the metadata.
#[derive(Debug)]
pub struct Registered {
    /// The version that has them.
    pub table: LoadedTable,
    /// Swaps that were sent.
    pub tries: u64,
}

/// Why statistics are not registered. The file is an orphan then, and a sweep takes it; only [`StatisticsError::Unknown`] leaves open
/// whether the metadata names it.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// The snapshot is no longer in the metadata. Next: make those of a newer one.
    #[error("snapshot {snapshot} was expired before its statistics were registered")]
    SnapshotGone {
        /// The snapshot.
        snapshot: i64,
    },
    /// Somebody else registered statistics of the snapshot first. Next: leave theirs.
    #[error("snapshot {snapshot} got statistics of another program meanwhile: `{path}`")]
    AnotherFile {
        /// The snapshot.
        snapshot: i64,
        /// Their file.
        path: String,
    },
    /// Other writers were faster, again and again. Next: the next run.
    #[error("other writers changed the table in each of {tries} tries: {last}; the next run tries again")]
    Conflicts {
        /// Tries.
        tries: u64,
        /// What the last one met.
        last: String,
    },
    /// The answer to the last try was lost, and so were those before. Next: the next run, which sees whether it was applied.
    #[error("whether the statistics were registered is not known after {tries} tries: {last}")]
    Unknown {
        /// Tries.
        tries: u64,
        /// What the last one met.
        last: String,
    },
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The catalog did not take it.
    #[error(transparent)]
    Refused(SwapError),
}

/// What is done next about the statistics of a snapshot. Pure.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// They are there.
    Registered,
    /// They have to be sent, with the file that stands there now replaced if it is one that the caller saw.
    Send,
    SnapshotGone,
    AnotherFile(String),
}

/// `replaces` is the file that the snapshot had when this began.
fn next(table: &LoadedTable, file: &StatisticsFile, replaces: Option<&str>) -> Next {
    let metadata = &table.metadata;
    if metadata.snapshot_by_id(file.snapshot_id).is_none() {
        return Next::SnapshotGone;
    }
    match metadata.statistics_for_snapshot(file.snapshot_id).map(|known| known.statistics_path.as_str()) {
        Some(path) if path == file.statistics_path => Next::Registered,
        Some(path) if Some(path) != replaces => Next::AnotherFile(path.to_owned()),
        _ => Next::Send,
    }
}

/// Registers the statistics file of a snapshot of `branch`, in place of the one that `table` has for it. After a conflict or a lost answer
/// the table is loaded again and looked at: to register twice is to register once.
///
/// # Errors
/// See [`StatisticsError`].
pub async fn register_statistics(
    catalog: &dyn Catalog,
    table: &LoadedTable,
    branch: &str,
    file: &StatisticsFile,
    retry_max: u64,
) -> Result<Registered, StatisticsError> {
    let replaces = table.metadata.statistics_for_snapshot(file.snapshot_id).map(|known| known.statistics_path.clone());
    let (mut tries, waits) = (0, CommitPolicy::default());
    let mut last: Option<SwapError> = None;
    for attempt in 0..=retry_max {
        if attempt > 0 {
            tokio::time::sleep(waits.wait(attempt)).await;
        }
        let newest = catalog.load(&table.ident).await?;
        if newest.metadata.uuid() != table.metadata.uuid() {
            return Err(StatisticsError::SnapshotGone { snapshot: file.snapshot_id });
        }
        match next(&newest, file, replaces.as_deref()) {
            Next::Registered => return Ok(Registered { table: newest, tries }),
            Next::SnapshotGone => return Err(StatisticsError::SnapshotGone { snapshot: file.snapshot_id }),
            Next::AnotherFile(path) => return Err(StatisticsError::AnotherFile { snapshot: file.snapshot_id, path }),
            Next::Send => {}
        }
        tries += 1;
        let update = TableUpdate::SetStatistics { statistics: file.clone() };
        match catalog.swap(&newest, vec![update], requirements(&newest, branch, file.snapshot_id)).await {
            Ok(table) if next(&table, file, replaces.as_deref()) == Next::Registered => {
                return Ok(Registered { table, tries });
            }
            Ok(_) => {
                let detail = "the catalog took the statistics and does not have them".to_owned();
                last = Some(SwapError::Conflict { ident: table.ident.clone(), detail });
            }
            Err(error @ (SwapError::Conflict { .. } | SwapError::Unknown { .. } | SwapError::NotSent { .. })) => {
                tracing::info!(table = %table.ident, %error, "registering statistics is tried again");
                last = Some(error);
            }
            Err(error) => return Err(StatisticsError::Refused(error)),
        }
    }
    // The last try may have been applied.
    if let Ok(newest) = catalog.load(&table.ident).await
        && next(&newest, file, replaces.as_deref()) == Next::Registered
    {
        return Ok(Registered { table: newest, tries });
    }
    let unknown = matches!(last, Some(SwapError::Unknown { .. }));
    let last = last.map(|error| error.to_string()).unwrap_or_default();
    Err(if unknown { StatisticsError::Unknown { tries, last } } else { StatisticsError::Conflicts { tries, last } })
}

/// While the snapshot is the head of its branch nobody can expire it; that it still is the head is asked of the catalog. An older one may
/// be expired at the same moment where the catalog judges by requirements alone; what that leaves, the next expiry removes.
fn requirements(table: &LoadedTable, branch: &str, snapshot: i64) -> Vec<TableRequirement> {
    let mut requirements = vec![TableRequirement::UuidMatch { uuid: table.metadata.uuid() }];
    if table.head(branch).is_some_and(|head| head.snapshot_id() == snapshot) {
        requirements
            .push(TableRequirement::RefSnapshotIdMatch { r#ref: branch.to_owned(), snapshot_id: Some(snapshot) });
    }
    requirements
}

#[cfg(test)]
mod tests {
    use iceberg::spec::FormatVersion;

    use super::*;
    use crate::testing::{Lake, Shape, data, tuple};

    fn file(snapshot_id: i64, path: &str) -> StatisticsFile {
        StatisticsFile {
            snapshot_id,
            statistics_path: path.to_owned(),
            file_size_in_bytes: 100,
            file_footer_size_in_bytes: 60,
            key_metadata: None,
            blob_metadata: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_next_step_depends_on_what_the_newest_version_has() {
        for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
            let lake = Lake::new().await;
            let table = lake.create("t", Shape::partitioned(&[]).version(version)).await;
            let table = lake.append(&table, vec![data(0, "t/data/a", tuple([]), 7, |_| {})]).await;
            let id = table.head("main").unwrap().snapshot_id();
            assert_eq!(next(&table, &file(id, "a"), None), Next::Send);
            assert_eq!(next(&table, &file(id + 1, "a"), None), Next::SnapshotGone);
            let done = register_statistics(&lake.catalog, &table, "main", &file(id, "a"), 0).await.unwrap();
            assert_eq!(done.tries, 1);
            let table = done.table;
            assert_eq!(next(&table, &file(id, "a"), None), Next::Registered);
            assert_eq!(next(&table, &file(id, "b"), None), Next::AnotherFile("a".into()));
            assert_eq!(next(&table, &file(id, "b"), Some("a")), Next::Send);
            // Again: nothing is sent.
            let again = register_statistics(&lake.catalog, &table, "main", &file(id, "a"), 0).await.unwrap();
            assert_eq!((again.tries, again.table.metadata_location), (0, table.metadata_location.clone()));
            let replaced = register_statistics(&lake.catalog, &table, "main", &file(id, "b"), 0).await.unwrap();
            let paths: Vec<_> =
                replaced.table.metadata.statistics_iter().map(|file| file.statistics_path.clone()).collect();
            assert_eq!(paths, ["b"], "a snapshot has one");
        }
    }
}
