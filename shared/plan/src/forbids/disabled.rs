//! The owner of a table may stop everything (design section 9).

use std::fmt;

use firn_model::LeftReason;

use super::Forbid;
use crate::settings::{PartitionFiles, TableRules};

pub(super) struct Disabled;

impl Forbid for Disabled {
    fn check(&self, _: &PartitionFiles<'_>, table: &TableRules<'_>) -> Result<(), LeftReason> {
        if table.enabled { Ok(()) } else { Err(LeftReason::Disabled) }
    }
}

impl fmt::Display for Disabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table property firn.enabled is not false")
    }
}
