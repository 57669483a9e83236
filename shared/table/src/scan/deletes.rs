//! What is needed to read the delete files of a snapshot: only who applies deletes asks for it.

use std::collections::HashMap;

use super::entry::{Content, Entry};
use super::head;
use super::manifests::{holds_deletes, reduce, select};
use crate::error::TableError;
use crate::loaded::LoadedTable;

/// A delete file as a reader needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteFile {
    /// Size in bytes.
    pub size: u64,
    /// Its format, in lower case.
    pub format: String,
    /// Of an equality delete file: the field ids of its key, in the order of the manifest.
    pub equality_ids: Vec<i32>,
}

/// The live delete files of a branch's head, by path. The deletion vectors of one Puffin file share an entry.
///
/// # Errors
/// [`TableError::BranchAbsent`], or what is wrong with a manifest.
pub async fn delete_files(table: &LoadedTable, branch: &str) -> Result<HashMap<String, DeleteFile>, TableError> {
    let mut found = HashMap::new();
    let Some(snapshot) = head(table, branch)? else { return Ok(found) };
    let specs = table.spec_types()?;
    let manifests = table.manifests(snapshot).await?;
    let selected = select(table, &specs, manifests, |manifest, _| holds_deletes(manifest))?;
    let each = |files: &mut Vec<(String, DeleteFile)>, entry: Entry, _: &_| {
        if entry.content != Content::Data {
            let (size, format, equality_ids) = (entry.size()?, entry.format()?, entry.equality_ids()?);
            files.push((entry.path()?.to_owned(), DeleteFile { size, format, equality_ids }));
        }
        Ok(())
    };
    reduce(table, selected, Vec::new, each, |files| found.extend(files)).await?;
    Ok(found)
}
