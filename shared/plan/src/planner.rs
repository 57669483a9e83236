//! The plan of one partition.

use std::ops::Range;

use firn_model::{FileFacts, FileFormat, LeftReason, Rule, SelectReason};

use crate::cut::{Limits, Piece, cut};
use crate::decision::{Group, PartitionDecision};
use crate::runs::{Run, RunRules, Runs, with_commit_order, without_commit_order};
use crate::settings::{PartitionFiles, PlanSettings, TableRules};
use crate::size_rule::{Counts, SizeDecision, decide_by_counts};
use crate::sorted_run::is_one_sorted_run;

/// Decides what a rule does with a partition.
///
/// First what forbids any merge: `firn.enabled=false`, format version 3, files that are not Parquet, delete files that can
/// apply. Then the rule (design section 3). Then the commit order, for datasets with `seriesColumns` or `dedup` (design
/// section 5). Then the budget of a commit.
///
/// The groups of one decision may be committed in any order, by any number of workers. Planned again after the merges, the
/// same rule selects nothing, unless a merge proved key ranges that were not proved before and by them frees more files.
///
/// `full` takes every file. A partition above the budget becomes several sorted runs, one for each group of neighbours in
/// commit order, and a group that is one sorted run is not merged again.
pub fn plan_partition(
    partition: PartitionFiles<'_>,
    table: &TableRules<'_>,
    settings: &PlanSettings,
    rule: Rule,
) -> PartitionDecision {
    let planner = Planner { files: partition.files, table, settings, rule };
    match planner.plan(partition) {
        Ok(selected) => selected,
        Err(left) => PartitionDecision::Left(left),
    }
}

struct Planner<'a> {
    files: &'a [FileFacts],
    table: &'a TableRules<'a>,
    settings: &'a PlanSettings,
    rule: Rule,
}

impl Planner<'_> {
    fn plan(&self, partition: PartitionFiles<'_>) -> Result<PartitionDecision, LeftReason> {
        self.check_mergeable(partition)?;
        let reason = self.select()?;
        let runs = self.runs()?;
        let cuts: Vec<Vec<usize>> = runs.runs.iter().flat_map(|run| self.cut(run)).collect();
        let groups: Vec<Group> =
            cuts.iter().filter(|files| self.is_worth(files)).map(|files| self.group(files)).collect();
        if groups.is_empty() {
            Err(self.nothing_left(runs, &cuts))
        } else {
            Ok(PartitionDecision::Selected { reason, groups })
        }
    }

    fn check_mergeable(&self, partition: PartitionFiles<'_>) -> Result<(), LeftReason> {
        if !self.table.enabled {
            return Err(LeftReason::Disabled);
        }
        if self.table.format_version >= 3 {
            return Err(LeftReason::FormatVersion3);
        }
        if let Some(file) = self.files.iter().find(|file| file.format != FileFormat::Parquet) {
            return Err(LeftReason::NotParquet { path: file.path.clone() });
        }
        let may_apply = |delete: &&firn_model::DeleteFacts| self.files.iter().any(|file| delete.may_apply_to(file));
        match partition.deletes.iter().filter(may_apply).count() {
            0 => Ok(()),
            deletes => Err(LeftReason::HasDeleteFiles { deletes }),
        }
    }

    fn select(&self) -> Result<SelectReason, LeftReason> {
        match decide_by_counts(self.counts(), self.settings, self.rule) {
            SizeDecision::Selected(reason) => Ok(reason),
            SizeDecision::Left(reason) => Err(reason),
            SizeDecision::LookAtFiles => {
                let files = self.files.len();
                if is_one_sorted_run(self.table.order, self.settings, &self.files.iter().collect::<Vec<_>>()) {
                    return Err(LeftReason::OneSortedRun { files });
                }
                Ok(SelectReason::NotOneSortedRun { files })
            }
        }
    }

    fn counts(&self) -> Counts {
        let small = || self.files.iter().filter(|file| self.settings.is_small(file));
        Counts {
            files: self.files.len(),
            small_files: small().count(),
            small_bytes: small().map(|file| file.size).sum(),
        }
    }

    fn runs(&self) -> Result<Runs, LeftReason> {
        let order = self.table.order;
        let is_full = self.rule == Rule::Full;
        let rules = RunRules {
            order,
            is_candidate: &|file| is_full || self.settings.is_small(file),
            is_finished: &|files| is_full && is_one_sorted_run(order, self.settings, files),
            all_of_number_0: self.table.format_version > 1,
            split_above: self.settings.group_budget_bytes,
        };
        if !order.keeps_commit_order {
            return Ok(without_commit_order(self.files, rules));
        }
        if self.table.format_version == 1 && order.dedup_columns.is_some() {
            let detail = "format version 1 has no sequence numbers, so a merged file would count as the newest write; \
                          upgrade the table to version 2";
            return Err(LeftReason::NoCommitOrder { detail: detail.to_owned() });
        }
        Ok(with_commit_order(self.files, rules))
    }

    /// A run in groups that fit the budget.
    fn cut(&self, run: &Run) -> Vec<Vec<usize>> {
        let pieces: Vec<Piece> = run
            .iter()
            .map(|piece| Piece { files: piece.len(), bytes: piece.iter().map(|at| self.files[*at].size).sum() })
            .collect();
        let limits = Limits {
            budget: self.settings.group_budget_bytes.max(1),
            floor: self.settings.group_floor_bytes(),
            full: self.rule == Rule::Full,
        };
        let joined = |range: Range<usize>| run[range].concat();
        cut(&pieces, limits).into_iter().map(joined).collect()
    }

    /// Whether merging a group brings anything: not for one file, nor under full for a part that is sorted already.
    fn is_worth(&self, group: &[usize]) -> bool {
        let already_sorted = || {
            let files: Vec<&FileFacts> = group.iter().map(|at| &self.files[*at]).collect();
            self.rule == Rule::Full && is_one_sorted_run(self.table.order, self.settings, &files)
        };
        group.len() > 1 && !already_sorted()
    }

    fn group(&self, files: &[usize]) -> Group {
        Group::new(files.iter().map(|at| self.files[*at].clone()).collect())
    }

    /// Why a partition that the rule selects gives no group.
    fn nothing_left(&self, runs: Runs, cuts: &[Vec<usize>]) -> LeftReason {
        let files = self.files.len();
        let budget_bytes = self.settings.group_budget_bytes;
        if let Some(detail) = runs.no_order {
            LeftReason::NoCommitOrder { detail }
        } else if let Some(blocking) = runs.blocking {
            LeftReason::CommitOrder { blocking: self.files[blocking].path.clone() }
        } else if cuts.iter().any(|group| group.len() > 1) {
            LeftReason::SortedRuns { files, runs: cuts.len(), budget_bytes }
        } else {
            LeftReason::AboveGroupBudget { files, budget_bytes }
        }
    }
}
