//! The sweep of one table, from its checks to its receipt.

use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use firn_config::{Maintenance, hours};
use firn_state::{Read, StateError, StateStore, SweepRecord, Version};
use firn_storage::{Clock, StorageError};
use firn_table::{Catalog, LoadedTable, ManifestWalk, TableIdent};
use futures::StreamExt;

use crate::clock::{looked_at_now, trusted_now};
use crate::jobs::{SkipReason, TableJob, skipped, text};
use crate::sweep::abandoned::Abandoned;
use crate::sweep::checks::{no_table_inside, same_table};
use crate::sweep::class::{classify, is_metadata_file, is_of_another_format};
use crate::sweep::decide::{KeepReason, SweepRules};
use crate::sweep::delete::Deleter;
use crate::sweep::listing::{Listing, ListingBuilder};
use crate::sweep::mark::Marker;
use crate::sweep::neighbours::{Neighbours, check_above, places_of};
use crate::sweep::places::{Folder, Places};
use crate::sweep::planned::Planned;
use crate::sweep::receipt::{ListingCounts, MetadataRead, Receipt, RulesUsed, Undo, receipt_id};
use crate::sweep::report::SweepReport;
use crate::sweep::seen::{Memory, Seen, is_held, memory};
use crate::sweep::stop::SweepStop;
use crate::sweep::unknown_metadata::UnknownMetadata;
use crate::trash::{TRASH_DAYS, Trash};

/// Folders with metadata files that are remembered: more than two are another table's anyway.
const METADATA_FOLDERS: usize = 100;
/// Names that cannot be used, as far as the receipt has them.
const ODD_NAMES: usize = 5;

/// What a sweep had seen and never came to count is removed when it is older: its sweep has ended.
const LEFT_BEHIND: TimeDelta = TimeDelta::days(1);

/// What a sweep works with.
#[derive(Debug, Clone, Copy)]
pub struct SweepTools<'a> {
    /// The catalog.
    pub catalog: &'a dyn Catalog,
    /// Records, receipts and trash.
    pub state: &'a StateStore,
    /// Section `maintenance`.
    pub settings: &'a Maintenance,
    /// This machine's clock.
    pub clock: &'a Clock,
    /// Tables of all datasets.
    pub configured: &'a [TableIdent],
    /// When the run has to end; None: whenever it is done.
    pub deadline: Option<Instant>,
    /// Write and delete nothing.
    pub dry_run: bool,
}

/// How the sweep of a table ended.
#[derive(Debug)]
pub enum SweepOutcome {
    /// All of it was done.
    Done,
    /// The time of the run was used up, and where; what was done counts, and the next sweep goes on.
    Unfinished(String),
    /// The table is left alone.
    Skipped(SkipReason),
    /// Something looks wrong.
    Stopped(SweepStop),
}

/// What the sweep of a table came to.
#[derive(Debug)]
pub struct TableSweep {
    /// How it ended.
    pub outcome: SweepOutcome,
    /// The receipt; of a dry run it was not written.
    pub receipt: Receipt,
}

/// Sweeps one table.
pub async fn sweep_table(
    tools: SweepTools<'_>,
    job: &TableJob,
    neighbours: &mut Neighbours,
    report: &mut dyn SweepReport,
) -> TableSweep {
    let began = tools.clock.now();
    let mut receipt = Receipt {
        receipt: receipt_id(began),
        dataset: job.dataset.clone(),
        table: job.table.to_string(),
        started_at: text(began),
        outcome: "running".into(),
        rules: RulesUsed {
            orphan_min_age_hours: tools.settings.orphan_min_age_hours,
            orphan_grace_hours: tools.settings.orphan_grace_hours,
            orphan_metadata: tools.settings.orphan_metadata,
            first_sweep: false,
        },
        ..Receipt::default()
    };
    if tools.settings.orphan_grace_hours == 0 {
        receipt.warnings.push(
            "orphanGraceHours is 0: a query that planned on a snapshot may lose its files as soon as that snapshot expires".into(),
        );
    }
    let mut sweep = Sweep { tools, job, receipt: &mut receipt };
    let outcome = match sweep.run(neighbours, report).await {
        Ok(outcome) => outcome,
        Err(stop @ SweepStop::OutOfTime { .. }) => SweepOutcome::Unfinished(stop.to_string()),
        Err(stop) => SweepOutcome::Stopped(stop),
    };
    let (word, reason) = match &outcome {
        SweepOutcome::Done => ("done", None),
        SweepOutcome::Unfinished(reason) => ("unfinished", Some(reason.clone())),
        SweepOutcome::Skipped(reason) => ("left", Some(reason.to_string())),
        SweepOutcome::Stopped(stop) => ("failed", Some(stop.to_string())),
    };
    receipt.outcome = word.to_owned();
    receipt.reason = reason;
    receipt.ended_at = Some(text(tools.clock.now()));
    if !tools.dry_run
        && let Err(error) = write_receipt(tools.state, &receipt).await
    {
        // Deletions are in its parts already.
        tracing::error!(table = %job.table, receipt = receipt.receipt, %error, "the receipt was not written");
    }
    TableSweep { outcome, receipt }
}

