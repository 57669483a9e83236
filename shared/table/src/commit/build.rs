//! Builds the tries of a commit: validates the group against a head, writes manifests and list, and says what the catalog must change.
//!
//! Manifests take the time: those that hold the inputs are read, and what survives of them is written again. A head that only has new
//! snapshots of writers holds the same manifests as the one before, so a later try takes the manifests that were written for an earlier
//! one, and races the writers with a list and the catalog's metadata alone.

use std::collections::HashSet;

use iceberg::spec::{DataFile, ManifestFile, PartitionSpec, SchemaRef, Struct, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};

use super::attempt::{Attempt, AttemptError, new_snapshot_id};
use super::deletes::{DeleteTarget, LiveDelete, conflicts};
use super::entry::{CarriedEntry, Carry, copied, entry_bytes};
use super::error::CommitError;
use super::head::Head;
use super::history::replaced_by;
use super::locate::{Located, NotLocated, candidates, carried, holds_any, holds_live_files, locate};
use super::manifests::{LiveSums, ManifestCache, counted, has_counts, split};
use super::outputs;
use super::pack::{ManifestSettings, cut, fold};
use super::request::ReplaceRequest;
use super::snapshot::{NewSnapshot, commit_time};
use super::summary::{Counted, ManifestCounts, Totals, carried_totals, entries};
use super::tuple::fit;
use crate::loaded::LoadedTable;
use crate::location::is_output_of;

/// Builds tries of one commit; remembers every manifest it has read.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    request: &'a ReplaceRequest,
    inputs: HashSet<String>,
    cache: ManifestCache,
    /// That of every try.
    pub(crate) snapshot_id: i64,
    /// Manifests that the first try took along although it replaces none of their files.
    folded: Option<HashSet<String>>,
    written: Option<Written>,
}

/// Manifests that were written for a try, and may be used by later ones.
#[derive(Debug)]
struct Written {
    /// The manifests whose entries they hold, in their order.
    from: Vec<String>,
    schema_id: i32,
    manifests: Vec<ManifestFile>,
    attempt: Attempt,
}

/// A try whose manifests stand in the store.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    head: Head<'a>,
    plan: Plan,
    /// False when they were written for an earlier try: then no time went by.
    pub(crate) took_time: bool,
}

/// A try that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The list of the try.
    pub(crate) attempt: Attempt,
    pub(crate) updates: Vec<TableUpdate>,
    pub(crate) requirements: Vec<TableRequirement>,
}

/// What becomes of the manifests of a head.
#[derive(Debug)]
struct Plan {
    located: Located,
    /// Entries that are written again, in the order of the old manifests.
    carried: Vec<CarriedEntry>,
    /// Manifests that stay as they are.
    kept: Vec<ManifestFile>,
    /// Manifests whose entries are written again.
    replaced: Vec<String>,
    settings: ManifestSettings,
}

impl<'a> Builder<'a> {
    /// # Errors
    /// [`CommitError::Permanent`] for a request that contradicts itself.
    pub(crate) fn new(request: &'a ReplaceRequest) -> Result<Self, CommitError> {
        let ident = request.base.ident.clone();
        let refused = |detail: String| Err(CommitError::Permanent { ident: ident.clone(), detail });
        let inputs: HashSet<String> = request.inputs.iter().cloned().collect();
        let outputs: HashSet<&str> = request.outputs.iter().map(|output| output.path.as_str()).collect();
        if inputs.is_empty() || inputs.len() != request.inputs.len() {
            return refused(format!("{} inputs, {} of them different", request.inputs.len(), inputs.len()));
        }
        if outputs.len() != request.outputs.len() {
            return refused(format!("{} outputs, {} of them different", request.outputs.len(), outputs.len()));
        }
        if let Some(path) = outputs.iter().find(|path| inputs.contains(**path)) {
            return refused(format!("`{path}` is input and output"));
        }
        let snapshot_id = new_snapshot_id(&request.base);
        Ok(Self { request, inputs, cache: ManifestCache::default(), snapshot_id, folded: None, written: None })
    }

