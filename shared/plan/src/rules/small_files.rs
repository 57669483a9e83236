//! Rules schedule and manual: two or more small files (compactor specification, "When a pass runs").

use std::fmt;

use firn_model::{LeftReason, SelectReason};

use super::RulePredicate;
use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

pub(super) struct SmallFiles;

impl RulePredicate for SmallFiles {
    fn by_counts(&self, counts: &Counts, settings: &PlanSettings) -> SizeDecision {
        let Counts { files, small_files: small, small_bytes: bytes, .. } = *counts;
        let (threshold, min_bytes) = (settings.backlog_file_threshold, settings.min_file_bytes);
        if small < 2 {
            return SizeDecision::Left(LeftReason::NothingToMerge { files, small });
        }
        // A cold partition waits for no more data (design section 3).
        if small < threshold && bytes < min_bytes && !counts.coldness.is_cold() {
            return SizeDecision::Left(LeftReason::MergedFileWouldBeSmall { small, bytes, min_bytes, threshold });
        }
        SizeDecision::Selected(SelectReason::SmallFiles { small, bytes })
    }
}

impl fmt::Display for SmallFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two or more small files, unless the merged file would also be small")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::age::Coldness;
    use firn_model::Moment;

    const MB: u64 = 1 << 20;

    fn decide(small_files: usize, small_bytes: u64, coldness: Coldness) -> SizeDecision {
        let counts = Counts { files: small_files + 1, small_files, small_bytes, coldness, ..Counts::default() };
        SmallFiles.by_counts(&counts, &PlanSettings::default())
    }

    #[test]
    fn one_small_file_is_left_and_two_are_merged() {
        let nothing = SizeDecision::Left(LeftReason::NothingToMerge { files: 2, small: 1 });
        assert_eq!(decide(1, 31 * MB, Coldness::NoEnd), nothing);
        let two = SizeDecision::Selected(SelectReason::SmallFiles { small: 2, bytes: 32 * MB });
        assert_eq!(decide(2, 32 * MB, Coldness::NoEnd), two);
    }

    #[test]
    fn what_would_stay_small_waits_unless_the_files_are_many_or_nothing_more_comes() {
        let (bytes, min_bytes) = (32 * MB - 1, 32 * MB);
        let left = LeftReason::MergedFileWouldBeSmall { small: 99, bytes, min_bytes, threshold: 100 };
        assert_eq!(decide(99, bytes, Coldness::NoEnd), SizeDecision::Left(left));
        let many = SizeDecision::Selected(SelectReason::SmallFiles { small: 100, bytes });
        assert_eq!(decide(100, bytes, Coldness::NoEnd), many);
        let cold = SizeDecision::Selected(SelectReason::SmallFiles { small: 2, bytes: 2 });
        assert_eq!(decide(2, 2, Coldness::Cold { end: Moment(0) }), cold);
    }
}
