//! The way of one partition: load, plan, merge its groups one by one.
//!
//! The partition is planned again from the table's current metadata whatever was planned before, so a stale or repeated
//! order is a cheap no-op (design section 4).

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use firn_config::Dataset;
use firn_model::{LeftReason, Outcome, PartitionKey, RowOrder, Rule};
use firn_plan::{
    Group, PartitionDecision, PartitionFiles, PartitionTime, TableRules, counts_of, needs_no_merge, plan_partition,
    wants_key_ranges,
};
use firn_table::{
    CommitError, LoadedTable, NextStep, OrderColumns, PartitionFacts, TableError, TableIdent, check_writable,
    partition_facts, row_order,
};

use crate::backfill::{backfill, backfills};
use crate::control::{GroupPlace, RunControl, Step};
use crate::group::{GroupEnd, GroupJob, run_group};
use crate::naming::facts_hash;
use crate::ranges::prove_key_ranges;
use crate::report::{Failure, PartitionReport};
use crate::services::Services;
use crate::settings::{JobSettings, plan_settings};
use crate::table_time::TableTime;

/// One partition to work on.
#[derive(Debug, Clone)]
pub struct PartitionJob<'a> {
    /// The dataset it belongs to.
    pub dataset: &'a Dataset,
    /// The partition.
    pub partition: Arc<PartitionKey>,
    /// Why it is looked at.
    pub rule: Rule,
    /// The pass that asked for it; goes to the snapshot summary.
    pub pass: String,
}

/// How often a partition is planned again because its inputs went away or delete files came (design section 9: once).
const REPLANS: usize = 1;

/// Works on one partition until nothing is left to do in it, and says how it ended. Never panics and never returns an error: whatever
/// happens is an outcome.
pub async fn run_partition(services: &Services, job: &PartitionJob<'_>) -> PartitionReport {
    run_partition_with(services, job, &RunControl::unwatched(services)).await
}

/// As [`run_partition`], under the control of whoever keeps a record of the run.
pub async fn run_partition_with(services: &Services, job: &PartitionJob<'_>, control: &RunControl) -> PartitionReport {
    let mut report = PartitionReport::idle(Outcome::Left, "", 0);
    let mut before = None;
    for round in 0..=REPLANS {
        match run_round(services, job, control, &mut report, &mut before).await {
            Round::Ended => break,
            Round::PlanAgain(reason) if round == REPLANS => {
                report.fail(Failure::Moving, format!("planned again once, and again: {reason}"));
            }
            Round::PlanAgain(reason) => tracing::info!(partition = %job.partition, reason, "planning again"),
        }
    }
    if let Some(before) = before {
        backfill(services, job, control, &before, &mut report).await;
    }
    report
}

/// The deadline came.
const TIME_IS_UP: &str = "the time of this run was up";
/// The message has done its share.
const BUDGET_IS_USED: &str = "messageBudgetMb was used up";

enum Round {
    Ended,
    PlanAgain(String),
}

