//! The in-flight record of one partition (design section 4): who asked for it, how far it came, how often it was tried.
//!
//! The record is the truth, messages are hints: a message counts only while its `gen` is the record's.

use chrono::{DateTime, Utc};
use firn_model::{Message, PartitionJson, Rule};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::time;

/// Starts without an outcome, and deliveries of one message, at which a partition is parked.
pub const ATTEMPT_LIMIT: u32 = 5;

/// What is known of a partition that is queued, worked on, waiting or parked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InflightRecord {
    /// `gen`: the message that counts. A fresh UUID each time one is sent.
    #[serde(rename = "gen")]
    pub generation: Uuid,
    /// Name of the dataset.
    pub dataset: String,
    /// The partition, as it stands in the message.
    pub partition: PartitionJson,
    /// Its partition spec.
    pub spec_id: i32,
    /// Why it is looked at. A stronger rule may replace it while the message waits.
    pub rule: Rule,
    /// The pass that asked for it.
    pub pass: String,
    /// Its inputs when it was planned last, see [`hash_inputs`]. Empty: not planned yet (by hand).
    pub inputs_hash: String,
    /// When this `gen` was written.
    #[serde(with = "time")]
    pub written_at: DateTime<Utc>,
    /// When its message was sent; None: written but not known to be sent.
    #[serde(with = "time::option", default)]
    pub sent_at: Option<DateTime<Utc>>,
    /// When a worker last started on this `gen`.
    #[serde(with = "time::option", default)]
    pub started_at: Option<DateTime<Utc>>,
    /// Starts that left no outcome: crash, kill, time-out, bug. Parks at [`ATTEMPT_LIMIT`].
    pub attempts: u32,
    /// Retry outcomes. Only sets the delay, never parks.
    pub retries: u32,
    /// The step that the last start had come to.
    #[serde(default)]
    pub step: Option<String>,
    /// Not to be worked on (retry) or planned (parked, cooling) before this.
    #[serde(with = "time::option", default)]
    pub not_before: Option<DateTime<Utc>>,
    /// How the last start ended; None: queued, being worked on, or ended without an outcome.
    #[serde(default)]
    pub outcome: Option<RecordOutcome>,
    /// Why, for a person.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Outcomes that leave a record behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordOutcome {
    /// Sent again under this `gen`, hidden until `notBefore`.
    Retry,
    /// Went on under this `gen` when the message's budget ended.
    Continued,
    /// Given up until the inputs change or `notBefore` passes.
    Parked,
    /// There was nothing to do though it had been selected: not asked again until the inputs change or `notBefore` passes.
    Cooling,
}

/// A partition that the planner selected, or that a person asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Name of the dataset.
    pub dataset: String,
    /// The partition, as [`firn_model::PartitionKey::to_json`] gives it.
    pub partition: PartitionJson,
    /// Its partition spec.
    pub spec_id: i32,
    /// Why.
    pub rule: Rule,
    /// The pass.
    pub pass: String,
    /// See [`hash_inputs`].
    pub inputs_hash: String,
}

impl InflightRecord {
    /// A record that was just written for a new `gen`, nothing sent yet.
    pub fn new(selection: &Selection, generation: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            generation,
            dataset: selection.dataset.clone(),
            partition: selection.partition.clone(),
            spec_id: selection.spec_id,
            rule: selection.rule,
            pass: selection.pass.clone(),
            inputs_hash: selection.inputs_hash.clone(),
            written_at: now,
            sent_at: None,
            started_at: None,
            attempts: 0,
            retries: 0,
            step: None,
            not_before: None,
            outcome: None,
            reason: None,
        }
    }

    /// The message that belongs to this record.
    pub fn message(&self) -> Message {
        Message {
            dataset: self.dataset.clone(),
            partition: Some(self.partition.clone()),
            spec_id: Some(self.spec_id),
            rule: Some(self.rule),
            pass: Some(self.pass.clone()),
            generation: Some(self.generation),
            date_range: None,
            dry_run: false,
        }
    }

    /// After its message was sent. Writing this is worth one try: a worker that was faster holds the lease by now.
    #[must_use]
    pub fn sent(&self, now: DateTime<Utc>) -> Self {
        Self { sent_at: Some(now), ..self.clone() }
    }

    /// Before the next step of the work, with a word for it.
    #[must_use]
    pub fn at_step(&self, step: &str) -> Self {
        Self { step: Some(step.to_owned()), ..self.clone() }
    }

    /// After the worker planned the partition again.
    #[must_use]
    pub fn with_inputs(&self, inputs_hash: &str) -> Self {
        Self { inputs_hash: inputs_hash.to_owned(), ..self.clone() }
    }

    /// Whether it is given up or cooling: the planner leaves it alone, and messages for it are void.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.outcome, Some(RecordOutcome::Parked | RecordOutcome::Cooling))
    }

    /// The last time anything is known to have happened, or will: what "older than" counts from.
    pub fn quiet_since(&self) -> DateTime<Utc> {
        let times = [Some(self.written_at), self.sent_at, self.started_at, self.not_before];
        times.into_iter().flatten().max().unwrap_or(self.written_at)
    }

    /// Why the last start came to nothing: the reason of its outcome, else the step it had come to.
    pub fn last_words(&self) -> String {
        match (&self.reason, &self.step, self.started_at) {
            (Some(reason), _, _) => reason.clone(),
            (None, Some(step), _) => format!("the last attempt ended without an outcome at step {step}"),
            (None, None, Some(_)) => "the last attempt ended without an outcome before its first step".to_owned(),
            (None, None, None) => "no attempt was started".to_owned(),
        }
    }
}

/// SHA-256 (hex) over the paths of a partition's live data and delete files, in any order: what decides whether a parked or
/// cooling partition is worth another look. Planner and worker must give it the same files.
pub fn hash_inputs<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let mut sorted: Vec<&str> = paths.into_iter().collect();
    sorted.sort_unstable();
    let mut hasher = Sha256::new();
    for path in sorted {
        hasher.update((path.len() as u64).to_be_bytes());
        hasher.update(path.as_bytes());
    }
    hex(hasher)
}

pub(crate) fn hex(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
