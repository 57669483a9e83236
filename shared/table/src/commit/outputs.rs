//! The outputs of a merge, checked against the store before every try: a commit must never name a file that is not there.

use firn_storage::StorageError;
use futures::{StreamExt, TryStreamExt, stream};

use super::error::CommitError;
use crate::loaded::LoadedTable;
use crate::new_file::NewDataFile;

const CHECKS_AT_ONCE: usize = 16;

/// Asks the store for every output and compares its size.
pub(crate) async fn check(table: &LoadedTable, outputs: &[NewDataFile]) -> Result<(), CommitError> {
    let checks: Vec<_> = outputs.iter().map(|output| check_one(table, output)).collect();
    stream::iter(checks).buffer_unordered(CHECKS_AT_ONCE).try_collect().await
}

async fn check_one(table: &LoadedTable, output: &NewDataFile) -> Result<(), CommitError> {
    let id = table.blob_id(&output.path)?;
    let found = match table.blobs().properties(&id).await {
        Ok(properties) => Some(properties.size),
        Err(StorageError::NotFound { .. }) => None,
        Err(error) => {
            return Err(CommitError::Storage {
                ident: table.ident.clone(),
                what: format!("cannot check output `{}`", output.path),
                source: error.into(),
            });
        }
    };
    if found == Some(output.size) {
        return Ok(());
    }
    Err(CommitError::OutputMissing {
        ident: table.ident.clone(),
        path: output.path.clone(),
        expected: output.size,
        found,
    })
}
