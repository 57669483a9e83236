//! Format version 3 has row lineage, which outputs do not carry yet.

use std::fmt;

use firn_model::LeftReason;

use super::Forbid;
use crate::settings::{PartitionFiles, TableRules};

pub(super) struct RowLineage;

impl Forbid for RowLineage {
    fn check(&self, _: &PartitionFiles<'_>, table: &TableRules<'_>) -> Result<(), LeftReason> {
        if table.format_version < 3 { Ok(()) } else { Err(LeftReason::FormatVersion3) }
    }
}

impl fmt::Display for RowLineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table has format version 1 or 2")
    }
}
