//! What each rule asks for, one file a rule (design section 3, "Which rule runs when").

mod backlog;
mod cold;
mod small_files;
mod sorted_run;
mod tier;

use std::fmt;

use firn_model::{LeftReason, Rule};

use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

/// What a rule asks for; its `Display` says it in words.
pub trait RulePredicate: fmt::Display + Sync {
    /// The part that needs counts only.
    fn by_counts(&self, counts: &Counts, settings: &PlanSettings) -> SizeDecision;
}

/// What `rule` asks for.
pub fn rule_predicate(rule: Rule) -> &'static dyn RulePredicate {
    match rule {
        Rule::Backlog => &backlog::Backlog,
        Rule::Tier => &tier::Tier,
        Rule::Cold => &cold::Cold,
        Rule::Backfill => &Backfill,
        Rule::Schedule | Rule::Manual => &small_files::SmallFiles,
        Rule::Full => &sorted_run::SortedRun,
    }
}

/// Files without a text index. Which ones stands in no count: [`plan_backfill`](crate::plan_backfill) has looked at the sidecars. Nothing is merged.
struct Backfill;

impl RulePredicate for Backfill {
    fn by_counts(&self, _: &Counts, _: &PlanSettings) -> SizeDecision {
        SizeDecision::Left(LeftReason::RuleSelectsNothing { rule: Rule::Backfill })
    }
}

impl fmt::Display for Backfill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("files without a text index")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_it_asks_for() {
        let words: Vec<String> = Rule::ALL.map(|rule| format!("{rule}: {}", rule_predicate(rule))).into();
        assert_eq!(
            words,
            [
                "backlog: more small files than backlogFileThreshold",
                "tier: at least compactMinFiles neighbours of one size",
                "cold: its time is past and it is not one sorted run",
                "backfill: files without a text index",
                "schedule: two or more small files, unless the merged file would also be small",
                "manual: two or more small files, unless the merged file would also be small",
                "full: not one sorted run",
            ]
        );
    }
}
