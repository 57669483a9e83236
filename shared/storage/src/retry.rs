//! When a try is repeated, how long it is waited before, and when it is given up. Set here on purpose: the SDK's own retries
//! are off (its defaults take more than a minute on a refused connection, and do not cover the body of an answer).

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Limits for calls to a store. Every call is tried until it succeeds, fails for good, or one of the limits is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most tries of one call, the first included.
    pub tries: u32,
    /// Wait before the second try; it doubles with each further one. Half to all of it is waited, by chance.
    pub first_delay: Duration,
    /// Longest wait that is chosen here. A store that asks for more (`Retry-After`) gets more.
    pub max_delay: Duration,
    /// Longest time until a connection stands.
    pub connect_timeout: Duration,
    /// Longest time without an answer, or without the next bytes of one.
    pub try_timeout: Duration,
    /// Slowest acceptable upload: a try that sends bytes gets so much more time.
    pub min_bytes_per_second: u64,
    /// No wait goes beyond this while no try ever reached the store: a wrong endpoint should be told soon.
    pub unreachable_limit: Duration,
    /// No wait goes beyond this in all.
    pub total_limit: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            tries: 12,
            first_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(4),
            try_timeout: Duration::from_secs(30),
            min_bytes_per_second: 256 << 10,
            unreachable_limit: Duration::from_secs(10),
            total_limit: Duration::from_secs(120),
        }
    }
}

/// How far a failed try got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Nothing was sent: no connection.
    Nothing,
    /// The store answered that it did nothing and that trying again is worth it.
    Refused {
        /// The wait it asked for.
        retry_after: Option<Duration>,
    },
    /// The answer was lost, or says that the store failed: what was asked for may have happened.
    Perhaps,
    /// The store answered, and would answer the same again.
    Final,
}

/// One failed try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reached: Reached,
    /// HTTP status, when there was an answer.
    pub(crate) status: Option<u16>,
    /// The store's code for the error.
    pub(crate) code: Option<String>,
    /// What happened, free of secrets.
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn perhaps(detail: impl Into<String>) -> Self {
        Failure { reached: Reached::Perhaps, status: None, code: None, detail: detail.into() }
    }

    pub(crate) fn lasting(detail: impl Into<String>) -> Self {
        Failure { reached: Reached::Final, status: None, code: None, detail: detail.into() }
    }
}

/// The last failure of a call that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GaveUp {
    pub(crate) failure: Failure,
    /// Tries made.
    pub(crate) tries: u32,
    /// Whether a try before the last one got as far as the store.
    pub(crate) reached_before: bool,
    /// Whether any try may have done what was asked for, although it did not say so.
    pub(crate) perhaps_done: bool,
    /// Time since the first try began.
    pub(crate) elapsed: Duration,
}

/// What to do after a failed try.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait(Duration),
    GiveUp,
}

impl RetryPolicy {
    /// Calls `attempt` until it succeeds or is given up. `subject`, a blob or queue, is for the log.
    pub(crate) async fn run<T, F>(
        &self,
        doing: &str,
        subject: &impl Display,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, GaveUp>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let start = Instant::now();
        let (mut tries, mut ever_reached, mut perhaps_done) = (0, false, false);
        loop {
            tries += 1;
            let failure = match attempt().await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let (reached_before, elapsed) = (ever_reached, start.elapsed());
            ever_reached |= failure.reached != Reached::Nothing;
            perhaps_done |= failure.reached == Reached::Perhaps;
            match self.next(&failure, tries, ever_reached, elapsed, rand::random_range(0.5..=1.0)) {
                Next::GiveUp => return Err(GaveUp { failure, tries, reached_before, perhaps_done, elapsed }),
                Next::Wait(delay) => {
                    tracing::warn!(%subject, doing, tries, wait_ms = delay.as_millis(), reason = failure.detail, "retry");
                    sleep(delay).await;
                }
            }
        }
    }

    /// Decides after try number `tries`, of which some, or none (`ever_reached`), got as far as the store. `jitter` is
    /// between 0.5 and 1.
    fn next(&self, failure: &Failure, tries: u32, ever_reached: bool, elapsed: Duration, jitter: f64) -> Next {
        if failure.reached == Reached::Final || tries >= self.tries {
            return Next::GiveUp;
        }
        let doubled = self.first_delay.saturating_mul(1 << (tries - 1).min(20));
        let own = doubled.min(self.max_delay).mul_f64(jitter);
        let delay = match failure.reached {
            Reached::Refused { retry_after: Some(asked) } => asked.max(own),
            _ => own,
        };
        let limit = if ever_reached { self.total_limit } else { self.unreachable_limit };
        if elapsed + delay > limit { Next::GiveUp } else { Next::Wait(delay) }
    }

