//! Renews a lease on a thread of its own, which no other work of the process can starve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use firn_model::BlobId;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Lease, LeaseError, LeaseId};

/// Keeps a lease until it is released or dropped. A dropped keeper only stops: its lease runs out by itself.
#[derive(Debug)]
pub struct LeaseKeeper {
    lost: Arc<AtomicBool>,
    /// Sending ends the thread, which releases the lease and answers. Dropping it ends the thread without.
    stop: Option<oneshot::Sender<oneshot::Sender<Result<(), LeaseError>>>>,
    blob: BlobId,
}

/// What a failed renewal means.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Lost,
    TryAgain,
}

impl LeaseKeeper {
    /// Keeps `held`, which was just taken for `duration`, by renewing it every third of that time. An error that may pass is
    /// tolerated until the lease has run out.
    ///
    /// # Errors
    /// [`LeaseError::Other`] when the machine gives no thread.
    pub fn hold(
        lease: Arc<dyn Lease>,
        id: BlobId,
        held: LeaseId,
        duration: Duration,
    ) -> Result<LeaseKeeper, LeaseError> {
        Self::hold_renewing(lease, id, held, duration, duration / 3)
    }

    /// As [`LeaseKeeper::hold`], renewing every `interval`.
    ///
    /// # Errors
    /// As [`LeaseKeeper::hold`].
    pub fn hold_renewing(
        lease: Arc<dyn Lease>,
        id: BlobId,
        held: LeaseId,
        duration: Duration,
        interval: Duration,
    ) -> Result<LeaseKeeper, LeaseError> {
        let lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = oneshot::channel();
        let failed = |error: std::io::Error| LeaseError::other(&id, format!("no thread to renew it: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let start = Instant::now();
        let work = Keeping { lease: lease.separate().unwrap_or(lease), id: id.clone(), held, lost: lost.clone() };
        thread::Builder::new()
            .name("firn-lease".into())
            .spawn(move || runtime.block_on(work.run(start, duration, interval, stopped)))
            .map_err(failed)?;
        Ok(LeaseKeeper { lost, stop: Some(stop), blob: id })
    }

    /// Whether the lease is known to be lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The flag behind [`LeaseKeeper::is_lost`], for work that looks at it between its steps.
    pub fn lost_flag(&self) -> Arc<AtomicBool> {
        self.lost.clone()
    }

    /// Stops renewing and gives the lease back.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] when it was lost before.
    pub async fn release(mut self) -> Result<(), LeaseError> {
        let ended = || LeaseError::other(&self.blob, "the thread that renews it has ended");
        let (answer, answered) = oneshot::channel();
        let stop = self.stop.take().ok_or_else(ended)?;
        if stop.send(answer).is_err() {
            return Err(if self.is_lost() { LeaseError::lost(&self.blob) } else { ended() });
        }
        answered.await.map_err(|_| ended())?
    }
}

/// What the thread works with.
struct Keeping {
    lease: Arc<dyn Lease>,
    id: BlobId,
    held: LeaseId,
    lost: Arc<AtomicBool>,
}

impl Keeping {
    async fn run(
        self,
        start: Instant,
        duration: Duration,
        interval: Duration,
        mut stopped: oneshot::Receiver<oneshot::Sender<Result<(), LeaseError>>>,
    ) {
        let mut runs_out = start + duration;
        loop {
            let renewing = async {
                sleep(interval).await;
                self.renew(&mut runs_out, duration).await
            };
            tokio::select! {
                stop = &mut stopped => {
                    if let Ok(answer) = stop {
                        // Nobody waiting for the answer is no reason to keep the lease.
                        let _ = answer.send(self.lease.release(&self.id, &self.held).await);
                    }
                    return;
                }
                verdict = renewing => if verdict == Verdict::Lost {
                    tracing::warn!(blob = %self.id, "lease lost");
                    self.lost.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }

    /// One renewal, which may take until the lease has run out.
    async fn renew(&self, runs_out: &mut Instant, duration: Duration) -> Verdict {
        let asked = Instant::now();
        match timeout_at(*runs_out, self.lease.renew(&self.id, &self.held)).await {
            // The store counts from when it was asked, at the earliest.
            Ok(Ok(())) => *runs_out = asked + duration,
            Ok(Err(error)) => {
                tracing::warn!(blob = %self.id, %error, "lease not renewed");
                return judge(&error, Instant::now() >= *runs_out);
            }
            Err(_) => return Verdict::Lost,
        }
        Verdict::TryAgain
    }
}

/// Decides after a failed renewal.
fn judge(error: &LeaseError, has_run_out: bool) -> Verdict {
    match error {
        LeaseError::Lost { .. } | LeaseError::NotFound { .. } | LeaseError::Held { .. } => Verdict::Lost,
        _ if has_run_out => Verdict::Lost,
        // Also a denial: roles take minutes to settle, and the lease stands until its time has run out.
        LeaseError::Transient { .. } | LeaseError::Denied { .. } | LeaseError::Other { .. } => Verdict::TryAgain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_loss_or_the_end_of_its_time_ends_a_lease() {
        let id = BlobId::local("/x");
        let blob = || Box::new(id.clone());
        let transient = LeaseError::Transient { blob: blob(), detail: "busy".into() };
        let denied = LeaseError::Denied { blob: blob(), detail: "403".into() };
        for error in [&transient, &denied, &LeaseError::other(&id, "?")] {
            assert_eq!(judge(error, false), Verdict::TryAgain, "{error}");
            assert_eq!(judge(error, true), Verdict::Lost, "{error}");
        }
        for error in [LeaseError::lost(&id), LeaseError::not_found(&id), LeaseError::held(&id)] {
            assert_eq!(judge(&error, false), Verdict::Lost, "{error}");
        }
    }
}
