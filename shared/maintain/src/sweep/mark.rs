//! Marks in the listing what the table refers to, and notes what does not fit together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use firn_model::BlobId;
use firn_storage::{BlobStore, StorageError};
use firn_table::{FileReference, LoadedTable, ManifestWalk, RefersBy};
use futures::{StreamExt, stream};

use crate::identity::{Fingerprint, PathForm};
use crate::sweep::listing::{Listing, Referred, owner_of};
use crate::sweep::places::Places;
use crate::sweep::stop::SweepStop;

/// References that may be missing in the listing before it counts as not whole; also what is held of them in memory.
const MOST_UNLISTED: usize = 10_000;
/// Files looked up at the same time.
const LOOKUPS: usize = 16;
/// How far the clocks of writers, stores and this machine may be apart.
const CLOCKS: TimeDelta = TimeDelta::minutes(2);

/// Marks what a table refers to. Shared by the threads that decode manifests.
#[derive(Debug)]
pub(crate) struct Marker {
    listing: Arc<Listing>,
    places: Places,
    table: LoadedTable,
    /// When the listing began.
    began: DateTime<Utc>,
    /// Real paths of listed local folders.
    real_folders: Vec<std::path::PathBuf>,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    forms: BTreeMap<PathForm, Form>,
    /// Data files that are referred to under another name than the listed one, or lie elsewhere: their sidecars stay.
    owners: HashSet<u64>,
    /// Whether the folder of a local path outside is one of the listed ones.
    outside: HashMap<String, bool>,
    trouble: Option<SweepStop>,
}

#[derive(Debug, Clone)]
struct Form {
    example: String,
    /// A file of this form that has to be there is older than the listing.
    expected: bool,
    /// One that may be gone is older than the listing: in the log, or removed.
    doubtful: bool,
    found: bool,
}

/// A file that should be in the listing and is not.
#[derive(Debug)]
struct Unlisted {
    path: String,
    id: BlobId,
}

impl Marker {
    /// Marks in `listing`, which began at `began`.
    pub(crate) fn new(listing: Arc<Listing>, places: Places, table: LoadedTable, began: DateTime<Utc>) -> Self {
        let local = places.listed.iter().filter(|folder| folder.prefix().is_local());
        let real_folders = local.filter_map(|folder| std::fs::canonicalize(&folder.prefix().key).ok()).collect();
        Self { listing, places, table, began, real_folders, noted: Mutex::default() }
    }

    /// Marks everything that `table` refers to and that the walk has not read yet.
    ///
    /// # Errors
    /// [`SweepStop`]: what does not fit together, or cannot be read.
    pub(crate) async fn run(self: &Arc<Self>, walk: &mut ManifestWalk, table: &LoadedTable) -> Result<(), SweepStop> {
        let mut unlisted: Vec<Unlisted> = Vec::new();
        let mut too_many = false;
        let marker = Arc::clone(self);
        let walked = walk.run(
            table,
            move |reference| marker.mark(reference),
            |marked: Vec<Option<Unlisted>>| {
                for file in marked.into_iter().flatten() {
                    too_many |= unlisted.len() >= MOST_UNLISTED;
                    if !too_many {
                        unlisted.push(file);
                    }
                }
            },
        );
        walked.await?;
        if let Some(trouble) = self.noted().trouble.take() {
            return Err(trouble);
        }
        if too_many {
            return Err(SweepStop::ManyUnlisted(MOST_UNLISTED));
        }
        self.look_up(table, unlisted).await?;
        self.check_forms(table).await
    }

    /// Whether each form of path was found in the listing, or nothing of it is there any more.
    async fn check_forms(&self, table: &LoadedTable) -> Result<(), SweepStop> {
        let unfound: Vec<(PathForm, Form)> = {
            let noted = self.noted();
            let unfound = noted.forms.iter().filter(|(_, form)| !form.found && (form.expected || form.doubtful));
            unfound.map(|(form, seen)| (form.clone(), seen.clone())).collect()
        };
        for (form, seen) in unfound {
            if seen.expected || table.blobs().exists(&table.blob_id(&seen.example)?).await? {
                return Err(SweepStop::FormNotFound { form: form.to_string(), example: seen.example });
            }
        }
        Ok(())
    }

