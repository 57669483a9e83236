//! Sends a message again as it is, because now is not its time. Its record, if it has one, stays as it is: the text names the same `gen`.

use std::time::Duration;

use firn_model::Message;
use firn_storage::SendOptions;
use firn_telemetry::{MessageDeferred, MessageFailed};

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::claim::time_left;
use crate::host::HostServices;

/// For a newer handler.
pub(crate) const NEWER_VERSION: Duration = Duration::from_secs(60 * 60);
/// By hand, and the partition is being worked on.
pub(crate) const BEING_WORKED_ON: Duration = Duration::from_secs(5 * 60);
/// Catalog or state store do not answer.
pub(crate) const NO_ANSWER: Duration = Duration::from_secs(5 * 60);
/// Other work has the memory of this process.
pub(crate) const NO_MEMORY: Duration = Duration::from_secs(60);
/// A message that lives no longer than this is not worth another round.
const SHORTEST_LIFE: Duration = Duration::from_secs(120);

/// For how long a message is hidden that has so much time to live; None when it lives too short.
pub(crate) fn hidden_for(wanted: Duration, to_live: Option<Duration>) -> Option<Duration> {
    match to_live {
        None => Some(wanted),
        Some(left) if left < SHORTEST_LIFE => None,
        Some(left) => Some(wanted.min(left / 2)),
    }
}

/// Sends the same text again with the time to live that it had left, and answers. When it cannot be sent, the host delivers it again.
pub(crate) async fn defer(
    services: &HostServices,
    delivered: &Delivered,
    message: Option<&Message>,
    wanted: Duration,
    reason: String,
) -> WorkAnswer {
    let now = services.clock.now();
    let to_live = delivered.expires.map(|expires| time_left(expires, now).unwrap_or(Duration::ZERO));
    let Some(hidden_for) = hidden_for(wanted, to_live) else {
        return fail(services, delivered, message, format!("{reason}; the message expires before another try"));
    };
    let Ok(text) = std::str::from_utf8(&delivered.body) else {
        return fail(services, delivered, message, format!("{reason}; it is no text, so it cannot be sent again"));
    };
    let options = SendOptions { hidden_for, time_to_live: to_live };
    if let Err(error) = services.queue.send(text, &options).await {
        return fail(services, delivered, message, format!("{reason}; sending it again failed: {error}"));
    }
    services.emitter.emit(&MessageDeferred {
        dataset: message.map(|message| message.dataset.clone()),
        pass: message.and_then(|message| message.pass.clone()),
        invocation: delivered.invocation_id.clone(),
        reason: reason.clone(),
        hidden_seconds: hidden_for.as_secs(),
    });
    WorkAnswer::new(WorkOutcome::Deferred, reason)
}

/// Nothing can be done with the message here: the host delivers it again.
pub(crate) fn fail(
    services: &HostServices,
    delivered: &Delivered,
    message: Option<&Message>,
    reason: String,
) -> WorkAnswer {
    services.emitter.emit(&MessageFailed {
        dataset: message.map(|message| message.dataset.clone()),
        pass: message.and_then(|message| message.pass.clone()),
        invocation: delivered.invocation_id.clone(),
        reason: reason.clone(),
    });
    WorkAnswer::fault(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_never_hidden_beyond_its_life() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert_eq!(hidden_for(minutes(60), None), Some(minutes(60)));
        assert_eq!(hidden_for(minutes(60), Some(minutes(600))), Some(minutes(60)));
        assert_eq!(hidden_for(minutes(60), Some(minutes(80))), Some(minutes(40)));
        assert_eq!(hidden_for(minutes(60), Some(minutes(1))), None);
        assert_eq!(hidden_for(minutes(60), Some(Duration::ZERO)), None);
    }
}
