//! The end of a sweep: a second listing gives names and versions, the table is loaded again before each batch, and only what is still nobody's
//! goes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use firn_state::StateStore;
use firn_storage::{BlobStore, DeleteCondition, Deleted, ListedBlob, StorageError};
use firn_table::{LoadedTable, ManifestWalk};
use futures::{StreamExt, stream};

use crate::file_state::FileState;
use crate::identity::Fingerprint;
use crate::jobs::{TableJob, text};
use crate::sweep::checks::same_table;
use crate::sweep::class::{FileClass, classify};
use crate::sweep::decide::{DeleteReason, FileFacts, KeepReason, OrphanDecision, Owner, SweepRules, decide_orphan};
use crate::sweep::listing::{Listing, Place, seconds, short};
use crate::sweep::mark::Marker;
use crate::sweep::owners::Owners;
use crate::sweep::places::Places;
use crate::sweep::receipt::{Deletion, DeletionOutcome, Receipt, ReceiptPart};
use crate::sweep::report::{FileLine, SweepReport, Verdict, age_hours};
use crate::sweep::run::{SweepOutcome, SweepTools, count};
use crate::sweep::seen::Seen;
use crate::sweep::stop::SweepStop;
use crate::trash::Trash;

/// Deletions between two looks at the table, which share a part of the receipt.
const BATCH: usize = 500;
/// Files deleted at the same time.
const AT_ONCE: usize = 16;
/// Sidecars held until the end of the second listing; more of them go in the next sweep.
const SIDECARS: usize = 100_000;

pub(crate) struct Deleter<'a> {
    pub(crate) tools: SweepTools<'a>,
    pub(crate) job: &'a TableJob,
    pub(crate) receipt: &'a mut Receipt,
    pub(crate) places: Places,
    pub(crate) listing: Arc<Listing>,
    pub(crate) marker: Arc<Marker>,
    pub(crate) walk: ManifestWalk,
    /// The newest version that was loaded.
    pub(crate) table: LoadedTable,
    /// Files that are still to go, as far as was known after the first listing.
    pub(crate) due: u64,
    pub(crate) owners: Owners,
    pub(crate) seen: Seen,
    pub(crate) rules: SweepRules,
    pub(crate) trash: Option<Trash>,
    pub(crate) report: &'a mut dyn SweepReport,
}

/// A file that is to go.
struct Going {
    blob: ListedBlob,
    place: Place,
    owner: u64,
    reason: DeleteReason,
    since: Option<DateTime<Utc>>,
}

/// What became of it.
struct Gone {
    outcome: DeletionOutcome,
    detail: Option<String>,
    /// No file will fare better.
    stop: Option<StorageError>,
}