    /// Runs one try that sends `bytes`, within its time.
    pub(crate) async fn timed<T>(
        &self,
        bytes: usize,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let sending = Duration::from_secs_f64(bytes as f64 / self.min_bytes_per_second.max(1) as f64);
        let limit = self.try_timeout + sending;
        match timeout(limit, attempt).await {
            Ok(result) => result,
            Err(_) => Err(Failure::perhaps(format!("no answer in {:.1} s", limit.as_secs_f64()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_model::BlobId;

    use super::*;

    fn failure(reached: Reached) -> Failure {
        Failure { reached, status: None, code: None, detail: "x".into() }
    }

    fn policy() -> RetryPolicy {
        RetryPolicy {
            tries: 5,
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(3),
            unreachable_limit: Duration::from_secs(10),
            total_limit: Duration::from_secs(60),
            ..RetryPolicy::default()
        }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let wait = |tries| policy().next(&failure(Reached::Perhaps), tries, true, Duration::ZERO, 1.0);
        assert_eq!(wait(1), Next::Wait(Duration::from_secs(1)));
        assert_eq!(wait(2), Next::Wait(Duration::from_secs(2)));
        assert_eq!(wait(3), Next::Wait(Duration::from_secs(3)));
        assert_eq!(wait(5), Next::GiveUp);
        assert_eq!(
            policy().next(&failure(Reached::Perhaps), 2, true, Duration::ZERO, 0.5),
            Next::Wait(Duration::from_secs(1))
        );
    }

    #[test]
    fn what_the_store_asks_for_is_waited_unless_it_is_too_long() {
        let asked = |seconds| failure(Reached::Refused { retry_after: Some(Duration::from_secs(seconds)) });
        let next = |seconds, elapsed| policy().next(&asked(seconds), 1, true, Duration::from_secs(elapsed), 1.0);
        assert_eq!(next(7, 0), Next::Wait(Duration::from_secs(7)));
        assert_eq!(next(0, 0), Next::Wait(Duration::from_secs(1)));
        assert_eq!(next(72_000, 0), Next::GiveUp);
        assert_eq!(next(30, 31), Next::GiveUp);
    }

    #[test]
    fn a_store_that_was_never_reached_is_given_up_sooner() {
        let next =
            |ever_reached| policy().next(&failure(Reached::Nothing), 3, ever_reached, Duration::from_secs(9), 1.0);
        assert_eq!(next(false), Next::GiveUp);
        assert_eq!(next(true), Next::Wait(Duration::from_secs(3)));
    }

    #[test]
    fn what_is_final_is_not_tried_again() {
        assert_eq!(policy().next(&failure(Reached::Final), 1, true, Duration::ZERO, 1.0), Next::GiveUp);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_tells_whether_it_may_have_happened() {
        let id = BlobId::local("/x");
        let mut script = [Reached::Nothing, Reached::Perhaps, Reached::Final].into_iter();
        let gave_up = policy()
            .run("test", &id, || {
                let reached = script.next().unwrap();
                async move { Err::<(), _>(failure(reached)) }
            })
            .await
            .unwrap_err();
        assert_eq!((gave_up.tries, gave_up.reached_before, gave_up.perhaps_done), (3, true, true));
        let once = policy().run("test", &id, || async { Err::<(), _>(failure(Reached::Final)) }).await.unwrap_err();
        assert_eq!((once.tries, once.reached_before, once.perhaps_done), (1, false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn the_defaults_give_a_refused_connection_up_within_ten_seconds() {
        let id = BlobId::local("/x");
        let attempt = || async { Err::<(), _>(failure(Reached::Nothing)) };
        let gave_up = RetryPolicy::default().run("test", &id, attempt).await.unwrap_err();
        assert!(gave_up.elapsed > Duration::from_secs(3) && gave_up.elapsed <= Duration::from_secs(10), "{gave_up:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_gets_time_for_what_it_sends() {
        let policy = RetryPolicy { min_bytes_per_second: 100, try_timeout: Duration::from_secs(1), ..policy() };
        let slow = || async {
            sleep(Duration::from_secs(3)).await;
            Ok(())
        };
        assert_eq!(policy.timed(300, slow()).await, Ok(()));
        assert_eq!(policy.timed(100, slow()).await, Err(Failure::perhaps("no answer in 2.0 s")));
    }
}
