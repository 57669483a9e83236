//! `plan`, by timer: one tick of the planner. A tick that fails is not recorded, so the next one does its work.

use firn_compact::HostServices;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::invocation::Invocation;

/// Runs one tick, within the time that the host gives.
pub async fn run(services: &HostServices, invocation: &Invocation) -> Answer {
    let tick = firn_pass::tick(services, &invocation.id);
    let result = match services.run_limit {
        // What was sent is recorded message by message, so an end in the middle loses nothing.
        Some(limit) => match tokio::time::timeout(limit, tick).await {
            Ok(result) => result,
            Err(_) => {
                return Answer::fault(format!("the tick was not done in {} s; the next one goes on", limit.as_secs()));
            }
        },
        None => tick.await,
    };
    match result {
        Ok(summary) => match serde_json::to_value(&summary) {
            Ok(value) => {
                let line = line(&value);
                Answer::done(value).log(line)
            }
            Err(error) => Answer::done(json!({})).log(format!("the summary cannot be written: {error}")),
        },
        Err(error) => Answer::fault(error.to_string()),
    }
}

fn line(summary: &Value) -> String {
    if summary["due"] == false {
        let next = summary["nextTick"].as_str().unwrap_or_default();
        return format!(
            "no tick yet: the next one is due at {next} (backlogCheckIntervalMinutes); to plan a dataset now, send its name to compact"
        );
    }
    format!(
        "tick: {} datasets, {} partitions, {} messages sent, {} wait",
        summary["datasets"], summary["partitions"], summary["sent"], summary["waiting"]
    )
}
