//! Only Parquet is read and written.

use std::fmt;

use firn_model::{FileFormat, LeftReason};

use super::Forbid;
use crate::settings::{PartitionFiles, TableRules};

pub(super) struct NotParquet;

impl Forbid for NotParquet {
    fn check(&self, partition: &PartitionFiles<'_>, _: &TableRules<'_>) -> Result<(), LeftReason> {
        match partition.files.iter().find(|file| file.format != FileFormat::Parquet) {
            Some(file) => Err(LeftReason::NotParquet { path: file.path.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for NotParquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all files are Parquet")
    }
}
