//! Rule backlog: too many small files to wait for the night.

use std::fmt;

use firn_model::{LeftReason, SelectReason};

use super::RulePredicate;
use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

pub(super) struct Backlog;

impl RulePredicate for Backlog {
    fn by_counts(&self, counts: &Counts, settings: &PlanSettings) -> SizeDecision {
        let (small, threshold) = (counts.small_files, settings.backlog_file_threshold);
        if small > threshold {
            SizeDecision::Selected(SelectReason::Backlog { small, threshold })
        } else {
            SizeDecision::Left(LeftReason::BelowThreshold { small, threshold })
        }
    }
}

impl fmt::Display for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more small files than backlogFileThreshold")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_files_are_no_backlog_and_a_hundred_and_one_are() {
        let decide =
            |small_files| Backlog.by_counts(&Counts { small_files, ..Counts::default() }, &PlanSettings::default());
        assert_eq!(decide(100), SizeDecision::Left(LeftReason::BelowThreshold { small: 100, threshold: 100 }));
        assert_eq!(decide(101), SizeDecision::Selected(SelectReason::Backlog { small: 101, threshold: 100 }));
    }
}
