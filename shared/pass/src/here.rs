//! A pass that merges in this process: every selected partition is worked on at once, one after the other.

use firn_compact::{PartitionJob, PartitionReport, Services, run_partition};
use firn_config::Dataset;
use firn_model::{LeftReason, PartitionKey, Rule};
use firn_plan::PartitionDecision;
use firn_table::PartitionStats;
use firn_telemetry::PartitionRun;

use crate::events::{PassEvents, partition_result};
use crate::load::{LoadedDataset, batches, stopped};
use crate::report::{FailedDataset, FinishedPartition, PassError, PassSummary, Report};
use crate::request::ManualRequest;

/// A pass over datasets that merges here.
pub(crate) struct PassHere<'a> {
    pub(crate) services: &'a Services,
    pub(crate) events: &'a PassEvents,
    pub(crate) request: &'a ManualRequest,
    pub(crate) report: &'a mut dyn Report,
    /// Strongest first.
    pub(crate) rules: &'a [Rule],
    /// Whether somebody asked for just these partitions, and so hears of each that is left too. A pass of the long-running
    /// compactor looks at the same partitions every few minutes and only counts those.
    pub(crate) by_hand: bool,
    pub(crate) summary: PassSummary,
}

impl PassHere<'_> {
    /// Works on each dataset in turn. A dataset that cannot be planned is reported and passed over, a partition that fails does
    /// not stop the others (design section 9).
    pub(crate) async fn run(mut self, datasets: &[&Dataset]) -> PassSummary {
        for dataset in datasets {
            if self.services.stop.is_set() {
                break;
            }
            if let Err(error) = self.dataset(dataset).await {
                self.events.dataset_failed(dataset, &error);
                let failed = FailedDataset { dataset: dataset.name.clone(), error };
                self.summary.add_failed(&failed);
                self.report.failed(&failed);
            }
        }
        self.summary
    }

    async fn dataset(&mut self, dataset: &Dataset) -> Result<(), PassError> {
        let loaded = LoadedDataset::load(&*self.services.catalog, dataset, self.request, self.rules).await?;
        let mut wanted: Vec<&PartitionStats> = loaded.stats.iter().collect();
        if !self.by_hand {
            if let Some(reason) = stopped(&loaded.table) {
                tracing::info!(dataset = dataset.name, "left: {reason}");
                wanted.clear();
            }
            wanted.retain(|stats| loaded.left_by_counts(stats, self.rules).is_none());
            let left = (loaded.stats.len() - wanted.len()) as u64;
            self.summary.partitions += left;
            self.summary.left += left;
        }
        for batch in batches(&wanted) {
            self.batch(&loaded, batch).await?;
        }
        Ok(())
    }

    async fn batch(&mut self, loaded: &LoadedDataset<'_>, batch: &[&PartitionStats]) -> Result<(), PassError> {
        let mut facts = loaded.facts(batch).await?;
        for stats in batch {
            if self.services.stop.is_set() {
                return Ok(());
            }
            let Some(mut found) = facts.remove(&*stats.key) else { continue };
            let (rule, decision) = loaded.decide(&mut found, self.rules).await;
            drop(found);
            let pass = self.events.pass.clone();
            let job = PartitionJob { dataset: loaded.dataset, partition: stats.key.clone(), rule, pass };
            if !self.request.dry_run
                && let PartitionDecision::Left(reason) = &decision
            {
                self.left(loaded, &job, reason, stats.files);
                continue;
            }
            let planned = loaded.planned(&stats.key, rule, &decision);
            drop(decision);
            self.summary.add_planned(&planned, self.request.dry_run);
            self.report.planned(&planned);
            if !self.request.dry_run {
                let start = self.events.start(job.dataset, &job.partition, rule);
                let run = PartitionRun::start(self.events.emitter(), start);
                let done = run_partition(self.services, &job).await;
                run.finish(partition_result(&done));
                self.finish(loaded, &job, &done);
            }
        }
        Ok(())
    }

    fn left(&mut self, loaded: &LoadedDataset<'_>, job: &PartitionJob<'_>, reason: &LeftReason, files: u64) {
        let done = PartitionReport::left(reason, files);
        if self.by_hand {
            let start = self.events.start(job.dataset, &job.partition, job.rule);
            PartitionRun::start(self.events.emitter(), start).finish(partition_result(&done));
        }
        self.finish(loaded, job, &done);
    }

    fn finish(&mut self, loaded: &LoadedDataset<'_>, job: &PartitionJob<'_>, done: &PartitionReport) {
        let finished = FinishedPartition {
            dataset: job.dataset.name.clone(),
            partition: PartitionKey::clone(&job.partition),
            label: loaded.label(&job.partition),
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
}
