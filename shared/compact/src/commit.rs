//! The commit of a merged group: in the table's turn, and again while others are faster.

use std::collections::BTreeMap;
use std::time::Duration;

use firn_columnar::{MergeReport, proof};
use firn_config::{DedupOperation, Verify};
use firn_model::{Outcome, Rule};
use firn_table::commit::Committed;
use firn_table::{CommitError, CommitPolicy, NewDataFile, NewFileMetrics, ReplaceOperation, ReplaceRequest, replace};

use crate::control::{Abandoned, RunControl, Step};
use crate::group::{GroupEnd, GroupJob, Merged, STOPPED};
use crate::report::{Failure, GroupReport};
use crate::services::Services;
use crate::settings::JobSettings;

/// How many turns a finished merge takes before it is given up because others are always faster: merging again costs far more.
const COMMIT_TURNS: u32 = 4;
/// The wait after a conflict of who has the turn; doubled for each further one. See [`CommitPolicy::conflict_wait`].
const WAIT_IN_TURN: Duration = Duration::from_millis(20);

/// Commits when the table's turn comes. While waiting others committed, so the newest version is tried first.
pub(crate) async fn commit_in_turn(
    services: &Services,
    control: &RunControl,
    job: GroupJob<'_>,
    paths: Vec<String>,
    hash: String,
    merged: Merged,
) -> GroupEnd {
    let (place, ident, uuid) = (job.place, job.base.ident.clone(), job.base.uuid());
    let mut request = commit_request(&job, paths, hash, &merged);
    let policy = CommitPolicy { retry_max: job.settings.commit_retry_max, ..CommitPolicy::default() };
    let mut lost = Lost::default();
    let end = loop {
        let turn = match &control.turns {
            Some(turns) => turns.take(&uuid).await,
            None => None,
        };
        if turn.is_some() || lost.turns > 0 {
            match services.catalog.load(&ident).await {
                Ok(newest) => request.newest = Some(newest),
                Err(error) => tracing::info!(%error, "the newest version is not known, committing on an older one"),
            }
        }
        let replaced = match control.steps.step(Step::Committing(place)).await {
            // The stop may have come while the turn was waited for.
            Ok(()) if control.stop.is_set() => Err(GroupEnd::step_refused(STOPPED.into())),
            Ok(()) => {
                let conflict_wait = if turn.is_some() { WAIT_IN_TURN } else { policy.conflict_wait };
                let policy = CommitPolicy { conflict_wait, ..policy.clone() };
                Ok(replace(&*services.catalog, request.clone(), policy).await)
            }
            Err(reason) => Err(GroupEnd::step_refused(reason)),
        };
        if let Some(turn) = turn {
            turn.give_back().await;
        }
        match replaced {
            Ok(Err(CommitError::ConflictsUsedUp { conflicts, last, .. })) if lost.turns + 1 < COMMIT_TURNS => {
                lost = Lost { turns: lost.turns + 1, conflicts: lost.conflicts + conflicts };
                tracing::info!(table = %ident, conflicts = lost.conflicts, last, "the commit waits for another turn");
            }
            Ok(Ok(committed)) => {
                break GroupEnd::Committed(
                    report(&request, &merged, job.group.bytes(), &committed, lost),
                    Box::new(committed.table),
                );
            }
            Ok(Err(error)) => break commit_end(error),
            Err(end) => break end,
        }
    };
    let outputs: Vec<String> = request.outputs.into_iter().map(|output| output.path).collect();
    if let Some(reason) = end.why_not_committed().filter(|_| !outputs.is_empty()) {
        let table = request.newest.as_ref().unwrap_or(&request.base);
        control.steps.abandoned(Abandoned { table, paths: &outputs, reason }).await;
    }
    if matches!(end, GroupEnd::Committed(..))
        && let Err(reason) = control.steps.step(Step::Committed(place)).await
    {
        // The commit stands; whoever stops this run stops it at its next step.
        tracing::info!(reason, "the step after a commit was refused");
    }
    end
}

/// Turns in which others were faster, and the conflicts that was noticed by.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    turns: u32,
    conflicts: u32,
}

