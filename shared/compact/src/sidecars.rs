//! Sidecars of the outputs, built in the same pass that merges (design section 7).
//!
//! Each output has a thread that decodes the wanted columns of every row group as it was written and feeds the builders, while the next row
//! group is merged. When the output is whole, its sidecars are finished and uploaded, before the commit. Whatever goes wrong here drops the
//! sidecar concerned and nothing else.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow_schema::Schema;
use firn_columnar::{ColumnarError, MergeError, RowGroupTap, TempSpace, WrittenGroup};
use firn_config::Dataset;
use firn_model::BlobId;
use firn_sidecar::text::LEAST_ARENA_BYTES;
use firn_sidecar::{
    Built, DataFile, Dropped, SetLimits, SidecarColumns, SidecarError, SidecarKind, SidecarSet, sidecar_id,
};
use firn_storage::BlobStore;
use firn_table::{LoadedTable, sidecar_uuid};
use firn_telemetry::SidecarCounts;
use tokio::runtime::Handle;

/// Bytes of a segment of the index in memory; the first that fits is taken.
const ARENA_BYTES: [u64; 4] = [48 << 20, 32 << 20, 24 << 20, LEAST_ARENA_BYTES];
/// What decoding and uploading take besides: a batch, a block.
const WORKING_BYTES: u64 = 10 << 20;
/// What decoding takes for each of the columns, which are read side by side: a dictionary and a page.
const DECODING_BYTES_A_COLUMN: u64 = 3 << 20;
/// Row groups of the wanted columns held at once: one in work, one waiting.
const GROUPS: u64 = 2;

/// What is built beside the outputs of one group, and what it may take.
#[derive(Debug, Clone)]
pub struct SidecarPlan {
    columns: SidecarColumns,
    /// Their places in the table's schema.
    places: Vec<usize>,
    limits: SetLimits,
    /// Memory that the merge has to leave.
    memory_bytes: u64,
}

/// Bytes of a segment of the index in memory, for a file of `rows` rows whose builders share `memory_bytes`.
pub(crate) fn arena_bytes(columns: &SidecarColumns, rows: u64, memory_bytes: u64) -> u64 {
    let fitting = ARENA_BYTES.into_iter().find(|arena| columns.least_memory(rows, *arena) <= memory_bytes);
    fitting.unwrap_or(LEAST_ARENA_BYTES)
}

fn drop_one(counts: &mut SidecarCounts, kind: SidecarKind, error: &dyn std::fmt::Display) {
    tracing::warn!(%kind, %error, "a sidecar is dropped, the data file is not");
    counts.dropped += 1;
    explain(counts, format!("{kind}: {error}"));
}

fn explain(counts: &mut SidecarCounts, reason: String) {
    if !counts.reasons.contains(&reason) {
        counts.reasons.push(reason);
    }
}

/// Whether a dataset asks for any sidecar.
pub(crate) fn asked(dataset: &Dataset) -> bool {
    let lists = [&dataset.indexing_columns, &dataset.bloom_filter_columns, &dataset.ndv_columns];
    lists.iter().any(|columns| !columns.is_empty())
}

/// What a group is like.
#[derive(Debug, Clone, Copy)]
pub struct GroupSize {
    /// Rows of its files.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that an output should have.
    pub target_bytes: u64,
    /// Bytes of an encoded row group.
    pub row_group_bytes: u64,
    /// Memory of the whole job.
    pub memory_bytes: u64,
}

impl GroupSize {
    /// Rows that an output may have: outputs may be better compressed than what they are made of, and larger than the target.
    fn output_rows(&self) -> u64 {
        let outputs = u128::from(self.rows) * u128::from(self.target_bytes) * 3 / u128::from(self.bytes.max(1));
        self.rows.min(u64::try_from(outputs).unwrap_or(u64::MAX))
    }
}

