//! `expire-snapshots` and `clean-orphans`, by timer. A run that fails is not recorded as done, so the next one goes on.

use firn_compact::HostServices;
use firn_pass::{MaintainTick, PassError, expire_tick, orphans_tick};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::invocation::Invocation;

/// Expires snapshots of every table, within the time that the host gives.
pub async fn expire(services: &HostServices, invocation: &Invocation) -> Answer {
    within(services, expire_tick(services, &invocation.id)).await
}

/// Sweeps every table, within the time that the host gives.
pub async fn orphans(services: &HostServices, invocation: &Invocation) -> Answer {
    within(services, orphans_tick(services, &invocation.id)).await
}

/// The tick ends itself before the limit; what hangs is ended at it. Between two tables, and between two batches of deletions, everything is
/// written down.
async fn within(services: &HostServices, tick: impl Future<Output = Result<MaintainTick, PassError>>) -> Answer {
    let result = match services.run_limit {
        Some(limit) => match tokio::time::timeout(limit, tick).await {
            Ok(result) => result,
            Err(_) => {
                return Answer::fault(format!("not done in {} s; the next run goes on", limit.as_secs()));
            }
        },
        None => tick.await,
    };
    match result {
        Ok(done) => {
            let value = serde_json::to_value(&done).unwrap_or_else(|_| json!({}));
            let line = line(&done, &value);
            Answer::done(value).log(line)
        }
        Err(error) => Answer::fault(error.to_string()),
    }
}

fn line(done: &MaintainTick, value: &Value) -> String {
    if !done.due {
        return "not due yet: the interval has not passed since the last run".to_owned();
    }
    let mut line = format!(
        "{} tables, {} failed, {} left alone: {} snapshots expired, {} statistics made, {} files deleted",
        value["tables"], value["failed"], value["left"], value["expired"], value["statistics"], value["deleted"]
    );
    if let Some(next) = &done.next {
        line.push_str(&format!("; out of time, the next run goes on with {next}"));
    }
    line
}
