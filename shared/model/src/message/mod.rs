//! What stands in a message of the queue (design section 4): one partition for a worker, or what a person asks for.
//!
//! A message names a partition and never holds file lists: the worker plans the partition again from current metadata.

mod bad;
mod parse;

use serde_json::{Map, Value, json};
use uuid::Uuid;

pub use bad::BadMessage;
pub use parse::parse_message;

use crate::rule::Rule;

/// Version of the messages that this Firn writes and reads.
pub const MESSAGE_VERSION: u64 = 1;
/// A message is smaller than this, in bytes of its JSON text.
pub const MESSAGE_LIMIT: usize = 8 * 1024;

/// A partition as it stands in a message: partition field names to Iceberg's JSON single-value form, null as null. Reading
/// it against a table's spec is the table layer's work.
pub type PartitionJson = Map<String, Value>;

/// A message that was read, or is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Name of the dataset. Not checked against a configuration.
    pub dataset: String,
    /// The partition; `{}` for an unpartitioned table. None: the whole dataset.
    pub partition: Option<PartitionJson>,
    /// Partition spec of `partition`; None: the table's current one.
    pub spec_id: Option<i32>,
    /// Why the partition is looked at; None: `manual`.
    pub rule: Option<Rule>,
    /// The pass it belongs to.
    pub pass: Option<String>,
    /// Which sending of the partition this is (`gen`); None: by hand.
    pub generation: Option<Uuid>,
    /// `FROM:TO`, as the flag of the command line; only with a whole dataset.
    pub date_range: Option<String>,
    /// Plan and report, merge nothing; only by hand.
    pub dry_run: bool,
}

/// Who wrote a message and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// From the planner or a worker: belongs to the in-flight record with this `gen`.
    Worker {
        /// `gen`.
        generation: Uuid,
    },
    /// By hand: one partition. The worker writes the record.
    ByHandPartition,
    /// By hand: a manual pass over the dataset, planned and fanned out.
    ByHandDataset,
}

impl Message {
    /// A message by hand for a whole dataset.
    pub fn by_hand(dataset: impl Into<String>) -> Self {
        Self {
            dataset: dataset.into(),
            partition: None,
            spec_id: None,
            rule: None,
            pass: None,
            generation: None,
            date_range: None,
            dry_run: false,
        }
    }

    /// Who wrote it and what for.
    pub fn kind(&self) -> MessageKind {
        match (self.generation, &self.partition) {
            (Some(generation), _) => MessageKind::Worker { generation },
            (None, Some(_)) => MessageKind::ByHandPartition,
            (None, None) => MessageKind::ByHandDataset,
        }
    }

    /// The rule it asks for.
    pub fn rule_or_manual(&self) -> Rule {
        self.rule.unwrap_or(Rule::Manual)
    }

    /// The JSON text that goes to the queue as it stands.
    ///
    /// # Errors
    /// [`BadMessage::TooLarge`] when the partition's values make it [`MESSAGE_LIMIT`] bytes or more.
    pub fn to_json(&self) -> Result<String, BadMessage> {
        let mut object = Map::new();
        object.insert("v".into(), json!(MESSAGE_VERSION));
        object.insert("dataset".into(), json!(self.dataset));
        let optional = [
            ("partition", self.partition.clone().map(Value::Object)),
            ("specId", self.spec_id.map(Value::from)),
            ("rule", self.rule.map(|rule| json!(rule.as_str()))),
            ("pass", self.pass.clone().map(Value::from)),
            ("gen", self.generation.map(|generation| json!(generation.to_string()))),
            ("dateRange", self.date_range.clone().map(Value::from)),
            ("dryRun", self.dry_run.then_some(Value::Bool(true))),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                object.insert(field.into(), value);
            }
        }
        let text = Value::Object(object).to_string();
        if text.len() < MESSAGE_LIMIT { Ok(text) } else { Err(BadMessage::TooLarge { bytes: text.len() }) }
    }
}

#[cfg(test)]
mod tests;
