//! A branch's past: is a snapshot of ours in it, was a group replaced before?

use std::collections::HashSet;

use iceberg::spec::{SnapshotRef, TableMetadata};

/// Summary key with the hash of the group that a snapshot replaced.
pub(crate) const INPUTS_KEY: &str = "firn.inputs";

/// The branch's head and its known ancestors, newest first.
pub(crate) fn ancestry<'a>(metadata: &'a TableMetadata, branch: &str) -> impl Iterator<Item = &'a SnapshotRef> {
    let mut seen = HashSet::new();
    std::iter::successors(metadata.snapshot_for_ref(branch), |snapshot| {
        snapshot.parent_snapshot_id().and_then(|parent| metadata.snapshot_by_id(parent))
    })
    // Damaged metadata may have a circle.
    .take_while(move |snapshot| seen.insert(snapshot.snapshot_id()))
}

/// The newest ancestor of the branch's head that replaced the group of this hash.
pub(crate) fn replaced_by(metadata: &TableMetadata, branch: &str, inputs_hash: &str) -> Option<i64> {
    ancestry(metadata, branch)
        .find(|snapshot| {
            snapshot.summary().additional_properties.get(INPUTS_KEY).is_some_and(|hash| hash == inputs_hash)
        })
        .map(|snapshot| snapshot.snapshot_id())
}
