//! A manual pass in this process: every partition asked for is planned and, unless it is a dry run, worked on at once.

use std::collections::HashSet;
use std::time::Instant;

use firn_compact::{PartitionJob, PartitionReport, Services, plan_facts, prove_key_ranges, run_partition};
use firn_config::{Config, Dataset};
use firn_model::{LeftReason, PartitionKey, RowOrder, Rule};
use firn_plan::PartitionDecision;
use firn_table::{
    LoadedTable, NextStep, OrderColumns, PartitionFilter, PartitionStats, PartitionTerm, TableError, TableIdent,
    partition_facts, partition_stats, row_order,
};
use firn_telemetry::{DatasetFailed, Emitter, PartitionResult, PartitionRun, PartitionStart, PassFinished};
use uuid::Uuid;

use crate::report::{FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, Report};
use crate::request::ManualRequest;
use crate::wiring;

/// Live files whose facts are held at once while a table is planned, so that memory does not grow with the table.
const FACTS_AT_ONCE: u64 = 50_000;

/// Runs one manual pass over the datasets asked for. A dataset that cannot be planned is reported and passed over, a partition
/// that fails does not stop the others (design section 9).
///
/// # Errors
/// [`PassError::Usage`] when nothing can be done as it was asked, [`PassError::Unavailable`] when nothing could be reached. Failures of
/// single datasets and partitions are reported and counted instead.
pub async fn manual(
    config: &Config,
    request: &ManualRequest,
    emitter: &Emitter,
    report: &mut dyn Report,
) -> Result<PassSummary, PassError> {
    let started = Instant::now();
    let datasets = chosen(config, request.dataset.as_deref())?;
    let services = &wiring::open(config).await?;
    let mut pass = Pass {
        services,
        emitter,
        request,
        report,
        rule: if request.full { Rule::Full } else { Rule::Manual },
        id: Uuid::new_v4().to_string(),
        summary: PassSummary::default(),
    };
    for dataset in &datasets {
        if services.stop.is_set() {
            break;
        }
        if let Err(error) = pass.dataset(dataset).await {
            pass.failed(dataset, error);
        }
    }
    let (id, rule, summary) = (pass.id, pass.rule, pass.summary);
    let deadline_ms = config.compaction.runtime_deadline_hours.saturating_mul(3_600_000);
    emitter.emit(&finished_event(&id, rule, request, datasets.len(), &summary, started).counted(deadline_ms));
    Ok(summary)
}

/// The dataset asked for, or all of them.
pub(crate) fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a Dataset>, PassError> {
    let Some(name) = name else { return Ok(config.datasets.iter().collect()) };
    config.dataset(name).map(|dataset| vec![dataset]).ok_or_else(|| {
        let known: Vec<&str> = config.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
        PassError::Usage(format!("no dataset \"{name}\" in {}; it has {}", config.file, known.join(", ")))
    })
}

struct Pass<'a> {
    services: &'a Services,
    emitter: &'a Emitter,
    request: &'a ManualRequest,
    report: &'a mut dyn Report,
    rule: Rule,
    id: String,
    summary: PassSummary,
}

impl Pass<'_> {
    async fn dataset(&mut self, dataset: &Dataset) -> Result<(), PassError> {
        let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
        let table = self.services.catalog.load(&ident).await.map_err(pass_error)?;
        let order = row_order(&table.metadata, &OrderColumns::from(dataset))
            .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", dataset.name)))?;
        let filter = self.filter(&table, dataset)?;
        let small_below = dataset.compaction.min_file_size_mb << 20;
        let mut stats = partition_stats(&table, &dataset.branch, &filter, small_below).await.map_err(pass_error)?;
        // Largest debt first, so that a pass that is cut short has done what matters most.
        stats.sort_by_key(|partition| std::cmp::Reverse((partition.small_files, partition.files)));
        for batch in batches(&stats) {
            self.batch(dataset, &table, &order, batch).await?;
        }
        Ok(())
    }

    fn filter(&self, table: &LoadedTable, dataset: &Dataset) -> Result<PartitionFilter, PassError> {
        let specs = table.spec_types().map_err(pass_error)?;
        let range = self.request.date_range.map(|range| firn_table::DateRange { from: range.from, to: range.to });
        let terms: Vec<PartitionTerm> = self
            .request
            .partitions
            .iter()
            .map(|condition| PartitionTerm { column: condition.column.clone(), value: condition.value.clone() })
            .collect();
        PartitionFilter::new(&specs, range, &terms, dataset.time_column.as_deref())
            .map_err(|error| PassError::Usage(format!("dataset \"{}\": {error}", dataset.name)))
    }

    async fn batch(
        &mut self,
        dataset: &Dataset,
        table: &LoadedTable,
        order: &RowOrder,
        batch: &[PartitionStats],
    ) -> Result<(), PassError> {
        let wanted: HashSet<PartitionKey> = batch.iter().map(|stats| PartitionKey::clone(&stats.key)).collect();
        let mut facts = partition_facts(table, &dataset.branch, &wanted, order).await.map_err(pass_error)?;
        for stats in batch {
            if self.services.stop.is_set() {
                return Ok(());
            }
            let Some(mut found) = facts.remove(&*stats.key) else { continue };
            let job = PartitionJob { dataset, partition: stats.key.clone(), rule: self.rule, pass: self.id.clone() };
            prove_key_ranges(table, order, &mut found, self.rule).await;
            let decision = plan_facts(table, order, &found, &job);
            if !self.request.dry_run
                && let PartitionDecision::Left(reason) = &decision
            {
                self.left(&job, reason, stats.files);
                continue;
            }
            let planned = planned_partition(&job, &decision);
            drop(found);
            self.summary.add_planned(&planned, self.request.dry_run);
            self.report.planned(&planned);
            if !self.request.dry_run {
                let run = PartitionRun::start(self.emitter, self.start_event(&job));
                let done = run_partition(self.services, &job).await;
                run.finish(result_event(&done));
                self.finish(&job, &done);
            }
        }
        Ok(())
    }

    fn left(&mut self, job: &PartitionJob<'_>, reason: &LeftReason, files: u64) {
        let done = PartitionReport::left(reason, files);
        PartitionRun::start(self.emitter, self.start_event(job)).finish(result_event(&done));
        self.finish(job, &done);
    }

    fn finish(&mut self, job: &PartitionJob<'_>, done: &PartitionReport) {
        let finished = FinishedPartition {
            dataset: job.dataset.name.clone(),
            partition: PartitionKey::clone(&job.partition),
            outcome: done.outcome,
            reason: done.reason.clone(),
            files_before: done.files_before,
            files_after: done.files_after,
            rows_in: done.rows_in,
            rows_out: done.rows_out,
            duplicates_dropped: done.duplicates_dropped,
            snapshot_id: done.snapshot_id,
        };
        self.summary.add_finished(&finished);
        self.report.finished(&finished);
    }

    fn failed(&mut self, dataset: &Dataset, error: PassError) {
        tracing::error!(dataset = dataset.name, %error, "dataset passed over");
        self.emitter.emit(&DatasetFailed {
            dataset: dataset.name.clone(),
            table: dataset.table.to_string(),
            pass: self.id.clone(),
            invocation: self.id.clone(),
            reason: error.to_string(),
        });
        let failed = FailedDataset { dataset: dataset.name.clone(), error };
        self.summary.add_failed(&failed);
        self.report.failed(&failed);
    }

    fn start_event(&self, job: &PartitionJob<'_>) -> PartitionStart {
        PartitionStart::new(
            &job.dataset.name,
            job.dataset.table.to_string(),
            &job.partition,
            &self.id,
            &self.id,
            self.rule,
        )
    }
}

