//! The time as the host sees it: the machine's, or one that a test moves.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use firn_storage::Clock as StorageClock;
use tokio::sync::watch;

/// A clock, and sleeping by it.
#[async_trait]
pub trait Clock: Send + Sync + Debug {
    /// The time now.
    fn now(&self) -> DateTime<Utc>;

    /// Returns once `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A clock that stands until somebody moves it. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: watch::Sender<DateTime<Utc>>,
    storage: StorageClock,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: DateTime<Utc>) -> Self {
        Self { now: watch::Sender::new(now), storage: StorageClock::manual(now) }
    }

    /// The same time for queues and leases in memory.
    pub fn storage(&self) -> StorageClock {
        self.storage.clone()
    }

    /// Moves the time forward and wakes those whose sleep is over.
    pub fn advance(&self, by: Duration) {
        self.storage.advance(by);
        self.now.send_modify(|now| *now += by);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.borrow()
    }

    async fn sleep(&self, duration: Duration) {
        let mut now = self.now.subscribe();
        let Ok(duration) = chrono::Duration::from_std(duration) else { return std::future::pending().await };
        let Some(until) = now.borrow_and_update().checked_add_signed(duration) else {
            return std::future::pending().await;
        };
        // The sender lives in `self`, so it is never gone while we wait.
        let _ = now.wait_for(|now| *now >= until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_when_the_time_was_moved_far_enough() {
        let clock = ManualClock::at(DateTime::UNIX_EPOCH);
        let sleeper = clock.clone();
        let mut sleep = std::pin::pin!(sleeper.sleep(Duration::from_secs(10)));
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        clock.advance(Duration::from_secs(9));
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        clock.advance(Duration::from_secs(1));
        assert!(futures::poll!(sleep.as_mut()).is_ready());
        assert_eq!(clock.now(), clock.storage().now());
        assert_eq!(clock.now(), DateTime::UNIX_EPOCH + Duration::from_secs(10));
        clock.sleep(Duration::ZERO).await;
    }
}