impl SidecarPlan {
    /// What the dataset asks for beside the outputs of a group; None when that is nothing. Columns that cannot have what is asked are told
    /// in `counts`.
    pub fn new(
        dataset: &Dataset,
        schema: &Schema,
        group: GroupSize,
        counts: &mut SidecarCounts,
    ) -> Option<SidecarPlan> {
        let columns = SidecarColumns::resolve(
            schema,
            &dataset.indexing_columns,
            &dataset.bloom_filter_columns,
            &dataset.ndv_columns,
        );
        for (kind, reason) in &columns.left_out {
            explain(counts, format!("{kind}: {reason}"));
        }
        if columns.is_empty() {
            return None;
        }
        let needed = columns.needed();
        let places = needed.iter().filter_map(|column| schema.index_of(&column.name).ok()).collect();
        let decoding = DECODING_BYTES_A_COLUMN * needed.len() as u64;
        let held = WORKING_BYTES + decoding + GROUPS * group.row_group_bytes;
        // The merge needs its share; without it there is nothing to build sidecars of.
        let share = (group.memory_bytes / 2).saturating_sub(held);
        let rows = group.output_rows();
        let arena_bytes = arena_bytes(&columns, rows, share);
        // What does not fit is dropped one by one, the index first.
        let builders = columns.memory(rows, arena_bytes).min(share);
        let limits = SetLimits { rows, arena_bytes, memory_bytes: builders };
        Some(SidecarPlan { columns, places, limits, memory_bytes: held + builders })
    }

    /// Memory that the merge leaves to the sidecars.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Drops every sidecar for one reason.
    pub(crate) fn drop_all(&self, counts: &mut SidecarCounts, reason: &dyn std::fmt::Display) {
        self.kinds().for_each(|kind| drop_one(counts, kind, reason));
    }

    fn kinds(&self) -> impl Iterator<Item = SidecarKind> {
        let columns = &self.columns;
        [(SidecarKind::Text, &columns.text), (SidecarKind::Bloom, &columns.bloom), (SidecarKind::Ndv, &columns.ndv)]
            .into_iter()
            .filter(|(_, columns)| !columns.is_empty())
            .map(|(kind, _)| kind)
    }
}

/// Merges with sidecars as `plan` has them; where memory or temporary disk do not suffice for both, without them.
pub(crate) fn with_or_without<T>(
    plan: Option<SidecarPlan>,
    mut counts: SidecarCounts,
    merge: impl Fn(Option<&SidecarPlan>) -> Result<(T, SidecarCounts), MergeError>,
) -> Result<(T, SidecarCounts), MergeError> {
    let merged = match (&plan, merge(plan.as_ref())) {
        (
            Some(plan),
            Err(
                error @ (MergeError::OverBudget { .. }
                | MergeError::NeedsSpill { .. }
                | MergeError::Columnar(ColumnarError::Disk { .. })),
            ),
        ) => {
            plan.drop_all(&mut counts, &error);
            merge(None)
        }
        (_, merged) => merged,
    };
    let (merged, mut of_merge) = merged?;
    of_merge.add(&counts);
    Ok((merged, of_merge))
}

/// Builds and uploads the sidecars of a group's outputs.
#[derive(Debug, Clone)]
pub struct Sidecars {
    plan: Arc<SidecarPlan>,
    space: TempSpace,
    store: Arc<dyn BlobStore>,
    location: BlobId,
    handle: Handle,
    counts: Arc<Mutex<SidecarCounts>>,
}

impl Sidecars {
    /// Sidecars of outputs of `table`.
    ///
    /// # Errors
    /// [`ColumnarError::Usage`] when the table's location names no place that can be reached.
    pub fn new(
        plan: SidecarPlan,
        table: &LoadedTable,
        space: &TempSpace,
        handle: Handle,
    ) -> Result<Sidecars, ColumnarError> {
        let location = table.store.blob_id(table.location());
        let location = location.map_err(|error| ColumnarError::Usage { detail: error.to_string() })?;
        Ok(Sidecars {
            plan: Arc::new(plan),
            space: space.clone(),
            store: table.store.blobs().clone(),
            location,
            handle,
            counts: Arc::default(),
        })
    }

    /// Starts the sidecars of one output.
    pub fn start(&self) -> OutputSidecars {
        let (sender, receiver) = sync_channel(0);
        let (plan, space) = (Arc::clone(&self.plan), self.space.clone());
        let built =
            std::thread::Builder::new().name("firn-sidecars".into()).spawn(move || build(&plan, &space, &receiver));
        OutputSidecars { sidecars: self.clone(), sender: Some(sender), thread: built.ok() }
    }

    /// Forgets the outputs so far: they are made again.
    pub(crate) fn restart(&self) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = SidecarCounts::default();
    }

    /// What became of the sidecars so far.
    pub fn counts(&self) -> SidecarCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What goes to the thread that builds.
enum Step {
    Group(Box<WrittenGroup>),
    /// The output has so many rows.
    End(u64),
    /// The output was given up.
    GiveUp,
}

