//! Statistics of one table: the work is `firn-compact`'s; what it came to is told here.

use firn_columnar::StopFlag;
use firn_compact::{MemoryBudget, StatisticsJob, StatisticsOutcome, StatisticsReport, table_statistics};
use firn_config::Dataset;
use firn_telemetry::{StatisticsFinished, peak_rss_bytes};

use super::tables::{Ended, Tables, milliseconds};
use super::{MaintainReport, StatisticsLine, TableLine};

impl Tables<'_> {
    /// Makes the statistics of a dataset's table.
    pub(crate) async fn statistics(
        &mut self,
        dataset: &Dataset,
        memory: Option<&MemoryBudget>,
        stop: &StopFlag,
        report: &mut dyn MaintainReport,
    ) -> Ended {
        let stop = match self.deadline {
            Some(deadline) => stop.clone().until(deadline),
            None => stop.clone(),
        };
        let done = table_statistics(&StatisticsJob { catalog: self.catalog, dataset, memory, stop }).await;
        let (ended, reason) = match &done.outcome {
            StatisticsOutcome::Done => ("done", None),
            StatisticsOutcome::Left(off) => ("left", Some(off.to_string())),
            StatisticsOutcome::Unfinished => ("unfinished", None),
            StatisticsOutcome::Failed(failure) => ("failed", Some(failure.to_string())),
        };
        match &done.outcome {
            // There is nothing to do: it does not count as a table that its owner keeps from Firn.
            StatisticsOutcome::Left(off) if !off.is_wanted() => {
                report.table(&TableLine { dataset: dataset.name.clone(), outcome: ended, reason: off.to_string() })
            }
            _ => self.tell(&dataset.name, &dataset.table.to_string(), ended, reason.as_deref(), report),
        }
        if let (Some(snapshot_id), Some(path)) = (done.snapshot_id, &done.path) {
            self.summary.statistics += 1;
            report.statistics(&StatisticsLine {
                dataset: dataset.name.clone(),
                snapshot_id,
                path: path.clone(),
                columns: done.columns.clone(),
                files: done.files,
                scanned: done.scanned,
            });
        }
        self.emitter.emit(&self.statistics_event(dataset, &done, ended, reason).counted());
        if ended == "unfinished" { Ended::Unfinished } else { Ended::Through }
    }

    fn statistics_event(
        &self,
        dataset: &Dataset,
        done: &StatisticsReport,
        ended: &'static str,
        reason: Option<String>,
    ) -> StatisticsFinished {
        let reasons: Vec<String> = reason.into_iter().chain(done.left_out.iter().cloned()).collect();
        StatisticsFinished {
            dataset: dataset.name.clone(),
            table: dataset.table.to_string(),
            invocation: self.invocation.to_owned(),
            reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
            snapshot_id: done.snapshot_id,
            path: done.path.clone(),
            columns: done.columns.len() as u64,
            files: done.files,
            scanned: done.scanned,
            tries: done.tries,
            duration_ms: milliseconds(done.started),
            peak_rss_bytes: peak_rss_bytes(),
            ended,
            ..StatisticsFinished::default()
        }
    }
}
