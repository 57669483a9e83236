//! The new snapshot and the catalog's updates and requirements that make it the branch's head.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use iceberg::spec::{FormatVersion, Operation, Snapshot, SnapshotReference, SnapshotRetention, Summary, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};

use super::request::ReplaceOperation;

/// The snapshot that a commit adds.
#[derive(Debug)]
pub(crate) struct NewSnapshot {
    pub(crate) id: i64,
    pub(crate) parent: i64,
    pub(crate) manifest_list: String,
    pub(crate) operation: ReplaceOperation,
    pub(crate) summary: HashMap<String, String>,
}

/// How a branch's reference is kept when it moves on. Its retention settings are its owner's.
///
/// # Errors
/// A sentence, when the reference is a tag or cannot be read.
pub(crate) fn branch_retention(metadata: &TableMetadata, branch: &str) -> Result<SnapshotRetention, String> {
    let unset =
        SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
    if metadata.format_version() == FormatVersion::V1 {
        // Written without references; `main` is the current snapshot.
        return Ok(unset);
    }
    // The references are not public in the library, their JSON form is.
    let json = serde_json::to_value(metadata).map_err(|error| format!("metadata has no JSON form: {error}"))?;
    let Some(reference) = json.get("refs").and_then(|refs| refs.get(branch)) else { return Ok(unset) };
    let reference: SnapshotReference = serde_json::from_value(reference.clone())
        .map_err(|error| format!("reference `{branch}` cannot be read: {error}"))?;
    if !reference.is_branch() {
        return Err(format!("`{branch}` is a tag; only a branch can be compacted"));
    }
    Ok(reference.retention)
}

/// How far this machine's clock may be ahead of the store's before the store is asked for the time. A store's times are whole seconds.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(10);

/// The time of a commit: this machine's, or the store's when this machine is ahead of it. A snapshot from the future makes what other
/// writers add after it older than its parent, and from a minute on Iceberg's libraries refuse such metadata.
pub(crate) fn commit_time(machine: DateTime<Utc>, store: DateTime<Utc>) -> DateTime<Utc> {
    if machine - store <= CLOCK_TOLERANCE {
        return machine;
    }
    tracing::warn!(%machine, %store, "this machine's clock is ahead of the store's; the snapshot gets the store's time");
    store
}

/// When the snapshot was made: never before its parent or the table's last change, even when this machine's clock is behind.
fn timestamp(metadata: &TableMetadata, parent: i64, now: i64) -> i64 {
    let after_parent = metadata.snapshot_by_id(parent).map_or(0, |parent| parent.timestamp_ms() + 1);
    now.max(metadata.last_updated_ms()).max(after_parent)
}

impl NewSnapshot {
    /// Updates and requirements of the swap (Iceberg REST specification, "Commit updates to a table"). `now` is in
    /// milliseconds.
    pub(crate) fn changes(
        self,
        metadata: &TableMetadata,
        branch: &str,
        retention: SnapshotRetention,
        now: i64,
    ) -> (Vec<TableUpdate>, Vec<TableRequirement>) {
        let operation = match self.operation {
            ReplaceOperation::Replace => Operation::Replace,
            ReplaceOperation::Overwrite => Operation::Overwrite,
        };
        let snapshot = Snapshot::builder()
            .with_snapshot_id(self.id)
            .with_parent_snapshot_id(Some(self.parent))
            .with_sequence_number(metadata.next_sequence_number())
            .with_timestamp_ms(timestamp(metadata, self.parent, now))
            .with_manifest_list(self.manifest_list)
            .with_summary(Summary { operation, additional_properties: self.summary })
            .with_schema_id(metadata.current_schema_id())
            .build();
        let updates = vec![
            TableUpdate::AddSnapshot { snapshot },
            TableUpdate::SetSnapshotRef {
                ref_name: branch.to_owned(),
                reference: SnapshotReference::new(self.id, retention),
            },
        ];
        let requirements = vec![
            TableRequirement::UuidMatch { uuid: metadata.uuid() },
            TableRequirement::RefSnapshotIdMatch { r#ref: branch.to_owned(), snapshot_id: Some(self.parent) },
            TableRequirement::CurrentSchemaIdMatch { current_schema_id: metadata.current_schema_id() },
        ];
        (updates, requirements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_of_the_store_is_not_believed() {
        let store = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for (ahead, believed) in [(-86_400, true), (-1, true), (0, true), (10, true), (11, false), (86_400, false)] {
            let machine = store + TimeDelta::seconds(ahead);
            assert_eq!(commit_time(machine, store), if believed { machine } else { store }, "{ahead} s ahead");
        }
    }
}
