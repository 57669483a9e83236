//! The memory of the process, shared by all invocations in it (design section 1).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The one memory budget of a process. Clones share it. Who reserves waits in order of arrival, so a large job is not passed for ever.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    total_mb: u32,
}

/// Reserved memory; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    _permit: OwnedSemaphorePermit,
    megabytes: u32,
}

impl Reservation {
    /// Megabytes (2^20) reserved.
    pub fn megabytes(&self) -> u32 {
        self.megabytes
    }
}

impl MemoryBudget {
    /// A budget of so many megabytes (2^20), at least one.
    pub fn new(total_mb: u64) -> Self {
        let total_mb = u32::try_from(total_mb).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4);
        Self { free: Arc::new(Semaphore::new(total_mb as usize)), total_mb }
    }

    /// All of it, in megabytes.
    pub fn total_mb(&self) -> u32 {
        self.total_mb
    }

    /// What nobody has reserved, in megabytes.
    pub fn free_mb(&self) -> usize {
        self.free.available_permits()
    }

    /// Waits until so many megabytes are free and reserves them. A job that wants more than there is gets everything, alone.
    pub async fn reserve(&self, megabytes: u64) -> Reservation {
        let wanted = u32::try_from(megabytes).unwrap_or(u32::MAX).clamp(1, self.total_mb);
        if u64::from(wanted) < megabytes {
            tracing::warn!(wanted = megabytes, total = self.total_mb, "memoryMb is more than the process may use");
        }
        let free = Arc::clone(&self.free);
        #[allow(clippy::expect_used, reason = "the semaphore is private and never closed")]
        let permit = free.acquire_many_owned(wanted).await.expect("the semaphore is open");
        Reservation { _permit: permit, megabytes: wanted }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn reservations_never_exceed_the_total_and_come_back() {
        let budget = MemoryBudget::new(1000);
        let first = budget.reserve(600).await;
        assert_eq!((first.megabytes(), budget.free_mb()), (600, 400));
        let mut second = Box::pin(budget.reserve(512));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        assert_eq!(second.await.megabytes(), 512);
        assert_eq!(budget.free_mb(), 1000);
    }

    #[tokio::test]
    async fn who_came_first_is_served_first() {
        let budget = MemoryBudget::new(10);
        let held = budget.reserve(6).await;
        let mut large = Box::pin(budget.reserve(8));
        assert!((&mut large).now_or_never().is_none());
        let mut small = Box::pin(budget.reserve(1));
        assert!((&mut small).now_or_never().is_none(), "a small job does not pass the large one");
        drop(held);
        let large = large.await;
        assert_eq!((large.megabytes(), small.await.megabytes()), (8, 1));
    }

    #[tokio::test]
    async fn more_than_there_is_gets_everything() {
        let budget = MemoryBudget::new(100);
        let all = budget.reserve(1 << 40).await;
        assert_eq!((all.megabytes(), budget.free_mb()), (100, 0));
    }
}
