//! Text indexes for data files that are not merged: beside them, without writing them again (compactor specification, "Text index backfill").
//!
//! A file gets an index once. One that cannot have one, or was written by somebody whose files get none, gets a note `<uuid>.none` with the
//! reason and what that rests on, so that no later pass reads it again before something has changed. What may go better another time (a full
//! disk, the store) leaves neither.

mod build;
mod settled;

use std::collections::HashSet;

use firn_config::Dataset;
use firn_model::{BlobId, FileFacts, Outcome, Rule};
use firn_plan::IndexNeed;
use firn_sidecar::identity::marker_id;
use firn_sidecar::note::NOTE_ENDING;
use firn_sidecar::{Built, DataFile, DecidedOn, NoIndex, SidecarColumns, SidecarError, SidecarKind, sidecar_id};
use firn_storage::{BlobStore, StorageError};
use firn_table::{LoadedTable, sidecar_uuid};
use firn_telemetry::SidecarCounts;
use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use crate::control::RunControl;
use crate::partition::{PartitionJob, Prepared, Unprepared, prepare};
use crate::report::PartitionReport;
use crate::services::Services;
use build::{IndexWork, Verdict};
pub use settled::{SettledFiles, decided_on};

/// Files that the store is asked about at once.
const ASKED_AT_ONCE: usize = 16;

/// Whether a run by `rule` looks for files of `dataset` without a text index: on schedule, by hand, and when that alone is asked for.
pub fn backfills(rule: Rule, dataset: &Dataset) -> bool {
    let asks = matches!(rule, Rule::Schedule | Rule::Manual | Rule::Full | Rule::Backfill);
    asks && !dataset.indexing_columns.is_empty()
}

/// Indexes the files of a partition that were there `before` the run began and have no index yet: those that the run wrote itself had
/// their turn.
pub(crate) async fn backfill(
    services: &Services,
    job: &PartitionJob<'_>,
    control: &RunControl,
    before: &HashSet<String>,
    report: &mut PartitionReport,
) {
    if !matches!(report.outcome, Outcome::Done | Outcome::Left | Outcome::Superseded) {
        return;
    }
    let mut done = Done::default();
    if let Err(reason) = run(services, job, control, before, &mut done).await {
        done.drop_one(reason);
    }
    done.tell(report);
}

/// What backfill did in a partition.
#[derive(Default)]
struct Done {
    counts: SidecarCounts,
    /// Files that wait for another run: the time was up.
    waiting: usize,
}

impl Done {
    fn drop_one(&mut self, reason: String) {
        tracing::warn!(reason, "a data file gets no text index in this run");
        self.counts.dropped += 1;
        self.explain(reason);
    }

    fn explain(&mut self, reason: String) {
        let reason = format!("{}: {reason}", SidecarKind::Text);
        if !self.counts.reasons.contains(&reason) {
            self.counts.reasons.push(reason);
        }
    }

    fn tell(self, report: &mut PartitionReport) {
        let Done { counts, waiting } = self;
        if counts == SidecarCounts::default() && waiting == 0 {
            return;
        }
        let mut said = format!("{} text indexes built beside files that are not merged", counts.written);
        if counts.noted > 0 {
            said += &format!(", {} files noted as without", counts.noted);
        }
        if counts.dropped > 0 {
            said += &format!(", {} failed", counts.dropped);
        }
        let settled = counts.written + counts.noted > 0;
        report.sidecars.get_or_insert_default().add(&counts);
        if waiting > 0 {
            report.waiting_groups += waiting;
            report.end(
                Outcome::Retry,
                format!("the time of this run was up; {waiting} files wait for a text index; {said}"),
            );
        } else if report.outcome == Outcome::Left && settled {
            report.end(Outcome::Done, said);
        } else {
            report.reason = format!("{}; {said}", report.reason);
        }
    }
}

