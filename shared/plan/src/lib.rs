//! What to merge, and why: pure functions from facts and settings to decisions (design sections 3 and 5).
//!
//! - [`plan_partition`]: the groups of one partition, or the reason why it is left;
//! - [`plan_by_strongest`]: the same by the strongest of several rules, as a tick asks;
//! - [`decide_by_counts`]: the part of a rule that needs counts only, so that most partitions need not be loaded.
//!
//! A partition goes through `planner`: checks, `size_rule`, `sorted_run`, then `runs` (which files may be merged together)
//! and `cut` (how much at once).

mod cut;
mod decision;
mod overlap;
mod planner;
mod runs;
mod settings;
mod size_rule;
mod sorted_run;
mod strongest;

pub use decision::{Group, PartitionDecision};
pub use planner::plan_partition;
pub use settings::{PartitionFiles, PlanSettings, TableRules};
pub use size_rule::{Counts, SizeDecision, decide_by_counts};
pub use strongest::{left_by_counts, plan_by_strongest, tick_rules};
