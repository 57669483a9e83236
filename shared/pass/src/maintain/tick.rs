//! The timers of maintenance: each works when its interval has passed, goes on where the last run ended, and ends itself in time.

use std::time::Instant;

use chrono::{DateTime, Utc};
use firn_compact::HostServices;
use firn_config::{Dataset, minutes};
use firn_maintain::{TableJob, Unheard, table_jobs};
use firn_state::{Address, EXPIRE_TICKS, MaintenanceTick, ORPHAN_TICKS, Read, Version};
use firn_table::TableIdent;
use serde::Serialize;

use super::by_hand::retries;
use super::tables::{Ended, Tables};
use super::{MaintainSummary, Task, receipts};
use crate::due::tick_is_due;
use crate::queue::{read_tick, state_error};
use crate::report::PassError;

/// A table that was begun so often without an end is passed over once: it must not hold up the others for ever.
const MOST_STARTS: u32 = 2;

/// What a run of a maintenance function came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintainTick {
    /// Whether it worked. It does not before the interval has passed since the recorded run.
    pub due: bool,
    /// The dataset that the next run goes on with, when the time was used up.
    pub next: Option<String>,
    /// What it came to.
    #[serde(flatten)]
    pub summary: MaintainSummary,
}

/// `expire-snapshots`: expires snapshots of every table, and makes the statistics of those whose datasets want them, when `expireSnapshotsIntervalMinutes` have passed.
///
/// # Errors
/// [`PassError::Unavailable`] when the state does not answer. A table that fails is counted and passed over.
pub async fn expire_tick(host: &HostServices, invocation: &str) -> Result<MaintainTick, PassError> {
    let interval = host.config.maintenance.expire_snapshots_interval_minutes;
    tick(host, Task::Expire, EXPIRE_TICKS, interval, invocation).await
}

/// `clean-orphans`: sweeps every table when `orphanCleanupIntervalMinutes` have passed.
///
/// # Errors
/// As [`expire_tick`].
pub async fn orphans_tick(host: &HostServices, invocation: &str) -> Result<MaintainTick, PassError> {
    let interval = host.config.maintenance.orphan_cleanup_interval_minutes;
    let done = tick(host, Task::Orphans { dry_run: false }, ORPHAN_TICKS, interval, invocation).await?;
    if done.due && done.next.is_none() {
        receipts::forget_old(&host.state, host.config.maintenance.receipt_days, &host.clock).await;
    }
    Ok(done)
}

async fn tick(
    host: &HostServices,
    task: Task,
    name: &str,
    interval_minutes: u64,
    invocation: &str,
) -> Result<MaintainTick, PassError> {
    let now = host.clock.now();
    let address = host.state.root().maintenance_tick(name);
    let read = read_tick(&host.state, &address).await?;
    let (before, version) = match read {
        Some(Read { value, version }) => (value, Some(version)),
        None => (MaintenanceTick::default(), None),
    };
    if before.next.is_none() && !tick_is_due(before.last_tick, now, minutes(interval_minutes)) {
        return Ok(MaintainTick { due: false, next: None, summary: MaintainSummary::default() });
    }
    let began = Instant::now();
    let mut tables =
        Tables::new(&host.config, host.compact.catalog.as_ref(), &host.state, &host.clock, &host.emitter, invocation);
    // The rest of the limit is for the last batch and for what is written at the end.
    tables.deadline = host.run_limit.map(|limit| began + limit.mul_f64(0.9));
    let mut cursor = Cursor { host, address, version, lost: false, started: now };
    let jobs = in_order(table_jobs(&host.config, None), &before);
    for (at, job) in jobs.iter().enumerate() {
        let late = tables.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if (late && at > 0) || host.compact.stop.is_set() {
            cursor.write(Some(&job.dataset), 0).await?;
            let mut summary = tables.summary;
            summary.waiting += (jobs.len() - at) as u64;
            return Ok(MaintainTick { due: true, next: Some(job.dataset.clone()), summary });
        }
        let starts = if at == 0 && before.next.as_ref() == Some(&job.dataset) { before.starts } else { 0 };
        cursor.write(Some(&job.dataset), starts + 1).await?;
        let mut ended = tables.one(task, job, retries(&host.config, &job.dataset), &mut Unheard).await;
        if task == Task::Expire {
            for dataset in host.config.datasets.iter().filter(|dataset| wants_statistics(dataset, job)) {
                let made = tables.statistics(dataset, Some(&host.memory), &host.compact.stop, &mut Unheard).await;
                ended = if made == Ended::Unfinished { made } else { ended };
            }
        }
        // One that had the whole run and was not through has its turn again after the others.
        if ended == Ended::Unfinished && at > 0 {
            cursor.write(Some(&job.dataset), 0).await?;
            return Ok(MaintainTick { due: true, next: Some(job.dataset.clone()), summary: tables.summary });
        }
    }
    cursor.write(None, 0).await?;
    Ok(MaintainTick { due: true, next: None, summary: tables.summary })
}

