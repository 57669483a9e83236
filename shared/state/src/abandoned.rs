//! Outputs of merges that for certain were not committed: `abandoned/<table uuid>/<uuid>`.
//!
//! Nobody else ever writes their names, so nothing can come to refer to them, and orphan cleanup need not see them twice. When nobody
//! knows whether a commit was done, nothing is listed here.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::address::{Address, StateRoot, segment};
use crate::error::StateError;
use crate::store::{Listed, StateStore};
use crate::time;

/// Outputs of one merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbandonedOutputs {
    /// The table, for people.
    pub table: String,
    /// Paths as the table would have had them.
    pub paths: Vec<String>,
    /// Why they were not committed.
    pub reason: String,
    /// When that was known.
    #[serde(with = "time")]
    pub at: DateTime<Utc>,
}

impl StateRoot {
    /// A name for one more of them.
    pub fn abandoned(&self, table_uuid: &str) -> Address<AbandonedOutputs> {
        Address::new(self.below(&format!("abandoned/{}/{}", segment(table_uuid), Uuid::new_v4().simple())))
    }
}

impl StateStore {
    /// All of a table.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list_abandoned(&self, table_uuid: &str) -> Result<Vec<Listed<AbandonedOutputs>>, StateError> {
        self.list(&format!("abandoned/{}/", segment(table_uuid))).await
    }
}
