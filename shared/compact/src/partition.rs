//! The way of one partition: load, plan, merge its groups one by one.
//!
//! The partition is planned again from the table's current metadata whatever was planned before, so a stale or repeated
//! order is a cheap no-op (design section 4).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use firn_config::Dataset;
use firn_model::{LeftReason, Outcome, PartitionKey, RowOrder, Rule};
use firn_plan::{Group, PartitionDecision, PartitionFiles, TableRules, plan_partition};
use firn_table::{LoadedTable, OrderColumns, PartitionFacts, TableError, TableIdent, partition_facts, row_order};

use crate::group::{GroupEnd, GroupJob, run_group};
use crate::ranges::prove_key_ranges;
use crate::report::PartitionReport;
use crate::services::Services;
use crate::settings::{JobSettings, plan_settings};

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
    let mut report = PartitionReport::idle(Outcome::Left, "", 0);
    for round in 0..=REPLANS {
        match run_round(services, job, &mut report).await {
            Round::Ended => break,
            Round::PlanAgain(reason) if round == REPLANS => {
                report.outcome = Outcome::Failed;
                report.reason = format!("planned again once, and again: {reason}");
            }
            Round::PlanAgain(reason) => tracing::info!(partition = %job.partition, reason, "planning again"),
        }
    }
    report
}

enum Round {
    Ended,
    PlanAgain(String),
}

async fn run_round(services: &Services, job: &PartitionJob<'_>, report: &mut PartitionReport) -> Round {
    let prepared = match prepare(services, job).await {
        Ok(prepared) => prepared,
        Err((outcome, reason)) => {
            report.outcome = outcome;
            report.reason = reason;
            return Round::Ended;
        }
    };
    let Prepared { table, order, facts, settings } = prepared;
    let files = facts.files.len() as u64;
    if report.snapshot_id.is_none() {
        (report.files_before, report.files_after) = (files, files);
    }
    let (reason, groups) = match plan_facts(&table, &order, &facts, job) {
        PartitionDecision::Selected { reason, groups } => (reason, groups),
        PartitionDecision::Left(reason) => {
            // Planned again after a part was done: what is left over is no news.
            if report.snapshot_id.is_none() {
                report.outcome = Outcome::Left;
                report.reason = reason.to_string();
            }
            return Round::Ended;
        }
    };
    let mut base = table.clone();
    let mut left: Option<LeftReason> = None;
    let mut superseded: Option<String> = None;
    let mut waiting: VecDeque<Group> = groups.into();
    while let Some(group) = waiting.pop_front() {
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
        };
        match run_group(services, group_job).await {
            GroupEnd::Committed(done, table) => {
                report.add(&done);
                base = *table;
            }
            GroupEnd::Superseded(by) => superseded = Some(by),
            GroupEnd::TooLarge(reason) => match group.halves(order.keeps_commit_order) {
                Some((first, second)) => {
                    tracing::info!(partition = %job.partition, %reason, "halving the group");
                    waiting.push_front(second);
                    waiting.push_front(first);
                }
                None => left = Some(reason),
            },
            GroupEnd::Left(reason) => left = Some(reason),
            GroupEnd::PlanAgain(reason) => return Round::PlanAgain(reason),
            GroupEnd::Ended(outcome, reason) => {
                report.outcome = outcome;
                report.reason = reason;
                return Round::Ended;
            }
        }
    }
    (report.outcome, report.reason) = match (report.snapshot_id, superseded, left) {
        (Some(_), _, Some(left)) => (Outcome::Done, format!("{reason}; a part was left: {left}")),
        (Some(_), _, None) => (Outcome::Done, reason.to_string()),
        (None, _, Some(left)) => (Outcome::Left, left.to_string()),
        (None, Some(by), None) => (Outcome::Superseded, format!("another run merged the same files: {by}")),
        (None, None, None) => (Outcome::Left, reason.to_string()),
    };
    Round::Ended
}

struct Prepared {
    table: LoadedTable,
    order: RowOrder,
    facts: PartitionFacts,
    settings: JobSettings,
}

async fn prepare(services: &Services, job: &PartitionJob<'_>) -> Result<Prepared, (Outcome, String)> {
    let ident = TableIdent::new(job.dataset.table.namespace.iter().cloned(), job.dataset.table.name.clone());
    let table = services.catalog.load(&ident).await.map_err(table_outcome)?;
    let order = row_order(&table.metadata, &OrderColumns::from(job.dataset))
        .map_err(|error| (Outcome::Failed, error.to_string()))?;
    let wanted: HashSet<PartitionKey> = [PartitionKey::clone(&job.partition)].into();
    let mut found = partition_facts(&table, &job.dataset.branch, &wanted, &order).await.map_err(table_outcome)?;
    let mut facts = found.remove(&*job.partition).unwrap_or_else(|| PartitionFacts {
        key: job.partition.clone(),
        files: Vec::new(),
        deletes: Vec::new(),
    });
    prove_key_ranges(&table, &order, &mut facts, job.rule).await;
    let settings = JobSettings::new(&job.dataset.compaction, &table).map_err(|error| (Outcome::Failed, error))?;
    Ok(Prepared { table, order, facts, settings })
}

fn table_outcome(error: TableError) -> (Outcome, String) {
    use firn_table::NextStep;
    let outcome = match error.next_step() {
        NextStep::Retry => Outcome::Retry,
        _ => Outcome::Failed,
    };
    (outcome, error.to_string())
}

/// The planner's decision on the facts of one partition.
pub fn plan_facts(
    table: &LoadedTable,
    order: &RowOrder,
    facts: &PartitionFacts,
    job: &PartitionJob<'_>,
) -> PartitionDecision {
    let partition = PartitionFiles { files: &facts.files, deletes: &facts.deletes };
    let rules = TableRules { format_version: table.format_version() as u8, enabled: table.is_enabled(), order };
    plan_partition(partition, &rules, &plan_settings(&job.dataset.compaction), job.rule)
}