/// Cuts the partitions so that each batch has at most [`FACTS_AT_ONCE`] files, or one partition.
fn batches(stats: &[PartitionStats]) -> Vec<&[PartitionStats]> {
    let mut cuts = Vec::new();
    let (mut start, mut files) = (0, 0);
    for (at, partition) in stats.iter().enumerate() {
        if at > start && files + partition.files > FACTS_AT_ONCE {
            cuts.push(&stats[start..at]);
            (start, files) = (at, 0);
        }
        files += partition.files;
    }
    if start < stats.len() {
        cuts.push(&stats[start..]);
    }
    cuts
}

fn planned_partition(job: &PartitionJob<'_>, decision: &PartitionDecision) -> PlannedPartition {
    let (selected, reason, files) = match decision {
        PartitionDecision::Selected { reason, groups } => {
            (true, reason.to_string(), groups.iter().flat_map(|group| group.files()).collect())
        }
        PartitionDecision::Left(reason) => (false, reason.to_string(), Vec::new()),
    };
    PlannedPartition {
        dataset: job.dataset.name.clone(),
        partition: PartitionKey::clone(&job.partition),
        selected,
        rule: job.rule,
        reason,
        bytes: files.iter().map(|file| file.size).sum(),
        rows: files.iter().map(|file| file.rows).sum(),
        files: files.into_iter().map(|file| file.path.clone()).collect(),
    }
}

pub(crate) fn pass_error(error: TableError) -> PassError {
    match error.next_step() {
        NextStep::Usage => PassError::Usage(error.to_string()),
        NextStep::Absent | NextStep::Retry | NextStep::Skip => PassError::Unavailable(error.to_string()),
    }
}

fn result_event(done: &PartitionReport) -> PartitionResult {
    PartitionResult {
        files_before: done.files_before,
        files_after: done.files_after,
        rows_in: done.rows_in,
        rows_out: done.rows_out,
        duplicates_dropped: done.duplicates_dropped,
        bytes_in: done.bytes_in,
        bytes_out: done.bytes_out,
        conflicts: u64::from(done.conflicts),
        tries: u64::from(done.tries),
        snapshot_id: done.snapshot_id,
        ..PartitionResult::new(done.outcome, done.reason.clone())
    }
}

fn finished_event(
    id: &str,
    rule: Rule,
    request: &ManualRequest,
    datasets: usize,
    summary: &PassSummary,
    started: Instant,
) -> PassFinished {
    PassFinished {
        pass: id.to_owned(),
        invocation: id.to_owned(),
        rule: rule.as_str(),
        dry_run: request.dry_run,
        datasets: datasets as u64,
        datasets_failed: summary.datasets_failed + summary.datasets_refused,
        partitions: summary.partitions,
        selected: summary.selected,
        left: summary.left,
        done: summary.done,
        superseded: summary.superseded,
        failed: summary.failed,
        waiting: summary.waiting,
        files_before: summary.files_before,
        files_after: summary.files_after,
        rows_in: summary.rows_in,
        rows_out: summary.rows_out,
        duplicates_dropped: summary.duplicates_dropped,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        peak_rss_bytes: firn_telemetry::peak_rss_bytes(),
        counters: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn stats(files: u64) -> PartitionStats {
        PartitionStats {
            key: Arc::new(PartitionKey::unpartitioned(0)),
            files,
            bytes: 0,
            rows: 0,
            small_files: 0,
            small_bytes: 0,
            delete_files: 0,
        }
    }

    #[test]
    fn batches_hold_a_bounded_number_of_files_or_one_partition() {
        let all = [stats(30_000), stats(30_000), stats(90_000), stats(1), stats(2)];
        let lengths: Vec<usize> = batches(&all).iter().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [1, 1, 1, 2]);
        assert!(batches(&[]).is_empty());
    }
}
