//! Several rules over one partition: the strongest that selects it wins (design section 3).

use firn_model::{LeftReason, Rule};

use crate::decision::PartitionDecision;
use crate::planner::plan_partition;
use crate::settings::{PartitionFiles, PlanSettings, TableRules};
use crate::size_rule::{Counts, SizeDecision, decide_by_counts};

/// The rules that a tick applies, strongest first: the backlog rule at every tick, the schedule's after a scheduled time.
pub fn tick_rules(schedule_due: bool) -> &'static [Rule] {
    const ALWAYS: [Rule; 1] = [Rule::Backlog];
    const WITH_SCHEDULE: [Rule; 2] = [Rule::Schedule, Rule::Backlog];
    if schedule_due { &WITH_SCHEDULE } else { &ALWAYS }
}

/// Plans a partition by the first of `rules` that selects it. When none does, the answer is the first rule with its reason: it
/// asks for least. No rule at all selects nothing, which is said of the backlog rule.
pub fn plan_by_strongest(
    partition: PartitionFiles<'_>,
    table: &TableRules<'_>,
    settings: &PlanSettings,
    rules: &[Rule],
) -> (Rule, PartitionDecision) {
    let mut left = None;
    for &rule in rules {
        match plan_partition(partition, table, settings, rule) {
            selected @ PartitionDecision::Selected { .. } => return (rule, selected),
            decision @ PartitionDecision::Left(_) => left = left.or(Some((rule, decision))),
        }
    }
    left.unwrap_or_else(nothing_by_no_rule)
}

/// Why none of `rules` can select a partition, whatever its files are; None when they have to be looked at.
pub fn left_by_counts(counts: Counts, settings: &PlanSettings, rules: &[Rule]) -> Option<(Rule, LeftReason)> {
    let mut left = None;
    for &rule in rules {
        match decide_by_counts(counts, settings, rule) {
            SizeDecision::Left(reason) => left = left.or(Some((rule, reason))),
            SizeDecision::Selected(_) | SizeDecision::LookAtFiles => return None,
        }
    }
    left
}

fn nothing_by_no_rule() -> (Rule, PartitionDecision) {
    let rule = Rule::Backlog;
    (rule, PartitionDecision::Left(LeftReason::RuleSelectsNothing { rule }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn left(small_files: usize, small_bytes: u64, rules: &[Rule]) -> Option<Rule> {
        let counts = Counts { files: small_files, small_files, small_bytes };
        left_by_counts(counts, &PlanSettings::default(), rules).map(|(rule, _)| rule)
    }

    #[test]
    fn a_tick_asks_by_backlog_and_after_a_scheduled_time_by_the_stronger_rule_first() {
        assert_eq!(tick_rules(false), [Rule::Backlog]);
        assert_eq!(tick_rules(true), [Rule::Schedule, Rule::Backlog]);
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
