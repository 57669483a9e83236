//! `firn expire`, `firn statistics` and `firn orphans`: one pass now, in this process.

use firn_config::Config;
use firn_maintain::table_jobs;
use firn_state::StateStore;
use firn_storage::Clock;
use firn_telemetry::Emitter;
use uuid::Uuid;

use super::tables::Tables;
use super::{MaintainReport, MaintainSummary, Task, receipts};
use crate::load::chosen;
use crate::queue::state_error;
use crate::report::PassError;
use crate::wiring;

/// Expires snapshots of one or all datasets now.
///
/// # Errors
/// [`PassError::Usage`] for a dataset that is not configured, [`PassError::Unavailable`] when catalog or state cannot be opened. A table
/// that fails is counted and passed over.
pub async fn expire(
    config: &Config,
    dataset: Option<&str>,
    emitter: &Emitter,
    report: &mut dyn MaintainReport,
) -> Result<MaintainSummary, PassError> {
    run(config, Task::Expire, dataset, emitter, report).await
}

/// Deletes what no snapshot of one or all datasets refers to, or only lists it.
///
/// # Errors
/// As [`expire`].
pub async fn orphans(
    config: &Config,
    dataset: Option<&str>,
    dry_run: bool,
    emitter: &Emitter,
    report: &mut dyn MaintainReport,
) -> Result<MaintainSummary, PassError> {
    run(config, Task::Orphans { dry_run }, dataset, emitter, report).await
}

/// Makes the statistics of one dataset's table now, or of all that want them (`tableStatistics`).
///
/// # Errors
/// As [`expire`]; [`PassError::Usage`] also for a dataset that names no `ndvColumns`.
pub async fn statistics(
    config: &Config,
    dataset: Option<&str>,
    emitter: &Emitter,
    report: &mut dyn MaintainReport,
) -> Result<MaintainSummary, PassError> {
    let mut datasets = chosen(config, dataset)?;
    match dataset {
        None => datasets.retain(|dataset| dataset.table_statistics),
        Some(_) => {
            if let Some(without) = datasets.iter().find(|dataset| dataset.ndv_columns.is_empty()) {
                let key = without.key("ndvColumns");
                return Err(PassError::Usage(format!("{key} is empty: name the columns whose values are counted")));
            }
        }
    }
    let services = wiring::open(config).await?;
    let state = StateStore::look(config).map_err(state_error)?;
    let (clock, invocation) = (Clock::system(), Uuid::new_v4().to_string());
    let mut tables = Tables::new(config, services.catalog.as_ref(), &state, &clock, emitter, &invocation);
    for dataset in datasets {
        tables.summary.tables += 1;
        tables.statistics(dataset, None, &services.stop, report).await;
    }
    Ok(tables.summary)
}

async fn run(
    config: &Config,
    task: Task,
    dataset: Option<&str>,
    emitter: &Emitter,
    report: &mut dyn MaintainReport,
) -> Result<MaintainSummary, PassError> {
    chosen(config, dataset)?;
    let services = wiring::open(config).await?;
    let state = match task {
        Task::Orphans { dry_run: true } => StateStore::look(config),
        _ => StateStore::open(config).await,
    };
    let state = state.map_err(state_error)?;
    let (clock, invocation) = (Clock::system(), Uuid::new_v4().to_string());
    let mut tables = Tables::new(config, services.catalog.as_ref(), &state, &clock, emitter, &invocation);
    for job in table_jobs(config, dataset) {
        tables.one(task, &job, retries(config, &job.dataset), report).await;
    }
    if task == (Task::Orphans { dry_run: false }) {
        receipts::forget_old(&state, config.maintenance.receipt_days, &clock).await;
    }
    Ok(tables.summary)
}

/// `commitRetryMax` of a dataset.
pub(crate) fn retries(config: &Config, dataset: &str) -> u64 {
    config.dataset(dataset).map_or(config.compaction.settings.commit_retry_max, |own| own.compaction.commit_retry_max)
}
