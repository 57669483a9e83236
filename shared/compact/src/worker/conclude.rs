//! What the end of a partition's run means for its record and its message (design section 4, "Outcomes").

use firn_model::Outcome;

use crate::report::{Failure, PartitionReport};

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// The record goes: merged, nothing to do, or somebody else did it.
    Finished,
    /// A message under a new `gen`, hidden for a while.
    Retry,
    /// A message under a new `gen` at once: the time was up.
    Continue {
        /// Whether something was committed.
        progressed: bool,
    },
    /// Given up.
    Park,
    /// The planner selected what a worker will not do; without a rest it would do so at every tick.
    Cool,
    /// A fault of the program: the host delivers again, and the start stays counted.
    Fault,
}

/// What decides beside the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// The message came from the planner.
    pub(crate) selected: bool,
    /// The inputs are those that the planner saw.
    pub(crate) same_inputs: bool,
}

/// Decides what follows.
pub(crate) fn conclude(report: &PartitionReport, circumstances: Circumstances) -> Conclusion {
    match report.outcome {
        Outcome::Done | Outcome::Superseded => Conclusion::Finished,
        Outcome::Left if report.stuck.is_some() => Conclusion::Park,
        Outcome::Left if circumstances.selected && circumstances.same_inputs => Conclusion::Cool,
        Outcome::Left => Conclusion::Finished,
        Outcome::Retry if report.waiting_groups > 0 => {
            Conclusion::Continue { progressed: report.snapshot_id.is_some() }
        }
        Outcome::Retry | Outcome::Unknown => Conclusion::Retry,
        Outcome::Failed => match report.failure {
            Some(Failure::Permanent) => Conclusion::Park,
            Some(Failure::Moving) => Conclusion::Retry,
            Some(Failure::Fault) | None => Conclusion::Fault,
        },
    }
}

#[cfg(test)]
mod tests {
    use firn_model::LeftReason;

    use super::*;

    const STALE: Circumstances = Circumstances { selected: true, same_inputs: false };

    fn report(outcome: Outcome) -> PartitionReport {
        PartitionReport::idle(outcome, "because", 3)
    }

    #[test]
    fn work_that_is_done_ends_the_record() {
        for outcome in [Outcome::Done, Outcome::Superseded, Outcome::Left] {
            assert_eq!(conclude(&report(outcome), STALE), Conclusion::Finished, "{outcome}");
        }
    }

    #[test]
    fn nothing_to_do_in_what_the_planner_saw_rests() {
        let left = report(Outcome::Left);
        let case = |selected, same_inputs| conclude(&left, Circumstances { selected, same_inputs });
        assert_eq!(case(true, true), Conclusion::Cool);
        assert_eq!(case(false, true), Conclusion::Finished, "by hand nothing was selected");
        assert_eq!(case(true, false), Conclusion::Finished);
    }

    #[test]
    fn what_cannot_be_merged_is_parked() {
        let over = LeftReason::OverBudget { needed_mb: 900, budget_mb: 64 };
        let stuck = PartitionReport { stuck: Some(over), ..report(Outcome::Left) };
        assert_eq!(conclude(&stuck, STALE), Conclusion::Park);
        let wrong = PartitionReport { failure: Some(Failure::Permanent), ..report(Outcome::Failed) };
        assert_eq!(conclude(&wrong, STALE), Conclusion::Park);
    }

    #[test]
    fn what_may_go_better_is_tried_again() {
        assert_eq!(conclude(&report(Outcome::Retry), STALE), Conclusion::Retry);
        assert_eq!(conclude(&report(Outcome::Unknown), STALE), Conclusion::Retry);
        let moving = PartitionReport { failure: Some(Failure::Moving), ..report(Outcome::Failed) };
        assert_eq!(conclude(&moving, STALE), Conclusion::Retry);
    }

    #[test]
    fn the_rest_after_a_deadline_goes_on() {
        let none = PartitionReport { waiting_groups: 3, ..report(Outcome::Retry) };
        assert_eq!(conclude(&none, STALE), Conclusion::Continue { progressed: false });
        let some = PartitionReport { snapshot_id: Some(7), ..none };
        assert_eq!(conclude(&some, STALE), Conclusion::Continue { progressed: true });
    }

    #[test]
    fn a_fault_of_the_program_stays_counted() {
        let fault = PartitionReport { failure: Some(Failure::Fault), ..report(Outcome::Failed) };
        assert_eq!(conclude(&fault, STALE), Conclusion::Fault);
        assert_eq!(conclude(&report(Outcome::Failed), STALE), Conclusion::Fault);
    }
}
