//! Passes whose partitions are on the queue: their end, and the counter of those that run longer than `runtimeDeadlineHours`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use firn_compact::HostServices;
use firn_config::hours;
use firn_state::{PassRecord, Read, StateError};
use firn_telemetry::PassOverDeadline;

/// What becomes of a pass that was open at the last tick, or has partitions on the queue now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PassState {
    /// It goes on.
    Open,
    /// It goes on, and is over its deadline for the first time.
    OverDeadline,
    /// Nothing of it is on the queue any more.
    Ended,
}

/// Decides for one pass; `partitions` are those of its partitions that are queued or being worked on.
pub(crate) fn pass_state(record: &PassRecord, partitions: u64, now: DateTime<Utc>, deadline: TimeDelta) -> PassState {
    if partitions == 0 {
        PassState::Ended
    } else if !record.over_deadline && now - record.started_at > deadline {
        PassState::OverDeadline
    } else {
        PassState::Open
    }
}

/// Writes the document of a pass whose messages are sent. It is for people and the counter only.
pub(crate) async fn record(host: &HostServices, pass: PassRecord) {
    let sent = PassRecord { sent_at: Some(host.clock.now()), ..pass };
    if let Err(error) = host.state.write(&host.state.root().pass(&sent.pass), &sent).await {
        tracing::warn!(%error, "the pass has no document; its messages are sent");
    }
}

/// Follows the passes that were open before and those that `on_queue` names, and gives those that are open now. A pass whose
/// document cannot be read is left out: it is for people and the counter only.
pub(crate) async fn follow(
    host: &HostServices,
    before: &BTreeSet<String>,
    on_queue: &BTreeMap<String, u64>,
    now: DateTime<Utc>,
    invocation: &str,
) -> BTreeSet<String> {
    let deadline = hours(host.config.compaction.runtime_deadline_hours);
    let passes: BTreeSet<&String> = before.iter().chain(on_queue.keys()).collect();
    let mut open = BTreeSet::new();
    for pass in passes {
        let partitions = on_queue.get(pass).copied().unwrap_or(0);
        match follow_one(host, pass, partitions, now, deadline, invocation).await {
            Ok(true) => {
                open.insert(pass.clone());
            }
            Ok(false) => {}
            Err(error) if error.is_conflict() => {
                open.insert(pass.clone());
            }
            Err(error) => tracing::warn!(pass, %error, "a pass is not followed any more"),
        }
    }
    open
}

async fn follow_one(
    host: &HostServices,
    pass: &str,
    partitions: u64,
    now: DateTime<Utc>,
    deadline: TimeDelta,
    invocation: &str,
) -> Result<bool, StateError> {
    let address = host.state.root().pass(pass);
    // A worker that was asked by hand names a pass without a document.
    let Some(Read { value: record, version }) = host.state.read(&address).await? else { return Ok(false) };
    match pass_state(&record, partitions, now, deadline) {
        PassState::Open => Ok(true),
        PassState::Ended => {
            let ended = PassRecord { ended_at: record.ended_at.or(Some(now)), ..record };
            host.state.replace(&address, &ended, &version, None).await?;
            Ok(false)
        }
        PassState::OverDeadline => {
            let event = PassOverDeadline {
                pass: pass.to_owned(),
                invocation: invocation.to_owned(),
                rule: record.rule.as_str(),
                partitions,
                duration_ms: u64::try_from((now - record.started_at).num_milliseconds()).unwrap_or(0),
                ..PassOverDeadline::default()
            };
            let marked = PassRecord { over_deadline: true, ..record };
            // Marked first: of two planners one says so.
            host.state.replace(&address, &marked, &version, None).await?;
            host.emitter.emit(&event.counted());
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_model::Rule;

    #[test]
    fn a_pass_is_over_its_deadline_once_and_ends_with_its_last_partition() {
        let started = DateTime::UNIX_EPOCH;
        let record = PassRecord::new("p", Rule::Schedule, started);
        let state = |record: &PassRecord, partitions, hours| {
            pass_state(record, partitions, started + TimeDelta::hours(hours), TimeDelta::hours(6))
        };
        assert_eq!(state(&record, 3, 1), PassState::Open);
        assert_eq!(state(&record, 3, 6), PassState::Open);
        assert_eq!(state(&record, 3, 7), PassState::OverDeadline);
        assert_eq!(state(&record, 0, 7), PassState::Ended, "nobody waits for it");
        let marked = PassRecord { over_deadline: true, ..record };
        assert_eq!(state(&marked, 3, 8), PassState::Open, "counted already");
    }
}
