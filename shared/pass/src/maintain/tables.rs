//! One table after the other: the work, its event, its lines.

use std::time::Instant;

use firn_config::{Config, Maintenance};
use firn_maintain::expiry::ExpiryPlan;
use firn_maintain::{
    ExpiryOutcome, ExpiryTools, Neighbours, SnapshotDecision, SweepOutcome, SweepTools, TableJob, expire_table,
    sweep_table,
};
use firn_state::StateStore;
use firn_storage::Clock;
use firn_table::{Catalog, TableIdent};
use firn_telemetry::{Emitter, ExpiryFinished, SweepFinished, peak_rss_bytes};

use super::{ExpiryLine, MaintainReport, MaintainSummary, TableLine, Task};

/// What a run of maintenance works with, and what it has come to.
pub(crate) struct Tables<'a> {
    pub(crate) catalog: &'a dyn Catalog,
    pub(crate) state: &'a StateStore,
    pub(crate) settings: &'a Maintenance,
    pub(crate) clock: &'a Clock,
    pub(crate) emitter: &'a Emitter,
    pub(crate) invocation: &'a str,
    pub(crate) configured: Vec<TableIdent>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) neighbours: Neighbours,
    pub(crate) summary: MaintainSummary,
}

/// How the work on a table ended, for the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Done, left or failed.
    Through,
    /// Out of time.
    Unfinished,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(
        config: &'a Config,
        catalog: &'a dyn Catalog,
        state: &'a StateStore,
        clock: &'a Clock,
        emitter: &'a Emitter,
        invocation: &'a str,
    ) -> Self {
        Self {
            catalog,
            state,
            settings: &config.maintenance,
            clock,
            emitter,
            invocation,
            configured: config.datasets.iter().map(|dataset| TableIdent::from(&dataset.table)).collect(),
            deadline: None,
            neighbours: Neighbours::default(),
            summary: MaintainSummary::default(),
        }
    }

    /// Works on one table. `retries` is `commitRetryMax`.
    pub(crate) async fn one(
        &mut self,
        task: Task,
        job: &TableJob,
        retries: u64,
        report: &mut dyn MaintainReport,
    ) -> Ended {
        self.summary.tables += 1;
        match task {
            Task::Expire => {
                self.expire(job, retries, report).await;
                Ended::Through
            }
            Task::Orphans { dry_run } => self.sweep(job, dry_run, report).await,
        }
    }

    async fn expire(&mut self, job: &TableJob, retry_max: u64, report: &mut dyn MaintainReport) {
        let began = Instant::now();
        let tools = ExpiryTools { catalog: self.catalog, state: self.state, clock: self.clock, retry_max };
        let done = expire_table(tools, job).await;
        let (ended, reason) = match &done.outcome {
            ExpiryOutcome::Done => ("done", None),
            ExpiryOutcome::Skipped(reason) => ("left", Some(reason.to_string())),
            ExpiryOutcome::Failed(failure) => ("failed", Some(failure.to_string())),
        };
        let through = ended == "done";
        let (expired, refs_removed) = (done.plan.expired().count() as u64, done.plan.refs.len() as u64);
        say_plan(&job.dataset, &done.plan, through, report);
        self.ended(job, ended, reason.as_deref(), report);
        if through {
            self.summary.expired += expired;
            self.summary.refs_removed += refs_removed;
        }
        let event = ExpiryFinished {
            dataset: job.dataset.clone(),
            table: job.table.to_string(),
            invocation: self.invocation.to_owned(),
            reason,
            snapshots: done.plan.snapshots.len() as u64,
            expired: if through { expired } else { 0 },
            refs_removed: if through { refs_removed } else { 0 },
            pinned: done.pinned,
            tries: done.tries,
            duration_ms: milliseconds(began),
            ended,
            ..ExpiryFinished::default()
        };
        self.emitter.emit(&event.counted());
    }

    async fn sweep(&mut self, job: &TableJob, dry_run: bool, report: &mut dyn MaintainReport) -> Ended {
        let began = Instant::now();
        let tools = SweepTools {
            catalog: self.catalog,
            state: self.state,
            settings: self.settings,
            clock: self.clock,
            configured: &self.configured,
            deadline: self.deadline,
            dry_run,
        };
        let swept = sweep_table(tools, job, &mut self.neighbours, &mut AsSweep(report)).await;
        let (ended, cursor) = match &swept.outcome {
            SweepOutcome::Done => ("done", Ended::Through),
            SweepOutcome::Unfinished(_) => ("unfinished", Ended::Unfinished),
            SweepOutcome::Skipped(_) => ("left", Ended::Through),
            SweepOutcome::Stopped(_) => ("failed", Ended::Through),
        };
        let receipt = swept.receipt;
        for warning in &receipt.warnings {
            tracing::warn!(dataset = job.dataset, "{warning}");
        }
        self.ended(job, ended, receipt.reason.as_deref(), report);
        self.summary.listed += receipt.listing.as_ref().map_or(0, |listing| listing.objects);
        self.summary.deleted += receipt.deletions.deleted;
        self.summary.bytes += receipt.deletions.bytes;
        self.summary.unreferenced += receipt.states.unreferenced;
        let event = SweepFinished {
            dataset: job.dataset.clone(),
            table: job.table.to_string(),
            invocation: self.invocation.to_owned(),
            receipt: receipt.receipt,
            dry_run,
            reason: receipt.reason,
            listed: receipt.listing.map_or(0, |listing| listing.objects),
            live: receipt.states.live,
            replaced: receipt.states.replaced,
            pinned_bytes: receipt.pinned_bytes,
            replaced_bytes: receipt.replaced_bytes,
            unreferenced: receipt.states.unreferenced,
            deleted: receipt.deletions.deleted,
            deleted_bytes: receipt.deletions.bytes,
            kept: receipt.kept,
            duration_ms: milliseconds(began),
            peak_rss_bytes: peak_rss_bytes(),
            ended,
            ..SweepFinished::default()
        };
        self.emitter.emit(&event.counted());
        cursor
    }

    fn ended(&mut self, job: &TableJob, outcome: &'static str, reason: Option<&str>, report: &mut dyn MaintainReport) {
        self.tell(&job.dataset, &job.table.to_string(), outcome, reason, report);
    }

    /// Counts and tells a table that was not worked on to the end.
    pub(super) fn tell(
        &mut self,
        dataset: &str,
        table: &str,
        outcome: &'static str,
        reason: Option<&str>,
        report: &mut dyn MaintainReport,
    ) {
        match outcome {
            "left" => self.summary.left += 1,
            "unfinished" => self.summary.waiting += 1,
            "failed" => self.summary.failed += 1,
            _ => return,
        }
        let reason = reason.unwrap_or("the time of this run is used up; the next one goes on").to_owned();
        if outcome == "failed" {
            tracing::error!(dataset, table, "{reason}");
        }
        report.table(&TableLine { dataset: dataset.to_owned(), outcome, reason });
    }
}

