//! One selected partition: its record first, then its message.
//!
//! Planners may run side by side: every change of a record names the version it rests on, so one of them wins and the others
//! leave the partition to it.

use chrono::{DateTime, Utc};
use firn_compact::HostServices;
use firn_model::Rule;
use firn_state::{
    Address, InflightRecord, ParkedRecord, Read, Selection, SendDecision, SendReason, Situation, SkipReason,
    StateError, Version, decide_send,
};
use firn_storage::SendOptions;
use uuid::Uuid;

use super::{queue_error, state_error};
use crate::report::PassError;

/// What became of a selected partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dispatched {
    /// Its message is on the queue.
    Sent { why: String, again: bool },
    /// Its message was on the queue already; the worker takes the stronger rule from the record.
    Raised { from: Rule },
    /// Queued or being worked on.
    Running { why: String },
    /// Parked or cooling.
    AtRest { why: String },
    /// It cannot be put into a message.
    Impossible { why: String },
}

/// Where a partition's documents lie.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) record: Address<InflightRecord>,
    pub(crate) parked: Address<ParkedRecord>,
}

/// What the planner knows when it sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dispatcher<'a> {
    pub(crate) host: &'a HostServices,
    /// Whether the queue was empty when the pass began, hidden messages included.
    pub(crate) queue_empty: bool,
    /// When the pass began.
    pub(crate) now: DateTime<Utc>,
}

impl Dispatcher<'_> {
    /// The situation of any partition. Whether a worker holds the lease shows when the record is written.
    pub(crate) fn situation(&self) -> Situation {
        Situation { leased: false, queue_empty: self.queue_empty, generation: Uuid::new_v4(), now: self.now }
    }

    /// Records and sends a partition as far as it is wanted. `current` is its record as it was read.
    pub(crate) async fn dispatch(
        &self,
        selection: &Selection,
        place: &Place,
        current: Option<Read<InflightRecord>>,
    ) -> Result<Dispatched, PassError> {
        let (before, version) = match current {
            Some(Read { value, version }) => (Some(value), Some(version)),
            None => (None, None),
        };
        match decide_send(before.as_ref(), selection, &self.situation()) {
            SendDecision::Skip { reason } => Ok(skipped(&reason)),
            SendDecision::RaiseRule { from, record } => {
                Ok(match self.write(&place.record, &record, version.as_ref()).await? {
                    Some(_) => Dispatched::Raised { from },
                    None => taken_over(),
                })
            }
            SendDecision::Resend { record } => {
                // Written again, so that of two planners that both found it unsent one sends.
                let record = InflightRecord { written_at: self.now, ..record };
                let why = "its message was never sent".to_owned();
                self.record_and_send(place, &record, version.as_ref(), why, true).await
            }
            SendDecision::Send { reason, record } => {
                let again = matches!(reason, SendReason::Lost { .. });
                let why = reason.to_string();
                let sent = self.record_and_send(place, &record, version.as_ref(), why, again).await?;
                let was_parked = matches!(reason, SendReason::InputsChanged | SendReason::CooledDown);
                if was_parked && matches!(sent, Dispatched::Sent { .. }) {
                    self.forget_parked(place).await;
                }
                Ok(sent)
            }
        }
    }

    async fn record_and_send(
        &self,
        place: &Place,
        record: &InflightRecord,
        version: Option<&Version>,
        why: String,
        again: bool,
    ) -> Result<Dispatched, PassError> {
        let text = match record.message().to_json() {
            Ok(text) => text,
            Err(error) => return Ok(Dispatched::Impossible { why: error.to_string() }),
        };
        let Some(written) = self.write(&place.record, record, version).await? else { return Ok(taken_over()) };
        self.host.queue.send(&text, &SendOptions::default()).await.map_err(queue_error)?;
        match self.host.state.replace(&place.record, &record.sent(self.now), &written, None).await {
            Ok(_) => {}
            // The worker was faster, so the message did arrive.
            Err(error) if error.is_conflict() => {}
            // It counts as not sent and may be sent a second time, which is a cheap no-op.
            Err(error) => tracing::warn!(%error, "a message was sent, its record does not say so"),
        }
        Ok(Dispatched::Sent { why, again })
    }

    /// The new version, or None when another planner or a worker has taken the partition further.
    async fn write(
        &self,
        address: &Address<InflightRecord>,
        record: &InflightRecord,
        version: Option<&Version>,
    ) -> Result<Option<Version>, PassError> {
        match self.host.state.follow(address, record, version).await {
            Ok(version) => Ok(Some(version)),
            Err(StateError::Changed { .. } | StateError::Leased { .. }) => Ok(None),
            Err(error) => Err(state_error(error)),
        }
    }

    async fn forget_parked(&self, place: &Place) {
        if let Err(error) = self.host.state.discard(&place.parked).await {
            tracing::warn!(%error, "a parked entry of a partition that was sent again stays");
        }
    }
}

fn taken_over() -> Dispatched {
    Dispatched::Running { why: "another planner or a worker has taken it".into() }
}

fn skipped(reason: &SkipReason) -> Dispatched {
    let why = reason.to_string();
    match reason {
        SkipReason::Running | SkipReason::Queued { .. } | SkipReason::Waiting { .. } => Dispatched::Running { why },
        SkipReason::Parked { .. } | SkipReason::Cooling { .. } => Dispatched::AtRest { why },
    }
}