    /// Marks what a version that the catalog does not name refers to, as far as it is still there. `walk` knows what was read before.
    ///
    /// # Errors
    /// [`SweepStop`]: what cannot be read or told apart.
    pub(crate) async fn protect(self: &Arc<Self>, walk: &ManifestWalk, version: &LoadedTable) -> Result<(), SweepStop> {
        let marker = Arc::clone(self);
        // Nothing of it is current, and what is missing stops nothing: it counts as committed after the listing.
        let map = move |reference: &FileReference<'_>| {
            let by = RefersBy::OlderSnapshot;
            marker.mark(&FileReference { path: reference.path, by, since_ms: Some(i64::MAX) });
        };
        walk.tolerant().run(version, map, |_: Vec<()>| {}).await?;
        match self.noted().trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    /// Data files whose sidecars stay although the listing does not show these files as referred to.
    pub(crate) fn owners(&self) -> HashSet<u64> {
        self.noted().owners.clone()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        // No code panics while it holds the lock.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self, stop: SweepStop) {
        self.noted().trouble.get_or_insert(stop);
    }

    fn listed(&self) -> String {
        self.places.listed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn mark(&self, reference: &FileReference<'_>) -> Option<Unlisted> {
        let path = reference.path;
        let (id, form) = match self.table.store.blob_id(path).and_then(|id| Ok((id, PathForm::of(path)?))) {
            Ok(found) => found,
            Err(source) => {
                self.trouble(SweepStop::UnknownUrl { path: path.to_owned(), source });
                return None;
            }
        };
        if id.key.split('/').any(|part| matches!(part, "." | "..")) {
            self.trouble(SweepStop::UnclearPath { path: path.to_owned() });
            return None;
        }
        if !self.places.beside(&id) {
            self.trouble(SweepStop::OtherAccount { path: path.to_owned(), listed: self.listed() });
            return None;
        }
        let place = self.listing.find(Fingerprint::of(&id));
        let old = reference.since_ms.is_none_or(|since| since <= self.began.timestamp_millis());
        if reference.by != RefersBy::VersionHint {
            let mut noted = self.noted();
            let seen = noted.forms.entry(form).or_insert_with(|| Form {
                example: path.to_owned(),
                expected: false,
                doubtful: false,
                found: false,
            });
            seen.found |= place.is_some();
            match (old, reference.by.must_exist()) {
                (true, true) if !seen.expected => {
                    path.clone_into(&mut seen.example);
                    seen.expected = true;
                }
                // The last of them is the one most likely to be there still.
                (true, false) if !seen.expected && place.is_none() => {
                    path.clone_into(&mut seen.example);
                    seen.doubtful = true;
                }
                _ => {}
            }
        }
        let owner = owner_of(&id);
        if let Some(place) = place {
            let by = match reference.by {
                RefersBy::OlderSnapshot | RefersBy::Removed => Referred::Older,
                RefersBy::OtherHead => Referred::Pinned,
                _ => Referred::Current,
            };
            self.listing.mark_referred(place, by);
            if self.listing.remembered(place).owner != owner {
                self.noted().owners.insert(owner);
            }
            return None;
        }
        self.noted().owners.insert(owner);
        if !self.places.may_hold(&id) {
            if id.is_local() && self.is_other_name(&id) {
                self.trouble(SweepStop::OtherName { path: path.to_owned(), listed: self.listed() });
            }
            return None;
        }
        (old && reference.by.must_exist()).then(|| Unlisted { path: path.to_owned(), id })
    }

    /// Whether a local path outside the listed folders leads into one of them all the same.
    fn is_other_name(&self, id: &BlobId) -> bool {
        let folder = id.key.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned();
        if let Some(known) = self.noted().outside.get(&folder) {
            return *known;
        }
        let real = std::fs::canonicalize(Path::new(&folder));
        let inside = real.is_ok_and(|real| self.real_folders.iter().any(|listed| real.starts_with(listed)));
        self.noted().outside.insert(folder, inside);
        inside
    }

    /// Asks the store for files that the listing lacks.
    async fn look_up(&self, table: &LoadedTable, unlisted: Vec<Unlisted>) -> Result<(), SweepStop> {
        let lookups = stream::iter(unlisted).map(|file| look_up(table.blobs().as_ref(), file, self.began - CLOCKS));
        let mut lookups = lookups.buffer_unordered(LOOKUPS);
        while let Some(looked) = lookups.next().await {
            looked?;
        }
        Ok(())
    }
}

async fn look_up(store: &dyn BlobStore, file: Unlisted, began: DateTime<Utc>) -> Result<(), SweepStop> {
    let Unlisted { path, id } = file;
    match store.properties(&id).await {
        // Uploaded while the listing went on.
        Ok(properties) if properties.last_modified >= began => Ok(()),
        Ok(_) => Err(SweepStop::Unlisted { path }),
        Err(StorageError::NotFound { .. }) => Err(SweepStop::Missing { path }),
        Err(error) => Err(error.into()),
    }
}
