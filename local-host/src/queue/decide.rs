//! What happens to a message before and after its function ran.

use std::time::Duration;

/// Longest name of a queue.
const MAX_NAME: usize = 63;
const POISON: &str = "-poison";

/// The queue that takes the poison of `queue`; None where there can be none.
pub fn poison_queue(queue: &str) -> Option<String> {
    let name = format!("{queue}{POISON}");
    (!queue.ends_with(POISON) && name.len() <= MAX_NAME).then_some(name)
}

/// Before the function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// It runs.
    Invoke,
    /// The message moves to the poison queue without a run, because its runs were used up by crashes of the host.
    Poison,
}

/// Decides by the deliveries so far, this one included.
pub fn decide_begin(dequeue_count: u64, max_dequeue_count: u32, has_poison_queue: bool) -> Begin {
    if has_poison_queue && dequeue_count > u64::from(max_dequeue_count) { Begin::Poison } else { Begin::Invoke }
}

/// How a run ended, as far as its message is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It succeeded, its outputs too.
    Succeeded,
    /// It failed or timed out.
    Failed,
    /// The host gave up: it leaves everything as it is.
    HostGaveUp,
    /// The host was asked to stop: another may have the message soon, and the attempt is not held against it.
    HostStops,
}

/// After the function ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The message is deleted.
    Delete,
    /// Its body is copied to the poison queue, then it is deleted.
    Poison,
    /// It is visible again after this time.
    Release(Duration),
    /// It stays hidden until its visibility ends by itself.
    Leave,
}

/// Decides what happens to a message.
pub fn decide_finish(
    end: RunEnd,
    dequeue_count: u64,
    max_dequeue_count: u32,
    has_poison_queue: bool,
    visibility_timeout: Duration,
) -> Finish {
    match end {
        RunEnd::Succeeded => Finish::Delete,
        RunEnd::HostGaveUp => Finish::Leave,
        RunEnd::HostStops => Finish::Release(visibility_timeout),
        RunEnd::Failed if !has_poison_queue => Finish::Leave,
        RunEnd::Failed if dequeue_count >= u64::from(max_dequeue_count) => Finish::Poison,
        RunEnd::Failed => Finish::Release(visibility_timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_poison_queues() {
        assert_eq!(poison_queue("firn-compact").as_deref(), Some("firn-compact-poison"));
        assert_eq!(poison_queue("firn-compact-poison"), None);
        assert_eq!(poison_queue(&"q".repeat(56)).map(|name| name.len()), Some(63));
        assert_eq!(poison_queue(&"q".repeat(57)), None);
    }

    #[test]
    fn exactly_max_dequeue_count_attempts() {
        let two_minutes = Duration::from_secs(120);
        let finish = |count, poison| decide_finish(RunEnd::Failed, count, 5, poison, two_minutes);
        for count in 1..=4 {
            assert_eq!(decide_begin(count, 5, true), Begin::Invoke);
            assert_eq!(finish(count, true), Finish::Release(two_minutes));
        }
        assert_eq!(decide_begin(5, 5, true), Begin::Invoke);
        assert_eq!(finish(5, true), Finish::Poison);
        assert_eq!(decide_begin(6, 5, true), Begin::Poison);
        // Without a poison queue a failed message stays hidden until its time ends.
        assert_eq!((decide_begin(6, 5, false), finish(6, false)), (Begin::Invoke, Finish::Leave));
        for end in [RunEnd::HostGaveUp, RunEnd::HostStops] {
            assert!(!matches!(decide_finish(end, 9, 5, true, two_minutes), Finish::Poison | Finish::Delete));
        }
        assert_eq!(decide_finish(RunEnd::Succeeded, 9, 5, true, two_minutes), Finish::Delete);
    }
}
