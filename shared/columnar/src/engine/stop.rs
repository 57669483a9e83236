//! Ending a merge early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Ends a merge early: when somebody asks for it, when a flag of others is set, or at a point in time. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag {
    own: Arc<AtomicBool>,
    others: Vec<Arc<AtomicBool>>,
    until: Option<Instant>,
}

impl StopFlag {
    /// Asks for the end.
    pub fn stop(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for, or its time has come.
    pub fn is_set(&self) -> bool {
        self.own.load(Ordering::Relaxed)
            || self.others.iter().any(|flag| flag.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// A flag of its own that is also set when this one is: stopping the child stops nothing else.
    #[must_use]
    pub fn child(&self) -> Self {
        let others = self.others.iter().chain([&self.own]).cloned().collect();
        Self { own: Arc::default(), others, until: self.until }
    }

    /// The same flag, set as well when `other` is.
    #[must_use]
    pub fn also(mut self, other: Arc<AtomicBool>) -> Self {
        self.others.push(other);
        self
    }

    /// The same flag, set as well from `until` on.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = Some(self.until.map_or(until, |known| known.min(until)));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_child_is_stopped_by_its_parent_and_stops_nothing_else() {
        let parent = StopFlag::default();
        let (one, other) = (parent.child(), parent.child());
        one.stop();
        assert_eq!((one.is_set(), other.is_set(), parent.is_set()), (true, false, false));
        parent.stop();
        assert!(other.is_set() && other.child().is_set());
    }

    #[test]
    fn a_flag_of_others_and_a_point_in_time_set_it() {
        let lost = Arc::new(AtomicBool::new(false));
        let flag = StopFlag::default().also(lost.clone());
        assert!(!flag.is_set());
        lost.store(true, Ordering::Relaxed);
        assert!(flag.is_set());
        let now = Instant::now();
        assert!(StopFlag::default().until(now).until(now + Duration::from_secs(60)).is_set());
        assert!(!StopFlag::default().until(now + Duration::from_secs(3600)).is_set());
    }
}