/// Whether the timer makes the statistics of a dataset together with the work on a table.
fn wants_statistics(dataset: &Dataset, job: &TableJob) -> bool {
    dataset.table_statistics && TableIdent::from(&dataset.table) == job.table
}

/// The tables from where the last run ended on; all of them when it got through, or its table is gone from the configuration.
fn in_order(mut jobs: Vec<TableJob>, before: &MaintenanceTick) -> Vec<TableJob> {
    let Some(at) = before.next.as_ref().and_then(|next| jobs.iter().position(|job| job.dataset == *next)) else {
        return jobs;
    };
    let passed_over = if before.starts >= MOST_STARTS {
        tracing::error!(dataset = jobs[at].dataset, "passed over: {} runs did not get through it", before.starts);
        at + 1
    } else {
        at
    };
    jobs.split_off(passed_over)
}

/// The record of the run, written before and after each table.
struct Cursor<'a> {
    host: &'a HostServices,
    address: Address<MaintenanceTick>,
    version: Option<Version>,
    /// Another run wrote first: two side by side do no harm, and that one's record counts.
    lost: bool,
    started: DateTime<Utc>,
}

impl Cursor<'_> {
    async fn write(&mut self, next: Option<&str>, starts: u32) -> Result<(), PassError> {
        if self.lost {
            return Ok(());
        }
        let record = MaintenanceTick { last_tick: Some(self.started), next: next.map(str::to_owned), starts };
        match self.host.state.follow(&self.address, &record, self.version.as_ref()).await {
            Ok(version) => self.version = Some(version),
            Err(error) if error.is_conflict() => self.lost = true,
            Err(error) => return Err(state_error(error)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn jobs() -> Vec<TableJob> {
        let job = |name: &&str| TableJob {
            dataset: (*name).to_owned(),
            table: TableIdent::new(["n"], *name),
            retention: TimeDelta::hours(24),
        };
        ["a", "b", "c"].iter().map(job).collect()
    }

    #[test]
    fn the_next_run_goes_on_where_the_last_one_ended() {
        let order = |next: Option<&str>, starts| {
            let before = MaintenanceTick { last_tick: None, next: next.map(str::to_owned), starts };
            in_order(jobs(), &before).into_iter().map(|job| job.dataset).collect::<Vec<_>>()
        };
        assert_eq!(order(None, 0), ["a", "b", "c"]);
        assert_eq!(order(Some("b"), 0), ["b", "c"]);
        assert_eq!(order(Some("b"), 1), ["b", "c"], "it was killed once");
        assert_eq!(order(Some("b"), 2), ["c"], "it must not hold up the others for ever");
        assert_eq!(order(Some("c"), 2), [""; 0]);
        assert_eq!(order(Some("gone"), 0), ["a", "b", "c"]);
    }
}
