//! The loop over a timer's times, on the one instance that holds its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use firn_model::BlobId;
use firn_storage::{LeaseError, LeaseKeeper, PutCondition, StorageError};
use serde_json::Value;

use super::schedule::TimerSchedule;
use super::status::{TimerStart, TimerStatus, after_run, decide_start};
use crate::app::FunctionSpec;
use crate::invoke::Invoker;
use crate::invoke::request::{Payload, system};
use crate::log::Level;
use crate::storage::HostBlobs;

/// How often the loss of the lease is looked for.
const LOOK_FOR_LOSS: Duration = Duration::from_secs(1);

/// What the host remembers of a timer.
#[derive(Debug, Clone)]
pub(crate) struct StatusBlob {
    place: HostBlobs,
    id: BlobId,
}

impl StatusBlob {
    pub(crate) fn of(place: &HostBlobs, host_id: &str, function: &str) -> Self {
        let id = place.container.with_key(format!("timers/{host_id}/Host.Functions.{function}/status"));
        Self { place: place.clone(), id }
    }

    /// None when there is none, or none that can be read as one.
    pub(crate) async fn read(&self) -> Result<Option<TimerStatus>, StorageError> {
        match self.place.blobs.read_all(&self.id).await {
            Ok(bytes) => Ok(TimerStatus::parse(&bytes)),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, status: &TimerStatus) -> Result<(), StorageError> {
        let bytes = Bytes::from(status.to_json().to_string());
        self.place.blobs.put(&self.id, bytes, PutCondition::Any).await.map(|_| ())
    }
}

/// Runs one timer.
#[derive(Debug)]
pub(crate) struct TimerListener {
    pub(crate) invoker: Invoker,
    pub(crate) function: FunctionSpec,
    pub(crate) binding: String,
    pub(crate) schedule: TimerSchedule,
    pub(crate) run_on_startup: bool,
    pub(crate) monitored: bool,
    pub(crate) place: HostBlobs,
    pub(crate) status: StatusBlob,
    pub(crate) lock: BlobId,
}

impl TimerListener {
    /// The blob whose lease makes one instance the runner.
    pub(crate) fn lock_of(place: &HostBlobs, host_id: &str, function: &str) -> BlobId {
        place.container.with_key(format!("locks/{host_id}/Host.Functions.{function}.Listener"))
    }

    /// Gets the lease and runs the timer, until no new work is to be begun.
    pub(crate) async fn run(self) {
        let stop = self.invoker.stop.clone();
        while stop.takes_work() {
            let keeper = tokio::select! {
                () = stop.draining() => return,
                keeper = self.get_lease() => keeper,
            };
            if let Err(error) = self.serve(keeper.lost_flag()).await {
                self.log(Level::Error, format!("the timer's status: {error}"));
                tokio::select! {
                    () = stop.draining() => {}
                    () = self.invoker.clock.sleep(self.invoker.timing.timer_lease) => {}
                }
            }
            if let Err(error) = keeper.release().await {
                self.log(Level::Debug, format!("the timer's lease: {error}"));
            }
        }
    }

    async fn get_lease(&self) -> LeaseKeeper {
        let duration = self.invoker.timing.timer_lease;
        loop {
            match self.try_lease(duration).await {
                Ok(keeper) => return keeper,
                Err(LeaseError::Held { .. }) => self.log(Level::Debug, "another instance runs this timer".into()),
                Err(error) => self.log(Level::Error, format!("the timer's lease: {error}")),
            }
            self.invoker.clock.sleep(duration).await;
        }
    }

    async fn try_lease(&self, duration: Duration) -> Result<LeaseKeeper, LeaseError> {
        let lease = &self.place.lease;
        let held = match lease.acquire(&self.lock, duration).await {
            Err(LeaseError::NotFound { .. }) => {
                // Another may create it at the same moment; the next line tells what came of it.
                let _ = self.place.blobs.put(&self.lock, Bytes::new(), PutCondition::IfAbsent).await;
                lease.acquire(&self.lock, duration).await?
            }
            other => other?,
        };
        LeaseKeeper::hold(lease.clone(), self.lock.clone(), held, duration)
    }

    /// Runs at each time until the lease is lost or no new work is to be begun. One run at a time.
    async fn serve(&self, lost: Arc<AtomicBool>) -> Result<(), StorageError> {
        let stored = if self.monitored { self.status.read().await? } else { None };
        let now = self.invoker.clock.now();
        let (start, write) = decide_start(&self.schedule, stored.as_ref(), self.monitored, self.run_on_startup, now);
        if let Some(status) = &write {
            self.status.write(status).await?;
        }
        let mut status = write.or(stored);
        let mut next = status.as_ref().map(|status| status.next).or_else(|| self.schedule.next_after(now));
        if start != TimerStart::Wait {
            let after = self.fire(status.as_ref(), None, start == TimerStart::PastDue).await?;
            next = Some(after.next);
            status = Some(after);
        }
        while let Some(time) = next {
            let wait = time.signed_duration_since(self.invoker.clock.now()).to_std().unwrap_or_default();
            tokio::select! {
                biased;
                () = self.invoker.stop.draining() => return Ok(()),
                () = loss(&lost) => return Ok(()),
                () = self.invoker.clock.sleep(wait) => {}
            }
            let after = self.fire(status.as_ref(), Some(time), false).await?;
            next = Some(after.next);
            status = Some(after);
        }
        Ok(())
    }

    /// One run, and the status that is written after it, whether it failed or not.
    async fn fire(
        &self,
        status: Option<&TimerStatus>,
        served: Option<DateTime<Utc>>,
        past_due: bool,
    ) -> Result<TimerStatus, StorageError> {
        let _ticket = self.invoker.running.begin();
        let began = self.invoker.clock.now();
        let told = status.filter(|_| self.monitored).map_or(Value::Null, TimerStatus::to_json);
        let sys = system(&self.function.name, began);
        let payload = Payload::timer(&self.binding, self.schedule.adjusts_for_dst(), told, past_due, sys);
        let reason = if past_due { "Timer fired, past due" } else { "Timer fired" };
        self.invoker.invoke(&self.function, Ok(payload), &format!("{reason} at {began}")).await;
        let after = after_run(&self.schedule, served, began);
        if self.monitored {
            self.status.write(&after).await?;
        }
        Ok(after)
    }

    fn log(&self, level: Level, message: String) {
        self.invoker.log.function(level, &self.function.name, None, message);
    }
}

async fn loss(lost: &AtomicBool) {
    while !lost.load(Ordering::Acquire) {
        tokio::time::sleep(LOOK_FOR_LOSS).await;
    }
}
