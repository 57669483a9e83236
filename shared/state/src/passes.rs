//! One pass, from its first message to its last outcome: `passes/<pass>`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use firn_model::Rule;
use serde::{Deserialize, Serialize};

use crate::time;

/// A pass that sent messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassRecord {
    /// Its id.
    pub pass: String,
    /// The strongest rule it planned by.
    pub rule: Rule,
    /// When it began to plan.
    #[serde(with = "time")]
    pub started_at: DateTime<Utc>,
    /// When its last message was sent; None: it died before that.
    #[serde(with = "time::option", default)]
    pub sent_at: Option<DateTime<Utc>>,
    /// When its last partition was found to be done, parked or taken over.
    #[serde(with = "time::option", default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// Messages sent, by dataset.
    #[serde(default)]
    pub sent: BTreeMap<String, u64>,
    /// Partitions that wait for the next pass, by dataset.
    #[serde(default)]
    pub waiting: BTreeMap<String, u64>,
    /// Datasets that could not be planned, with the reason.
    #[serde(default)]
    pub failed: BTreeMap<String, String>,
    /// Whether it was counted as running longer than `runtimeDeadlineHours`.
    #[serde(default)]
    pub over_deadline: bool,
}

impl PassRecord {
    /// A pass that begins now.
    pub fn new(pass: impl Into<String>, rule: Rule, now: DateTime<Utc>) -> Self {
        Self {
            pass: pass.into(),
            rule,
            started_at: now,
            sent_at: None,
            ended_at: None,
            sent: BTreeMap::new(),
            waiting: BTreeMap::new(),
            failed: BTreeMap::new(),
            over_deadline: false,
        }
    }
}