async fn run(
    services: &Services,
    job: &PartitionJob<'_>,
    control: &RunControl,
    before: &HashSet<String>,
    done: &mut Done,
) -> Result<(), String> {
    let Prepared { table, facts, settings, .. } = match prepare(services, job).await {
        Ok(prepared) => prepared,
        Err(Unprepared::Later(reason) | Unprepared::Failed(reason)) => return Err(reason),
    };
    if !table.is_enabled() || table.read_only.is_some() {
        return Ok(());
    }
    let schema = table.arrow_schema().map_err(|error| error.to_string())?;
    let columns = SidecarColumns::resolve(&schema, &job.dataset.indexing_columns, &[], &[]);
    if columns.is_empty() {
        return Ok(());
    }
    let location = table.blob_id(table.location()).map_err(|error| error.to_string())?;
    let files: Vec<FileFacts> = facts.files.into_iter().filter(|file| before.contains(&file.path)).collect();
    let now = decided_on(job.dataset, &columns);
    let files = missing(&table, &location, files, settings.target_bytes, &now).await?;
    for (at, file) in files.iter().enumerate() {
        if services.stop.is_set() || control.is_past_deadline() {
            done.waiting = files.len() - at;
            return Ok(());
        }
        let work = IndexWork::new(services, control, job.dataset, &table, &schema, &columns, &settings, file);
        let verdict = match work {
            Ok(work) => work.run_on_own_thread().await,
            Err(reason) => Verdict::Later(reason),
        };
        settle(&table, &location, file, verdict, &now, done).await?;
    }
    Ok(())
}

/// The files that need an index, in their order.
async fn missing(
    table: &LoadedTable,
    location: &BlobId,
    files: Vec<FileFacts>,
    target_bytes: u64,
    now: &DecidedOn,
) -> Result<Vec<FileFacts>, String> {
    let asked = stream::iter(files).map(async |file| {
        let need = IndexNeed::of(&file, target_bytes, false);
        if need != IndexNeed::Missing {
            return Ok(None);
        }
        let settled = settled::is_settled(table, location, &file, now).await?;
        Ok::<_, String>((!settled).then_some(file))
    });
    asked.buffered(ASKED_AT_ONCE).try_filter_map(async |file| Ok(file)).try_collect().await
}

/// Writes the index or the note of a file.
async fn settle(
    table: &LoadedTable,
    location: &BlobId,
    file: &FileFacts,
    verdict: Verdict,
    now: &DecidedOn,
    done: &mut Done,
) -> Result<(), String> {
    let id = table.blob_id(&file.path).map_err(|error| error.to_string())?;
    let (uuid, data) = (sidecar_uuid(&id), DataFile::new(&id, file.size, file.rows));
    let store = &**table.blobs();
    match verdict {
        Verdict::Built(built) => match write(&built, store, location, &uuid, &data).await {
            Ok(Some(bytes)) => {
                done.counts.written += 1;
                done.counts.bytes += bytes;
                done.counts.build_ms += u64::try_from(built.time.as_millis()).unwrap_or(u64::MAX);
            }
            Ok(None) => {}
            Err(error) => done.drop_one(error.to_string()),
        },
        Verdict::Note(reason) => {
            done.explain(reason.clone());
            let note = NoIndex::new(data, reason, now.clone());
            match note.write(store, &marker_id(location, &uuid, NOTE_ENDING)).await {
                Ok(()) => done.counts.noted += 1,
                Err(error) => done.drop_one(error.to_string()),
            }
        }
        Verdict::Later(reason) => done.drop_one(reason),
    }
    Ok(())
}

/// Bytes that were written; None when another run was faster.
async fn write(
    built: &Built,
    store: &dyn BlobStore,
    location: &BlobId,
    uuid: &Uuid,
    data: &DataFile,
) -> Result<Option<u64>, SidecarError> {
    match built.write(store, &sidecar_id(location, uuid, built.kind), data).await {
        Ok(properties) => Ok(Some(properties.size)),
        Err(SidecarError::Storage(StorageError::AlreadyExists { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_where_the_partition_is_told() {
        let mut report = PartitionReport::idle(Outcome::Left, "rule backfill merges nothing", 3);
        let counts = SidecarCounts { written: 2, noted: 1, ..SidecarCounts::default() };
        let mut done = Done { counts, waiting: 0 };
        done.explain("written by `x`".into());
        done.tell(&mut report);
        assert_eq!(report.outcome, Outcome::Done);
        assert_eq!(report.reason, "2 text indexes built beside files that are not merged, 1 files noted as without");
        assert_eq!(report.sidecars.unwrap().reasons, ["full-text index: written by `x`"]);

        let mut report = PartitionReport::idle(Outcome::Left, "nothing to merge", 3);
        Done::default().tell(&mut report);
        assert_eq!((report.outcome, report.reason.as_str()), (Outcome::Left, "nothing to merge"));
        let mut done = Done::default();
        done.drop_one("the store is away".into());
        done.tell(&mut report);
        assert_eq!(report.outcome, Outcome::Left, "a later pass tries again");

        let mut report = PartitionReport::idle(Outcome::Done, "10 small files", 10);
        Done { waiting: 2, ..Done::default() }.tell(&mut report);
        assert_eq!((report.outcome, report.waiting_groups), (Outcome::Retry, 2));
    }
}
