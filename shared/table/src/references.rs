//! Snapshots and references of a table as plain facts: what expiry decides by.

use std::collections::BTreeMap;

use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};
use serde::Deserialize;

use crate::error::TableError;
use crate::loaded::LoadedTable;

/// A snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// Its id.
    pub id: i64,
    /// The snapshot that it was made on; it may be gone.
    pub parent: Option<i64>,
    /// When it was made, in milliseconds, by its writer's clock.
    pub timestamp_ms: i64,
    /// Its sequence number; 0 in tables of format version 1.
    pub sequence_number: i64,
}

/// A branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefFacts {
    /// Its name.
    pub name: String,
    /// The snapshot that it points to.
    pub snapshot_id: i64,
    /// What a branch says of its snapshots; None for a tag.
    pub branch: Option<BranchFacts>,
    /// `max-ref-age-ms` of its own.
    pub max_ref_age_ms: Option<i64>,
}

/// What a branch says of its snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BranchFacts {
    /// `min-snapshots-to-keep` of its own.
    pub min_snapshots_to_keep: Option<i64>,
    /// `max-snapshot-age-ms` of its own.
    pub max_snapshot_age_ms: Option<i64>,
}

/// Snapshots and references of one version of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotFacts>,
    /// References by name. `main` is the current snapshot, also where the metadata names no reference.
    pub refs: Vec<RefFacts>,
}

impl LoadedTable {
    /// Snapshots and references.
    ///
    /// # Errors
    /// [`TableError::Damaged`] when a reference, or the current snapshot, names a snapshot that the metadata lacks.
    pub fn history(&self) -> Result<History, TableError> {
        let metadata = &self.metadata;
        let mut snapshots: Vec<SnapshotFacts> = metadata
            .snapshots()
            .map(|snapshot| SnapshotFacts {
                id: snapshot.snapshot_id(),
                parent: snapshot.parent_snapshot_id(),
                timestamp_ms: snapshot.timestamp_ms(),
                sequence_number: snapshot.sequence_number(),
            })
            .collect();
        snapshots.sort_by_key(|snapshot| (snapshot.sequence_number, snapshot.timestamp_ms, snapshot.id));
        let references = references(metadata).map_err(|detail| self.damaged(detail))?;
        let refs: Vec<RefFacts> = references.into_iter().map(|(name, reference)| facts(name, &reference)).collect();
        for reference in &refs {
            if metadata.snapshot_by_id(reference.snapshot_id).is_none() {
                return Err(self.damaged(format!(
                    "reference `{}` points to snapshot {}, which the metadata lacks",
                    reference.name, reference.snapshot_id
                )));
            }
        }
        Ok(History { snapshots, refs })
    }
}

fn facts(name: String, reference: &SnapshotReference) -> RefFacts {
    let (branch, max_ref_age_ms) = match reference.retention {
        SnapshotRetention::Branch { min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms } => {
            let min_snapshots_to_keep = min_snapshots_to_keep.map(i64::from);
            (Some(BranchFacts { min_snapshots_to_keep, max_snapshot_age_ms }), max_ref_age_ms)
        }
        SnapshotRetention::Tag { max_ref_age_ms } => (None, max_ref_age_ms),
    };
    RefFacts { name, snapshot_id: reference.snapshot_id, branch, max_ref_age_ms }
}

/// Every reference. The library keeps them to itself, their JSON form is public.
fn references(metadata: &TableMetadata) -> Result<BTreeMap<String, SnapshotReference>, String> {
    #[derive(Deserialize)]
    struct References {
        #[serde(default)]
        refs: Option<BTreeMap<String, SnapshotReference>>,
    }
    let json = serde_json::to_value(metadata).map_err(|error| format!("metadata has no JSON form: {error}"))?;
    let found: References =
        serde_json::from_value(json).map_err(|error| format!("its references cannot be read: {error}"))?;
    let mut refs = found.refs.unwrap_or_default();
    if let Some(current) = metadata.current_snapshot_id() {
        let unset =
            SnapshotRetention::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None, max_ref_age_ms: None };
        refs.entry(MAIN_BRANCH.to_owned()).or_insert_with(|| SnapshotReference::new(current, unset));
    }
    Ok(refs)
}

#[cfg(test)]
mod tests {
    use iceberg::TableUpdate;

    use super::*;
    use crate::testing::{Lake, Shape, data, tuple};

    #[tokio::test]
    async fn branches_tags_and_main_are_told() {
        let lake = Lake::new().await;
        let table = lake.create("t", Shape::partitioned(&[])).await;
        assert_eq!(table.history().unwrap(), History::default());
        let table = lake.append(&table, vec![data(0, "t/data/a.parquet", tuple([]), 1, |_| {})]).await;
        let head = table.metadata.current_snapshot_id().unwrap();
        let reference = |retention| SnapshotReference::new(head, retention);
        let branch = SnapshotRetention::Branch {
            min_snapshots_to_keep: Some(2),
            max_snapshot_age_ms: Some(5),
            max_ref_age_ms: None,
        };
        let tag = SnapshotRetention::Tag { max_ref_age_ms: Some(7) };
        let table = lake
            .update(
                &table,
                vec![
                    TableUpdate::SetSnapshotRef { ref_name: "b".into(), reference: reference(branch) },
                    TableUpdate::SetSnapshotRef { ref_name: "t".into(), reference: reference(tag) },
                ],
            )
            .await;
        let history = table.history().unwrap();
        assert_eq!(history.snapshots.len(), 1);
        let named = |name: &str| history.refs.iter().find(|found| found.name == name).unwrap().clone();
        assert_eq!(named("main").branch, Some(BranchFacts::default()));
        assert_eq!(
            named("b").branch,
            Some(BranchFacts { min_snapshots_to_keep: Some(2), max_snapshot_age_ms: Some(5) })
        );
        assert_eq!((named("t").branch, named("t").max_ref_age_ms), (None, Some(7)));
    }
}
