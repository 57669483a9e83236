//! What a sweep leaves in writing: what was listed, what the table said, and each deletion with its reason (design section 7).
//!
//! `receipts/<dataset>/<id>.json` is the receipt, `receipts/<dataset>/<id>/<part>.json` its deletions. A part is written before its files go
//! and again afterwards: what a killed sweep deleted is still in writing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::file_state::StateCounts;

/// The receipt of one sweep of one table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Its id: when the sweep began, and a random part.
    pub receipt: String,
    /// The dataset.
    pub dataset: String,
    /// The table with its namespace.
    pub table: String,
    /// The table's UUID, once it was loaded.
    #[serde(default)]
    pub table_uuid: Option<String>,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When it ended; null for one that was killed.
    #[serde(default)]
    pub ended_at: Option<String>,
    /// `done`, `unfinished`, `left` or `failed`; `running` for one that was killed.
    pub outcome: String,
    /// Why it was left or stopped.
    #[serde(default)]
    pub reason: Option<String>,
    /// The settings that it went by.
    pub rules: RulesUsed,
    /// What was listed.
    #[serde(default)]
    pub listing: Option<ListingCounts>,
    /// The version of the table that it went by.
    #[serde(default)]
    pub metadata: Option<MetadataRead>,
    /// Files by state.
    pub states: StateCounts,
    /// Bytes of live files that only tags and branches other than `main` need, to a thousandth.
    #[serde(default)]
    pub pinned_bytes: u64,
    /// Bytes of files that only older snapshots need, to a thousandth.
    pub replaced_bytes: u64,
    /// Bytes of files that nothing refers to, to a thousandth.
    pub unreferenced_bytes: u64,
    /// Files that stayed, by reason.
    pub kept: BTreeMap<String, u64>,
    /// Deletions in all.
    pub deletions: DeletionCounts,
    /// Parts with the deletions, from 1.
    pub parts: u32,
    /// What undoes it.
    pub undo: Undo,
    /// What a person should know.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Settings of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesUsed {
    /// `orphanMinAgeHours`.
    pub orphan_min_age_hours: u64,
    /// `orphanGraceHours`.
    pub orphan_grace_hours: u64,
    /// `orphanMetadata`.
    pub orphan_metadata: bool,
    /// Whether it was the first sweep of the table, or the grace began anew.
    pub first_sweep: bool,
}

/// What was listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListingCounts {
    /// Folders.
    pub folders: Vec<String>,
    /// Files.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time that ages were counted to: the listing began after it.
    pub began: String,
}

/// What was read of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataRead {
    /// The metadata file, loaded after the listing.
    pub location: String,
    /// The last one that was loaded, before the last deletion.
    pub last_location: String,
    /// Its last sequence number.
    pub last_sequence_number: i64,
    /// Snapshots.
    pub snapshots: u64,
    /// Manifests.
    pub manifests: u64,
    /// Entries.
    pub entries: u64,
}

/// Deletions by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionCounts {
    /// Deleted.
    pub deleted: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Gone already.
    pub absent: u64,
    /// The store refused.
    pub refused: u64,
}

/// How a deletion can be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Undo {
    /// The account keeps deleted blobs.
    SoftDelete {
        /// For so many days.
        days: u32,
    },
    /// Deleted files lie in the trash folder of the state.
    Trash {
        /// For so many days.
        days: u32,
    },
    /// What is deleted is gone.
    None,
    /// The account does not say whether it keeps deleted blobs.
    #[default]
    Unknown,
}

/// Some deletions of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptPart {
    /// The metadata file that was read right before: none of its manifests names one of these files.
    pub metadata: String,
    /// The deletions.
    pub deletions: Vec<Deletion>,
}

/// One deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The file, as the table would name it.
    pub path: String,
    /// Why it went.
    pub reason: String,
    /// How old it was.
    pub age_hours: i64,
    /// Its bytes.
    pub bytes: u64,
    /// Its version.
    pub etag: String,
    /// When it was written last.
    pub modified: String,
    /// Since when sweeps had seen it unreferenced; none for a sidecar that went with its file.
    #[serde(default)]
    pub unreferenced_since: Option<String>,
    /// What became of it.
    pub outcome: DeletionOutcome,
    /// Its name in the trash, where it went there.
    #[serde(default)]
    pub trash: Option<String>,
    /// What the store said, where it refused.
    #[serde(default)]
    pub detail: Option<String>,
}

/// What became of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeletionOutcome {
    /// Written down, and perhaps done: the sweep was killed.
    #[default]
    Planned,
    /// Done.
    Deleted,
    /// The file was gone already.
    Absent,
    /// The store refused.
    Refused,
}

/// A new id of a receipt. Ids sort as the times at which sweeps began.
pub fn receipt_id(now: DateTime<Utc>) -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("{}-{}", now.format("%Y%m%dT%H%M%SZ"), &random[..8])
}

/// When the sweep of a receipt began, by its id.
pub fn receipt_time(id: &str) -> Option<DateTime<Utc>> {
    let text = id.get(..16)?;
    chrono::NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok().map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_their_time_and_sort_by_it() {
        let time: DateTime<Utc> = "2026-11-30T13:30:05Z".parse().unwrap();
        let id = receipt_id(time);
        assert!(id.starts_with("20261130T133005Z-") && id.len() == 25, "{id}");
        assert_eq!(receipt_time(&id), Some(time));
        assert_eq!(receipt_time("notes"), None);
    }

    #[test]
    fn the_form_is_as_documented() {
        let undo = serde_json::to_value(Undo::SoftDelete { days: 14 }).unwrap();
        assert_eq!(undo, serde_json::json!({"kind": "softDelete", "days": 14}));
        let deletion =
            serde_json::to_value(Deletion { outcome: DeletionOutcome::Absent, ..Deletion::default() }).unwrap();
        assert_eq!(deletion["outcome"], "absent");
        let empty: ReceiptPart = serde_json::from_str(r#"{"metadata": "m", "deletions": []}"#).unwrap();
        assert_eq!(empty.metadata, "m");
    }
}
