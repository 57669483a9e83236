//! One group of files: open, merge, prove, and have it committed ([`crate::commit`]).

use std::sync::Arc;

use arrow_schema::SchemaRef;
use firn_columnar::{
    ColumnarError, EngineLimits, MergeError, MergeInput, MergeReport, MergeRequest, ReadGate, Space, StopFlag,
    TempSpace, merge_group, verify_file,
};
use firn_config::{Dataset, Verify};
use firn_model::{LeftReason, Outcome, PartitionKey, RowOrder, Rule};
use firn_plan::Group;
use firn_table::commit::AlreadyDone;
use firn_table::{LoadedTable, already_done};
use firn_telemetry::SidecarCounts;
use tokio::runtime::Handle;

use crate::commit::commit_in_turn;
use crate::control::{GroupPlace, RunControl, Step};
use crate::naming::{HashedInputs, inputs_hash};
use crate::open::{KEPT_OPEN, Opener, name_mapping, whole_bytes};
use crate::report::{Failure, GroupReport};
use crate::services::Services;
use crate::settings::JobSettings;
use crate::sidecars::{self, GroupSize, SidecarPlan, Sidecars, with_or_without};
use crate::upload::{GroupOutputs, UPLOAD_MEMORY, Uploaded};

pub(crate) const STOPPED: &str = "stopped before the commit";

/// One group of a planned partition.
#[derive(Debug)]
pub struct GroupJob<'a> {
    /// The version that the group was planned on: delete files added since then void the merge.
    pub planned: &'a LoadedTable,
    /// The newest version known, on which the commit is tried first.
    pub base: LoadedTable,
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The partition.
    pub partition: Arc<PartitionKey>,
    /// Row order and dedup.
    pub order: &'a RowOrder,
    /// Sizes and budgets.
    pub settings: &'a JobSettings,
    /// Why it is merged.
    pub rule: Rule,
    /// The pass.
    pub pass: &'a str,
    /// The files.
    pub group: &'a Group,
    /// Which group of the partition it is, for the steps.
    pub place: GroupPlace,
}

/// How a group ended, by what its partition does next.
#[derive(Debug)]
pub enum GroupEnd {
    /// Committed; the version of the table that has it.
    Committed(GroupReport, Box<LoadedTable>),
    /// Another run had merged the same files.
    Superseded(String),
    /// Does not fit: smaller groups may.
    TooLarge(LeftReason),
    /// Left for a reason that is no failure.
    Left(LeftReason),
    /// The merge is worthless now: plan the partition again.
    PlanAgain(String),
    /// The partition ends with this outcome.
    Ended(Outcome, String),
    /// The partition ends as failed.
    Failed(Failure, String),
    /// The deadline came before the merge was through; nothing of it is used.
    PastDeadline,
}

impl GroupEnd {
    pub(crate) fn step_refused(reason: String) -> Self {
        GroupEnd::Ended(Outcome::Retry, reason)
    }

    /// Why the group for certain is not in the table; None when it is, or when nobody knows.
    pub(crate) fn why_not_committed(&self) -> Option<&str> {
        match self {
            GroupEnd::Committed(..) | GroupEnd::Ended(Outcome::Unknown, _) => None,
            GroupEnd::Superseded(reason)
            | GroupEnd::PlanAgain(reason)
            | GroupEnd::Ended(_, reason)
            | GroupEnd::Failed(_, reason) => Some(reason),
            GroupEnd::TooLarge(_) | GroupEnd::Left(_) | GroupEnd::PastDeadline => None,
        }
    }
}

/// What the merging thread hands back.
pub(crate) struct Merged {
    pub(crate) report: MergeReport,
    pub(crate) uploaded: Vec<Uploaded>,
    /// None when the dataset asks for no sidecars.
    pub(crate) sidecars: Option<SidecarCounts>,
}

