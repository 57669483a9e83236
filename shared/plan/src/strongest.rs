//! Several rules over one partition: the strongest that selects it wins (design section 3).

use firn_model::{LeftReason, Rule};

use crate::decision::PartitionDecision;
use crate::planner::plan_partition;
use crate::settings::{PartitionFiles, PlanSettings, TableRules};
use crate::size_rule::{Counts, SizeDecision, decide_by_counts};

/// The rules that a tick applies, strongest first: cold, tier and backlog at every tick, the schedule's after a scheduled time.
pub fn tick_rules(schedule_due: bool) -> &'static [Rule] {
    const WITH_SCHEDULE: [Rule; 4] = [Rule::Schedule, Rule::Cold, Rule::Tier, Rule::Backlog];
    if schedule_due { &WITH_SCHEDULE } else { &WITH_SCHEDULE[1..] }
}

/// The rule by which a tick as a whole is known: the schedule's after a scheduled time, else backlog, the one that every dataset has.
pub fn pass_rule(schedule_due: bool) -> Rule {
    if schedule_due { Rule::Schedule } else { Rule::Backlog }
}

/// Plans a partition by the first of `rules` that selects it; what the schedule selects by the cold rule, where that is asked too and selects it: it
/// makes one sorted run of all files, which has no small files left for the schedule, while after the schedule's merge it would write the same
/// bytes once more at the next tick. When none does, the answer is the one that [`reported`] names, with its
/// reason. No rule at all selects nothing, which is said of the backlog rule.
pub fn plan_by_strongest(
    partition: PartitionFiles<'_>,
    table: &TableRules<'_>,
    settings: &PlanSettings,
    rules: &[Rule],
) -> (Rule, PartitionDecision) {
    let mut left = Vec::new();
    for &rule in rules {
        match plan_partition(partition, table, settings, rule) {
            selected @ PartitionDecision::Selected { .. } => {
                if takes_over(rule, rules)
                    && let whole @ PartitionDecision::Selected { .. } =
                        plan_partition(partition, table, settings, Rule::Cold)
                {
                    return (Rule::Cold, whole);
                }
                return (rule, selected);
            }
            PartitionDecision::Left(reason) => left.push((rule, reason)),
        }
    }
    let (rule, reason) = reported(left).unwrap_or_else(nothing_by_no_rule);
    (rule, PartitionDecision::Left(reason))
}

/// Whether the cold rule, if it selects a partition, takes it over from `rule`.
pub(crate) fn takes_over(rule: Rule, rules: &[Rule]) -> bool {
    rule == Rule::Schedule && rules.contains(&Rule::Cold)
}

/// Why none of `rules` can select a partition, whatever its files are; None when they have to be looked at.
pub fn left_by_counts(counts: Counts, settings: &PlanSettings, rules: &[Rule]) -> Option<(Rule, LeftReason)> {
    let mut left = Vec::new();
    for &rule in rules {
        match decide_by_counts(counts, settings, rule) {
            SizeDecision::Left(reason) => left.push((rule, reason)),
            SizeDecision::Selected(_) | SizeDecision::LookAtFiles => return None,
        }
    }
    reported(left)
}

/// Of several reasons, strongest rule first, the one that is told: of the schedule and what is by hand, because they ask for least; else of
/// the weakest rule, which every dataset has. That data waits is told in any case.
fn reported(left: Vec<(Rule, LeftReason)>) -> Option<(Rule, LeftReason)> {
    let waits = left.iter().position(|(_, reason)| matches!(reason, LeftReason::LateData { .. }));
    let by_hand = left.iter().position(|(rule, _)| *rule >= Rule::Schedule);
    let at = by_hand.or(waits).unwrap_or(left.len().saturating_sub(1));
    left.into_iter().nth(at)
}

fn nothing_by_no_rule() -> (Rule, LeftReason) {
    let rule = Rule::Backlog;
    (rule, LeftReason::RuleSelectsNothing { rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn left(small_files: usize, small_bytes: u64, rules: &[Rule]) -> Option<Rule> {
        let counts = Counts { files: small_files, small_files, small_bytes, ..Counts::default() };
        left_by_counts(counts, &PlanSettings::default(), rules).map(|(rule, _)| rule)
    }

    #[test]
    fn a_tick_asks_by_the_stronger_rule_first() {
        assert_eq!(tick_rules(false), [Rule::Cold, Rule::Tier, Rule::Backlog]);
        assert_eq!(tick_rules(true), [Rule::Schedule, Rule::Cold, Rule::Tier, Rule::Backlog]);
        assert_eq!([false, true].map(pass_rule), [Rule::Backlog, Rule::Schedule]);
        for due in [false, true] {
            assert!(tick_rules(due).is_sorted_by(|a, b| a > b), "strongest first");
        }
    }

    #[test]
    fn a_partition_is_looked_at_when_one_rule_may_select_it() {
        assert_eq!(left(2, 40 * MB, tick_rules(true)), None);
        assert_eq!(left(2, 40 * MB, tick_rules(false)), Some(Rule::Backlog));
        assert_eq!(left(1, 1, tick_rules(true)), Some(Rule::Schedule), "the reason of the rule that asks for least");
        assert_eq!(left(101, 101, tick_rules(false)), None);
        assert_eq!(left(100, 100, tick_rules(false)), Some(Rule::Backlog));
    }
}