impl Deleter<'_> {
    pub(crate) async fn run(mut self) -> Result<SweepOutcome, SweepStop> {
        let mut batch: Vec<Going> = Vec::new();
        let mut sidecars: Vec<ListedBlob> = Vec::new();
        let mut gone: HashSet<u64> = HashSet::new();
        let store = Arc::clone(self.table.blobs());
        for folder in self.places.listed.clone() {
            let mut listed = store.list(folder.prefix());
            while let Some(blob) = listed.next().await {
                let blob = match blob {
                    Ok(blob) => blob,
                    Err(StorageError::Invalid { .. }) => continue,
                    Err(source) => return Err(SweepStop::Listing { folder: folder.to_string(), source }),
                };
                if classify(&blob.id, &self.places).is_sidecar() {
                    if sidecars.len() < SIDECARS {
                        sidecars.push(blob);
                    }
                    continue;
                }
                self.look_at(blob, Owner::None, &mut batch);
                // What was found so far still goes: the deadline leaves time for one batch.
                let late = self.is_late();
                if batch.len() >= BATCH || late {
                    self.delete(&mut batch, &mut gone).await?;
                }
                if late {
                    return Ok(self.out_of_time());
                }
            }
        }
        self.delete(&mut batch, &mut gone).await?;
        for blob in sidecars {
            let FileClass::Sidecar(uuid) = classify(&blob.id, &self.places) else { continue };
            // With its file only when that is really gone.
            let owner = match self.owners.fate(short(uuid)) {
                Owner::Goes if !self.rules.dry_run && !gone.contains(&short(uuid)) => Owner::Kept,
                fate => fate,
            };
            self.look_at(blob, owner, &mut batch);
            let late = self.is_late();
            if batch.len() >= BATCH || late {
                self.delete(&mut batch, &mut gone).await?;
            }
            if late {
                return Ok(self.out_of_time());
            }
        }
        self.delete(&mut batch, &mut gone).await?;
        Ok(SweepOutcome::Done)
    }

    fn is_late(&self) -> bool {
        self.tools.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn out_of_time(self) -> SweepOutcome {
        if self.due > 0 {
            *self.receipt.kept.entry(KeepReason::OutOfTime.as_str().to_owned()).or_default() += self.due;
        }
        SweepOutcome::Unfinished("out of time while files were deleted: the next sweep goes on".to_owned())
    }

    /// Decides for a file of the second listing.
    fn look_at(&mut self, blob: ListedBlob, owner: Owner, batch: &mut Vec<Going>) {
        let print = Fingerprint::of(&blob.id);
        let Some(place) = self.listing.find(print) else {
            self.kept(&blob, KeepReason::Changed, false);
            return;
        };
        let known = self.listing.remembered(place);
        let since = self.seen.since(print);
        let class = classify(&blob.id, &self.places);
        let facts = FileFacts {
            class,
            state: known.state,
            modified: Some(blob.last_modified),
            doubled: known.doubled,
            unreferenced_since: since,
            owner,
        };
        let decision = decide_orphan(&facts, &self.rules);
        if let OrphanDecision::Delete(_) = decision {
            self.due = self.due.saturating_sub(1);
        }
        match decision {
            OrphanDecision::Keep(KeepReason::Live | KeepReason::Replaced) => {}
            OrphanDecision::Keep(reason) => self.say(&blob, Verdict::Keep, reason.to_string()),
            OrphanDecision::Delete(_) if known.modified.map(seconds) != Some(seconds(blob.last_modified)) => {
                self.kept(&blob, KeepReason::Changed, true);
            }
            OrphanDecision::Delete(reason) if self.rules.dry_run => {
                self.say(&blob, Verdict::Delete, reason.to_string());
                self.receipt.deletions.deleted += 1;
                self.receipt.deletions.bytes += blob.size;
            }
            OrphanDecision::Delete(reason) => {
                let owner = known.owner;
                batch.push(Going { blob, place, owner, reason, since });
            }
        }
    }

    /// A file that was to go, or of which nothing was known, stays.
    fn kept(&mut self, blob: &ListedBlob, reason: KeepReason, counted: bool) {
        if counted {
            count(self.receipt, reason);
        }
        self.say(blob, Verdict::Keep, reason.to_string());
    }

    fn say(&mut self, blob: &ListedBlob, verdict: Verdict, reason: String) {
        let age_hours = (blob.last_modified.timestamp() > 0).then(|| age_hours(blob.last_modified, self.rules.now));
        self.report.file(&FileLine {
            dataset: self.job.dataset.clone(),
            path: blob.id.url_like(self.table.location()),
            verdict,
            reason,
            age_hours,
            bytes: blob.size,
        });
    }

    /// Loads the table again and marks what came since.
    async fn refresh(&mut self) -> Result<(), SweepStop> {
        let newer = self.tools.catalog.load(&self.job.table).await?;
        if newer.metadata_location == self.table.metadata_location {
            return Ok(());
        }
        same_table(&self.table, &newer, &self.places)?;
        self.marker.run(&mut self.walk, &newer).await?;
        if let Some(metadata) = &mut self.receipt.metadata {
            metadata.last_location = newer.metadata_location.clone();
            metadata.manifests = self.walk.counts.manifests;
            metadata.entries = self.walk.counts.entries;
        }
        self.table = newer;
        Ok(())
    }

    /// Deletes a batch; what is referred to by now stays. `gone` gets the owners of sidecars that were deleted.
    async fn delete(&mut self, batch: &mut Vec<Going>, gone: &mut HashSet<u64>) -> Result<(), SweepStop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.refresh().await?;
        let mut going = Vec::new();
        for one in batch.drain(..) {
            match self.listing.remembered(one.place).state.delete() {
                Ok(FileState::Deleted) => going.push(one),
                _ => self.kept(&one.blob, KeepReason::Live, true),
            }
        }
        if going.is_empty() {
            return Ok(());
        }
        self.receipt.parts += 1;
        let mut part = ReceiptPart {
            metadata: self.table.metadata_location.clone(),
            deletions: going.iter().enumerate().map(|(number, one)| self.deletion(number, one)).collect(),
        };
        // In writing before the first file goes; the receipt itself, too, so that it is found.
        write_part(self.tools.state, self.receipt, &part).await?;
        crate::sweep::run::write_receipt(self.tools.state, self.receipt).await?;
        let store = Arc::clone(self.table.blobs());
        let trash = self.trash.clone();
        let removals = going.iter().zip(&part.deletions).map(|(one, deletion)| {
            let (store, trash) = (store.as_ref(), trash.as_ref());
            remove(store, trash, &one.blob, deletion.trash.as_deref())
        });
        let results: Vec<Gone> = stream::iter(removals.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
        let mut stop = None;
        for ((one, deletion), result) in going.iter().zip(&mut part.deletions).zip(results) {
            deletion.outcome = result.outcome;
            deletion.detail = result.detail;
            stop = stop.or(result.stop);
            match result.outcome {
                DeletionOutcome::Deleted => {
                    self.receipt.deletions.deleted += 1;
                    self.receipt.deletions.bytes += one.blob.size;
                    self.receipt.states.unreferenced = self.receipt.states.unreferenced.saturating_sub(1);
                    self.receipt.states.add(FileState::Deleted);
                    gone.insert(one.owner);
                    self.say(&one.blob, Verdict::Deleted, one.reason.to_string());
                }
                // Another sweep, or its owner, was faster.
                DeletionOutcome::Absent => {
                    self.receipt.deletions.absent += 1;
                    gone.insert(one.owner);
                }
                DeletionOutcome::Refused | DeletionOutcome::Planned => {
                    self.receipt.deletions.refused += 1;
                    let detail = deletion.detail.clone().unwrap_or_default();
                    count(self.receipt, KeepReason::Refused);
                    self.say(&one.blob, Verdict::Keep, format!("{}: {detail}", KeepReason::Refused));
                }
            }
        }
        write_part(self.tools.state, self.receipt, &part).await?;
        match stop {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn deletion(&self, number: usize, one: &Going) -> Deletion {
        let before = (self.receipt.parts - 1) as u64 * BATCH as u64;
        let name = Trash::name(&self.receipt.receipt, before + number as u64, &one.blob.id);
        Deletion {
            path: one.blob.id.url_like(self.table.location()),
            reason: one.reason.to_string(),
            age_hours: age_hours(one.blob.last_modified, self.rules.now),
            bytes: one.blob.size,
            etag: one.blob.etag.clone(),
            modified: text(one.blob.last_modified),
            unreferenced_since: one.since.map(text),
            outcome: DeletionOutcome::Planned,
            trash: self.trash.is_some().then_some(name),
            detail: None,
        }
    }
}

/// Writes the last part of a receipt.
async fn write_part(state: &StateStore, receipt: &Receipt, part: &ReceiptPart) -> Result<(), SweepStop> {
    let address = state.root().receipt(&receipt.dataset, &receipt.receipt, Some(receipt.parts));
    state.write(&address, part).await?;
    Ok(())
}

/// Deletes one file if it is still the version that was listed.
async fn remove(store: &dyn BlobStore, trash: Option<&Trash>, blob: &ListedBlob, name: Option<&str>) -> Gone {
    let removed = match (trash, name) {
        (Some(trash), Some(name)) => move_away(store, trash, blob, name).await,
        _ => store.delete_leased(&blob.id, DeleteCondition::IfMatch(blob.etag.clone()), None).await,
    };
    match removed {
        Ok(Deleted::Deleted) => Gone { outcome: DeletionOutcome::Deleted, detail: None, stop: None },
        Ok(Deleted::Absent) | Err(StorageError::NotFound { .. }) => {
            Gone { outcome: DeletionOutcome::Absent, detail: None, stop: None }
        }
        Err(error) => {
            let hopeless = error.is_retryable()
                || matches!(
                    error,
                    StorageError::Denied { .. } | StorageError::NoContainer { .. } | StorageError::Full { .. }
                );
            let detail = Some(error.to_string());
            Gone { outcome: DeletionOutcome::Refused, detail, stop: hopeless.then_some(error) }
        }
    }
}

/// A rename has no condition: the version is looked at right before.
async fn move_away(
    store: &dyn BlobStore,
    trash: &Trash,
    blob: &ListedBlob,
    name: &str,
) -> Result<Deleted, StorageError> {
    if store.properties(&blob.id).await?.etag != blob.etag {
        let detail = "it was written since it was listed".to_owned();
        return Err(StorageError::Precondition { blob: Box::new(blob.id.clone()), detail });
    }
    trash.take(&blob.id, name).await.map(|()| Deleted::Deleted)
}
