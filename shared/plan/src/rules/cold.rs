//! Rule cold: a partition whose time is past is finished once.

use std::fmt;

use firn_model::LeftReason;

use super::RulePredicate;
use crate::settings::PlanSettings;
use crate::size_rule::{Counts, SizeDecision};

pub(super) struct Cold;

impl RulePredicate for Cold {
    fn by_counts(&self, counts: &Counts, _: &PlanSettings) -> SizeDecision {
        match (counts.coldness.left(), counts.files) {
            (Some(left), _) => SizeDecision::Left(left),
            (None, 0 | 1) => SizeDecision::Left(LeftReason::OneSortedRun { files: counts.files }),
            (None, _) => SizeDecision::LookAtFiles,
        }
    }
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its time is past and it is not one sorted run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::age::Coldness;
    use firn_model::Moment;

    #[test]
    fn only_a_cold_partition_of_several_files_is_looked_at() {
        let decide = |files, coldness| {
            Cold.by_counts(&Counts { files, coldness, ..Counts::default() }, &PlanSettings::default())
        };
        let cold = Coldness::Cold { end: Moment(0) };
        assert_eq!(decide(2, cold), SizeDecision::LookAtFiles);
        assert_eq!(decide(1, cold), SizeDecision::Left(LeftReason::OneSortedRun { files: 1 }));
        assert_eq!(decide(2, Coldness::Off), SizeDecision::Left(LeftReason::ColdIsOff));
        assert_eq!(decide(2, Coldness::NoEnd), SizeDecision::Left(LeftReason::NoEndInTime));
    }
}
