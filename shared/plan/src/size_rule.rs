//! What the number and size of files say, before anything else is known of a partition.

use firn_model::{LeftReason, Rule, SelectReason, TierCounts};

use crate::age::Coldness;
use crate::rules::rule_predicate;
use crate::settings::PlanSettings;

/// How many files there are in a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Live data files.
    pub files: usize,
    /// Those below `minFileSizeMb`.
    pub small_files: usize,
    /// Bytes of the small ones.
    pub small_bytes: u64,
    /// Files below 75 % of the target, by size tier.
    pub tiers: TierCounts,
    /// Files of 75 % of the target and more.
    pub large_files: usize,
    /// Whether its time is past.
    pub coldness: Coldness,
}

/// What counts alone decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeDecision {
    /// The sizes ask for a merge; the order of the files may still forbid it.
    Selected(SelectReason),
    /// Nothing to do, whatever else is known.
    Left(LeftReason),
    /// Counts do not decide: the rule looks at the files.
    LookAtFiles,
}

/// Applies the part of a rule that needs counts only, so that a pass need not load the files of partitions without work
/// (compactor specification, "When a pass runs").
pub fn decide_by_counts(counts: Counts, settings: &PlanSettings, rule: Rule) -> SizeDecision {
    rule_predicate(rule).by_counts(&counts, settings)
}

/// Whether key ranges may change what one of `rules` does, so that footers are worth reading for them: under full always, in a cold
/// partition beside files that are large enough to be left as they are. The latter whatever the rules are: whoever does the work of one
/// rule must come to the decision that the planner came to with all of them.
pub fn wants_key_ranges(counts: Counts, settings: &PlanSettings, rules: &[Rule]) -> bool {
    let is_full = rules.contains(&Rule::Full) && counts.files > 1;
    let looks = || decide_by_counts(counts, settings, Rule::Cold) == SizeDecision::LookAtFiles;
    is_full || (counts.large_files > 0 && looks())
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_model::Moment;

    #[test]
    fn footers_are_read_for_full_and_for_large_files_of_cold_partitions() {
        let cold = Counts { files: 3, coldness: Coldness::Cold { end: Moment(0) }, ..Counts::default() };
        let wants = |counts, rules: &[Rule]| wants_key_ranges(counts, &PlanSettings::default(), rules);
        assert!(wants(cold, &[Rule::Full]));
        assert!(!wants(cold, &[Rule::Cold, Rule::Tier]));
        let large = Counts { large_files: 1, ..cold };
        assert!(wants(large, &[Rule::Schedule, Rule::Cold]));
        for rule in Rule::ALL {
            assert!(wants(large, &[rule]), "the worker of {rule} sees what the planner saw");
        }
        assert!(!wants(Counts { coldness: Coldness::Off, ..large }, &[Rule::Cold]));
        assert!(!wants(Counts { files: 1, ..large }, &[Rule::Cold, Rule::Full]));
    }
}