async fn run_round(
    services: &Services,
    job: &PartitionJob<'_>,
    control: &RunControl,
    report: &mut PartitionReport,
    before: &mut Option<HashSet<String>>,
) -> Round {
    let Prepared { table, order, facts, time, settings } = match prepare(services, job).await {
        Ok(prepared) => prepared,
        Err(Unprepared::Later(reason)) => {
            report.end(Outcome::Retry, reason);
            return Round::Ended;
        }
        Err(Unprepared::Failed(reason)) => {
            report.fail(Failure::Permanent, reason);
            return Round::Ended;
        }
    };
    if before.is_none() && backfills(job.rule, job.dataset) {
        *before = Some(facts.files.iter().map(|file| file.path.clone()).collect());
    }
    let inputs_hash = facts_hash(&facts);
    if let Err(reason) = control.steps.step(Step::Loaded { inputs_hash }).await {
        report.end(Outcome::Retry, reason);
        return Round::Ended;
    }
    let files = facts.files.len() as u64;
    if report.snapshot_id.is_none() {
        (report.files_before, report.files_after) = (files, files);
    }
    let (reason, groups) = match plan_facts(&table, &order, &facts, time, job) {
        PartitionDecision::Selected { reason, groups } => (reason, groups),
        PartitionDecision::Left(reason) => {
            // Planned again after a part was done: what is left over is no news.
            if report.snapshot_id.is_none() {
                report.end(Outcome::Left, reason.to_string());
                report.stuck = Some(reason).filter(|reason| matches!(reason, LeftReason::NoCommitOrder { .. }));
            }
            return Round::Ended;
        }
    };
    let mut base = table.clone();
    let mut left: Option<LeftReason> = None;
    let mut superseded: Option<String> = None;
    let mut split: Option<Split> = None;
    let mut waiting: VecDeque<Group> = groups.into();
    let mut number = 0;
    while let Some(group) = waiting.pop_front() {
        if control.is_past_deadline() {
            return rest_waits(report, waiting.len() + 1, TIME_IS_UP);
        }
        if control.is_past_budget(report.bytes_in, group.bytes()) {
            return rest_waits(report, waiting.len() + 1, BUDGET_IS_USED);
        }
        number += 1;
        let settings = settings.of_group(&group);
        let group_job = GroupJob {
            planned: &table,
            base: base.clone(),
            dataset: job.dataset,
            partition: facts.key.clone(),
            order: &order,
            settings: &settings,
            rule: job.rule,
            pass: &job.pass,
            group: &group,
            place: GroupPlace { number, files: group.files().len() },
        };
        match run_group(services, control, group_job).await {
            GroupEnd::Committed(done, table) => {
                report.add(&done);
                base = *table;
            }
            GroupEnd::Superseded(by) => superseded = Some(by),
            GroupEnd::TooLarge(reason) => {
                let halves = group
                    .halves(order.keeps_commit_order)
                    .map(|(first, second)| vec![first, second])
                    .unwrap_or_default();
                let planned = plan_settings(job.dataset);
                let is_work = |half: &Group| !needs_no_merge(half, &order, &planned, job.rule);
                let work: Vec<Group> = halves.into_iter().filter(is_work).collect();
                if work.is_empty() {
                    left = Some(reason);
                } else {
                    tracing::info!(partition = %job.partition, %reason, "halving the group");
                    // The first is that of the most files.
                    split.get_or_insert(Split { halvings: 0, reason }).halvings += 1;
                    work.into_iter().rev().for_each(|half| waiting.push_front(half));
                }
            }
            GroupEnd::Left(reason) => left = Some(reason),
            GroupEnd::PlanAgain(reason) => return Round::PlanAgain(reason),
            GroupEnd::Ended(outcome, reason) => {
                report.end(outcome, reason);
                return Round::Ended;
            }
            GroupEnd::Failed(failure, reason) => {
                report.fail(failure, reason);
                return Round::Ended;
            }
            GroupEnd::PastDeadline => return rest_waits(report, waiting.len() + 1, TIME_IS_UP),
        }
    }
    let reason = match &split {
        Some(split) => format!("{reason}; {split}"),
        None => reason.to_string(),
    };
    let (outcome, why) = match (report.snapshot_id, superseded, &left) {
        (Some(_), _, Some(left)) => (Outcome::Done, format!("{reason}; a part was left: {left}")),
        (Some(_), _, None) => (Outcome::Done, reason),
        (None, _, Some(left)) => (Outcome::Left, left.to_string()),
        (None, Some(by), None) => (Outcome::Superseded, format!("another run merged the same files: {by}")),
        (None, None, None) => (Outcome::Left, reason),
    };
    report.end(outcome, why);
    report.stuck = left;
    Round::Ended
}

/// Groups that were halved because they did not fit at once.
struct Split {
    halvings: usize,
    reason: LeftReason,
}

/// What is not one sorted run after the work, and how it becomes one.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Split { halvings, reason } = self;
        let more = halvings + 1;
        write!(
            f,
            "merged in {more} parts, not at once ({reason}): firn compact --full once more makes one sorted run of them, more \
             memoryMb or tempDiskMb makes it at once"
        )
    }
}

