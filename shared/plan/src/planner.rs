//! The plan of one partition.

use firn_model::{FileFacts, LeftReason, Rule, SelectReason, TierCounts};

use crate::age::Coldness;
use crate::decision::{Group, PartitionDecision};
use crate::forbids::check_all;
use crate::grouping::Grouping;
use crate::key_parts::key_parts;
use crate::late;
use crate::outweighed::drop_what_outweighs;
use crate::runs::Run;
use crate::settings::{PartitionFiles, PlanSettings, TableRules};
use crate::size_rule::{Counts, SizeDecision, decide_by_counts};
use crate::sorted_run::is_one_sorted_run;
use crate::tiers::{is_in_tier, tier_merges};

/// Decides what a rule does with a partition.
///
/// First what forbids any merge ([`crate::forbids()`]). Then the rule (design section 3). Then the commit order, for datasets with
/// `seriesColumns` or `dedup` (design section 5). Then the budget of a commit. A group is taken only if it makes the files fewer or,
/// under full and cold, if its files are not one sorted run.
///
/// The groups of one decision may be committed in any order, by any number of workers. Planned again after the merges, the
/// same rule selects nothing, unless a merge frees more files: because it proved key ranges that were not proved before, because it was between
/// them in commit order, or because what was written has another size than the files that were read. What it wrote itself is not written
/// again by its rule.
///
/// `full` and `cold` merge what overlaps; files that are proved to share no key with others stay. A partition above the budget becomes
/// several sorted runs, one for each group of neighbours in commit order, and a group that is one sorted run is not merged again.
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

/// The counts of a partition whose files are known.
pub fn counts_of(partition: &PartitionFiles<'_>, settings: &PlanSettings) -> Counts {
    let mut counts = Counts { coldness: settings.coldness(partition.time), ..Counts::default() };
    let mut tiers = TierCounts::default();
    for file in partition.files {
        counts.files += 1;
        if settings.is_small(file) {
            counts.small_files += 1;
            counts.small_bytes += file.size;
        }
        if settings.is_large(file) {
            counts.large_files += 1;
        } else {
            tiers.count(file.size);
        }
    }
    Counts { tiers, ..counts }
}

struct Planner<'a> {
    files: &'a [FileFacts],
    table: &'a TableRules<'a>,
    settings: &'a PlanSettings,
    rule: Rule,
}

