//! What the lines promise: one terminal event for each outcome, fixed words and fields, whole lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use firn_model::{Outcome, PartitionKey, PartitionValue, Rule, Scalar};
use firn_telemetry::*;
use serde_json::{Value, json};

/// Remembers every call of `write`.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Vec<u8>>>>);

impl Write for Calls {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Calls {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().concat()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const OUTCOMES: [Outcome; 6] =
    [Outcome::Done, Outcome::Left, Outcome::Superseded, Outcome::Unknown, Outcome::Retry, Outcome::Failed];

/// Fails to compile when an outcome is added, so that the list above is completed.
fn is_listed(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Done | Outcome::Left | Outcome::Superseded | Outcome::Unknown | Outcome::Retry | Outcome::Failed => {
            OUTCOMES.contains(&outcome)
        }
    }
}

fn start() -> PartitionStart {
    let day = PartitionValue { name: "day".into(), value: Some(Scalar::Date(20_758)) };
    let region = PartitionValue { name: "region".into(), value: None };
    PartitionStart::new("spans", "iot.spans", &PartitionKey::new(3, vec![day, region]), "pass-1", "run-1", Rule::Manual)
}

#[test]
fn each_outcome_emits_exactly_one_terminal_event() {
    for outcome in OUTCOMES {
        assert!(is_listed(outcome));
        let calls = Calls::default();
        let run = PartitionRun::start(&Emitter::to(calls.clone()), start());
        assert_eq!(calls.lines().len(), 0, "nothing before the end");
        run.finish(PartitionResult::new(outcome, "because"));
        let lines = calls.lines();
        let [line] = lines.as_slice() else { panic!("{outcome}: {lines:?}") };
        assert_eq!(line["event"], "partitionFinished");
        assert_eq!(line["outcome"], outcome.as_str());
        assert_eq!(line["reason"], "because");
    }
}

#[test]
fn the_event_of_a_partition_has_every_field() {
    let calls = Calls::default();
    let result = PartitionResult {
        files_before: 120,
        files_after: 2,
        rows_in: 1000,
        rows_out: 990,
        duplicates_dropped: 10,
        bytes_in: 5000,
        bytes_out: 3000,
        row_groups_copied: 4,
        bytes_copied: 2000,
        conflicts: 2,
        tries: 3,
        snapshot_id: Some(7_000_000_000_000_000_001),
        ..PartitionResult::new(Outcome::Done, "120 small files")
    };
    PartitionRun::start(&Emitter::to(calls.clone()), start()).finish(result);
    let mut line = calls.lines().remove(0);
    let fields = line.as_object_mut().unwrap();
    let time = fields.remove("time").unwrap();
    assert!(time.as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{time}");
    assert!(fields.remove("durationMs").unwrap().is_u64());
    let peak = fields.remove("peakRssBytes").unwrap();
    assert_eq!(peak.is_u64(), cfg!(target_os = "linux"));
    let expected = json!({
        "event": "partitionFinished",
        "outcome": "done",
        "dataset": "spans",
        "table": "iot.spans",
        "specId": 3,
        "partition": {"day": "2026-11-01", "region": null},
        "pass": "pass-1",
        "invocation": "run-1",
        "rule": "manual",
        "reason": "120 small files",
        "filesBefore": 120,
        "filesAfter": 2,
        "rowsIn": 1000,
        "rowsOut": 990,
        "duplicatesDropped": 10,
        "bytesIn": 5000,
        "bytesOut": 3000,
        "rowGroupsCopied": 4,
        "bytesCopied": 2000,
        "conflicts": 2,
        "tries": 3,
        "snapshotId": 7_000_000_000_000_000_001i64,
        "counters": {"tracelake_catalog_commit_conflicts_total{component=\"compactor\"}": 2},
    });
    assert_eq!(line, expected);
}

#[test]
fn work_that_ends_without_an_outcome_is_a_failure() {
    let calls = Calls::default();
    let emitter = Emitter::to(calls.clone());
    drop(PartitionRun::start(&emitter, start()));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _run = PartitionRun::start(&emitter, start());
        panic!("in the middle of the work");
    }));
    assert!(panicked.is_err());
    let lines = calls.lines();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!((&line["event"], &line["outcome"]), (&json!("partitionFinished"), &json!("failed")));
        assert!(line["reason"].as_str().unwrap().starts_with("ended without an outcome"));
    }
}

