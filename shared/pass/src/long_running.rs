//! The long-running compactor: the schedule of the compactor specification to the letter, in one process.
//!
//! The first tick comes at the start, then one every `backlogCheckIntervalMinutes`. Scheduled times count from the start of the
//! process: one that passes while it is stopped is not done later. Ticks that a long pass overruns make one at its end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use firn_compact::Services;
use firn_config::{Config, Dataset};
use firn_plan::{pass_rule, tick_rules};
use firn_telemetry::Emitter;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::due::schedule_due;
use crate::events::PassEvents;
use crate::here::PassHere;
use crate::report::{PassError, PassSummary, Report};
use crate::request::ManualRequest;
use crate::wiring;

/// Runs passes until `told_to_stop` is ready. The merge that is running then ends at its next window without a commit; what was
/// committed stays. A pass with failures is logged, counted in its event and followed by the next one.
///
/// # Errors
/// Only at the start: [`PassError::Usage`] for what this version cannot use, [`PassError::Unavailable`] for a catalog that is not there.
pub async fn long_running(
    config: &Config,
    emitter: &Emitter,
    report: &mut dyn Report,
    told_to_stop: impl Future<Output = ()>,
) -> Result<(), PassError> {
    let services = wiring::open(config).await?;
    let datasets: Vec<&Dataset> = config.datasets.iter().collect();
    let mut told_to_stop = pin!(told_to_stop);
    let mut ticks = interval(Duration::from_secs(config.compaction.backlog_check_interval_minutes * 60));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut done_until = Utc::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = &mut told_to_stop => return Ok(()),
        }
        let now = Utc::now();
        let due = schedule_due(&config.compaction.schedule, Some(done_until), now, TimeDelta::MAX);
        done_until = done_until.max(now);
        let mut pass = pin!(one_pass(config, &services, emitter, report, &datasets, due.made_up.is_some()));
        tokio::select! {
            _ = &mut pass => {}
            () = &mut told_to_stop => {
                services.stop.stop();
                pass.await;
                return Ok(());
            }
        }
    }
}

async fn one_pass(
    config: &Config,
    services: &Services,
    emitter: &Emitter,
    report: &mut dyn Report,
    datasets: &[&Dataset],
    schedule_due: bool,
) -> PassSummary {
    let rules = tick_rules(schedule_due);
    let id = Uuid::new_v4().to_string();
    let events = &PassEvents::new(emitter, id.clone(), id, pass_rule(schedule_due));
    let request = &ManualRequest::default();
    let pass = PassHere { services, events, request, report, rules, by_hand: false, summary: PassSummary::default() };
    let summary = pass.run(datasets).await;
    events.finished(config, false, datasets.len(), &summary);
    summary
}