/// Hands over the lines of a sweep.
struct AsSweep<'a>(&'a mut dyn MaintainReport);

impl firn_maintain::SweepReport for AsSweep<'_> {
    fn wants_kept(&self) -> bool {
        self.0.wants_kept()
    }

    fn file(&mut self, line: &firn_maintain::FileLine) {
        tracing::debug!("{}", super::file_line(line));
        self.0.file(line);
    }
}

fn say_plan(dataset: &str, plan: &ExpiryPlan, through: bool, report: &mut dyn MaintainReport) {
    let gone = if through { "expired" } else { "expire" };
    for (name, age) in &plan.refs {
        report.snapshot(&ExpiryLine {
            dataset: dataset.to_owned(),
            snapshot_id: None,
            reference: Some(name.clone()),
            decision: gone,
            reason: format!("its snapshot is {} h old, more than its max-ref-age-ms", age.num_hours()),
        });
    }
    for (id, decision) in &plan.snapshots {
        let word = if matches!(decision, SnapshotDecision::Expire(_)) { gone } else { "keep" };
        report.snapshot(&ExpiryLine {
            dataset: dataset.to_owned(),
            snapshot_id: Some(*id),
            reference: None,
            decision: word,
            reason: decision.to_string(),
        });
    }
}

pub(super) fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
