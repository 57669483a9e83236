//! From facts to rules: what every predicate says of a partition, for a person who asks why.

use firn_model::{LeftReason, Rule};

use crate::decision::PartitionDecision;
use crate::forbids::forbids;
use crate::planner::{counts_of, plan_partition};
use crate::rules::rule_predicate;
use crate::settings::{PartitionFiles, PlanSettings, TableRules};
use crate::size_rule::Counts;
use crate::strongest::takes_over;

/// Something that must hold before files may be merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// In words.
    pub asks: String,
    /// Why it does not hold; None when it does.
    pub broken: Option<LeftReason>,
}

/// What a rule does with a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleVerdict {
    /// The rule.
    pub rule: Rule,
    /// What it asks for.
    pub asks: String,
    /// What it decides, if it is asked.
    pub decision: PartitionDecision,
}

/// Everything that a plan of a partition rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Its files by size, and whether its time is past.
    pub counts: Counts,
    /// What must hold under every rule.
    pub conditions: Vec<Condition>,
    /// Every rule, strongest first.
    pub rules: Vec<RuleVerdict>,
}

/// Asks every predicate of a partition. `under_full` are the same files with their key ranges, which full always reads and the others only
/// where [`crate::wants_key_ranges`] says so.
pub fn explain_partition(
    partition: PartitionFiles<'_>,
    under_full: PartitionFiles<'_>,
    table: &TableRules<'_>,
    settings: &PlanSettings,
) -> Explanation {
    let condition = |forbid: &&'static dyn crate::forbids::Forbid| Condition {
        asks: forbid.to_string(),
        broken: forbid.check(&partition, table).err(),
    };
    let verdict = |rule: &Rule| RuleVerdict {
        rule: *rule,
        asks: rule_predicate(*rule).to_string(),
        decision: plan_partition(if *rule == Rule::Full { under_full } else { partition }, table, settings, *rule),
    };
    Explanation {
        counts: counts_of(&partition, settings),
        conditions: forbids().iter().map(condition).collect(),
        rules: Rule::ALL.iter().rev().map(verdict).collect(),
    }
}

impl Explanation {
    /// The rule by which a pass that asks by `rules`, strongest first, would select it: as [`crate::plan_by_strongest`] says.
    pub fn selected_by(&self, rules: &[Rule]) -> Option<Rule> {
        let selects = |rule: &Rule| {
            let verdict = self.rules.iter().find(|verdict| verdict.rule == *rule);
            verdict.is_some_and(|verdict| matches!(verdict.decision, PartitionDecision::Selected { .. }))
        };
        let strongest = rules.iter().copied().find(selects)?;
        Some(if takes_over(strongest, rules) && selects(&Rule::Cold) { Rule::Cold } else { strongest })
    }
}
