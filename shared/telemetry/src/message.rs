//! The terminal events of a message that ended without a partition's work.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::event::Event;

/// Counts parked messages, for an alert.
pub const PARKED_COUNTER: &str = "firn_parked_total";

/// A message was parked: nothing more happens with it until a person or a change of the partition brings it back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// Name of the parked record in the state store.
    pub id: String,
    /// Name of the dataset; null when the message names none.
    pub dataset: Option<String>,
    /// Partition spec id, when known.
    pub spec_id: Option<i32>,
    /// Partition tuple in Iceberg's JSON form, when known.
    pub partition: Option<Value>,
    /// The pass it belonged to.
    pub pass: Option<String>,
    /// This run of the function.
    pub invocation: String,
    /// Why, with the remedy.
    pub reason: String,
    /// Starts that left no outcome.
    pub attempts: u32,
    /// How often the queue had handed the message out; 0 when the poison function parked it.
    pub dequeue_count: u32,
    /// What this event adds to counters, by their full names.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Parked {
    /// Fills the counters.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters.insert(PARKED_COUNTER, 1);
        self
    }
}

impl Event for Parked {
    const NAME: &'static str = "parked";

    fn outcome(&self) -> &'static str {
        "parked"
    }
}

/// A message was sent again for later, because now is not its time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageDeferred {
    /// Name of the dataset; null when the message could not be read.
    pub dataset: Option<String>,
    /// The pass it belongs to.
    pub pass: Option<String>,
    /// This run of the function.
    pub invocation: String,
    /// Why.
    pub reason: String,
    /// Seconds for which the new message is hidden.
    pub hidden_seconds: u64,
}

impl Event for MessageDeferred {
    const NAME: &'static str = "messageDeferred";

    fn outcome(&self) -> &'static str {
        "deferred"
    }
}

/// A message could neither be worked on, nor parked, nor sent again: the host delivers it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageFailed {
    /// Name of the dataset; null when the message could not be read.
    pub dataset: Option<String>,
    /// The pass it belongs to.
    pub pass: Option<String>,
    /// This run of the function.
    pub invocation: String,
    /// Why.
    pub reason: String,
}

impl Event for MessageFailed {
    const NAME: &'static str = "messageFailed";

    fn outcome(&self) -> &'static str {
        "failed"
    }
}
