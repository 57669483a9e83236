//! Metadata files that the catalog does not know although they are as new as what it names: what they refer to is nobody's only by this
//! catalog.
//!
//! A commit that was killed leaves one. A table that is written through another catalog, too (it was registered there, or has moved), leaves
//! many: then the version that this catalog names is an old one, and everything that was committed since would look like an orphan.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::BlobId;
use firn_storage::{ListedBlob, StorageError};
use firn_table::{LoadedTable, TableError, metadata_version};

use crate::identity::Fingerprint;
use crate::sweep::stop::SweepStop;

/// Files that are looked into: as many of the newest in the listing, and as many of those with the highest version in their names.
const LOOKED_INTO: usize = 16;
/// How far the clocks of writers and stores may be apart.
const CLOCKS: TimeDelta = TimeDelta::minutes(2);

/// Metadata files of a listing that a version of the table does not name, as many of the newest as are looked into.
#[derive(Debug)]
pub(crate) struct UnknownMetadata {
    known: HashSet<Fingerprint>,
    /// When those of them that are listed were written.
    times: HashMap<Fingerprint, DateTime<Utc>>,
    /// What is older was trimmed from the log.
    since: DateTime<Utc>,
    /// The version in the name of the file that the catalog names.
    named: Option<u64>,
    files: Vec<UnknownFile>,
}

#[derive(Debug)]
struct UnknownFile {
    modified: DateTime<Utc>,
    version: Option<u64>,
    id: BlobId,
}

/// What a metadata file that the catalog does not know is to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// Nothing that needs a file: it has no snapshots of its own, or is an older version or an older table.
    Past,
    /// It builds on a version that the catalog knows: a commit that did not come through, or has not yet.
    Next,
    /// It builds on versions that the catalog does not know.
    Ahead,
    /// Another table in the same place.
    Another,
}

impl UnknownMetadata {
    /// None yet; `table` is what the catalog names before the listing.
    ///
    /// # Errors
    /// A path of its metadata log that names no blob.
    pub(crate) fn beside(table: &LoadedTable) -> Result<Self, SweepStop> {
        let begins = DateTime::from_timestamp_millis(begins_ms(table));
        let since = begins.and_then(|time| time.checked_sub_signed(CLOCKS)).unwrap_or_default();
        let named = metadata_version(&table.metadata_location);
        Ok(Self { known: known(table)?, times: HashMap::new(), since, named, files: Vec::new() })
    }

    /// Notes a metadata file of the listing, if it is unknown.
    pub(crate) fn note(&mut self, blob: &ListedBlob) {
        let print = Fingerprint::of(&blob.id);
        if self.known.contains(&print) {
            self.times.insert(print, blob.last_modified);
            return;
        }
        let version = metadata_version(&blob.id.key);
        self.files.push(UnknownFile { modified: blob.last_modified, version, id: blob.id.clone() });
        if self.files.len() >= 8 * LOOKED_INTO {
            self.keep_newest();
        }
    }

    /// The newest and the highest: a copy of a table may have new times, old ones or those of the copying, and names may have no number.
    fn keep_newest(&mut self) {
        self.files.sort_unstable_by_key(|file| Reverse(file.version));
        let mut others = self.files.split_off(LOOKED_INTO.min(self.files.len()));
        others.sort_unstable_by(|one, other| (other.modified, &other.id).cmp(&(one.modified, &one.id)));
        others.truncate(LOOKED_INTO);
        self.files.append(&mut others);
    }

    /// Leaves out what is older than all that the table still names, both by its time and by its name: to read it would cost and tell nothing.
    fn forget_old(&mut self) {
        let oldest = self.times.values().min().and_then(|time| time.checked_sub_signed(CLOCKS));
        let since = oldest.map_or(self.since, |oldest| oldest.min(self.since));
        let named = self.named;
        self.files.retain(|file| file.modified >= since || file.version > named);
    }