impl Planner<'_> {
    fn plan(&self, partition: PartitionFiles<'_>) -> Result<PartitionDecision, LeftReason> {
        check_all(&partition, self.table)?;
        let counts = counts_of(&partition, self.settings);
        let (reason, groups) = match decide_by_counts(counts, self.settings, self.rule) {
            SizeDecision::Left(reason) => return Err(reason),
            SizeDecision::Selected(reason) => (reason, self.small_files()?),
            SizeDecision::LookAtFiles if self.rule == Rule::Tier => self.tiers(&counts)?,
            SizeDecision::LookAtFiles => self.sorted_run(&counts)?,
        };
        Ok(PartitionDecision::Selected { reason, groups })
    }

    fn grouping(&self, floor: u64) -> Grouping<'_> {
        Grouping { files: self.files, table: self.table, settings: self.settings, rule: self.rule, floor }
    }

    fn small_files(&self) -> Result<Vec<Group>, LeftReason> {
        let grouping = self.grouping(self.settings.group_floor_bytes());
        let runs = grouping.runs(&|file| self.settings.is_small(file))?;
        let mut outweighs = None;
        let trimmed: Vec<Run> = match self.rule {
            Rule::Backlog => runs
                .runs
                .iter()
                .map(|run| drop_what_outweighs(run, self.files, self.settings, &mut outweighs))
                .collect(),
            _ => runs.runs.clone(),
        };
        let cuts: Vec<Vec<usize>> = trimmed.iter().flat_map(|run| grouping.cut(run)).collect();
        let groups: Vec<Group> =
            cuts.iter().filter(|files| grouping.is_worth(files)).map(|files| grouping.group(files)).collect();
        match (groups.is_empty(), outweighs) {
            (false, _) => Ok(groups),
            (true, Some(left)) => Err(left),
            (true, None) => Err(grouping.nothing_left(runs, &cuts)),
        }
    }

    fn tiers(&self, counts: &Counts) -> Result<(SelectReason, Vec<Group>), LeftReason> {
        let min_files = self.settings.compact_min_files.ok_or(LeftReason::NoTiers)?;
        // A group below 75 % of the target would be in a tier again.
        let grouping = self.grouping(self.settings.nearly_target_bytes());
        let keeps_order = self.table.order.keeps_commit_order;
        let runs = grouping.runs(&|file| is_in_tier(self.settings, self.files, file))?;
        let few = |most| LeftReason::FewOfOneSize { most, min_files };
        let (mut asked, mut most, mut cuts) = (None, 0, Vec::new());
        for run in &runs.runs {
            let pieces: Vec<Vec<&FileFacts>> =
                run.iter().map(|piece| piece.iter().map(|at| &self.files[*at]).collect()).collect();
            let found = tier_merges(&pieces, self.settings, min_files, keeps_order);
            most = most.max(found.most);
            for merge in found.merges {
                let worth: Vec<Vec<usize>> = grouping
                    .cut(&merge.iter().map(|at| run[*at].clone()).collect::<Run>())
                    .into_iter()
                    .filter(|files| grouping.is_worth(files))
                    .collect();
                if !worth.is_empty() {
                    asked = asked.or(found.reason.clone());
                }
                cuts.extend(worth);
            }
        }
        match asked {
            Some(reason) => Ok((reason, cuts.iter().map(|files| grouping.group(files)).collect())),
            None if most >= min_files => Err(LeftReason::NoFewerFiles { files: most }),
            None if runs.no_order.is_some() || runs.blocking.is_some() => Err(grouping.nothing_left(runs, &[])),
            None => Err(few(most.min(counts.tiers.most()))),
        }
    }

    fn sorted_run(&self, counts: &Counts) -> Result<(SelectReason, Vec<Group>), LeftReason> {
        let files = self.files.len();
        let order = self.table.order;
        if is_one_sorted_run(order, self.settings, &self.files.iter().collect::<Vec<_>>()) {
            return Err(LeftReason::OneSortedRun { files });
        }
        if self.rule == Rule::Cold
            && !order.is_unordered()
            && let Some(left) = late::finished_above_budget(order, self.settings, self.files)
        {
            return Err(left);
        }
        let reason = match counts.coldness {
            Coldness::Cold { end } if self.rule == Rule::Cold => SelectReason::Cold { files, end },
            _ => SelectReason::NotOneSortedRun { files },
        };
        let grouping = self.grouping(self.settings.group_floor_bytes());
        let mut groups = Vec::new();
        let mut left = None;
        if order.is_unordered() {
            let is_cold = self.rule == Rule::Cold;
            let runs = grouping.runs(&|file| !is_cold || !self.settings.is_large(file))?;
            let cuts: Vec<Vec<usize>> = runs.runs.iter().flat_map(|run| grouping.cut(run)).collect();
            groups.extend(cuts.iter().filter(|files| grouping.is_worth(files)).map(|files| {
                // Of several groups each would leave a file of its own below 75 % of the target.
                if is_cold && cuts.len() > 1 { grouping.balanced(files) } else { grouping.group(files) }
            }));
            left = Some(grouping.nothing_left(runs, &cuts));
        } else {
            for part in key_parts(order, self.settings, self.files) {
                if part.files.len() < 2 {
                    continue;
                }
                let members: Vec<&FileFacts> = part.files.iter().map(|at| &self.files[*at]).collect();
                if self.rule == Rule::Cold
                    && let Some(waits) = late::waits(order, self.settings, &members)
                {
                    left = Some(waits);
                    continue;
                }
                let is_member: std::collections::HashSet<&str> =
                    members.iter().map(|file| file.path.as_str()).collect();
                let runs = grouping.runs(&|file| is_member.contains(file.path.as_str()))?;
                let cuts: Vec<Vec<usize>> = runs.runs.iter().flat_map(|run| grouping.cut(run)).collect();
                // One run by itself, but with a small file in the middle of the whole.
                let leaves_a_gap = !part.is_last && members.iter().any(|file| !self.settings.is_large(file));
                let is_worth =
                    |group: &&Vec<usize>| grouping.is_worth(group) || leaves_a_gap && group.len() == part.files.len();
                let worth: Vec<&Vec<usize>> = cuts.iter().filter(is_worth).collect();
                let in_the_middle = !part.is_last && worth.len() == 1;
                groups.extend(
                    worth.iter().map(
                        |files| {
                            if in_the_middle { grouping.balanced(files) } else { grouping.group(files) }
                        },
                    ),
                );
                if worth.is_empty() {
                    left = left.or(Some(grouping.nothing_left(runs, &cuts)));
                }
            }
        }
        match left.filter(|_| groups.is_empty()) {
            Some(left) => Err(left),
            None if groups.is_empty() => Err(LeftReason::OneSortedRun { files }),
            None => Ok((reason, groups)),
        }
    }
}
