//! Whether a table is still the one that the sweep began with, and alone in its folders.

use firn_table::LoadedTable;

use crate::identity::canonical_key;
use crate::jobs::skipped;
use crate::sweep::neighbours::places_of;
use crate::sweep::places::Places;
use crate::sweep::stop::SweepStop;

/// Whether a later version is one of the same table in the same place, and still ours to clean.
///
/// # Errors
/// [`SweepStop::Moved`].
pub(crate) fn same_table(before: &LoadedTable, after: &LoadedTable, places: &Places) -> Result<(), SweepStop> {
    let moved = |detail: String| Err(SweepStop::Moved { detail });
    if before.metadata.uuid() != after.metadata.uuid() {
        return moved(format!("it is another table now, UUID {} instead of {}", after.uuid(), before.uuid()));
    }
    let (old, new) = (before.metadata.last_sequence_number(), after.metadata.last_sequence_number());
    if new < old {
        return moved(format!("its last sequence number went from {old} back to {new}"));
    }
    if places_of(after)? != *places {
        return moved("its location or a path property changed".to_owned());
    }
    match skipped(after) {
        Some(reason) => moved(format!("{reason} was set")),
        None => Ok(()),
    }
}

/// Whether metadata files lie only where the table has its own.
pub(crate) fn no_table_inside(
    table: &LoadedTable,
    places: &Places,
    folders: &[(String, String)],
) -> Result<(), SweepStop> {
    let mut own: Vec<String> = vec![canonical_key(&places.metadata.prefix().key).into_owned()];
    own.push(canonical_key(&places.location.below("metadata").prefix().key).into_owned());
    let log = table.metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    for path in log.chain([table.metadata_location.as_str()]) {
        if let Some((folder, _)) = table.blob_id(path)?.key.rsplit_once('/') {
            own.push(canonical_key(folder).into_owned());
        }
    }
    match folders.iter().find(|(folder, _)| !own.iter().any(|known| *known == canonical_key(folder))) {
        None => Ok(()),
        Some((folder, found)) => Err(SweepStop::TableInside { folder: folder.clone(), found: found.clone() }),
    }
}
