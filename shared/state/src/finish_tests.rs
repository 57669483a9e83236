use super::*;
use crate::testing::{at, generation, queued};

const COOLDOWN: TimeDelta = TimeDelta::hours(6);

fn running(attempts: u32, step: &str) -> InflightRecord {
    InflightRecord { attempts, started_at: Some(at(1)), step: Some(step.into()), ..queued() }
}

#[test]
fn a_retry_is_hidden_for_2_to_the_retries_minutes_but_60_at_most() {
    let minutes: Vec<u64> = (1..=9).map(|retries| retry_delay(retries).as_secs() / 60).collect();
    assert_eq!(minutes, [2, 4, 8, 16, 32, 60, 60, 60, 60]);
    assert_eq!(retry_delay(u32::MAX), Duration::from_secs(3600));
}

#[test]
fn a_retry_has_a_new_gen_and_left_an_outcome_so_it_is_no_attempt() {
    let (record, hidden) = running(3, "commit").retried("conflicts used up", generation(5), at(10));
    assert_eq!(hidden, Duration::from_secs(120));
    assert_eq!((record.generation, record.written_at, record.sent_at), (generation(5), at(10), None));
    assert_eq!((record.attempts, record.retries, record.started_at), (2, 1, None));
    assert_eq!((record.not_before, record.outcome), (Some(at(12)), Some(RecordOutcome::Retry)));
    assert_eq!(record.last_words(), "conflicts used up");
}

#[test]
fn retries_never_park() {
    let mut record = running(1, "commit");
    for _ in 0..1000 {
        let (next, hidden) = record.retried("catalog down", generation(5), at(10));
        assert!(hidden <= Duration::from_secs(3600));
        assert_eq!(next.attempts, 0);
        record = InflightRecord { attempts: next.attempts + 1, ..next };
    }
    assert_eq!(record.retries, 1000);
}

#[test]
fn a_continuation_goes_on_under_a_new_gen_and_only_progress_makes_it_free() {
    let progressed = InflightRecord { retries: 2, ..running(3, "merge") }.continued(true, generation(5), at(10));
    assert_eq!((progressed.generation, progressed.attempts, progressed.retries), (generation(5), 0, 0));
    assert_eq!((progressed.sent_at, progressed.started_at, progressed.not_before), (None, None, None));
    assert_eq!(progressed.outcome, Some(RecordOutcome::Continued));
    let stuck = running(3, "merge").continued(false, generation(5), at(10));
    assert_eq!(stuck.attempts, 3);
    assert_eq!(stuck.last_words(), "the time of one message ended at step merge before anything was committed");
}

#[test]
fn parked_and_cooling_rest_for_the_cooldown_under_the_same_gen() {
    let parked = running(5, "merge").parked("over budget", COOLDOWN, at(10));
    assert_eq!((parked.outcome, parked.not_before), (Some(RecordOutcome::Parked), Some(at(370))));
    assert_eq!((parked.attempts, parked.generation), (5, generation(1)));
    assert!(parked.is_at_rest());
    let cooling = running(1, "plan").cooled("already one sorted run", COOLDOWN, at(10));
    assert_eq!((cooling.outcome, cooling.attempts), (Some(RecordOutcome::Cooling), 0));
    assert!(cooling.is_at_rest());
}

#[test]
fn requeued_work_starts_from_zero_under_a_new_gen() {
    let parked = running(5, "merge").parked("dies", COOLDOWN, at(10));
    let record = parked.requeued(generation(6), at(20));
    assert_eq!((record.attempts, record.retries, record.outcome, record.not_before), (0, 0, None, None));
    assert_eq!((record.generation, record.written_at, record.sent_at), (generation(6), at(20), None));
    assert_eq!(record.reason, None);
}

#[test]
fn poison_parks_its_own_partition_with_the_reason_of_the_last_attempt() {
    let dead = running(5, "merge");
    let PoisonDecision::Park { record, reason } =
        decide_poison(Some(&dead), Some(generation(1)), false, COOLDOWN, at(10))
    else {
        panic!("not parked")
    };
    assert_eq!(reason, "attempts at 5: the last attempt ended without an outcome at step merge");
    assert_eq!((record.outcome, record.not_before), (Some(RecordOutcome::Parked), Some(at(370))));
}

#[test]
fn poison_of_a_losing_duplicate_leaves_the_partition_alone() {
    let dead = running(5, "merge");
    let parked = dead.parked("dies at merge", COOLDOWN, at(2));
    let (waiting, young) = (queued(), running(1, "merge"));
    let decide = |record, generation, leased| decide_poison(record, generation, leased, COOLDOWN, at(10));
    for (decision, part) in [
        (decide(None, Some(generation(1)), false), "has no record"),
        (decide(Some(&dead), Some(generation(1)), true), "another worker had the partition"),
        (decide(Some(&dead), Some(generation(2)), false), "a newer message counts"),
        (decide(Some(&parked), Some(generation(1)), false), "dies at merge"),
        (decide(Some(&waiting), None, false), "a newer message counts"),
        (decide(Some(&young), None, false), "a newer message counts"),
    ] {
        let PoisonDecision::Note { reason } = decision else { panic!("{decision:?}") };
        assert!(reason.contains(part), "{reason}");
    }
    assert!(matches!(
        decide_poison(Some(&running(4, "merge")), None, false, COOLDOWN, at(10)),
        PoisonDecision::Park { .. }
    ));
}