fn build(plan: &SidecarPlan, space: &TempSpace, steps: &Receiver<Step>) -> (Vec<Built>, Vec<Dropped>) {
    let mut set = SidecarSet::start(&plan.columns, plan.limits, space);
    loop {
        match steps.recv() {
            Ok(Step::Group(_)) if set.is_empty() => {}
            Ok(Step::Group(group)) => {
                let read = group.read(|batch| {
                    set.add(batch.columns());
                    Ok::<(), ColumnarError>(())
                });
                if let Err(error) = read {
                    set.drop_all(&error.to_string());
                }
            }
            Ok(Step::End(rows)) => return set.finish(rows),
            Ok(Step::GiveUp) | Err(_) => return (Vec::new(), Vec::new()),
        }
    }
}

/// The sidecars of one output. Dropped before [`finish`](Self::finish), nothing of them is left.
#[derive(Debug)]
pub struct OutputSidecars {
    sidecars: Sidecars,
    sender: Option<SyncSender<Step>>,
    thread: Option<JoinHandle<(Vec<Built>, Vec<Dropped>)>>,
}

impl OutputSidecars {
    /// What the writer of the output hands its row groups to.
    pub fn tap(&self) -> Option<Box<dyn RowGroupTap>> {
        let sender = self.sender.clone()?;
        Some(Box::new(Tap { columns: self.sidecars.plan.places.clone(), sender }))
    }

    /// The output is whole: finishes its sidecars and uploads them. Blocks.
    pub fn finish(mut self, id: &BlobId, size: u64, rows: u64) {
        let mut counts = SidecarCounts::default();
        let data = DataFile::new(id, size, rows);
        let ended = self.sender.take().is_some_and(|sender| sender.send(Step::End(rows)).is_ok());
        let built = self.thread.take().filter(|_| ended).and_then(|thread| thread.join().ok());
        match built {
            Some((built, dropped)) => {
                dropped.iter().for_each(|dropped| drop_one(&mut counts, dropped.kind, &dropped.error));
                for built in built {
                    self.upload(&built, id, &data, &mut counts);
                }
            }
            None => {
                let error = SidecarError::Failed("the thread that builds sidecars ended early".into());
                for kind in self.sidecars.plan.kinds() {
                    drop_one(&mut counts, kind, &error);
                }
            }
        }
        self.sidecars.counts.lock().unwrap_or_else(PoisonError::into_inner).add(&counts);
    }

    fn upload(&self, built: &Built, id: &BlobId, data: &DataFile, counts: &mut SidecarCounts) {
        let sidecar = sidecar_id(&self.sidecars.location, &sidecar_uuid(id), built.kind);
        let written = self.sidecars.handle.block_on(built.write(&*self.sidecars.store, &sidecar, data));
        match written {
            Ok(properties) => {
                counts.written += 1;
                counts.bytes += properties.size;
                counts.build_ms += u64::try_from(built.time.as_millis()).unwrap_or(u64::MAX);
            }
            Err(error) => drop_one(counts, built.kind, &error),
        }
    }
}

impl Drop for OutputSidecars {
    fn drop(&mut self) {
        // Temporary disk is free again before whoever gave the output up goes on. The thread is told so: the writer's tap, which can
        // still send, may live longer than this.
        if let Some(sender) = self.sender.take() {
            // It may have ended already.
            let _ = sender.send(Step::GiveUp);
        }
        if let Some(thread) = self.thread.take() {
            // A panic of it was told when it happened; there is nothing left to lose.
            let _ = thread.join();
        }
    }
}

struct Tap {
    columns: Vec<usize>,
    sender: SyncSender<Step>,
}

impl RowGroupTap for Tap {
    fn columns(&self) -> Vec<usize> {
        self.columns.clone()
    }