/// What is committed stays, the rest is for another run; `why` is what was used up.
fn rest_waits(report: &mut PartitionReport, waiting: usize, why: &str) -> Round {
    report.waiting_groups = waiting;
    report.end(Outcome::Retry, format!("{why}; {waiting} groups are left for another"));
    Round::Ended
}

/// A partition as it is now.
pub(crate) struct Prepared {
    pub(crate) table: LoadedTable,
    order: RowOrder,
    pub(crate) facts: PartitionFacts,
    time: PartitionTime,
    pub(crate) settings: JobSettings,
}

/// Why there is nothing to plan on.
pub(crate) enum Unprepared {
    /// Something did not answer.
    Later(String),
    /// A person must look.
    Failed(String),
}

pub(crate) async fn prepare(services: &Services, job: &PartitionJob<'_>) -> Result<Prepared, Unprepared> {
    let ident = TableIdent::new(job.dataset.table.namespace.iter().cloned(), job.dataset.table.name.clone());
    let table = services.catalog.load(&ident).await.map_err(unprepared)?;
    let order = row_order(&table.metadata, &OrderColumns::from(job.dataset))
        .map_err(|error| Unprepared::Failed(error.to_string()))?;
    let wanted: HashSet<PartitionKey> = [PartitionKey::clone(&job.partition)].into();
    let mut found = partition_facts(&table, &job.dataset.branch, &wanted, &order).await.map_err(unprepared)?;
    let mut facts = found.remove(&*job.partition).unwrap_or_else(|| PartitionFacts {
        key: job.partition.clone(),
        files: Vec::new(),
        deletes: Vec::new(),
    });
    let planned = plan_settings(job.dataset);
    let count = |time| counts_of(&PartitionFiles { files: &facts.files, deletes: &facts.deletes, time }, &planned);
    // Beside large files it matters under every rule whether the partition is cold: `wants_key_ranges`.
    let asked: &[Rule] = match count(PartitionTime::default()).large_files {
        0 => &[job.rule],
        _ => &[job.rule, Rule::Cold],
    };
    let time = TableTime::load(&table, job.dataset, asked).await.map_err(unprepared)?.of(&job.partition);
    let counts = count(time);
    if wants_key_ranges(counts, &planned, &[job.rule]) {
        prove_key_ranges(&table, &order, &mut facts).await;
    }
    let settings = JobSettings::new(&job.dataset.compaction, &table).map_err(Unprepared::Failed)?;
    Ok(Prepared { table, order, facts, time, settings })
}

fn unprepared(error: TableError) -> Unprepared {
    match error.next_step() {
        NextStep::Retry => Unprepared::Later(error.to_string()),
        NextStep::Usage | NextStep::Absent | NextStep::Skip => Unprepared::Failed(error.to_string()),
    }
}

/// The planner's decision on the facts of one partition.
pub fn plan_facts(
    table: &LoadedTable,
    order: &RowOrder,
    facts: &PartitionFacts,
    time: PartitionTime,
    job: &PartitionJob<'_>,
) -> PartitionDecision {
    let partition = PartitionFiles { files: &facts.files, deletes: &facts.deletes, time };
    let rules = TableRules { format_version: table.format_version() as u8, enabled: table.is_enabled(), order };
    let decision = plan_partition(partition, &rules, &plan_settings(job.dataset), job.rule);
    only_if_writable(decision, table, &job.dataset.branch, &job.partition)
}

/// A decision to merge stands only where the merge could be committed, so that no work is done in vain.
pub fn only_if_writable(
    decision: PartitionDecision,
    table: &LoadedTable,
    branch: &str,
    key: &PartitionKey,
) -> PartitionDecision {
    let selected = matches!(decision, PartitionDecision::Selected { .. });
    if let Some(detail) = table.read_only.as_deref().filter(|_| selected) {
        return PartitionDecision::Left(LeftReason::ReadOnlyCatalog { detail: detail.to_owned() });
    }
    match check_writable(table, branch, key.spec_id) {
        Err(CommitError::Permanent { detail, .. }) if selected => {
            PartitionDecision::Left(LeftReason::NotWritable { detail })
        }
        _ => decision,
    }
}
