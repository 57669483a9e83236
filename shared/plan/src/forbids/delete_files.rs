//! Rows that delete files hide would come back if the merge did not know them.

use std::fmt;

use firn_model::{DeleteFacts, LeftReason};

use super::Forbid;
use crate::settings::{PartitionFiles, TableRules};

pub(super) struct DeleteFiles;

impl Forbid for DeleteFiles {
    fn check(&self, partition: &PartitionFiles<'_>, _: &TableRules<'_>) -> Result<(), LeftReason> {
        let may_apply = |delete: &&DeleteFacts| partition.files.iter().any(|file| delete.may_apply_to(file));
        match partition.deletes.iter().filter(may_apply).count() {
            0 => Ok(()),
            deletes => Err(LeftReason::HasDeleteFiles { deletes }),
        }
    }
}

impl fmt::Display for DeleteFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no delete file can apply to its data files")
    }
}
