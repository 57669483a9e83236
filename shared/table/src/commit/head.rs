//! Is a version of the table still the one that a merge was planned on, as far as it matters?

use iceberg::spec::{FormatVersion, PrimitiveType, SnapshotRef, SnapshotRetention};

use super::error::CommitError;
use super::request::ReplaceRequest;
use super::snapshot::branch_retention;
use crate::loaded::LoadedTable;

/// The branch of a version of the table that a try builds on.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) table: &'a LoadedTable,
    pub(crate) snapshot: &'a SnapshotRef,
    pub(crate) retention: SnapshotRetention,
}

impl<'a> Head<'a> {
    /// Checks everything that the catalog's metadata alone can tell.
    pub(crate) fn of(table: &'a LoadedTable, request: &ReplaceRequest) -> Result<Self, CommitError> {
        let (metadata, base) = (&table.metadata, &request.base.metadata);
        if metadata.uuid() != base.uuid() {
            let (planned, now) = (base.uuid(), metadata.uuid());
            let detail = format!("the table was replaced by another of the same name ({planned}, now {now})");
            return Err(CommitError::Permanent { ident: table.ident.clone(), detail });
        }
        let head = Head::writable(table, &request.branch, request.partition.spec_id)?;
        if metadata.current_schema_id() != base.current_schema_id() {
            return Err(CommitError::SchemaChanged {
                ident: table.ident.clone(),
                planned: base.current_schema_id(),
                current: metadata.current_schema_id(),
            });
        }
        Ok(head)
    }

    fn writable(table: &'a LoadedTable, branch: &str, spec_id: i32) -> Result<Self, CommitError> {
        let refused = |detail: String| CommitError::Permanent { ident: table.ident.clone(), detail };
        let metadata = &table.metadata;
        if let Some(reason) = &table.read_only {
            return Err(refused(format!("{reason}: nothing can be committed")));
        }
        if metadata.format_version() >= FormatVersion::V3 {
            return Err(refused("format version 3 is not written yet: its rows would lose their ids".to_owned()));
        }
        let Some(snapshot) = metadata.snapshot_for_ref(branch) else {
            return Err(refused(format!("branch `{branch}` does not exist or has no snapshot")));
        };
        let specs = table.spec_types()?;
        let Some(spec) = specs.get(&spec_id) else {
            return Err(refused(format!("partition spec {spec_id} is not in the table's metadata")));
        };
        // The iceberg crate writes UUIDs into manifests in a form that is not the specification's.
        if let Some(field) = spec.fields.iter().find(|field| field.result_type == Some(PrimitiveType::Uuid)) {
            return Err(refused(format!("partition field `{}` is a UUID, which Firn cannot write", field.name)));
        }
        let retention = branch_retention(metadata, branch).map_err(refused)?;
        Ok(Self { table, snapshot, retention })
    }
}

/// Whether groups of partition spec `spec_id` can be committed to `branch` at all. Asked before a merge, it saves work that
/// [`replace`](super::replace) would refuse.
///
/// # Errors
/// [`CommitError::Permanent`] with the reason.
pub fn check_writable(table: &LoadedTable, branch: &str, spec_id: i32) -> Result<(), CommitError> {
    Head::writable(table, branch, spec_id).map(|_| ())
}
