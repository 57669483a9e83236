//! The time by which leases run out and messages become visible, where it is kept on this machine.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// A clock. Clones are the same clock.
#[derive(Clone, Default)]
pub struct Clock {
    /// None: the machine's.
    set: Option<Arc<Mutex<DateTime<Utc>>>>,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at `now` until it is moved on, for tests.
    pub fn manual(now: DateTime<Utc>) -> Self {
        Clock { set: Some(Arc::new(Mutex::new(now))) }
    }

    /// The time.
    pub fn now(&self) -> DateTime<Utc> {
        match &self.set {
            Some(set) => *set.lock().unwrap_or_else(PoisonError::into_inner),
            None => Utc::now(),
        }
    }

    /// Moves a manual clock on. The machine's clock stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Some(set) = &self.set {
            let mut now = set.lock().unwrap_or_else(PoisonError::into_inner);
            *now = later(*now, by);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.set {
            Some(_) => write!(f, "Clock(set to {})", self.now()),
            None => f.write_str("Clock(system)"),
        }
    }
}

/// `at` plus `by`, at most the end of time.
pub(crate) fn later(at: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    chrono::TimeDelta::from_std(by).ok().and_then(|by| at.checked_add_signed(by)).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
