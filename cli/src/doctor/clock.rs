//! How far this machine's clock is from the store's.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::access::Probed;
use super::finding::Finding;

/// Ages of files, leases and tokens are compared across the two clocks; a token is refused from five minutes on.
const LIMIT: Duration = Duration::from_secs(60);
/// The store tells whole seconds.
const GRAIN: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Nearer than can be told.
    Right,
    /// Not compared, because nothing could be written yet: an emulator on this machine has its clock.
    Emulator,
    Ahead(Duration),
    Behind(Duration),
}

/// Compares the time of the write with ours before and after it.
pub(super) fn decide(probed: &Probed) -> Clock {
    let distance = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
    let ahead = distance(probed.store + GRAIN, probed.before);
    let behind = distance(probed.after, probed.store);
    match (ahead.is_zero(), behind.is_zero()) {
        (true, true) => Clock::Right,
        (false, _) => Clock::Ahead(ahead),
        (true, false) => Clock::Behind(behind),
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (distance, word) = match self {
            Clock::Right => return f.write_str("as the store's"),
            Clock::Emulator => return f.write_str("not compared: an emulator has the clock of this machine"),
            Clock::Ahead(distance) => (distance, "ahead of"),
            Clock::Behind(distance) => (distance, "behind"),
        };
        write!(f, "{} s {word} the store's", distance.as_secs())?;
        if self.ok() { Ok(()) } else { write!(f, ", at most {} s are safe: set it by NTP", LIMIT.as_secs()) }
    }
}

impl Finding for Clock {
    fn ok(&self) -> bool {
        match self {
            Clock::Right | Clock::Emulator => true,
            Clock::Ahead(distance) | Clock::Behind(distance) => *distance <= LIMIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_of_the_store_are_no_skew() {
        let at = |milliseconds: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(10_000_000 + milliseconds);
        let decide = |store, before, after| decide(&Probed { store: at(store), before: at(before), after: at(after) });
        assert_eq!(decide(5_000, 5_900, 6_100), Clock::Right);
        assert_eq!(decide(5_000, 4_100, 5_100), Clock::Right);
        assert_eq!(decide(5_000, 96_000, 96_500), Clock::Ahead(Duration::from_secs(90)));
        let behind = decide(125_000, 4_000, 5_000);
        assert_eq!(behind, Clock::Behind(Duration::from_secs(120)));
        assert_eq!(behind.to_string(), "120 s behind the store's, at most 60 s are safe: set it by NTP");
        assert!(!behind.ok() && Clock::Ahead(Duration::from_secs(60)).ok());
        assert_eq!(Clock::Ahead(Duration::from_secs(3)).to_string(), "3 s ahead of the store's");
    }
}
