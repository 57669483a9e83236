//! Expiry of one table: load, decide, swap; after a conflict all of it again.

use chrono::{DateTime, Utc};
use firn_state::{StateError, StateStore};
use firn_storage::Clock;
use firn_table::{Catalog, CommitPolicy, ExpireError, LoadedTable, Removal, SwapError, TableError, expire};

use crate::clock::{Apart, trusted_now};
use crate::expiry::decide::{BadSetting, ExpiryPlan, ExpirySettings, KeepReason, SnapshotDecision, decide_expiry};
use crate::jobs::{SkipReason, TableJob, skipped};

/// What expiry works with.
#[derive(Debug, Clone, Copy)]
pub struct ExpiryTools<'a> {
    /// The catalog.
    pub catalog: &'a dyn Catalog,
    /// For the time by the store's clock.
    pub state: &'a StateStore,
    /// This machine's clock.
    pub clock: &'a Clock,
    /// `commitRetryMax`: tries after the first.
    pub retry_max: u64,
}

/// How expiry of a table ended.
#[derive(Debug)]
pub enum ExpiryOutcome {
    /// What there was to expire is expired.
    Done,
    /// The table is left alone.
    Skipped(SkipReason),
    /// It did not go through; nothing is lost, the next run tries again.
    Failed(ExpiryFailure),
}

/// Why expiry did not go through.
#[derive(Debug, thiserror::Error)]
pub enum ExpiryFailure {
    /// A setting cannot be right.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// The clock of this machine cannot be right.
    #[error("the clock of this machine says {}, that of the store {}: ages cannot be trusted; set the clock (NTP)", .0.own, .0.store)]
    Clock(Apart),
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The state does not answer.
    #[error(transparent)]
    State(#[from] StateError),
    /// Other writers were faster, again and again.
    #[error("other writers changed the table in each of {tries} tries: {last}; the next run tries again")]
    Conflicts {
        /// Tries.
        tries: u64,
        /// What the last one met.
        last: String,
    },
    /// The catalog did not take it.
    #[error(transparent)]
    Refused(ExpireError),
}

/// What expiry of a table came to.
#[derive(Debug)]
pub struct TableExpiry {
    /// How it ended.
    pub outcome: ExpiryOutcome,
    /// What was decided, by the version that it was done on; empty when none could be read.
    pub plan: ExpiryPlan,
    /// Swaps that were sent.
    pub tries: u64,
    /// Snapshots that would go if no tag and no other branch held them.
    pub pinned: u64,
}

/// Expires the snapshots of one table.
pub async fn expire_table(tools: ExpiryTools<'_>, job: &TableJob) -> TableExpiry {
    let mut done = TableExpiry { outcome: ExpiryOutcome::Done, plan: ExpiryPlan::default(), tries: 0, pinned: 0 };
    match tries(tools, job, &mut done).await {
        Ok(None) => {}
        Ok(Some(reason)) => done.outcome = ExpiryOutcome::Skipped(reason),
        Err(failure) => done.outcome = ExpiryOutcome::Failed(failure),
    }
    done
}

async fn tries(
    tools: ExpiryTools<'_>,
    job: &TableJob,
    done: &mut TableExpiry,
) -> Result<Option<SkipReason>, ExpiryFailure> {
    let now = trusted_now(tools.state, tools.clock.now()).await?.map_err(ExpiryFailure::Clock)?;
    let waits = CommitPolicy::default();
    let mut last = String::new();
    for attempt in 0..=tools.retry_max {
        if attempt > 0 {
            tokio::time::sleep(waits.wait(attempt)).await;
        }
        let table = tools.catalog.load(&job.table).await?;
        if let Some(reason) = skipped(&table) {
            return Ok(Some(reason));
        }
        let plan = decide(&table, job, now)?;
        let removal = Removal {
            snapshots: plan.expired().collect(),
            refs: plan.refs.iter().map(|(name, _)| name.clone()).collect(),
        };
        done.pinned = pinned(&plan);
        if attempt == 0 || !removal.is_empty() {
            done.plan = plan;
        }
        if removal.is_empty() {
            // After a lost answer: it was applied, and the plan of that try stands.
            return Ok(None);
        }
        done.tries += 1;
        match expire(tools.catalog, &table, &removal).await {
            Ok(_) => return Ok(None),
            // Known or not: the next try loads what there is now. To expire twice is to expire once.
            Err(ExpireError::Swap(
                error @ (SwapError::Conflict { .. } | SwapError::Unknown { .. } | SwapError::NotSent { .. }),
            )) => {
                tracing::info!(table = %job.table, %error, "expiry is tried again");
                last = error.to_string();
            }
            Err(ExpireError::Table(error)) => return Err(error.into()),
            Err(error) => return Err(ExpiryFailure::Refused(error)),
        }
    }
    Err(ExpiryFailure::Conflicts { tries: done.tries, last })
}

fn decide(table: &LoadedTable, job: &TableJob, now: DateTime<Utc>) -> Result<ExpiryPlan, ExpiryFailure> {
    let settings = ExpirySettings::of(job.retention, |key| table.property(key))?;
    Ok(decide_expiry(&table.history()?, &settings, now)?)
}

/// Snapshots that only a tag or the head of another branch holds.
fn pinned(plan: &ExpiryPlan) -> u64 {
    let held = |(_, decision): &&(i64, SnapshotDecision)| match decision {
        SnapshotDecision::Keep(KeepReason::Tagged(_)) => true,
        SnapshotDecision::Keep(KeepReason::Head(branch)) => branch != super::decide::MAIN,
        _ => false,
    };
    plan.snapshots.iter().filter(held).count() as u64
}
