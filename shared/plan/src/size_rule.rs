//! What the number and size of small files say, before anything else is known of a partition.

use firn_model::{LeftReason, Rule, SelectReason};

use crate::settings::PlanSettings;

/// How many files there are in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Live data files.
    pub files: usize,
    /// Those below `minFileSizeMb`.
    pub small_files: usize,
    /// Bytes of the small ones.
    pub small_bytes: u64,
}

/// What counts alone decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeDecision {
    /// The sizes ask for a merge; the order of the files may still forbid it.
    Selected(SelectReason),
    /// Nothing to do, whatever else is known.
    Left(LeftReason),
    /// Counts do not decide: the rule looks at key ranges.
    LookAtFiles,
}

/// Applies the part of a rule that needs counts only, so that a pass need not load the files of partitions without work
/// (compactor specification, "When a pass runs").
pub fn decide_by_counts(counts: Counts, settings: &PlanSettings, rule: Rule) -> SizeDecision {
    let Counts { files, small_files: small, small_bytes: bytes } = counts;
    let threshold = settings.backlog_file_threshold;
    match rule {
        Rule::Backlog if small > threshold => SizeDecision::Selected(SelectReason::Backlog { small, threshold }),
        Rule::Backlog => SizeDecision::Left(LeftReason::BelowThreshold { small, threshold }),
        Rule::Schedule | Rule::Manual => {
            let min_bytes = settings.min_file_bytes;
            if small < 2 {
                SizeDecision::Left(LeftReason::NothingToMerge { files, small })
            } else if small < threshold && bytes < min_bytes {
                SizeDecision::Left(LeftReason::MergedFileWouldBeSmall { small, bytes, min_bytes, threshold })
            } else {
                SizeDecision::Selected(SelectReason::SmallFiles { small, bytes })
            }
        }
        Rule::Full if files == 0 => SizeDecision::Left(LeftReason::NothingToMerge { files, small }),
        Rule::Full if files == 1 => SizeDecision::Left(LeftReason::OneSortedRun { files }),
        Rule::Full => SizeDecision::LookAtFiles,
        Rule::Tier | Rule::Cold | Rule::Backfill => SizeDecision::Left(LeftReason::RuleSelectsNothing { rule }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn decide(rule: Rule, small_files: usize, small_bytes: u64) -> SizeDecision {
        let counts = Counts { files: small_files + 1, small_files, small_bytes };
        decide_by_counts(counts, &PlanSettings::default(), rule)
    }

    #[test]
    fn a_hundred_files_are_no_backlog_and_a_hundred_and_one_are() {
        assert_eq!(
            decide(Rule::Backlog, 100, MB),
            SizeDecision::Left(LeftReason::BelowThreshold { small: 100, threshold: 100 })
        );
        assert_eq!(
            decide(Rule::Backlog, 101, 101),
            SizeDecision::Selected(SelectReason::Backlog { small: 101, threshold: 100 })
        );
    }

    #[test]
    fn one_small_file_is_left_and_two_are_merged() {
        for rule in [Rule::Schedule, Rule::Manual] {
            assert_eq!(decide(rule, 1, 31 * MB), SizeDecision::Left(LeftReason::NothingToMerge { files: 2, small: 1 }));
            assert_eq!(
                decide(rule, 2, 32 * MB),
                SizeDecision::Selected(SelectReason::SmallFiles { small: 2, bytes: 32 * MB })
            );
        }
    }

    #[test]
    fn what_would_stay_small_waits_unless_the_files_are_many() {
        let left =
            LeftReason::MergedFileWouldBeSmall { small: 99, bytes: 32 * MB - 1, min_bytes: 32 * MB, threshold: 100 };
        assert_eq!(decide(Rule::Manual, 99, 32 * MB - 1), SizeDecision::Left(left));
        assert_eq!(
            decide(Rule::Manual, 100, 32 * MB - 1),
            SizeDecision::Selected(SelectReason::SmallFiles { small: 100, bytes: 32 * MB - 1 })
        );
    }

    #[test]
    fn full_looks_at_two_files_or_more() {
        assert_eq!(decide(Rule::Full, 0, 0), SizeDecision::Left(LeftReason::OneSortedRun { files: 1 }));
        assert_eq!(decide(Rule::Full, 1, 1), SizeDecision::LookAtFiles);
        let none = Counts { files: 0, small_files: 0, small_bytes: 0 };
        assert_eq!(
            decide_by_counts(none, &PlanSettings::default(), Rule::Full),
            SizeDecision::Left(LeftReason::NothingToMerge { files: 0, small: 0 })
        );
    }

    #[test]
    fn rules_that_come_later_say_so() {
        for rule in [Rule::Tier, Rule::Cold, Rule::Backfill] {
            assert_eq!(decide(rule, 500, MB), SizeDecision::Left(LeftReason::RuleSelectsNothing { rule }));
        }
    }
}
