//! The undo of a sweep: what its receipt says was deleted comes back (design section 7, "Undo").

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use firn_state::{Read, SeenFile, StateError, StateStore};
use firn_storage::{BlobStore, StorageError};
use firn_table::LoadedTable;

use crate::identity::Fingerprint;
use crate::sweep::receipt::{Deletion, DeletionOutcome, Receipt, ReceiptPart};
use crate::sweep::seen::seen_file;
use crate::trash::Trash;

/// How long sweeps leave a restored file alone, so that there is time to put it back into a table.
pub const LEFT_ALONE_DAYS: i64 = 7;
/// Tries to note restored files against sweeps that write at the same time.
const TRIES: u32 = 5;

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// It is back.
    Back,
    /// It was not deleted, or is there again.
    There,
    /// It is not kept any more.
    Gone,
    /// The store took the call, and the file is not there all the same.
    NotBack,
    /// The store refused.
    Refused(String),
}

/// A file of a receipt, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFile {
    /// The file.
    pub path: String,
    /// What became of it.
    pub restored: Restored,
}

/// Brings back what a receipt says was deleted; `told` hears of each file. Files that are back, or were there, are left alone by
/// sweeps for [`LEFT_ALONE_DAYS`].
///
/// They are noted before the first one comes back: a sweep that lists one of them reads the note after its listing, also when it runs at
/// the same time or the restore is killed.
///
/// # Errors
/// What the state says. Files are told one by one instead.
pub async fn restore(
    state: &StateStore,
    table: &LoadedTable,
    receipt: &Receipt,
    now: DateTime<Utc>,
    told: &mut (dyn FnMut(RestoredFile) + Send),
) -> Result<(), StateError> {
    let mut prints = Vec::new();
    for part in 1..=receipt.parts {
        // What cannot be named is told below.
        let ids = wanted(state, receipt, part).await?.into_iter().filter_map(|one| table.blob_id(&one.path).ok());
        prints.extend(ids.map(|id| Fingerprint::of(&id)));
    }
    leave_alone(state, table, &prints, now + TimeDelta::days(LEFT_ALONE_DAYS)).await?;
    let trash = Trash::of(state);
    for part in 1..=receipt.parts {
        for deletion in wanted(state, receipt, part).await? {
            let restored = one(table, trash.as_ref(), &deletion).await;
            told(RestoredFile { path: deletion.path, restored });
        }
    }
    Ok(())
}

/// What a part of a receipt says was deleted, or may have been.
async fn wanted(state: &StateStore, receipt: &Receipt, part: u32) -> Result<Vec<Deletion>, StateError> {
    let address = state.root().receipt::<ReceiptPart>(&receipt.dataset, &receipt.receipt, Some(part));
    let Some(Read { value: part, .. }) = state.read(&address).await? else { return Ok(Vec::new()) };
    let ours = |deletion: &Deletion| match deletion.outcome {
        DeletionOutcome::Deleted => true,
        // The sweep was killed, or the answer was lost: the file may be gone or not.
        DeletionOutcome::Planned | DeletionOutcome::Refused => true,
        DeletionOutcome::Absent => false,
    };
    Ok(part.deletions.into_iter().filter(ours).collect())
}

async fn one(table: &LoadedTable, trash: Option<&Trash>, deletion: &Deletion) -> Restored {
    let id = match table.blob_id(&deletion.path) {
        Ok(id) => id,
        Err(error) => return Restored::Refused(error.to_string()),
    };
    let store: &dyn BlobStore = table.blobs().as_ref();
    match store.exists(&id).await {
        Ok(false) => {}
        Ok(true) => return Restored::There,
        Err(error) => return Restored::Refused(error.to_string()),
    }
    let back = match (trash, &deletion.trash) {
        (Some(trash), Some(name)) => trash.give_back(name, &id).await,
        (None, Some(_)) => Err(StorageError::NotFound { blob: Box::new(id.clone()) }),
        (_, None) => store.undelete(&id).await,
    };
    match back {
        // What the store says it did is looked at: where blobs have versions, to undelete one makes none of them the current one.
        Ok(()) => match store.exists(&id).await {
            Ok(true) => Restored::Back,
            Ok(false) => Restored::NotBack,
            Err(error) => Restored::Refused(error.to_string()),
        },
        Err(StorageError::AlreadyExists { .. }) => Restored::There,
        Err(StorageError::NotFound { .. }) => Restored::Gone,
        Err(error) => Restored::Refused(error.to_string()),
    }
}

/// Notes files as seen unreferenced only from `until` on.
async fn leave_alone(
    state: &StateStore,
    table: &LoadedTable,
    files: &[Fingerprint],
    until: DateTime<Utc>,
) -> Result<(), StateError> {
    if files.is_empty() {
        return Ok(());
    }
    let uuid = table.uuid();
    let address = state.root().sweep(&uuid);
    for _ in 0..TRIES {
        // Without a record the next sweep is the first, which deletes nothing.
        let Some(Read { value: mut record, version }) = state.read(&address).await? else { return Ok(()) };
        let mut seen = state.read_seen(&uuid, &record.seen).await?.unwrap_or_default();
        let held: HashMap<(u64, u64), SeenFile> =
            files.iter().map(|print| seen_file(*print, until)).map(|file| ((file.high, file.low), file)).collect();
        seen.retain(|file| !held.contains_key(&(file.high, file.low)));
        seen.extend(held.into_values());
        let old = std::mem::replace(&mut record.seen, state.write_seen(&uuid, seen.iter().copied()).await?);
        record.count = seen.len() as u64;
        match state.replace(&address, &record, &version, None).await {
            Ok(_) => return state.discard_seen(&uuid, &old).await,
            Err(error) if error.is_conflict() => state.discard_seen(&uuid, &record.seen).await?,
            Err(error) => return Err(error),
        }
    }
    Err(StateError::Changed { blob: Box::new(address.blob().clone()) })
}