#[test]
fn a_pass_has_failed_when_a_partition_or_a_dataset_has() {
    let emitted = |pass: PassFinished| {
        let calls = Calls::default();
        Emitter::to(calls.clone()).emit(&pass.counted(1000));
        let mut lines = calls.lines();
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    };
    let base = PassFinished { pass: "p".into(), invocation: "i".into(), rule: "manual", ..PassFinished::default() };
    let line = emitted(PassFinished { partitions: 5, left: 4, done: 1, duration_ms: 1000, ..base.clone() });
    assert_eq!((&line["event"], &line["outcome"]), (&json!("passFinished"), &json!("done")));
    assert_eq!((&line["pass"], &line["rule"], &line["partitions"]), (&json!("p"), &json!("manual"), &json!(5)));
    assert_eq!(line["counters"], json!({"firn_pass_failures_total": 0, "firn_pass_deadline_exceeded_total": 0}));
    let line = emitted(PassFinished { failed: 1, duration_ms: 1001, ..base.clone() });
    assert_eq!(line["outcome"], "failed");
    assert_eq!(line["counters"], json!({"firn_pass_failures_total": 1, "firn_pass_deadline_exceeded_total": 1}));
    assert_eq!(emitted(PassFinished { datasets_failed: 1, ..base })["outcome"], "failed");
}

#[test]
fn a_pass_that_runs_on_over_its_deadline_is_counted_and_goes_on() {
    let calls = Calls::default();
    let event = PassOverDeadline {
        pass: "p".into(),
        invocation: "i".into(),
        rule: "schedule",
        partitions: 3,
        duration_ms: 21_600_001,
        ..PassOverDeadline::default()
    };
    Emitter::to(calls.clone()).emit(&event.counted());
    let line = calls.lines().remove(0);
    assert_eq!((&line["event"], &line["outcome"]), (&json!("passOverDeadline"), &json!("running")));
    assert_eq!(line["counters"], json!({"firn_pass_deadline_exceeded_total": 1}));
    assert_eq!((&line["partitions"], &line["durationMs"]), (&json!(3), &json!(21_600_001)));
}

#[test]
fn a_dataset_that_was_passed_over_has_its_event() {
    let calls = Calls::default();
    let event = DatasetFailed {
        dataset: "spans".into(),
        table: "iot.spans".into(),
        pass: "p".into(),
        invocation: "i".into(),
        reason: "table iot.spans is not in catalog lake".into(),
    };
    Emitter::to(calls.clone()).emit(&event);
    let line = calls.lines().remove(0);
    assert_eq!((&line["event"], &line["outcome"]), (&json!("datasetFailed"), &json!("failed")));
    assert_eq!(line["reason"], "table iot.spans is not in catalog lake");
}

#[test]
fn every_line_is_one_whole_write_from_any_thread() {
    let calls = Calls::default();
    let emitter = Emitter::to(calls.clone());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    PartitionRun::start(&emitter, start()).finish(PartitionResult::new(Outcome::Left, "line\nbreak"));
                }
            });
        }
    });
    let written = calls.0.lock().unwrap();
    assert_eq!(written.len(), 200);
    for call in written.iter() {
        assert_eq!(call.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(serde_json::from_slice::<Value>(call).unwrap().is_object());
    }
}

/// A sink that is gone, as when the reader of a pipe has ended.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn nobody_listening_stops_no_work() {
    PartitionRun::start(&Emitter::to(Gone), start()).finish(PartitionResult::new(Outcome::Done, "merged"));
}