    /// Validates the group against a head and writes the manifests of a try, unless an earlier try has written the same.
    pub(crate) async fn prepare<'t>(&mut self, table: &'t LoadedTable) -> Result<Prepared<'t>, CommitError> {
        let head = Head::of(table, self.request)?;
        let plan = self.plan(&head).await?;
        outputs::check(table, &self.request.outputs).await?;
        let schema_id = table.metadata.current_schema_id();
        if self.written.as_ref().is_some_and(|written| written.from == plan.replaced && written.schema_id == schema_id)
        {
            return Ok(Prepared { head, plan, took_time: false });
        }
        self.clean_up(table).await;
        let mut attempt = Attempt::new(table, self.snapshot_id);
        match self.write_manifests(&head, &plan, &mut attempt).await {
            Ok(manifests) => {
                self.written = Some(Written { from: plan.replaced.clone(), schema_id, manifests, attempt });
                Ok(Prepared { head, plan, took_time: true })
            }
            Err(error) => {
                attempt.clean_up(&table.io).await;
                Err(error)
            }
        }
    }

    /// Writes the list of a try. On an error nothing of it is left.
    pub(crate) async fn finish(&mut self, prepared: Prepared<'_>) -> Result<Ready, CommitError> {
        let Prepared { head, plan, .. } = prepared;
        let manifests = match &self.written {
            Some(written) => written.manifests.clone(),
            None => return Err(self.refused("no manifests were written".to_owned())),
        };
        let mut attempt = Attempt::new(head.table, self.snapshot_id);
        match self.write_list(&head, &plan, manifests, &mut attempt).await {
            Ok((updates, requirements)) => Ok(Ready { attempt, updates, requirements }),
            Err(error) => {
                attempt.clean_up(&head.table.io).await;
                Err(error)
            }
        }
    }

    /// Removes the manifests that were written. Only to be called when no try that used them is or will be in the table.
    pub(crate) async fn clean_up(&mut self, table: &LoadedTable) {
        if let Some(written) = self.written.take() {
            written.attempt.clean_up(&table.io).await;
        }
    }

    async fn plan(&mut self, head: &Head<'_>) -> Result<Plan, CommitError> {
        let (metadata, partition) = (&head.table.metadata, &self.request.partition);
        let list = head.table.manifests(head.snapshot).await?;
        let (data, deletes) = split(&list);
        let settings = ManifestSettings::of(metadata.properties());
        let folded = self.folded.get_or_insert_with(|| fold(&data, partition.spec_id, settings)).clone();

        let hash = &self.request.inputs_hash;
        let inputs = &self.inputs;
        let candidates = candidates(head.table, &data, partition)?;
        self.cache
            .read(head.table, candidates.iter().copied(), |file, entries| {
                folded.contains(&file.manifest_path)
                    || holds_any(entries, inputs)
                    || entries.iter().any(|entry| entry.is_alive() && is_output_of(entry.file_path(), hash))
            })
            .await?;
        let located = self.located(head, &candidates)?;
        self.refuse_new_deletes(head, &deletes).await?;

        let taken_along: Vec<&ManifestFile> =
            data.iter().copied().filter(|file| folded.contains(&file.manifest_path)).collect();
        self.cache.read(head.table, taken_along, |_, _| true).await?;
        let mut plan = Plan { located, carried: Vec::new(), kept: Vec::new(), replaced: Vec::new(), settings };
        for file in &list {
            let path = &file.manifest_path;
            let rewritten = plan.located.touched.contains(path) || folded.contains(path);
            match self.cache.get(path).filter(|read| rewritten && read.entries.is_some()) {
                Some(read) => {
                    let entries = carried(file, read, &self.inputs).map_err(|detail| self.refused(detail))?;
                    plan.carried.extend(entries);
                    plan.replaced.push(path.clone());
                }
                None if holds_live_files(file) => plan.kept.push(file.clone()),
                None => {}
            }
        }
        self.fill_counts(head.table, &mut plan.kept).await?;
        Ok(plan)
    }

    /// The inputs, all of them live, with the numbers that the request gave.
    fn located(&self, head: &Head<'_>, candidates: &[&ManifestFile]) -> Result<Located, CommitError> {
        let request = self.request;
        let ident = request.base.ident.clone();
        let live_output = candidates
            .iter()
            .filter_map(|file| self.cache.get(&file.manifest_path)?.entries.as_ref())
            .flatten()
            .find(|entry| entry.is_alive() && is_output_of(entry.file_path(), &request.inputs_hash))
            .map(|entry| format!("live file `{}`", entry.file_path()));
        let located = match locate(&self.cache, candidates, &self.inputs, &request.partition) {
            Ok(located) => located,
            Err(NotLocated::Wrong(detail)) => return Err(self.refused(detail)),
            Err(NotLocated::Missing(missing)) => {
                let all_gone = missing.len() == self.inputs.len();
                let by_snapshot = replaced_by(&head.table.metadata, &request.branch, &request.inputs_hash)
                    .filter(|_| all_gone)
                    .map(|id| format!("snapshot {id}"));
                return Err(match live_output.or(by_snapshot) {
                    Some(by) => CommitError::Superseded { ident, by },
                    None => CommitError::InputsGone { ident, missing },
                });
            }
        };
        if let Some(output) = live_output {
            return Err(self.refused(format!("inputs are live beside {output}, which holds their rows already")));
        }
        let rows_out: u64 = request.outputs.iter().map(|output| output.rows).sum();
        if located.sums.records != rows_out + request.rows_removed {
            return Err(self.refused(format!(
                "the inputs have {} rows, the outputs {rows_out}, and {} were removed: rows would be lost or doubled",
                located.sums.records, request.rows_removed
            )));
        }
        if located.newest != request.data_sequence_number {
            return Err(self.refused(format!(
                "the newest input has data sequence number {}, the outputs would have {}: deletes would miss their rows",
                located.newest, request.data_sequence_number
            )));
        }
        Ok(located)
    }

    /// Refuses the try when a delete file came since the merge was planned that may apply to an input.
    async fn refuse_new_deletes(&mut self, head: &Head<'_>, deletes: &[&ManifestFile]) -> Result<(), CommitError> {
        let base = &self.request.base;
        let Some(planned) = base.metadata.snapshot_for_ref(&self.request.branch) else { return Ok(()) };
        if planned.snapshot_id() == head.snapshot.snapshot_id() || deletes.is_empty() {
            return Ok(());
        }
        let base_list = base.manifests(planned).await?;
        let (_, base_deletes) = split(&base_list);
        let paths =
            |files: &[&ManifestFile]| files.iter().map(|file| file.manifest_path.clone()).collect::<HashSet<String>>();
        let (base_paths, head_paths) = (paths(&base_deletes), paths(deletes));
        let added = self.live_deletes(head.table, deletes, &base_paths).await?;
        let group = DeleteTarget {
            partition: &self.request.partition,
            inputs: &self.inputs,
            data_sequence_number: self.request.data_sequence_number,
            drops_rows: self.request.rows_removed > 0,
        };
        let mut hits: Vec<LiveDelete> = added.into_iter().filter(|delete| conflicts(delete, &group)).collect();
        if hits.is_empty() {
            return Ok(());
        }
        // A delete manifest may only have been written again since; then its deletes are not new.
        let known = self.live_deletes(base, &base_deletes, &head_paths).await?;
        let known: HashSet<_> = known.iter().map(LiveDelete::identity).collect();
        hits.retain(|delete| !known.contains(&delete.identity()));
        if hits.is_empty() {
            return Ok(());
        }
        let deletes = hits.iter().map(LiveDelete::name).collect();
        Err(CommitError::NewDeletes { ident: base.ident.clone(), deletes })
    }

    /// Live delete files of the manifests that are not in `except`.
    async fn live_deletes(
        &mut self,
        table: &LoadedTable,
        files: &[&ManifestFile],
        except: &HashSet<String>,
    ) -> Result<Vec<LiveDelete>, CommitError> {
        let files: Vec<&ManifestFile> = files
            .iter()
            .copied()
            .filter(|file| !except.contains(&file.manifest_path) && holds_live_files(file))
            .collect();
        self.cache.read_whole(table, files.iter().copied()).await?;
        let mut found = Vec::new();
        for file in files {
            let spec = table.metadata.partition_spec_by_id(file.partition_spec_id);
            let unpartitioned = spec.is_none_or(|spec| spec.is_unpartitioned());
            let read = self.cache.get(&file.manifest_path).and_then(|read| read.entries.as_ref());
            let live = read.into_iter().flatten().filter(|entry| entry.is_alive());
            found.extend(live.map(|entry| LiveDelete::new(entry, file.partition_spec_id, unpartitioned)));
        }
        Ok(found)
    }

    /// Lists of version 1 may lack counts that version 2 needs, and that the totals need.
    async fn fill_counts(&mut self, table: &LoadedTable, kept: &mut [ManifestFile]) -> Result<(), CommitError> {
        let bare: Vec<&ManifestFile> = kept.iter().filter(|file| !has_counts(file)).collect();
        self.cache.read(table, bare, |_, _| false).await?;
        for file in kept.iter_mut().filter(|file| !has_counts(file)) {
            if let Some(read) = self.cache.get(&file.manifest_path) {
                *file = read.with_counts(file.clone());
            }
        }
        Ok(())
    }

    async fn write_manifests(
        &self,
        head: &Head<'_>,
        plan: &Plan,
        attempt: &mut Attempt,
    ) -> Result<Vec<ManifestFile>, CommitError> {
        let (table, request) = (head.table, self.request);
        let metadata = &table.metadata;
        let Some(spec) = metadata.partition_spec_by_id(request.partition.spec_id) else {
            return Err(self.refused(format!("partition spec {} is gone", request.partition.spec_id)));
        };
        let (schema, tuple) = self.schema_for(metadata, spec, plan)?;

        let mut manifests = Vec::new();
        if !request.outputs.is_empty() {
            let files: Result<Vec<DataFile>, String> = request
                .outputs
                .iter()
                .map(|output| output.data_file(metadata.current_schema(), spec.spec_id(), &tuple))
                .map(|file| file.and_then(|file| copied(&file, &schema, spec.spec_id(), tuple.clone())))
                .collect();
            let files = files.map_err(|detail| self.refused(detail))?;
            let written = attempt.write_added(table, &schema, spec, &files, request.data_sequence_number).await;
            manifests.push(written.map_err(|error| self.failed(error))?);
        }
        let entries = self.refitted(&plan.carried, &schema, spec)?;
        let sizes: Vec<u64> = entries.iter().map(|entry| entry_bytes(&entry.file)).collect();
        for range in cut(&sizes, plan.settings.target_bytes) {
            let written = attempt.write_carried(table, &schema, spec, &entries[range]).await;
            manifests.push(written.map_err(|error| self.failed(error))?);
        }
        Ok(manifests)
    }

    async fn write_list(
        &mut self,
        head: &Head<'_>,
        plan: &Plan,
        mut manifests: Vec<ManifestFile>,
        attempt: &mut Attempt,
    ) -> Result<(Vec<TableUpdate>, Vec<TableRequirement>), CommitError> {
        let (table, request) = (head.table, self.request);
        let created = manifests.len();
        manifests.extend(plan.kept.iter().cloned());
        let summary = self.summary(head, plan, &manifests, created).await?;
        let parent = head.snapshot.snapshot_id();
        let list = attempt.write_list(table, parent, manifests).await.map_err(|error| self.failed(error))?;
        let snapshot = NewSnapshot {
            id: attempt.snapshot_id,
            parent,
            manifest_list: list.path,
            operation: request.operation,
            summary,
        };
        let now = commit_time(chrono::Utc::now(), list.store_time).timestamp_millis();
        Ok(snapshot.changes(&table.metadata, &request.branch, head.retention.clone(), now))
    }

    /// The newest schema in which the spec and every tuple can be written, and the inputs' tuple in its types. The current
    /// one, unless a source column of an old spec was dropped.
    fn schema_for(
        &self,
        metadata: &TableMetadata,
        spec: &PartitionSpec,
        plan: &Plan,
    ) -> Result<(SchemaRef, Struct), CommitError> {
        let mut schemas: Vec<&SchemaRef> = metadata.schemas_iter().collect();
        schemas.sort_by_key(|schema| {
            std::cmp::Reverse((schema.schema_id() == metadata.current_schema_id(), schema.schema_id()))
        });
        let headers = plan.located.touched.iter().filter_map(|path| self.cache.get(path)).map(|read| &read.schema);
        for schema in schemas.into_iter().chain(headers) {
            let Ok(types) = spec.partition_type(schema) else { continue };
            let fits = |entry: &CarriedEntry| fit(entry.file.partition(), &types).is_some();
            let Some(tuple) = fit(&plan.located.tuple, &types) else { continue };
            if plan.carried.iter().all(fits) {
                return Ok((schema.clone(), tuple));
            }
        }
        Err(self.refused(format!("no known schema fits the tuples of partition spec {}", spec.spec_id())))
    }

    /// The carried entries with tuples and bounds in the types of `schema`.
    fn refitted(
        &self,
        carried: &[CarriedEntry],
        schema: &SchemaRef,
        spec: &PartitionSpec,
    ) -> Result<Vec<CarriedEntry>, CommitError> {
        let types = spec.partition_type(schema).map_err(|error| self.refused(error.to_string()))?;
        let refit = |entry: &CarriedEntry| {
            let tuple = fit(entry.file.partition(), &types)
                .ok_or_else(|| format!("the partition tuple of `{}` has another type", entry.file.file_path()))?;
            let file = copied(&entry.file, schema, spec.spec_id(), tuple)?;
            Ok(CarriedEntry { file, ..*entry })
        };
        carried.iter().map(refit).collect::<Result<_, String>>().map_err(|detail| self.refused(detail))
    }

    async fn summary(
        &mut self,
        head: &Head<'_>,
        plan: &Plan,
        manifests: &[ManifestFile],
        created: usize,
    ) -> Result<std::collections::HashMap<String, String>, CommitError> {
        let request = self.request;
        let added = LiveSums {
            files: request.outputs.len() as u64,
            records: request.outputs.iter().map(|output| output.rows).sum(),
            bytes: request.outputs.iter().map(|output| output.size).sum(),
            ..LiveSums::default()
        };
        let removed = plan.located.sums;
        let previous = &head.snapshot.summary().additional_properties;
        let totals = match count(manifests).and_then(|counted| carried_totals(previous, removed, added, counted)) {
            Some(totals) => totals,
            None => self.recount(head.table, plan, added).await?,
        };
        let counts = ManifestCounts { created, kept: plan.kept.len(), replaced: plan.replaced.len() };
        Ok(entries(&request.summary, &request.inputs_hash, removed, added, totals, counts))
    }

    /// Adds up every live file; needed once for a table whose last writer left the totals out or had them wrong.
    async fn recount(&mut self, table: &LoadedTable, plan: &Plan, added: LiveSums) -> Result<Totals, CommitError> {
        self.cache.read(table, &plan.kept, |_, _| false).await?;
        let mut totals =
            Totals { data_files: added.files, records: added.records, bytes: added.bytes, ..Totals::default() };
        for entry in plan.carried.iter().filter(|entry| matches!(entry.carry, Carry::Existing { .. })) {
            totals.data_files += 1;
            totals.records += entry.file.record_count();
            totals.bytes += entry.file.file_size_in_bytes();
        }
        for file in &plan.kept {
            let Some(read) = self.cache.get(&file.manifest_path) else { continue };
            totals.bytes += read.live.bytes;
            totals.position_deletes += read.live.position_deletes;
            totals.equality_deletes += read.live.equality_deletes;
            match file.content {
                iceberg::spec::ManifestContentType::Data => {
                    totals.data_files += read.live.files;
                    totals.records += read.live.records;
                }
                iceberg::spec::ManifestContentType::Deletes => totals.delete_files += read.live.files,
            }
        }
        Ok(totals)
    }

    fn refused(&self, detail: String) -> CommitError {
        CommitError::Permanent { ident: self.request.base.ident.clone(), detail }
    }

    fn failed(&self, error: AttemptError) -> CommitError {
        match error {
            AttemptError::Store { path, source } => CommitError::Storage {
                ident: self.request.base.ident.clone(),
                what: format!("cannot write `{path}`"),
                source: Box::new(source),
            },
            AttemptError::Content(detail) => self.refused(detail),
        }
    }
}

/// Live files by the counts of the manifest list; None when it lacks one.
fn count(manifests: &[ManifestFile]) -> Option<Counted> {
    let mut sum = Counted { data_files: 0, records: 0, delete_files: 0 };
    for file in manifests {
        let (files, records) = counted(file)?;
        match file.content {
            iceberg::spec::ManifestContentType::Data => {
                sum.data_files += files;
                sum.records += records;
            }
            iceberg::spec::ManifestContentType::Deletes => sum.delete_files += files,
        }
    }
    Some(sum)
}
