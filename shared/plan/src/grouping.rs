//! From files that a rule takes to groups: the commit order, the budget of a commit, and whether a group is worth its merge.

use std::ops::Range;

use firn_model::{FileFacts, LeftReason, Rule};

use crate::cut::{Limits, Piece, cut};
use crate::decision::Group;
use crate::outputs::{balanced_target, expected_outputs};
use crate::runs::{Run, RunRules, Runs, with_commit_order, without_commit_order};
use crate::settings::{PlanSettings, TableRules};
use crate::sorted_run::is_one_sorted_run;

/// How one rule groups the files of a partition.
#[derive(Clone, Copy)]
pub(crate) struct Grouping<'a> {
    pub(crate) files: &'a [FileFacts],
    pub(crate) table: &'a TableRules<'a>,
    pub(crate) settings: &'a PlanSettings,
    pub(crate) rule: Rule,
    /// A group below these bytes leaves a file that would be selected again.
    pub(crate) floor: u64,
}

impl Grouping<'_> {
    /// Whether the rule is after a sorted run, rather than after fewer files.
    fn sorts(&self) -> bool {
        matches!(self.rule, Rule::Full | Rule::Cold)
    }

    /// Whether files that are not one sorted run are worth a merge even if they become no fewer. Under cold, without a row order, nothing
    /// but their number counts.
    fn wants_run(&self) -> bool {
        self.rule == Rule::Full || self.sorts() && !self.table.order.is_unordered()
    }

    /// The candidates in runs that may be merged.
    ///
    /// # Errors
    /// Why no order of commits is known.
    pub(crate) fn runs(&self, is_candidate: &dyn Fn(&FileFacts) -> bool) -> Result<Runs, LeftReason> {
        let order = self.table.order;
        let rules = RunRules {
            order,
            is_candidate,
            is_finished: &|files| self.sorts() && is_one_sorted_run(order, self.settings, files),
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
    pub(crate) fn cut(&self, run: &Run) -> Vec<Vec<usize>> {
        let pieces: Vec<Piece> = run
            .iter()
            .map(|piece| Piece { files: piece.len(), bytes: piece.iter().map(|at| self.files[*at].size).sum() })
            .collect();
        let limits = Limits { budget: self.settings.group_budget_bytes.max(1), floor: self.floor, full: self.sorts() };
        let joined = |range: Range<usize>| run[range].concat();
        cut(&pieces, limits).into_iter().map(joined).collect()
    }

    /// Whether merging a group brings anything: fewer files or, under full and cold, one sorted run in place of files that overlap.
    pub(crate) fn is_worth(&self, group: &[usize]) -> bool {
        if group.len() < 2 {
            return false;
        }
        if self.wants_run() {
            let files: Vec<&FileFacts> = group.iter().map(|at| &self.files[*at]).collect();
            return !is_one_sorted_run(self.table.order, self.settings, &files);
        }
        let bytes = self.bytes(group);
        expected_outputs(bytes, self.settings.target_bytes, self.settings.min_file_bytes).len() < group.len()
    }

    fn bytes(&self, group: &[usize]) -> u64 {
        group.iter().map(|at| self.files[*at].size).sum()
    }

    pub(crate) fn group(&self, files: &[usize]) -> Group {
        let group = Group::new(files.iter().map(|at| self.files[*at].clone()).collect());
        match self.target() {
            target if target > self.settings.target_bytes => group.with_target(target),
            _ => group,
        }
    }

    /// The size of the files that are written.
    fn target(&self) -> u64 {
        let partition = || self.files.iter().map(|file| file.size).sum();
        self.settings.max_target_bytes.map_or(self.settings.target_bytes, |_| self.settings.target_for(partition()))
    }

    /// A group whose files are of equal size, none of them below 75 % of the target.
    pub(crate) fn balanced(&self, files: &[usize]) -> Group {
        self.group(files).with_target(balanced_target(self.bytes(files), self.target()))
    }

    /// Why files that the rule takes give no group.
    pub(crate) fn nothing_left(&self, runs: Runs, cuts: &[Vec<usize>]) -> LeftReason {
        let files = self.files.len();
        let budget_bytes = self.settings.group_budget_bytes;
        if let Some(detail) = runs.no_order {
            LeftReason::NoCommitOrder { detail }
        } else if let Some(blocking) = runs.blocking {
            LeftReason::CommitOrder { blocking: self.files[blocking].path.clone() }
        } else if let Some(most) = cuts.iter().map(Vec::len).max().filter(|most| *most > 1) {
            match self.wants_run() {
                true => LeftReason::SortedRuns { files, runs: cuts.len(), budget_bytes },
                false => LeftReason::NoFewerFiles { files: most },
            }
        } else {
            LeftReason::AboveGroupBudget { files, budget_bytes }
        }
    }
}
