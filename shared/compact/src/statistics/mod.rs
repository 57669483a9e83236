//! Table statistics: the sketches of distinct values of all live data files of a snapshot, merged into one Puffin file that the table's
//! metadata names (Iceberg spec, "Table Statistics").
//!
//! - `eligible`: whether a snapshot gets any, with the reason where it does not;
//! - `sketches`: those of one data file, from its sidecar or by reading the file once.
//!
//! Statistics say something of all rows of a snapshot or are not written at all: a file without sketches is read, and a table with delete
//! files gets none. Memory does not grow with the files. A run that has no time left has kept what it read as sidecars; the next goes on.

mod eligible;
mod sketches;

use std::time::{Duration, Instant};

use firn_columnar::StopFlag;
use firn_config::Dataset;
use firn_sidecar::identity::FOLDER;
use firn_sidecar::{NdvUnion, OfSnapshot, SidecarColumn, SidecarColumns, SidecarError, SnapshotSketches};
use firn_storage::PutCondition;
use firn_table::{Catalog, LiveFiles, LoadedTable, StatisticsError, TableError, TableIdent, register_statistics};
use futures::{StreamExt, stream};
use iceberg::spec::{BlobMetadata, StatisticsFile};
use uuid::Uuid;

use crate::memory_budget::{MemoryBudget, Reservation};
pub use eligible::StatisticsOff;
use sketches::{FileSketches, Sketcher, SketchesError};

/// Ending of the names of statistics files, as Iceberg's own library has it.
pub const STATISTICS_ENDING: &str = "stats";
/// Sketches of files that wait for the union at once, at most: each is a request or two.
const MOST_AT_ONCE: usize = 16;
/// Memory for the union and what waits for it.
const MEMORY_BYTES: u64 = 64 << 20;
/// Memory of a run: that, and what reading files takes.
const RESERVED_MB: u64 = (MEMORY_BYTES >> 20) + sketches::SCANS_AT_ONCE as u64 * 16;
/// How often a run that waits for memory looks whether its time is up.
const LOOK: Duration = Duration::from_secs(1);

/// What statistics are made with.
#[derive(Debug)]
pub struct StatisticsJob<'a> {
    /// The catalog.
    pub catalog: &'a dyn Catalog,
    /// The dataset: its table, branch and `ndvColumns`.
    pub dataset: &'a Dataset,
    /// The memory of the process, of which a share is reserved before files are read; None: nobody else works in it.
    pub memory: Option<&'a MemoryBudget>,
    /// Set when the run has no more time, or is told to stop.
    pub stop: StopFlag,
}

/// How it ended.
#[derive(Debug)]
pub enum StatisticsOutcome {
    /// The snapshot has its statistics.
    Done,
    /// It gets none, or has them already.
    Left(StatisticsOff),
    /// The time of the run is used up. What was read is kept.
    Unfinished,
    /// It did not go through; nothing is lost, the next run tries again.
    Failed(StatisticsFailure),
}

/// Why statistics were not made.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsFailure {
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A data file cannot be read, so nothing can be said of all rows.
    #[error("`{path}` has no sketches and cannot be read: {detail}")]
    File {
        /// The data file.
        path: String,
        /// Why.
        detail: String,
    },
    /// The file of the statistics could not be made or written.
    #[error("the statistics file: {0}")]
    Write(SidecarError),
    /// They are not in the metadata.
    #[error(transparent)]
    Register(#[from] StatisticsError),
}

/// Distinct values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDistinct {
    /// The column.
    pub name: String,
    /// Its field id.
    pub field_id: i32,
    /// About how many different values it has, nulls not counted.
    pub distinct: u64,
}

/// What became of the statistics of a table.
#[derive(Debug)]
pub struct StatisticsReport {
    /// How it ended.
    pub outcome: StatisticsOutcome,
    /// The snapshot.
    pub snapshot_id: Option<i64>,
    /// The statistics file; set when it is registered.
    pub path: Option<String>,
    /// Its columns.
    pub columns: Vec<ColumnDistinct>,
    /// Columns of `ndvColumns` that cannot have a sketch, with the reason.
    pub left_out: Vec<String>,
    /// Data files counted.
    pub files: u64,
    /// Those of them that were read because they had no sketches.
    pub scanned: u64,
    /// Swaps that were sent.
    pub tries: u64,
    /// How long it took.
    pub started: Instant,
}

/// Makes the statistics of the head of the dataset's branch, unless it has them.
pub async fn table_statistics(job: &StatisticsJob<'_>) -> StatisticsReport {
    let mut report = StatisticsReport {
        outcome: StatisticsOutcome::Done,
        snapshot_id: None,
        path: None,
        columns: Vec::new(),
        left_out: Vec::new(),
        files: 0,
        scanned: 0,
        tries: 0,
        started: Instant::now(),
    };
    report.outcome = match run(job, &mut report).await {
        Ok(outcome) => outcome,
        Err(failure) => StatisticsOutcome::Failed(failure),
    };
    report
}

