//! Timer triggers: when they fire, what is remembered, who runs them.

mod listener;
mod schedule;
pub mod status;

pub(crate) use listener::{StatusBlob, TimerListener};
pub use schedule::TimerSchedule;