fn report(request: &ReplaceRequest, merged: &Merged, bytes_in: u64, committed: &Committed, lost: Lost) -> GroupReport {
    let report = &merged.report;
    GroupReport {
        files_in: request.inputs.len() as u64,
        files_out: merged.uploaded.len() as u64,
        rows_in: report.rows_in,
        rows_out: report.rows_out,
        duplicates_dropped: report.duplicates_dropped,
        bytes_in,
        bytes_out: merged.uploaded.iter().map(|blob| blob.size).sum(),
        row_groups_copied: report.row_groups_copied,
        bytes_copied: report.bytes_copied,
        snapshot_id: committed.snapshot_id,
        conflicts: lost.conflicts + committed.conflicts,
        // Each conflict was a try.
        tries: lost.conflicts + committed.tries,
        sidecars: merged.sidecars.clone(),
    }
}

fn commit_request(job: &GroupJob<'_>, paths: Vec<String>, hash: String, merged: &Merged) -> ReplaceRequest {
    let report = &merged.report;
    let operation = match job.settings.dedup_operation {
        DedupOperation::Overwrite if report.duplicates_dropped > 0 => ReplaceOperation::Overwrite,
        _ => ReplaceOperation::Replace,
    };
    let outputs = report.outputs.iter().zip(&merged.uploaded).map(|(written, blob)| NewDataFile {
        path: blob.path.clone(),
        size: blob.size,
        rows: written.finished.rows,
        metrics: metrics(&written.finished.metrics),
        sort_order_id: job.order.table_sort_order_id,
    });
    ReplaceRequest {
        base: job.planned.clone(),
        newest: Some(job.base.clone()),
        branch: job.dataset.branch.clone(),
        partition: job.partition.clone(),
        inputs: paths,
        outputs: outputs.collect(),
        data_sequence_number: job.group.data_sequence_number(),
        rows_removed: report.duplicates_dropped,
        operation,
        summary: summary(report, job.rule, job.pass, job.settings),
        inputs_hash: hash,
    }
}

/// What a commit error means for the partition.
fn commit_end(error: CommitError) -> GroupEnd {
    let reason = error.to_string();
    match error {
        CommitError::Superseded { .. } => GroupEnd::Superseded(reason),
        error if error.wants_replan() => GroupEnd::PlanAgain(reason),
        CommitError::ConflictsUsedUp { .. } | CommitError::Storage { .. } => GroupEnd::Ended(Outcome::Retry, reason),
        CommitError::Unknown { .. } => GroupEnd::Ended(Outcome::Unknown, reason),
        // An output that is not in the store as it was written: merge again, later.
        CommitError::OutputMissing { .. } => GroupEnd::Ended(Outcome::Retry, reason),
        _ => GroupEnd::Failed(Failure::Permanent, reason),
    }
}

fn metrics(found: &firn_columnar::FileMetrics) -> NewFileMetrics {
    NewFileMetrics {
        column_sizes: found.column_sizes.clone(),
        value_counts: found.value_counts.clone(),
        null_counts: found.null_counts.clone(),
        nan_counts: found.nan_counts.clone(),
        lower_bounds: found.lower.clone(),
        upper_bounds: found.upper.clone(),
        split_offsets: found.split_offsets.clone(),
    }
}

/// Firn's entries of the snapshot summary: enough to prove the merge again later (`docs/formats.md`).
fn summary(report: &MergeReport, rule: Rule, pass: &str, settings: &JobSettings) -> BTreeMap<String, String> {
    let verified = match settings.verify {
        Verify::Stream => "stream",
        Verify::Reread => "reread",
    };
    // Rows that are proved by their bytes are in no sum: what is left would be the sum of nothing that a reader can make out.
    let by_bytes = report.rows_by_bytes > 0;
    let sums = [
        ("firn.row-sum", report.sum_out.to_string()),
        ("firn.row-sum-dropped", report.sum_dropped.to_string()),
        ("firn.row-sum-version", proof::ROW_SUM_VERSION.to_string()),
    ];
    let entries = [
        ("firn.rows-in", report.rows_in.to_string()),
        ("firn.rows-out", report.rows_out.to_string()),
        ("firn.duplicates-dropped", report.duplicates_dropped.to_string()),
        ("firn.proof", if by_bytes { "bytes" } else { "rows" }.to_owned()),
        ("firn.verified", verified.to_owned()),
        ("firn.rule", rule.to_string()),
        ("firn.pass", pass.to_owned()),
        ("firn.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let rows_by_bytes = by_bytes.then(|| ("firn.rows-by-bytes", report.rows_by_bytes.to_string()));
    entries
        .into_iter()
        .chain(rows_by_bytes)
        .chain(sums.into_iter().filter(|_| !by_bytes))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