    /// Versions whose files stay, although `table`, loaded after the listing, does not name them; `warnings` get a sentence on each.
    ///
    /// # Errors
    /// [`SweepStop::Ahead`] and [`SweepStop::TableInside`] when another catalog goes on with the table, or with another one in its place.
    pub(crate) async fn look_into(
        mut self,
        table: &LoadedTable,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<LoadedTable>, SweepStop> {
        let written = self.written(table).await?;
        let known = known(table)?;
        self.files.retain(|file| !known.contains(&Fingerprint::of(&file.id)));
        self.forget_old();
        self.keep_newest();
        let mut next = Vec::new();
        for UnknownFile { modified, id, .. } in self.files {
            let found = id.url_like(table.location());
            let version = match table.version_at(&found).await {
                Ok(version) => version,
                // Its writer has removed it since.
                Err(TableError::Read { source: StorageError::NotFound { .. }, .. }) => continue,
                // No catalog can go on from it.
                Err(TableError::Metadata { source, .. }) => {
                    warnings.push(format!("`{found}` is no metadata file although its name says so: {source}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match unknown(table, &known, &version, modified >= written)? {
                Unknown::Past => {}
                Unknown::Next => {
                    warnings.push(format!(
                        "`{found}` is newer than the version that the catalog names: what it refers to stays until the next commit. A commit \
                         was killed there, or another catalog has this table too"
                    ));
                    next.push(version);
                }
                Unknown::Ahead => return Err(SweepStop::Ahead { found, named: table.metadata_location.clone() }),
                Unknown::Another => {
                    let folder = found.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                    return Err(SweepStop::TableInside { folder, found });
                }
            }
        }
        Ok(next)
    }

    /// When the metadata file that the catalog names was written, by the store's clock.
    async fn written(&self, table: &LoadedTable) -> Result<DateTime<Utc>, SweepStop> {
        let id = table.blob_id(&table.metadata_location)?;
        let print = Fingerprint::of(&id);
        let listed = self.files.iter().find(|file| Fingerprint::of(&file.id) == print).map(|file| file.modified);
        match listed.or(self.times.get(&print).copied()) {
            Some(time) => Ok(time),
            // It came after the listing, or lies elsewhere.
            None => match table.blobs().properties(&id).await {
                Ok(properties) => Ok(properties.last_modified),
                Err(StorageError::NotFound { .. }) => Err(SweepStop::Missing { path: table.metadata_location.clone() }),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// `later` is whether the version was written when the named one was, or after it.
fn unknown(
    table: &LoadedTable,
    known: &HashSet<Fingerprint>,
    version: &LoadedTable,
    later: bool,
) -> Result<Unknown, SweepStop> {
    let (here, there) = (&table.metadata, &version.metadata);
    if there.uuid() != here.uuid() {
        // A table that was dropped before this one came into its place is past, and one without rows has nothing to lose.
        let lives = there.last_updated_ms() >= begins_ms(table) && there.snapshots().next().is_some();
        return Ok(if lives { Unknown::Another } else { Unknown::Past });
    }
    let fresh = there.snapshots().any(|snapshot| here.snapshot_by_id(snapshot.snapshot_id()).is_none());
    // By its writer's clock, and by what no clock can change or, without that, by the store's: a copy of a table has other times of files.
    // Format version 1 counts nothing.
    let count = there.last_sequence_number();
    let counted = count == 0 || count > here.last_sequence_number();
    if !fresh || there.last_updated_ms() < here.last_updated_ms() || !(later || counted) {
        return Ok(Unknown::Past);
    }
    let parent = there.metadata_log().last().map(|parent| version.blob_id(&parent.metadata_file)).transpose()?;
    Ok(match parent.is_none_or(|parent| known.contains(&Fingerprint::of(&parent))) {
        true => Unknown::Next,
        // Trimmed from the log in the instant in which the named version was made.
        false if there.last_updated_ms() == here.last_updated_ms() => Unknown::Past,
        false => Unknown::Ahead,
    })
}

/// What a version of a table names.
fn known(table: &LoadedTable) -> Result<HashSet<Fingerprint>, SweepStop> {
    let log = table.metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    let paths = log.chain([table.metadata_location.as_str()]);
    paths.map(|path| Ok::<_, SweepStop>(Fingerprint::of(&table.blob_id(path)?))).collect()
}

/// The time of the oldest version that the metadata still names.
fn begins_ms(table: &LoadedTable) -> i64 {
    let first = table.metadata.metadata_log().first().map(|entry| entry.timestamp_ms);
    first.unwrap_or_else(|| table.metadata.last_updated_ms())
}