    fn row_group(&mut self, group: WrittenGroup) -> bool {
        self.sender.send(Step::Group(Box::new(group))).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_schema::{DataType, Field};
    use firn_config::Config;

    use super::*;

    const MB: u64 = 1 << 20;

    fn dataset(keys: &str) -> Dataset {
        let text = format!(
            "catalog: {{type: sql, uri: 'sqlite:////c.db', name: n, warehouse: 'file:///w'}}\n\
             ingestion: {{datasets: [{{name: logs, table: a.b{keys}}}]}}"
        );
        Config::load(&text, &HashMap::new()).unwrap().datasets.remove(0)
    }

    fn schema() -> Schema {
        let field = |name: &str, data_type, id: i32| {
            let metadata = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
            Field::new(name, data_type, true).with_metadata(metadata)
        };
        Schema::new(vec![field("id", DataType::Int64, 1), field("message", DataType::Utf8, 2)])
    }

    fn size(memory_mb: u64) -> GroupSize {
        GroupSize {
            rows: 1_000_000,
            bytes: 100 * MB,
            target_bytes: 128 * MB,
            row_group_bytes: 32 * MB,
            memory_bytes: memory_mb * MB,
        }
    }

    const ALL: &str = ", tantivy: {indexingColumns: [message]}, bloomFilterColumns: [id], ndvColumns: [id, message]";

    fn plan(keys: &str, memory_mb: u64) -> (Option<SidecarPlan>, SidecarCounts) {
        let mut counts = SidecarCounts::default();
        let plan = SidecarPlan::new(&dataset(keys), &schema(), size(memory_mb), &mut counts);
        (plan, counts)
    }

    #[test]
    fn the_merge_keeps_half_of_the_memory_and_the_index_takes_what_fits() {
        let arena = |memory_mb| plan(ALL, memory_mb).0.unwrap().limits.arena_bytes / MB;
        assert_eq!([512, 384, 256].map(arena), [48, 48, 16]);
        for memory_mb in [256, 384, 512, 2048] {
            let plan = plan(ALL, memory_mb).0.unwrap();
            assert!(plan.memory_bytes() <= memory_mb * MB / 2, "{memory_mb}: {}", plan.memory_bytes());
        }
    }

    /// Every column that is decoded counts, once for all of its sidecars.
    #[test]
    fn more_columns_take_more_memory() {
        let memory = |keys: &str| plan(keys, 2048).0.unwrap().memory_bytes();
        let (one, again, two) = (
            memory(", ndvColumns: [id]"),
            memory(", bloomFilterColumns: [id], ndvColumns: [id]"),
            memory(", ndvColumns: [id, message]"),
        );
        let (sketch, filter) = (firn_sidecar::NdvBuilder::memory(1), firn_sidecar::BloomBuilder::memory(1, 1_000_000));
        assert_eq!(again - one, filter);
        assert_eq!(two - one, DECODING_BYTES_A_COLUMN + sketch);
    }

    /// Merging an index of very many rows would take more than there is: it is built all the same, in several segments.
    #[test]
    fn very_many_rows_leave_the_merge_its_half() {
        let mut counts = SidecarCounts::default();
        let many = GroupSize { rows: 100_000_000, bytes: 1000 * MB, ..size(512) };
        let plan = SidecarPlan::new(&dataset(", tantivy: {indexingColumns: [message]}"), &schema(), many, &mut counts);
        let plan = plan.unwrap();
        assert_eq!((plan.limits.arena_bytes, plan.memory_bytes()), (48 * MB, 256 * MB));
    }

    #[test]
    fn a_dataset_gets_what_it_asks_for_and_what_cannot_be_is_told() {
        assert!(plan("", 512).0.is_none());
        let (none, counts) = plan(", ndvColumns: [no]", 512);
        assert!(none.is_none());
        assert_eq!(counts.reasons, ["distinct-value sketch: the table has no column `no`"]);
        let (some, counts) = plan(", tantivy: {indexingColumns: [id, message]}", 512);
        assert_eq!(some.unwrap().kinds().collect::<Vec<_>>(), [SidecarKind::Text]);
        assert_eq!(counts.reasons, ["full-text index: column `id` is of type Int64"]);
        assert_eq!(counts.dropped, 0);
    }

    #[test]
    fn a_merge_that_does_not_fit_beside_sidecars_is_done_without() {
        let over = || MergeError::OverBudget { inputs: 9, needed_bytes: 300 * MB, budget_bytes: 200 * MB, fan_in: 0 };
        let (plan, counts) = plan(ALL, 512);
        let merged = with_or_without(plan.clone(), counts.clone(), |plan| match plan {
            Some(_) => Err(over()),
            None => Ok(("merged", SidecarCounts::default())),
        });
        let (merged, found) = merged.unwrap();
        assert_eq!((merged, found.dropped, found.written), ("merged", 3, 0));
        assert!(found.reasons.iter().all(|reason| reason.contains("300")), "{:?}", found.reasons);
        // An error of another kind is the merge's own.
        let failed = with_or_without(plan, counts, |_| Err::<((), _), _>(MergeError::Stopped));
        assert!(matches!(failed, Err(MergeError::Stopped)));
    }
}
