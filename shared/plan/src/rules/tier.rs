//! Rule tier: enough files of one size to make one of the next.

use std::fmt;

use firn_model::LeftReason;

use super::RulePredicate;
use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

pub(super) struct Tier;

impl RulePredicate for Tier {
    fn by_counts(&self, counts: &Counts, settings: &PlanSettings) -> SizeDecision {
        let Some(min_files) = settings.compact_min_files else { return SizeDecision::Left(LeftReason::NoTiers) };
        let most = counts.tiers.most();
        if most < min_files {
            SizeDecision::Left(LeftReason::FewOfOneSize { most, min_files })
        } else {
            // Whether they are neighbours shows in the files.
            SizeDecision::LookAtFiles
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("at least compactMinFiles neighbours of one size")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_files_of_one_size_are_looked_at() {
        let decide = |sizes: &[u64], settings: &PlanSettings| {
            let mut counts = Counts::default();
            sizes.iter().for_each(|bytes| counts.tiers.count(*bytes));
            Tier.by_counts(&counts, settings)
        };
        let settings = PlanSettings::default().with_times(Some(8), None);
        let few = SizeDecision::Left(LeftReason::FewOfOneSize { most: 7, min_files: 8 });
        assert_eq!(decide(&[1; 7], &settings), few);
        assert_eq!(decide(&[[1; 7], [1 << 20; 7]].concat(), &settings), few);
        assert_eq!(decide(&[1; 8], &settings), SizeDecision::LookAtFiles);
        let off = PlanSettings { compact_min_files: None, ..settings };
        assert_eq!(decide(&[1; 8], &off), SizeDecision::Left(LeftReason::NoTiers));
    }
}
