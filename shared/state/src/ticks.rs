//! What the planner remembers between ticks: `ticks/compact`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use firn_model::Rule;
use serde::{Deserialize, Serialize};

use crate::time;

/// The ticks that plan compaction, for [`crate::StateRoot::tick`].
pub const COMPACT_TICKS: &str = "compact";

/// The last tick. Written after its last message was sent, so a tick that died is done again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TickRecord {
    /// When it ran. No record means: now.
    #[serde(with = "time::option", default)]
    pub last_tick: Option<DateTime<Utc>>,
    /// Scheduled times up to here are done, or dropped because they were too old.
    #[serde(with = "time::option", default)]
    pub schedule_done_until: Option<DateTime<Utc>>,
    /// Passes with partitions on the queue.
    #[serde(default)]
    pub open_passes: BTreeSet<String>,
    /// How far each dataset has come.
    #[serde(default)]
    pub cursors: BTreeMap<String, DatasetCursor>,
}

/// The ticks of snapshot expiry, for [`crate::StateRoot::maintenance_tick`].
pub const EXPIRE_TICKS: &str = "expire-snapshots";
/// The ticks of orphan cleanup.
pub const ORPHAN_TICKS: &str = "clean-orphans";

/// The last run of a maintenance function, and where the next one goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceTick {
    /// When the last run began that got through all tables, or the one that is not through yet. None: never.
    #[serde(with = "time::option", default)]
    pub last_tick: Option<DateTime<Utc>>,
    /// The dataset to go on with, when the last run did not get through all tables.
    #[serde(default)]
    pub next: Option<String>,
    /// How often `next` was begun without coming to an end.
    #[serde(default)]
    pub starts: u32,
}

/// How far one dataset has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatasetCursor {
    /// The snapshot that was planned last.
    #[serde(default)]
    pub snapshot_id: Option<i64>,
    /// When it was planned without an error.
    #[serde(with = "time::option", default)]
    pub planned_at: Option<DateTime<Utc>>,
    /// Scheduled times up to here are done for this dataset.
    #[serde(with = "time::option", default)]
    pub schedule_done_until: Option<DateTime<Utc>>,
    /// Partitions that waited for a later pass.
    #[serde(default)]
    pub waiting: u64,
    /// Why it could not be planned the last time.
    #[serde(default)]
    pub error: Option<String>,
    /// On what nothing was to do the last time; None when something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// What a plan that selected nothing rested on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// Snapshot, configuration and rules as one text.
    pub key: String,
    /// Partitions that were left.
    pub partitions: u64,
}

/// Partitions of a dataset that were left after a look into the footers of their files: `looks/<dataset>`. Files do not change, so the same
/// files need no second look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Looks {
    /// Configuration, version and what of the table's metadata decides, as one text.
    pub key: String,
    /// By the fingerprint of the partition.
    #[serde(default)]
    pub partitions: BTreeMap<String, Look>,
}

/// What a partition was left for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// Its files and the rules that were asked, as one text.
    pub files: String,
    /// The rule that gave the reason.
    pub rule: Rule,
    /// The reason.
    pub reason: String,
}
