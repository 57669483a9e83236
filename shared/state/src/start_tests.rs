use firn_model::Rule;

use super::*;
use crate::testing::{at, generation, queued, selection};

const COOLDOWN: TimeDelta = TimeDelta::hours(6);

fn worker(number: u128) -> MessageKind {
    MessageKind::Worker { generation: generation(number) }
}

fn deliver(record: Option<&InflightRecord>, kind: MessageKind, rule: Rule, dequeue_count: u64) -> StartDecision {
    let selection = selection(rule, "");
    let (cooldown, now) = (COOLDOWN, at(10));
    decide_start(
        record,
        &DeliveredPartition { kind, selection: &selection, dequeue_count, generation: generation(9), cooldown, now },
    )
}

fn started(decision: StartDecision) -> InflightRecord {
    match decision {
        StartDecision::Start { record } => record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_is_counted_before_the_work() {
    let before = InflightRecord { step: Some("merge".into()), reason: Some("old".into()), ..queued() };
    let record = started(deliver(Some(&before), worker(1), Rule::Backlog, 1));
    let expected = InflightRecord { started_at: Some(at(10)), attempts: 1, ..queued() };
    assert_eq!(record, expected);
    assert_eq!(record.at_step("upload").step.as_deref(), Some("upload"));
}

#[test]
fn a_retry_or_continuation_that_starts_is_waiting_no_more() {
    let (retry, _) = queued().retried("throttled", generation(3), at(0));
    let record = started(deliver(Some(&retry), worker(3), Rule::Tier, 1));
    assert_eq!((record.outcome, record.not_before, record.reason.clone()), (None, None, None));
    assert_eq!((record.attempts, record.retries), (1, 1));
    assert_eq!(record.sent_at, Some(at(10)), "its message was received, so it was sent");
}

#[test]
fn the_worker_takes_the_stronger_rule() {
    let raised = InflightRecord { rule: Rule::Full, ..queued() };
    assert_eq!(started(deliver(Some(&raised), worker(1), Rule::Tier, 1)).rule, Rule::Full);
    assert_eq!(started(deliver(Some(&queued()), worker(1), Rule::Schedule, 1)).rule, Rule::Schedule);
}

#[test]
fn no_record_or_another_gen_is_superseded_whatever_was_counted() {
    let dying = InflightRecord { attempts: 5, ..queued() };
    for dequeue_count in [1, 5, 60] {
        assert_eq!(
            deliver(None, worker(1), Rule::Tier, dequeue_count),
            StartDecision::Superseded { reason: SupersededReason::NoRecord }
        );
        for record in [queued(), dying.clone()] {
            assert_eq!(
                deliver(Some(&record), worker(7), Rule::Full, dequeue_count),
                StartDecision::Superseded { reason: SupersededReason::OtherGeneration { generation: generation(1) } },
                "a losing duplicate parks nothing"
            );
        }
    }
}

#[test]
fn a_held_lease_supersedes_a_message_and_sends_one_by_hand_again() {
    assert_eq!(decide_held(worker(1)), HeldDecision::Superseded);
    assert_eq!(decide_held(MessageKind::ByHandPartition), HeldDecision::SendAgain);
    assert_eq!(BY_HAND_AGAIN_AFTER, TimeDelta::minutes(5));
}

#[test]
fn parked_and_cooling_partitions_are_not_started_by_an_old_message() {
    for record in [queued().parked("dies", COOLDOWN, at(0)), queued().cooled("dies", COOLDOWN, at(0))] {
        assert_eq!(
            deliver(Some(&record), worker(1), Rule::Tier, 5),
            StartDecision::Superseded { reason: SupersededReason::AtRest { why: "dies".into() } }
        );
    }
}

#[test]
fn attempts_at_5_are_parked_with_the_last_step_as_reason() {
    let dying = InflightRecord { attempts: 5, started_at: Some(at(9)), step: Some("merge".into()), ..queued() };
    let StartDecision::Park { record, reason } = deliver(Some(&dying), worker(1), Rule::Tier, 1) else {
        panic!("not parked")
    };
    assert_eq!(reason, "attempts at 5: the last attempt ended without an outcome at step merge");
    assert_eq!((record.outcome, record.attempts), (Some(RecordOutcome::Parked), 5));
    assert_eq!((record.not_before, record.reason.as_deref()), (Some(at(10) + COOLDOWN), Some(reason.as_str())));
    let four = InflightRecord { attempts: 4, ..dying };
    assert_eq!(started(deliver(Some(&four), worker(1), Rule::Tier, 1)).attempts, 5);
}

#[test]
fn dequeue_count_at_5_is_parked() {
    let record = InflightRecord { attempts: 4, started_at: Some(at(9)), step: Some("commit".into()), ..queued() };
    let StartDecision::Park { record, reason } = deliver(Some(&record), worker(1), Rule::Tier, 5) else {
        panic!("not parked")
    };
    assert_eq!(reason, "DequeueCount at 5, attempts at 4: the last attempt ended without an outcome at step commit");
    assert_eq!(record.attempts, 5, "this delivery counts");
    assert!(matches!(deliver(Some(&queued()), worker(1), Rule::Tier, 4), StartDecision::Start { .. }));
    let StartDecision::Park { reason, .. } = deliver(Some(&queued()), worker(1), Rule::Tier, 60) else {
        panic!("not parked")
    };
    assert!(reason.ends_with("no attempt was started"), "{reason}");
}

#[test]
fn by_hand_the_worker_writes_the_record_itself() {
    let record = started(deliver(None, MessageKind::ByHandPartition, Rule::Manual, 1));
    let expected = InflightRecord {
        attempts: 1,
        started_at: Some(at(10)),
        sent_at: Some(at(10)),
        ..InflightRecord::new(&selection(Rule::Manual, ""), generation(9), at(10))
    };
    assert_eq!(record, expected);
}

#[test]
fn by_hand_takes_over_a_queued_record_and_supersedes_its_message() {
    let record = started(deliver(Some(&queued()), MessageKind::ByHandPartition, Rule::Manual, 1));
    assert_eq!((record.generation, record.rule, record.inputs_hash.as_str()), (generation(9), Rule::Manual, "a"));
    assert!(matches!(
        deliver(Some(&record), worker(1), Rule::Tier, 1),
        StartDecision::Superseded { reason: SupersededReason::OtherGeneration { .. } }
    ));
}

#[test]
fn by_hand_starts_parked_work_afresh_and_its_own_deaths_still_count() {
    let dead = InflightRecord { attempts: 5, ..queued() }.parked("dies", COOLDOWN, at(0));
    let mut record = started(deliver(Some(&dead), MessageKind::ByHandPartition, Rule::Manual, 1));
    for attempt in 1..ATTEMPT_LIMIT {
        assert_eq!(record.attempts, attempt);
        let again =
            deliver(Some(&record.at_step("sort")), MessageKind::ByHandPartition, Rule::Manual, u64::from(attempt) + 1);
        match again {
            StartDecision::Start { record: next } => record = next,
            StartDecision::Park { record, reason } => {
                assert_eq!((attempt, record.attempts), (4, 5));
                assert!(reason.ends_with("at step sort"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}
