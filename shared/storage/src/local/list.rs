//! Listing a folder and everything below it.

use std::fs;
use std::io;

use firn_model::BlobId;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::publish::is_hidden;
use super::{on_disk, path_of, properties};
use crate::error::StorageError;
use crate::store::{BlobProperties, ListedBlob};

type Listed = Result<ListedBlob, StorageError>;

/// What is left to look through: folders as text, each with its final slash. One folder is held in memory at a time.
struct Walk {
    base: BlobId,
    folders: Vec<String>,
    /// Wanted beginning of the names in the first folder.
    name_prefix: String,
}

/// Every file whose path begins with the key of `prefix`. Links to files count as files, links to folders are not followed
/// (they may form a circle); files being written and leases are left out.
pub(super) fn list(prefix: &BlobId) -> BoxStream<'static, Listed> {
    if let Err(error) = path_of(prefix) {
        return stream::iter([Err(error)]).boxed();
    }
    // `path_of` checked that the key begins with a slash.
    let folder_end = prefix.key.rfind('/').unwrap_or_default() + 1;
    let (folder, name_prefix) = prefix.key.split_at(folder_end);
    let walk = Walk { base: prefix.clone(), folders: vec![folder.to_owned()], name_prefix: name_prefix.to_owned() };
    stream::unfold(walk, |mut walk| async move {
        let folder = walk.folders.pop()?;
        let name_prefix = std::mem::take(&mut walk.name_prefix);
        let read = on_disk(&walk.base.with_key(folder), move |id, _| read_folder(id, &name_prefix)).await;
        let listed = match read {
            Ok((listed, mut below)) => {
                below.reverse();
                walk.folders.append(&mut below);
                listed
            }
            Err(error) => {
                walk.folders.clear();
                vec![Err(error)]
            }
        };
        Some((stream::iter(listed), walk))
    })
    .flatten()
    .boxed()
}

/// Files and folders directly in `folder`, both in the order of their names.
fn read_folder(folder: &BlobId, name_prefix: &str) -> Result<(Vec<Listed>, Vec<String>), StorageError> {
    let failed = |error: io::Error| StorageError::io(folder, "list", &error);
    let entries = match fs::read_dir(&folder.key) {
        Ok(entries) => entries,
        // No blobs below a prefix that does not exist; a folder may also vanish while we look.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Default::default());
        }
        Err(error) => return Err(failed(error)),
    };
    let (mut files, mut below) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = match entry.file_name().into_string() {
            Ok(name) => name,
            Err(name) => {
                let shown = folder.with_key(format!("{}{}", folder.key, name.to_string_lossy()));
                files.push(Err(StorageError::invalid(&shown, "its name is not UTF-8: rename or remove it")));
                continue;
            }
        };
        if !name.starts_with(name_prefix) || is_hidden(&name) {
            continue;
        }
        let path = format!("{}{name}", folder.key);
        if entry.file_type().map_err(failed)?.is_dir() {
            below.push(path + "/");
            continue;
        }
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // Deleted since, or a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        if metadata.is_file() {
            let BlobProperties { size, etag, last_modified, .. } = properties(&metadata);
            files.push(Ok(ListedBlob { id: folder.with_key(path), size, etag, last_modified }));
        }
    }
    files.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    below.sort();
    Ok((files, below))
}

fn name_of(listed: &Listed) -> &str {
    match listed {
        Ok(blob) => &blob.id.key,
        Err(error) => &error.blob().key,
    }
}
