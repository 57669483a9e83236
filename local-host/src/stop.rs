//! The end of a host: that no more work is taken, and that it stands still.

use std::sync::Arc;

use tokio::sync::watch;

/// Why a host stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// In words.
    pub(crate) reason: String,
    /// Whether somebody asked for it; otherwise the host gave up.
    pub(crate) asked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Running,
    /// What runs may end; nothing new is begun.
    Draining,
    Stopped(Stopped),
}

/// Shared by all parts of a host.
#[derive(Debug, Clone)]
pub(crate) struct StopFlag(Arc<watch::Sender<Phase>>);

impl StopFlag {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Running)))
    }

    /// No new work from now on.
    pub(crate) fn drain(&self) {
        self.0.send_if_modified(|phase| {
            let begins = *phase == Phase::Running;
            if begins {
                *phase = Phase::Draining;
            }
            begins
        });
    }

    /// The end. Only the first reason counts.
    pub(crate) fn stop(&self, reason: impl Into<String>, asked: bool) {
        self.0.send_if_modified(|phase| {
            let begins = !matches!(phase, Phase::Stopped(_));
            if begins {
                *phase = Phase::Stopped(Stopped { reason: reason.into(), asked });
            }
            begins
        });
    }

    pub(crate) fn why(&self) -> Option<Stopped> {
        match &*self.0.borrow() {
            Phase::Stopped(stopped) => Some(stopped.clone()),
            _ => None,
        }
    }

    pub(crate) fn takes_work(&self) -> bool {
        *self.0.borrow() == Phase::Running
    }

    /// Returns when no new work is to be begun.
    pub(crate) async fn draining(&self) {
        // The sender lives in `self`.
        let _ = self.0.subscribe().wait_for(|phase| *phase != Phase::Running).await;
    }

    /// Returns when the host stands still.
    pub(crate) async fn stopped(&self) -> Stopped {
        let mut phases = self.0.subscribe();
        let _ = phases.wait_for(|phase| matches!(phase, Phase::Stopped(_))).await;
        self.why().unwrap_or(Stopped { reason: "stopped".into(), asked: true })
    }
}
