//! Work that was given up, for a person: `parked/<id>`.

use chrono::{DateTime, Utc};
use firn_model::PartitionJson;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::inflight::{InflightRecord, hex};
use crate::time;

/// As much of a message's body is kept, in bytes.
pub const BODY_KEPT: usize = 8 * 1024;
/// The reason for a body that is no message at all.
pub const NOT_A_MESSAGE: &str = "not a Firn message";

/// Work that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParkedRecord {
    /// Why: a sentence for a person.
    pub reason: String,
    /// Starts, or deliveries of its message, that came to nothing.
    pub attempts: u32,
    /// The inputs then; empty when there is no partition.
    #[serde(default)]
    pub inputs_hash: String,
    /// The first 8 KB of the message; what is no UTF-8 is replaced.
    pub body: String,
    /// The dataset, where it is known.
    #[serde(default)]
    pub dataset: Option<String>,
    /// The partition, where it is known.
    #[serde(default)]
    pub partition: Option<PartitionJson>,
    /// Its partition spec.
    #[serde(default)]
    pub spec_id: Option<i32>,
    /// When.
    #[serde(with = "time")]
    pub at: DateTime<Utc>,
}

impl ParkedRecord {
    /// For a message that names no partition, or cannot be read.
    pub fn of_body(reason: impl Into<String>, body: &[u8], dequeue_count: u64, now: DateTime<Utc>) -> Self {
        Self {
            reason: reason.into(),
            attempts: u32::try_from(dequeue_count).unwrap_or(u32::MAX),
            inputs_hash: String::new(),
            body: kept(body),
            dataset: None,
            partition: None,
            spec_id: None,
            at: now,
        }
    }

    /// For a partition; `record` is its record as it was parked.
    pub fn of_partition(record: &InflightRecord, body: &[u8], now: DateTime<Utc>) -> Self {
        Self {
            reason: record.last_words(),
            attempts: record.attempts,
            inputs_hash: record.inputs_hash.clone(),
            body: kept(body),
            dataset: Some(record.dataset.clone()),
            partition: Some(record.partition.clone()),
            spec_id: Some(record.spec_id),
            at: now,
        }
    }
}

/// The id under which a message is parked that belongs to no partition: a message parked twice is one entry. A partition is
/// parked under its fingerprint ([`firn_model::PartitionKey::fingerprint`]).
pub fn parked_id_of_body(body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(body);
    hex(hasher)
}

fn kept(body: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&body[..body.len().min(BODY_KEPT)]).into_owned();
    // A replacement character is longer than the byte it stands for.
    while text.len() > BODY_KEPT {
        text.pop();
    }
    text
}
