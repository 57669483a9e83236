use super::*;
use crate::testing::{at, busy, generation, queued, quiet, selection};

const HOURS: i64 = 60;

fn same() -> Selection {
    selection(Rule::Tier, "a")
}

fn decide(record: &InflightRecord, situation: Situation) -> SendDecision {
    decide_send(Some(record), &same(), &situation)
}

fn sent_because(decision: SendDecision) -> (SendReason, InflightRecord) {
    match decision {
        SendDecision::Send { reason, record } => (reason, record),
        other => panic!("{other:?}"),
    }
}

fn skipped(decision: SendDecision) -> SkipReason {
    match decision {
        SendDecision::Skip { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_partition_without_a_record_is_written_with_a_new_gen_and_then_sent() {
    let (reason, record) = sent_because(decide_send(None, &same(), &quiet(7)));
    assert_eq!(reason, SendReason::New);
    assert_eq!(record, InflightRecord::new(&same(), generation(2), at(7)));
    assert_eq!((record.sent_at, record.attempts, record.retries), (None, 0, 0));
    assert_eq!(record.message().generation, Some(generation(2)));
    assert_eq!(record.message().rule, Some(Rule::Tier));
    assert_eq!(record.sent(at(8)).sent_at, Some(at(8)));
}

#[test]
fn written_but_not_sent_is_sent_again_after_5_minutes_with_an_empty_queue() {
    let unsent = InflightRecord { sent_at: None, ..queued() };
    assert_eq!(skipped(decide(&unsent, quiet(4))), SkipReason::Queued { since: at(0) });
    assert_eq!(skipped(decide(&unsent, busy(23 * HOURS))), SkipReason::Queued { since: at(0) });
    for minutes in [5, 59, 61, 30 * HOURS] {
        assert_eq!(decide(&unsent, quiet(minutes)), SendDecision::Resend { record: unsent.clone() }, "{minutes}");
    }
    // Something fills the queue all day: it is not waited for longer.
    let (reason, record) = sent_because(decide(&unsent, busy(24 * HOURS)));
    assert_eq!((reason, record.generation), (SendReason::Lost { since: at(0) }, generation(2)));
}

#[test]
fn queued_counts_as_lost_after_1_hour_with_an_empty_queue_or_24_hours() {
    let record = queued();
    assert_eq!(skipped(decide(&record, quiet(59))), SkipReason::Queued { since: at(0) });
    assert_eq!(skipped(decide(&record, busy(60))), SkipReason::Queued { since: at(0) });
    assert_eq!(skipped(decide(&record, busy(24 * HOURS - 1))), SkipReason::Queued { since: at(0) });
    for situation in [quiet(60), busy(24 * HOURS)] {
        let (reason, sent) = sent_because(decide(&record, situation));
        assert_eq!(reason, SendReason::Lost { since: at(0) });
        assert_eq!((sent.generation, sent.written_at, sent.sent_at), (generation(2), situation.now, None));
    }
}

#[test]
fn started_without_a_lease_counts_as_lost_from_its_start_on_and_with_a_lease_never() {
    let record = InflightRecord { started_at: Some(at(50)), attempts: 1, step: Some("merge".into()), ..queued() };
    assert_eq!(skipped(decide(&record, quiet(109))), SkipReason::Queued { since: at(50) });
    let (reason, sent) = sent_because(decide(&record, quiet(110)));
    assert_eq!(reason, SendReason::Lost { since: at(50) });
    assert_eq!((sent.attempts, sent.started_at), (1, None), "attempts survive a new gen");
    assert!(sent.last_words().contains("merge"), "so does the step of the last one");
    let leased = Situation { leased: true, ..quiet(30 * HOURS) };
    assert_eq!(skipped(decide(&record, leased)), SkipReason::Running);
}

#[test]
fn attempts_survive_a_new_gen_until_the_inputs_change() {
    let record = InflightRecord { started_at: Some(at(0)), attempts: 4, retries: 3, ..queued() };
    let (_, same_inputs) = sent_because(decide(&record, quiet(90)));
    assert_eq!((same_inputs.attempts, same_inputs.retries), (4, 3));
    let (_, others) = sent_because(decide_send(Some(&record), &selection(Rule::Tier, "b"), &quiet(90)));
    assert_eq!((others.attempts, others.retries, others.inputs_hash.as_str()), (0, 0, "b"));
}

#[test]
fn a_waiting_retry_is_left_until_its_message_is_overdue() {
    let (retry, _) = queued().retried("throttled", generation(3), at(0));
    assert_eq!(retry.not_before, Some(at(2)));
    let sent = retry.sent(at(0));
    assert_eq!(skipped(decide(&sent, quiet(1))), SkipReason::Waiting { until: at(2) });
    assert_eq!(skipped(decide(&sent, quiet(61))), SkipReason::Queued { since: at(2) });
    assert!(matches!(decide(&sent, quiet(62)), SendDecision::Send { reason: SendReason::Lost { .. }, .. }));
    assert_eq!(skipped(decide(&retry, quiet(6))), SkipReason::Queued { since: at(2) });
    assert_eq!(decide(&retry, quiet(7)), SendDecision::Resend { record: retry.clone() });
}

#[test]
fn a_continuation_that_was_not_sent_is_sent_again() {
    let next = queued().continued(true, generation(3), at(20));
    assert_eq!(skipped(decide(&next, quiet(24))), SkipReason::Queued { since: at(20) });
    assert_eq!(decide(&next, quiet(25)), SendDecision::Resend { record: next.clone() });
}

#[test]
fn a_stronger_rule_raises_the_rule_of_a_queued_record_and_a_weaker_one_does_not() {
    let with = |rule| decide_send(Some(&queued()), &selection(rule, "b"), &busy(1));
    let SendDecision::RaiseRule { from, record } = with(Rule::Full) else { panic!("{:?}", with(Rule::Full)) };
    assert_eq!((from, record), (Rule::Tier, InflightRecord { rule: Rule::Full, ..queued() }));
    for rule in [Rule::Tier, Rule::Backlog] {
        assert_eq!(skipped(with(rule)), SkipReason::Queued { since: at(0) });
    }
    // What is sent anew keeps the stronger of the two.
    let full = InflightRecord { rule: Rule::Full, ..queued() };
    assert_eq!(sent_because(decide(&full, quiet(60))).1.rule, Rule::Full);
    let unsent = InflightRecord { sent_at: None, ..queued() };
    let SendDecision::Resend { record } = decide_send(Some(&unsent), &selection(Rule::Schedule, "a"), &quiet(5)) else {
        panic!("not sent again")
    };
    assert_eq!((record.rule, record.generation), (Rule::Schedule, generation(1)));
    let running = Situation { leased: true, ..busy(1) };
    assert_eq!(skipped(decide_send(Some(&queued()), &selection(Rule::Full, "a"), &running)), SkipReason::Running);
}

#[test]
fn parked_is_kept_until_the_inputs_change_or_not_before_passes() {
    let dead = InflightRecord { attempts: 5, ..queued() };
    let parked = dead.parked("dies at merge", TimeDelta::hours(6), at(0));
    let reason = SkipReason::Parked { why: "dies at merge".into(), until: Some(at(6 * HOURS)) };
    assert_eq!(skipped(decide(&parked, quiet(6 * HOURS - 1))), reason);
    assert_eq!(skipped(decide_send(Some(&parked), &selection(Rule::Full, "a"), &quiet(1))), reason);

    let (reason, others) = sent_because(decide_send(Some(&parked), &selection(Rule::Backlog, "b"), &busy(1)));
    assert_eq!((reason, others.attempts, others.rule), (SendReason::InputsChanged, 0, Rule::Backlog));

    let (reason, cooled) = sent_because(decide(&parked, busy(6 * HOURS)));
    assert_eq!((reason, cooled.outcome, cooled.not_before), (SendReason::CooledDown, None, None));
    assert_eq!(cooled.attempts, 4, "one start shows whether it still dies");
}

#[test]
fn cooling_is_kept_as_parked_is_but_gives_way_to_a_stronger_rule() {
    let cooling = queued().cooled("commit order", TimeDelta::hours(6), at(0));
    let reason = SkipReason::Cooling { why: "commit order".into(), until: Some(at(6 * HOURS)) };
    assert_eq!(skipped(decide(&cooling, quiet(6 * HOURS - 1))), reason);
    assert_eq!(sent_because(decide(&cooling, quiet(6 * HOURS))).0, SendReason::CooledDown);
    let full = decide_send(Some(&cooling), &selection(Rule::Full, "a"), &busy(1));
    assert_eq!(sent_because(full).0, SendReason::StrongerRule);
    let changed = decide_send(Some(&cooling), &selection(Rule::Tier, "b"), &busy(1));
    assert_eq!(sent_because(changed).0, SendReason::InputsChanged);
}

#[test]
fn records_that_no_rule_asks_for_go_when_nothing_can_come_of_them() {
    let forgotten = |record: &InflightRecord, situation| {
        matches!(decide_leftover(record, &situation), LeftoverDecision::Forget { .. })
    };
    let unsent = InflightRecord { sent_at: None, ..queued() };
    let parked = queued().parked("x", TimeDelta::hours(6), at(0));
    for (record, situation, expected) in [
        (&queued(), quiet(59), false),
        (&queued(), quiet(60), true),
        (&queued(), busy(60), false),
        (&queued(), busy(24 * HOURS), true),
        (&queued(), Situation { leased: true, ..quiet(30 * HOURS) }, false),
        (&unsent, quiet(4), false),
        (&unsent, quiet(5), true),
        (&parked, quiet(6 * HOURS - 1), false),
        (&parked, quiet(6 * HOURS), true),
    ] {
        assert_eq!(forgotten(record, situation), expected, "{record:?} {situation:?}");
    }
}

#[test]
fn reasons_are_sentences() {
    let parked = queued().parked("over budget", TimeDelta::hours(6), at(0));
    assert_eq!(
        skipped(decide(&parked, quiet(1))).to_string(),
        "parked: over budget (until 2024-10-04 06:00:00 UTC or until its inputs change)"
    );
    assert_eq!(
        SendReason::Lost { since: at(0) }.to_string(),
        "its message is lost: nothing was heard of it since 2024-10-04 00:00:00 UTC"
    );
}