#[test]
fn a_parked_message_has_one_event_and_no_other() {
    let calls = Calls::default();
    let parked = Parked {
        id: "ab12".into(),
        dataset: Some("spans".into()),
        spec_id: Some(3),
        partition: Some(json!({ "day": "2026-11-01", "region": null })),
        pass: None,
        invocation: "run-1".into(),
        reason: "over budget".into(),
        attempts: 2,
        dequeue_count: 1,
        ..Parked::default()
    };
    PartitionRun::start(&Emitter::to(calls.clone()), start()).park(parked);
    let mut lines = calls.lines();
    assert_eq!(lines.len(), 1);
    lines[0].as_object_mut().unwrap().remove("time").unwrap();
    assert_eq!(
        lines[0],
        json!({
            "event": "parked", "outcome": "parked", "id": "ab12", "dataset": "spans", "specId": 3,
            "partition": { "day": "2026-11-01", "region": null }, "pass": null, "invocation": "run-1",
            "reason": "over budget", "attempts": 2, "dequeueCount": 1, "counters": { PARKED_COUNTER: 1 }
        })
    );
}

#[test]
fn a_deferred_message_says_for_how_long() {
    let calls = Calls::default();
    let deferred = MessageDeferred {
        dataset: None,
        pass: None,
        invocation: "run-1".into(),
        reason: "version 2 is newer".into(),
        hidden_seconds: 3600,
    };
    Emitter::to(calls.clone()).emit(&deferred);
    let line = &calls.lines()[0];
    assert_eq!(line["event"], "messageDeferred");
    assert_eq!((&line["outcome"], &line["hiddenSeconds"]), (&json!("deferred"), &json!(3600)));
}

#[test]
fn maintenance_ends_with_one_event_a_table() {
    let calls = Calls::default();
    let emitter = Emitter::to(calls.clone());
    let expiry = ExpiryFinished {
        dataset: "spans".into(),
        table: "iot.spans".into(),
        invocation: "i".into(),
        snapshots: 5,
        expired: 3,
        refs_removed: 1,
        pinned: 1,
        tries: 1,
        duration_ms: 7,
        ended: "done",
        ..ExpiryFinished::default()
    };
    emitter.emit(&expiry.counted());
    let sweep = SweepFinished {
        dataset: "spans".into(),
        table: "iot.spans".into(),
        invocation: "i".into(),
        receipt: "r".into(),
        reason: Some("because".into()),
        listed: 9,
        live: 4,
        replaced: 2,
        pinned_bytes: 7,
        replaced_bytes: 20,
        unreferenced: 1,
        deleted: 2,
        deleted_bytes: 200,
        kept: [("too young".to_owned(), 1)].into(),
        duration_ms: 8,
        ended: "failed",
        ..SweepFinished::default()
    };
    emitter.emit(&sweep.clone().counted());
    emitter.emit(&SweepFinished { dry_run: true, ended: "done", ..sweep }.counted());
    let mut lines = calls.lines();
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("time").unwrap();
    }
    assert_eq!(
        lines[0],
        json!({
            "event": "expiryFinished", "outcome": "done", "dataset": "spans", "table": "iot.spans", "invocation": "i", "reason": null,
            "snapshots": 5, "expired": 3, "refsRemoved": 1, "pinned": 1, "tries": 1, "durationMs": 7,
            "counters": { "firn_maintenance_failures_total": 0 }
        })
    );
    assert_eq!(
        lines[1],
        json!({
            "event": "sweepFinished", "outcome": "failed", "dataset": "spans", "table": "iot.spans", "invocation": "i", "receipt": "r",
            "dryRun": false, "reason": "because", "listed": 9, "live": 4, "pinnedBytes": 7, "replaced": 2, "replacedBytes": 20, "unreferenced": 1,
            "deleted": 2, "deletedBytes": 200, "kept": { "too young": 1 }, "durationMs": 8, "peakRssBytes": null,
            "counters": { "firn_maintenance_failures_total": 1, "firn_orphans_deleted_total": 2 }
        })
    );
    let counters = json!({ "firn_maintenance_failures_total": 0, "firn_orphans_deleted_total": 0 });
    assert_eq!(lines[2]["counters"], counters, "a dry run deletes nothing");
}