/// Merges and commits one group.
pub async fn run_group(services: &Services, control: &RunControl, job: GroupJob<'_>) -> GroupEnd {
    let paths: Vec<String> = job.group.files().iter().map(|file| file.path.clone()).collect();
    let hash = inputs_hash(&HashedInputs {
        paths: paths.iter().map(String::as_str).collect(),
        deletes: Vec::new(),
        schema_id: job.planned.metadata.current_schema_id(),
        spec_id: job.partition.spec_id,
        order: job.order,
        target_bytes: job.settings.target_bytes,
    });
    match already_done(&job.base, &job.dataset.branch, &job.partition, &hash, &paths).await {
        Ok(AlreadyDone::No) => {}
        Ok(AlreadyDone::LiveOutput { path }) => return GroupEnd::Superseded(path),
        Ok(AlreadyDone::Replaced { snapshot_id }) => return GroupEnd::Superseded(format!("snapshot {snapshot_id}")),
        Err(error) => return GroupEnd::Ended(Outcome::Retry, error.to_string()),
    }
    if let Err(reason) = control.steps.step(Step::Merging(job.place)).await {
        return GroupEnd::step_refused(reason);
    }
    let merged = match merge_on_own_thread(services, control, &job, &hash).await {
        Ok(merged) => merged,
        Err(end) => return end,
    };
    if let Err(reason) = control.steps.step(Step::Uploaded(job.place)).await {
        return GroupEnd::step_refused(reason);
    }
    commit_in_turn(services, control, job, paths, hash, merged).await
}

/// The merge blocks: on reads, on encoding, on the uploads' back pressure. It must not hold a thread of the runtime that serves those.
async fn merge_on_own_thread(
    services: &Services,
    control: &RunControl,
    job: &GroupJob<'_>,
    hash: &str,
) -> Result<Merged, GroupEnd> {
    let work = MergeWork {
        table: job.planned.clone(),
        dataset: job.dataset.clone(),
        partition: job.partition.clone(),
        order: job.order.clone(),
        settings: job.settings.clone(),
        group: job.group.clone(),
        hash: hash.to_owned(),
        temp_root: services.temp_root.clone(),
        threads: services.threads,
        stop: control.merge_stop(),
        handle: Handle::current(),
    };
    match tokio::task::spawn_blocking(move || work.run()).await {
        Ok(Ok(merged)) => Ok(merged),
        Ok(Err(MergeError::Stopped)) if !control.stop.is_set() => Err(GroupEnd::PastDeadline),
        Ok(Err(error)) => Err(merge_end(error, job.settings)),
        Err(panic) => {
            Err(GroupEnd::Failed(Failure::Fault, format!("the merge ended by a fault of the program: {panic}")))
        }
    }
}

/// Everything that the merging thread needs.
struct MergeWork {
    table: LoadedTable,
    dataset: Dataset,
    partition: Arc<PartitionKey>,
    order: RowOrder,
    settings: JobSettings,
    group: Group,
    hash: String,
    temp_root: std::path::PathBuf,
    threads: usize,
    stop: StopFlag,
    handle: Handle,
}

impl MergeWork {
    fn run(self) -> Result<Merged, MergeError> {
        let schema = self.schema()?;
        let size = GroupSize {
            rows: self.group.files().iter().map(|file| file.rows).sum(),
            bytes: self.group.bytes(),
            target_bytes: self.settings.target_bytes,
            row_group_bytes: self.settings.writer.row_group_bytes,
            memory_bytes: self.settings.memory_bytes,
        };
        let asked = sidecars::asked(&self.dataset);
        let mut counts = SidecarCounts::default();
        let plan = SidecarPlan::new(&self.dataset, &schema, size, &mut counts);
        let (merged, counts) = with_or_without(plan, counts, |plan| self.merge(plan))?;
        Ok(Merged { sidecars: asked.then_some(counts), ..merged })
    }

    fn schema(&self) -> Result<SchemaRef, ColumnarError> {
        self.table.arrow_schema().map_err(|error| ColumnarError::Usage { detail: error.to_string() })
    }