/// Writes the receipt itself, over what stands there.
pub(crate) async fn write_receipt(state: &StateStore, receipt: &Receipt) -> Result<(), StateError> {
    let address = state.root().receipt(&receipt.dataset, &receipt.receipt, None);
    state.write(&address, receipt).await.map(|_| ())
}

/// What was listed.
struct Listed {
    files: Listing,
    /// Folders with metadata files, each with one of them.
    metadata_folders: Vec<(String, String)>,
    unknown_metadata: UnknownMetadata,
}

struct Sweep<'a> {
    tools: SweepTools<'a>,
    job: &'a TableJob,
    receipt: &'a mut Receipt,
}

impl Sweep<'_> {
    async fn run(
        &mut self,
        neighbours: &mut Neighbours,
        report: &mut dyn SweepReport,
    ) -> Result<SweepOutcome, SweepStop> {
        let tools = self.tools;
        let first = tools.catalog.load(&self.job.table).await?;
        self.receipt.table_uuid = Some(first.uuid());
        if let Some(reason) = skipped(&first) {
            return Ok(SweepOutcome::Skipped(reason));
        }
        let places = places_of(&first)?;
        let deadline = tools.deadline;
        in_time(deadline, "the tables of the catalog were looked at", self.check_places(&first, &places, neighbours))
            .await?;
        let now = self.now(&first, &places).await?;
        // The listing first, the metadata after it: what is committed in between is referred to, and what is listed before is older.
        let listed = in_time(deadline, "its folders were listed", self.list(&first, &places, now)).await?;
        let Listed { files, metadata_folders, unknown_metadata } = listed;
        let listing = Arc::new(files);
        let table = tools.catalog.load(&self.job.table).await?;
        same_table(&first, &table, &places)?;
        no_table_inside(&table, &places, &metadata_folders)?;
        let mut walk = ManifestWalk::default();
        let marker = Arc::new(Marker::new(listing.clone(), places.clone(), table.clone(), now));
        let warnings = &mut self.receipt.warnings;
        let read = async {
            let unknown = unknown_metadata.look_into(&table, warnings).await?;
            marker.run(&mut walk, &table).await?;
            for version in &unknown {
                marker.protect(&walk, version).await?;
            }
            Ok::<_, SweepStop>(())
        };
        in_time(deadline, "its manifests were read", read).await?;
        let history = table.history()?;
        self.receipt.metadata = Some(MetadataRead {
            location: table.metadata_location.clone(),
            last_location: table.metadata_location.clone(),
            last_sequence_number: table.metadata.last_sequence_number(),
            snapshots: walk.counts.snapshots,
            manifests: walk.counts.manifests,
            entries: walk.counts.entries,
        });
        let before = self.before(&table).await?;
        let number = table.metadata.last_sequence_number();
        let memory = memory(before.as_ref().map(|read| &read.value), &history, number);
        let abandoned = Abandoned::of(tools.state, &table).await?;
        let seen = self.seen(&table, before.as_ref(), memory, now).await?.with(abandoned.seen(), now);
        let rules = self.rules(now, memory);
        self.receipt.rules.first_sweep = rules.first_sweep;
        self.receipt.undo = self.undo(&table).await;
        self.receipt.warnings.extend(short_receipts(&self.receipt.undo, tools.settings.receipt_days));

        let planned = Planned::decide(&listing, &marker, &seen, &rules, self.receipt);
        if !tools.dry_run {
            let lines = planned.candidates(&listing, &seen, &rules);
            self.remember(&table, before.as_ref(), now, lines).await?;
            abandoned.forget(tools.state, &listing).await;
        }
        let trash = if table_is_local(&table) { Trash::of(tools.state) } else { None };
        if let Some(trash) = trash.as_ref().filter(|_| !tools.dry_run)
            && let Err(error) = trash.empty(now).await
        {
            self.receipt.warnings.push(format!("old files of the trash stay for now: {error}"));
        }
        let wants = tools.dry_run || report.wants_kept();
        if planned.due == 0 && !wants {
            return Ok(SweepOutcome::Done);
        }
        let deleter = Deleter {
            tools,
            job: self.job,
            receipt: self.receipt,
            places,
            listing,
            marker,
            walk,
            table,
            due: planned.due,
            owners: planned.owners,
            seen,
            rules,
            trash,
            report,
        };
        deleter.run().await
    }

    /// What the last sweep wrote.
    async fn before(&self, table: &LoadedTable) -> Result<Option<Read<SweepRecord>>, SweepStop> {
        match self.tools.state.read(&self.tools.state.root().sweep(&table.uuid())).await {
            // A dry run creates no container.
            Err(StateError::Storage(StorageError::NoContainer { .. })) if self.tools.dry_run => Ok(None),
            read => Ok(read?),
        }
    }

    async fn check_places(
        &self,
        table: &LoadedTable,
        places: &Places,
        neighbours: &mut Neighbours,
    ) -> Result<(), SweepStop> {
        if let Some(folder) = places.listed.iter().find(|folder| self.tools.state.root().lies_below(folder.prefix())) {
            return Err(SweepStop::HoldsState { folder: folder.to_string() });
        }
        neighbours.check(self.tools.catalog, table, places, self.tools.configured).await?;
        check_above(table.blobs().as_ref(), places).await
    }

    /// A dry run writes nothing, so it asks the store of the table.
    async fn now(&self, table: &LoadedTable, places: &Places) -> Result<DateTime<Utc>, SweepStop> {
        let own = self.tools.clock.now();
        let trusted = match self.tools.dry_run {
            true => looked_at_now(table.blobs().as_ref(), places.location.prefix(), own).await,
            false => trusted_now(self.tools.state, own).await?,
        };
        trusted.map_err(|apart| SweepStop::Clock { own: apart.own, store: apart.store })
    }

    /// Lists every folder, and notes in which there are metadata files.
    async fn list(&mut self, table: &LoadedTable, places: &Places, now: DateTime<Utc>) -> Result<Listed, SweepStop> {
        let mut builder = ListingBuilder::default();
        let mut unknown_metadata = UnknownMetadata::beside(table)?;
        let mut metadata_folders: Vec<(String, String)> = Vec::new();
        let mut odd: Vec<String> = Vec::new();
        let mut odd_count = 0_u64;
        for folder in &places.listed {
            let mut listed = table.blobs().list(folder.prefix());
            while let Some(blob) = listed.next().await {
                let blob = match blob {
                    Ok(blob) => blob,
                    // One name that cannot be used: nobody can delete it, and the listing goes on.
                    Err(StorageError::Invalid { blob, detail }) => {
                        tracing::warn!(%blob, detail, "left alone");
                        odd_count += 1;
                        if odd.len() < ODD_NAMES {
                            odd.push(blob.to_string());
                        }
                        continue;
                    }
                    Err(source) => return Err(SweepStop::Listing { folder: folder.to_string(), source }),
                };
                if is_of_another_format(&blob.id.key) {
                    return Err(SweepStop::OtherFormat { found: blob.id.to_string() });
                }
                if let Some((parent, _)) = blob.id.key.rsplit_once('/')
                    && is_metadata_file(&blob.id.key)
                {
                    unknown_metadata.note(&blob);
                    if metadata_folders.len() < METADATA_FOLDERS
                        && metadata_folders.iter().all(|(known, _)| known != parent)
                    {
                        metadata_folders.push((parent.to_owned(), blob.id.to_string()));
                    }
                }
                builder.add(&blob, classify(&blob.id, places));
            }
        }
        if odd_count > 0 {
            self.receipt.kept.insert("name that cannot be used".into(), odd_count);
            let warning =
                format!("{odd_count} blobs have names that cannot be used and stay, such as {}", odd.join(", "));
            self.receipt.warnings.push(warning);
        }
        let files = builder.finish();
        self.receipt.listing = Some(ListingCounts {
            folders: places.listed.iter().map(Folder::to_string).collect(),
            objects: files.objects,
            bytes: files.bytes,
            began: text(now),
        });
        Ok(Listed { files, metadata_folders, unknown_metadata })
    }

    async fn seen(
        &mut self,
        table: &LoadedTable,
        before: Option<&Read<SweepRecord>>,
        memory: Memory,
        now: DateTime<Utc>,
    ) -> Result<Seen, SweepStop> {
        let Some(before) = before else { return Ok(Seen::default()) };
        let anew = match memory {
            Memory::Holds | Memory::None => None,
            Memory::WentBack => Some("the table is an older version than the last sweep saw"),
            Memory::SnapshotsCameAndWent => Some(
                "snapshots came and went since the last sweep; sweep more often than snapshots expire (orphanCleanupIntervalMinutes below \
                 snapshotRetentionHours)",
            ),
        };
        self.receipt.warnings.extend(anew.map(|why| format!("the grace begins anew: {why}")));
        match self.tools.state.read_seen(&table.uuid(), &before.value.seen).await? {
            Some(files) if memory == Memory::Holds => Ok(Seen::new(files)),
            // What is left alone until a later time, because a person restored it, is so in any case.
            Some(files) => Ok(Seen::new(files.into_iter().filter(|file| is_held(file, now)).collect())),
            None => {
                self.receipt.warnings.push("what the last sweep saw is gone: the grace begins anew".into());
                Ok(Seen::default())
            }
        }
    }

    fn rules(&self, now: DateTime<Utc>, memory: Memory) -> SweepRules {
        SweepRules {
            now,
            min_age: hours(self.tools.settings.orphan_min_age_hours),
            grace: hours(self.tools.settings.orphan_grace_hours),
            metadata: self.tools.settings.orphan_metadata,
            first_sweep: memory == Memory::None,
            dry_run: self.tools.dry_run,
        }
    }

    async fn undo(&self, table: &LoadedTable) -> Undo {
        if table_is_local(table) {
            return if Trash::of(self.tools.state).is_some() { Undo::Trash { days: TRASH_DAYS } } else { Undo::None };
        }
        let Ok(location) = table.blob_id(table.location()) else { return Undo::Unknown };
        match table.blobs().keeps_deleted_days(&location).await {
            Ok(Some(days)) => Undo::SoftDelete { days },
            Ok(None) => Undo::None,
            Err(error) => {
                tracing::info!(%error, "not known whether the account keeps deleted blobs");
                Undo::Unknown
            }
        }
    }

    /// Writes down what is unreferenced now, before anything is deleted: the next sweep goes by it.
    async fn remember(
        &self,
        table: &LoadedTable,
        before: Option<&Read<SweepRecord>>,
        now: DateTime<Utc>,
        files: impl Iterator<Item = firn_state::SeenFile> + Send,
    ) -> Result<(), SweepStop> {
        let state = self.tools.state;
        let uuid = table.uuid();
        let address = state.root().sweep(&uuid);
        let mut count = 0;
        let seen = state.write_seen(&uuid, files.inspect(|_| count += 1)).await?;
        let number = table.metadata.last_sequence_number();
        let record = SweepRecord {
            table: self.job.table.to_string(),
            swept_at: now,
            last_sequence_number: number,
            // Only without numbers the ids are needed.
            snapshots: if number > 0 {
                Vec::new()
            } else {
                table.metadata.snapshots().map(|one| one.snapshot_id()).collect()
            },
            seen: seen.clone(),
            count,
            receipt: self.receipt.receipt.clone(),
        };
        let version: Option<&Version> = before.map(|read| &read.version);
        match state.follow(&address, &record, version).await {
            Ok(_) => {
                if let Some(before) = before {
                    state.discard_seen(&uuid, &before.value.seen).await?;
                }
                if let Err(error) = state.discard_left_seen(&uuid, &seen, now - LEFT_BEHIND).await {
                    tracing::info!(%error, "what killed sweeps had seen was not removed");
                }
                Ok(())
            }
            Err(error) if error.is_conflict() => {
                // Another sweep of this table was faster: what it saw is as good. This one goes by what both began with.
                tracing::info!(table = %self.job.table, "another sweep of this table wrote first");
                state.discard_seen(&uuid, &seen).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Work that ends with the time of the run. Nothing is deleted in it, so it may be given up anywhere.
async fn in_time<T>(
    deadline: Option<Instant>,
    at: &str,
    work: impl Future<Output = Result<T, SweepStop>>,
) -> Result<T, SweepStop> {
    let Some(deadline) = deadline else { return work.await };
    let out_of_time = || SweepStop::OutOfTime { at: at.to_owned() };
    if Instant::now() >= deadline {
        return Err(out_of_time());
    }
    tokio::time::timeout_at(deadline.into(), work).await.unwrap_or_else(|_| Err(out_of_time()))
}

/// Says that receipts go before what they could bring back.
fn short_receipts(undo: &Undo, receipt_days: u64) -> Option<String> {
    let (Undo::SoftDelete { days } | Undo::Trash { days }) = undo else { return None };
    (receipt_days < u64::from(*days)).then(|| {
        format!(
            "receiptDays {receipt_days} is less than the {days} days for which deleted files are kept: without its receipt a sweep cannot be \
             undone"
        )
    })
}

/// Counts a file that stays.
pub(crate) fn count(receipt: &mut Receipt, reason: KeepReason) {
    *receipt.kept.entry(reason.as_str().to_owned()).or_default() += 1;
}

fn table_is_local(table: &LoadedTable) -> bool {
    table.blob_id(table.location()).is_ok_and(|id| id.is_local())
}
