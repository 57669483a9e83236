//! What forbids any merge of a partition, whatever rule asks for it: one predicate a file.

mod delete_files;
mod disabled;
mod not_parquet;
mod row_lineage;

use std::fmt;

use firn_model::LeftReason;

use crate::settings::{PartitionFiles, TableRules};

/// One thing that must hold before files may be merged; its `Display` says it in words.
pub trait Forbid: fmt::Display + Sync {
    /// # Errors
    /// Why the files must stay as they are.
    fn check(&self, partition: &PartitionFiles<'_>, table: &TableRules<'_>) -> Result<(), LeftReason>;
}

/// All of them, in the order in which they are asked.
pub fn forbids() -> [&'static dyn Forbid; 4] {
    [&disabled::Disabled, &row_lineage::RowLineage, &not_parquet::NotParquet, &delete_files::DeleteFiles]
}

/// The first that forbids.
///
/// # Errors
/// Its reason.
pub(crate) fn check_all(partition: &PartitionFiles<'_>, table: &TableRules<'_>) -> Result<(), LeftReason> {
    forbids().iter().try_for_each(|forbid| forbid.check(partition, table))
}