async fn run(job: &StatisticsJob<'_>, report: &mut StatisticsReport) -> Result<StatisticsOutcome, StatisticsFailure> {
    let ident = TableIdent::from(&job.dataset.table);
    let table = job.catalog.load(&ident).await?;
    let schema = table.arrow_schema()?;
    let resolved = SidecarColumns::resolve(&schema, &[], &[], &job.dataset.ndv_columns);
    report.left_out = resolved.left_out.into_iter().map(|(_, reason)| reason).collect();
    let columns = resolved.ndv;
    if let Some(off) = eligible::of_table(&table, &columns) {
        return Ok(StatisticsOutcome::Left(off));
    }
    let Some(live) = LiveFiles::of(&table, &job.dataset.branch).await? else {
        return Ok(StatisticsOutcome::Left(StatisticsOff::NoSnapshot));
    };
    report.snapshot_id = Some(live.snapshot_id());
    if let Some(off) = eligible::of_snapshot(&table, &live, &columns) {
        return Ok(StatisticsOutcome::Left(off));
    }
    let Some(_reserved) = reserved(job).await else { return Ok(StatisticsOutcome::Unfinished) };
    let sketcher = Sketcher::new(&table, schema, columns.clone(), job.stop.clone())?;
    let Some(sketches) = union(live, &sketcher, columns, report).await? else {
        return Ok(StatisticsOutcome::Unfinished);
    };
    let file = write(&table, &sketches).await.map_err(StatisticsFailure::Write)?;
    let retry_max = job.dataset.compaction.commit_retry_max;
    let registered = register_statistics(job.catalog, &table, &job.dataset.branch, &file, retry_max).await?;
    report.tries = registered.tries;
    report.path = Some(file.statistics_path);
    report.columns = distinct(&sketches);
    Ok(StatisticsOutcome::Done)
}

/// Waits for memory; None when the time was used up before there was any. Jobs that came first are served first.
async fn reserved(job: &StatisticsJob<'_>) -> Option<Option<Reservation>> {
    let Some(memory) = job.memory else { return Some(None) };
    let mut waiting = std::pin::pin!(memory.reserve(RESERVED_MB.min(memory.total_mb().into())));
    loop {
        match tokio::time::timeout(LOOK, &mut waiting).await {
            Ok(reserved) => return Some(Some(reserved)),
            Err(_) if job.stop.is_set() => return None,
            Err(_) => {}
        }
    }
}

/// The sketches of all files as one; None when the time is used up.
async fn union(
    mut live: LiveFiles<'_>,
    sketcher: &Sketcher<'_>,
    columns: Vec<SidecarColumn>,
    report: &mut StatisticsReport,
) -> Result<Option<SnapshotSketches>, StatisticsFailure> {
    let of = OfSnapshot { snapshot_id: live.snapshot_id(), sequence_number: live.sequence_number() };
    let at_once = at_once(columns.len());
    let mut union = NdvUnion::new(columns).map_err(StatisticsFailure::Write)?;
    while let Some(files) = live.next().await? {
        let mut waiting = stream::iter(files.into_iter().map(|file| sketcher.of_file(file))).buffer_unordered(at_once);
        while let Some(found) = waiting.next().await {
            let FileSketches { sketches, rows, scanned } = match found {
                Ok(found) => found,
                Err(SketchesError::Stopped) => return Ok(None),
                Err(SketchesError::File { path, detail }) => return Err(StatisticsFailure::File { path, detail }),
            };
            union.add(&sketches, rows).map_err(StatisticsFailure::Write)?;
            report.files += 1;
            report.scanned += u64::from(scanned);
        }
    }
    union.finish(of).map(Some).map_err(StatisticsFailure::Write)
}

/// How many files' sketches may wait for the union, so that all stays in [`MEMORY_BYTES`].
fn at_once(columns: usize) -> usize {
    (2..=MOST_AT_ONCE).rev().find(|files| NdvUnion::memory(columns, *files) <= MEMORY_BYTES).unwrap_or(1)
}

/// Uploads the statistics file beside the sidecars: sweeps know the place, and take what is registered nowhere.
async fn write(table: &LoadedTable, sketches: &SnapshotSketches) -> Result<StatisticsFile, SidecarError> {
    let name = format!("{}-{}.{STATISTICS_ENDING}", sketches.of.snapshot_id, Uuid::new_v4());
    let path = format!("{}/{FOLDER}/{name}", table.location().trim_end_matches('/'));
    let id = table.blob_id(&path).map_err(|error| SidecarError::Failed(error.to_string()))?;
    table.blobs().put(&id, sketches.bytes.clone(), PutCondition::IfAbsent).await?;
    let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    Ok(StatisticsFile {
        snapshot_id: sketches.of.snapshot_id,
        statistics_path: path,
        file_size_in_bytes: number(sketches.bytes.len() as u64),
        file_footer_size_in_bytes: number(sketches.footer_bytes),
        key_metadata: None,
        blob_metadata: sketches.blobs.iter().map(|blob| blob_metadata(blob, sketches.of)).collect(),
    })
}

fn blob_metadata(blob: &firn_sidecar::ndv::PuffinBlob, of: OfSnapshot) -> BlobMetadata {
    BlobMetadata {
        r#type: blob.kind.clone(),
        snapshot_id: of.snapshot_id,
        sequence_number: of.sequence_number,
        fields: blob.fields.clone(),
        properties: blob.properties.clone().into_iter().collect(),
    }
}

fn distinct(sketches: &SnapshotSketches) -> Vec<ColumnDistinct> {
    let columns = sketches.columns.iter().zip(&sketches.blobs);
    columns
        .map(|(column, blob)| ColumnDistinct {
            name: column.name.clone(),
            field_id: column.field_id,
            distinct: blob.ndv().unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_columns_leave_room_for_fewer_files() {
        assert_eq!([1, 20, 50, 150, 1000].map(at_once), [16, 16, 16, 3, 1]);
    }
}
