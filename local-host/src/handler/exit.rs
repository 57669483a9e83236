//! What the end of the handler's process leads to.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Exit code of a handler that asks for a restart.
const INTENTIONAL_RESTART: i32 = 200;

/// How the process ended, or why the host ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself with an exit code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// It did not answer within the readiness window.
    NotReady(Duration),
    /// The host kills it, because a function timed out.
    FunctionTimeout,
}

/// What the host does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterEnd {
    /// Nothing: the host believes that the handler still listens, and every invocation fails from now on.
    Nothing,
    /// Another process is started at once.
    Restart,
    /// The host stops.
    Shutdown,
}

/// Ends that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strikes {
    count: usize,
    last: Option<DateTime<Utc>>,
}

impl Strikes {
    /// What follows from `ended` at `now`: exit 0 is never restarted, exit 200 and time-outs are not counted, every other end
    /// is; the one that makes `limit` stops the host. Counted ends are forgotten when the last one is longer ago than
    /// `forgotten_after`.
    pub fn decide(&mut self, ended: &Ended, now: DateTime<Utc>, limit: usize, forgotten_after: Duration) -> AfterEnd {
        match ended {
            Ended::Exited(0) => return AfterEnd::Nothing,
            Ended::Exited(INTENTIONAL_RESTART) | Ended::FunctionTimeout => return AfterEnd::Restart,
            Ended::Exited(_) | Ended::Killed(_) | Ended::NotReady(_) => {}
        }
        let age = self.last.map(|last| now.signed_duration_since(last).to_std().unwrap_or_default());
        if age.is_some_and(|age| age > forgotten_after) {
            self.count = 0;
        }
        self.count += 1;
        self.last = Some(now);
        if self.count < limit { AfterEnd::Restart } else { AfterEnd::Shutdown }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exited(code) => write!(f, "exited with code {code}"),
            Ended::Killed(signal) => write!(f, "was ended by signal {signal}"),
            Ended::NotReady(window) => write!(f, "did not answer within {window:?}"),
            Ended::FunctionTimeout => f.write_str("ran a function for longer than functionTimeout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_HOUR: Duration = Duration::from_secs(1800);

    fn run(ends: &[(Ended, i64)]) -> Vec<AfterEnd> {
        let mut strikes = Strikes::default();
        let decide = |(ended, second): &(Ended, i64)| {
            strikes.decide(ended, DateTime::from_timestamp(*second, 0).unwrap(), 3, HALF_HOUR)
        };
        ends.iter().map(decide).collect()
    }

    #[test]
    fn the_third_counted_end_stops_the_host() {
        let ends = [(Ended::Exited(1), 0), (Ended::Killed(9), 10), (Ended::NotReady(HALF_HOUR), 20)];
        assert_eq!(run(&ends), [AfterEnd::Restart, AfterEnd::Restart, AfterEnd::Shutdown]);
    }

    #[test]
    fn ends_that_do_not_count() {
        let ends =
            [(Ended::Exited(200), 0), (Ended::FunctionTimeout, 1), (Ended::Exited(200), 2), (Ended::Exited(200), 3)];
        assert_eq!(run(&ends), [AfterEnd::Restart; 4]);
        assert_eq!(run(&[(Ended::Exited(0), 0)]), [AfterEnd::Nothing]);
    }

    #[test]
    fn strikes_are_forgotten_half_an_hour_after_the_last() {
        let kept = [(Ended::Exited(1), 0), (Ended::Exited(1), 1800), (Ended::Exited(1), 3600)];
        assert_eq!(run(&kept)[2], AfterEnd::Shutdown);
        let forgotten =
            [(Ended::Exited(1), 0), (Ended::Exited(1), 10), (Ended::Exited(1), 1811), (Ended::Exited(1), 1812)];
        assert_eq!(run(&forgotten)[2..], [AfterEnd::Restart, AfterEnd::Restart]);
    }
}