    /// Merges with the sidecars of `plan` beside the outputs.
    fn merge(&self, plan: Option<&SidecarPlan>) -> Result<(Merged, SidecarCounts), MergeError> {
        let schema = self.schema()?;
        let mapping = name_mapping(&self.table)?;
        let files = self.group.files();
        let opener = Opener {
            table: &self.table,
            schema: &schema,
            mapping: mapping.as_ref(),
            handle: &self.handle,
            gate: ReadGate::default(),
            whole: whole_bytes(self.settings.memory_bytes, files.iter().map(|file| file.size)),
            keep_open: files.len() <= KEPT_OPEN,
        };
        let opened = opener.open_all(files)?;
        let numbered = (0..).zip(files).zip(self.group.commit_numbers()).zip(opened);
        let inputs = numbered
            .map(|(((source, file), commit), input)| MergeInput::of_table(input, commit, source, file.rows))
            .collect();
        let request = MergeRequest {
            inputs,
            schema: schema.clone(),
            order: self.order.clone(),
            settings: self.settings.writer.clone(),
            target_bytes: self.settings.target_bytes,
            min_file_bytes: self.settings.min_file_bytes,
            memory_bytes: self.settings.memory_bytes.saturating_sub(plan.map_or(0, SidecarPlan::memory_bytes)),
            upload_bytes: UPLOAD_MEMORY,
            threads: self.threads,
            limits: EngineLimits {
                read_bytes: self.settings.read_batch_bytes,
                // Sidecars are given row groups whole, in memory that is set aside for those of the usual size.
                copy_most_bytes: plan.map_or(u64::MAX, |_| self.settings.writer.row_group_bytes),
                ..EngineLimits::default()
            },
            stop: self.stop.clone(),
        };
        let temp = TempSpace::create(&self.temp_root, self.settings.temp_bytes)?;
        let mut counts = SidecarCounts::default();
        let sidecars = plan.and_then(|plan| {
            let sidecars = Sidecars::new(plan.clone(), &self.table, &temp, self.handle.clone());
            sidecars.map_err(|error| plan.drop_all(&mut counts, &error)).ok()
        });
        let mut outputs =
            GroupOutputs::new(self.table.clone(), self.partition.clone(), self.hash.clone(), self.handle.clone())
                .with_sidecars(sidecars.clone());
        let report = merge_group(request, &temp, &mut outputs)?.merge;
        let uploaded = outputs.uploaded();
        if uploaded.len() != report.outputs.len() {
            let detail = format!("{} outputs were written and {} uploaded", report.outputs.len(), uploaded.len());
            return Err(MergeError::Proof { place: "after the upload".into(), detail });
        }
        if self.settings.verify == Verify::Reread {
            for (written, blob) in report.outputs.iter().zip(&uploaded) {
                verify_file(&opener.open(&blob.path, blob.size)?, written, &schema, &self.order)?;
            }
        }
        if let Some(sidecars) = sidecars {
            counts.add(&sidecars.counts());
        }
        Ok((Merged { report, uploaded, sidecars: None }, counts))
    }
}

/// What a merge error means for the partition.
fn merge_end(error: MergeError, settings: &JobSettings) -> GroupEnd {
    match &error {
        MergeError::OverBudget { needed_bytes, budget_bytes, .. } => GroupEnd::TooLarge(LeftReason::OverBudget {
            needed_mb: needed_bytes.div_ceil(1 << 20),
            budget_mb: budget_bytes >> 20,
        }),
        MergeError::NeedsSpill { what, needed_bytes, space, .. } => {
            let allowed = match space {
                Space::Memory => settings.memory_bytes,
                Space::Disk => settings.temp_bytes,
            };
            GroupEnd::TooLarge(LeftReason::NeedsSpill {
                path: what.clone(),
                detail: format!("needs {} MB of {space}, has {}", needed_bytes.div_ceil(1 << 20), allowed >> 20),
            })
        }
        MergeError::Columnar(ColumnarError::NoFieldIds { file }) => {
            GroupEnd::Left(LeftReason::NoFieldIds { path: file.clone() })
        }
        error if error.is_retryable() => GroupEnd::Ended(Outcome::Retry, error.to_string()),
        MergeError::Stopped => GroupEnd::Ended(Outcome::Retry, STOPPED.into()),
        // Full or failing: other work on this machine may have taken the space.
        MergeError::Columnar(ColumnarError::Disk { .. }) => GroupEnd::Ended(Outcome::Retry, error.to_string()),
        MergeError::Proof { .. }
        | MergeError::Order(_)
        | MergeError::Unsorted { .. }
        | MergeError::Columnar(ColumnarError::Usage { .. }) => GroupEnd::Failed(Failure::Fault, error.to_string()),
        error => GroupEnd::Failed(Failure::Permanent, error.to_string()),
    }
}
