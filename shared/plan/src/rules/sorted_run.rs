//! Rule full: every partition that is not one sorted run.

use std::fmt;

use firn_model::LeftReason;

use super::RulePredicate;
use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

pub(super) struct SortedRun;

impl RulePredicate for SortedRun {
    fn by_counts(&self, counts: &Counts, _: &PlanSettings) -> SizeDecision {
        match counts.files {
            0 => SizeDecision::Left(LeftReason::NothingToMerge { files: 0, small: counts.small_files }),
            1 => SizeDecision::Left(LeftReason::OneSortedRun { files: 1 }),
            _ => SizeDecision::LookAtFiles,
        }
    }
}

impl fmt::Display for SortedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not one sorted run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_looks_at_two_files_or_more() {
        let decide = |files| SortedRun.by_counts(&Counts { files, ..Counts::default() }, &PlanSettings::default());
        assert_eq!(decide(0), SizeDecision::Left(LeftReason::NothingToMerge { files: 0, small: 0 }));
        assert_eq!(decide(1), SizeDecision::Left(LeftReason::OneSortedRun { files: 1 }));
        assert_eq!(decide(2), SizeDecision::LookAtFiles);
    }
}
