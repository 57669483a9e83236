//! What to merge, and why: pure functions from facts and settings to decisions (design sections 3 and 5).
//!
//! - [`plan_partition`]: the groups of one partition, or the reason why it is left;
//! - [`plan_by_strongest`]: the same by the strongest of several rules, as a tick asks;
//! - [`decide_by_counts`]: the part of a rule that needs counts only, so that most partitions need not be loaded;
//! - [`plan_backfill`]: files that get a text index without a merge;
//! - [`explain_partition`]: what every predicate says of a partition; [`Estimate`]: what a merge would cost.
//!
//! A partition goes through `planner`: what [`forbids()`] any merge, what its rule asks for ([`rule_predicate`], one file a rule), then for
//! rule tier `tiers`, for cold and full `sorted_run`, `key_parts` and `late`; then `runs` (which files may be merged together), `cut`
//! (how much at once), and whether a group is worth it (`grouping`).

mod age;
mod backfill;
mod cut;
mod decision;
mod estimate;
mod explain;
mod forbids;
mod grouping;
mod key_parts;
mod late;
mod outputs;
mod outweighed;
mod overlap;
mod planner;
mod rules;
mod runs;
mod settings;
mod size_rule;
mod sorted_run;
mod strongest;
mod tiers;

pub use age::{Coldness, PartitionTime};
pub use backfill::{IndexNeed, plan_backfill};
pub use decision::{Group, PartitionDecision};
pub use estimate::Estimate;
pub use explain::{Condition, Explanation, RuleVerdict, explain_partition};
pub use forbids::{Forbid, forbids};
pub use outputs::expected_outputs;
pub use planner::{counts_of, plan_partition};
pub use rules::{RulePredicate, rule_predicate};
pub use settings::{PartitionFiles, PlanSettings, TableRules};
pub use size_rule::{Counts, SizeDecision, decide_by_counts, wants_key_ranges};
pub use sorted_run::needs_no_merge;
pub use strongest::{left_by_counts, pass_rule, plan_by_strongest, tick_rules};
