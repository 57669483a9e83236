//! Several writers on one table at once: compactors on the same partitions, on different ones, and PyIceberg appending meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Child, Stdio};
use std::time::Duration;

use firn_test_support::Digest;
use firn_tests::program::finish;
use firn_tests::scene::{MANUAL, TABLE};
use firn_tests::{Backup, Random, Run, Scene, Watcher};
use serde_json::Value;

const ROUNDS: u64 = 4;
/// A few tiny files are worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";
const READINGS: &str = "seriesColumns: [origin], timeColumn: time_hour, dedup: true";
const KEY: &str = "origin,time_hour";

fn start(scene: &Scene, flags: &[&str]) -> Child {
    let mut command = scene.compact_command(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("firn starts")
}

fn sum(runs: &[Run], count: &str) -> u64 {
    runs.iter().map(|run| run.summary()[count].as_u64().unwrap()).sum()
}

/// Snapshots by operation, the appends left out.
fn merges(scene: &Scene) -> Vec<Value> {
    let all = scene.inspect()["snapshots"].as_array().unwrap().clone();
    all.into_iter().filter(|snapshot| snapshot["operation"] != "append").collect()
}

/// `count` compactors at about the same moment, again and again from the same table: each partition is merged once.
fn at_once(count: usize, partition: &str, partitions: u64) {
    let scene = Scene::local();
    scene.configure(EAGER, READINGS);
    let options = ["--source", "weather", "--limit", "3600", "--appends", "40", "--duplicates", "0.05"];
    scene.lake.make_table(TABLE, &[&options[..], &["--partition", partition]].concat());
    let before = Backup::of(&scene.path());
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest(KEY);
    let mut random = Random::seeded();
    for round in 1..=ROUNDS {
        before.restore();
        let mut children = Vec::new();
        for _ in 0..count {
            children.push(start(&scene, &MANUAL));
            // From the same moment to one in the middle of the other's work.
            std::thread::sleep(Duration::from_millis(random.below(40 * round)));
        }
        let runs: Vec<Run> = children.into_iter().map(|child| finish(child).expect_code(0)).collect();
        assert_eq!(watcher.digest(""), expected, "round {round}: {runs:#?}");
        assert_eq!(watcher.head()["files"].as_array().unwrap().len() as u64, partitions, "round {round}: {runs:#?}");
        watcher.check_invariants(KEY);
        assert_eq!(merges(&scene).len() as u64, partitions, "round {round}: one merge a partition: {runs:#?}");
        assert_eq!(sum(&runs, "done"), partitions, "round {round}: one run did it: {runs:#?}");
        let others = sum(&runs, "superseded") + sum(&runs, "left");
        assert_eq!(others, partitions * (count as u64 - 1), "round {round}: the others saw it: {runs:#?}");
    }
    scene.check_converged(&MANUAL);
}

#[test]
fn two_runs_on_one_partition_give_one_result() {
    at_once(2, "none", 1);
}

#[test]
fn three_runs_on_two_partitions_give_one_result_each() {
    at_once(3, "month:time_hour", 2);
}

#[test]
fn two_runs_on_different_dates_both_succeed() {
    let scene = Scene::local();
    scene.configure(EAGER, "sortColumns: [origin, time_hour]");
    // January to March.
    let options = ["--source", "weather", "--limit", "6000", "--appends", "60", "--partition", "month:time_hour"];
    scene.lake.make_table(TABLE, &[&options[..], &["--arrival", "scattered"]].concat());
    let before = Backup::of(&scene.path());
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest("");
    for round in 1..=ROUNDS {
        before.restore();
        let ranges = ["2013-01-01:2013-01-31", "2013-02-01:2013-12-31"];
        let children: Vec<Child> = ranges.iter().map(|range| start(&scene, &["--date-range", range])).collect();
        let runs: Vec<Run> = children.into_iter().map(|child| finish(child).expect_code(0)).collect();
        for (run, partitions) in runs.iter().zip([1, 2]) {
            let summary = run.summary();
            assert_eq!(
                (&summary["partitions"], &summary["done"]),
                (&partitions.into(), &partitions.into()),
                "{run:#?}"
            );
        }
        assert_eq!(watcher.digest(""), expected, "round {round}: {runs:#?}");
        assert_eq!(watcher.head()["files"].as_array().unwrap().len(), 3, "round {round}: {runs:#?}");
        watcher.check_invariants("");
    }
    scene.check_converged(&MANUAL);
}

/// PyIceberg appends the rest of a table while Firn merges again and again. `reference` is the same table, left alone.
fn beside_a_writer(dataset: &str, dedup: &str, partition: &str) {
    const REFERENCE: &str = "iot.reference";
    let scene = Scene::local();
    scene.configure(EAGER, dataset);
    let options = ["--source", "weather", "--limit", "3600", "--appends", "60", "--duplicates", "0.1"];
    let plan = [&options[..], &["--partition", partition]].concat();
    scene.lake.make_table(REFERENCE, &plan);
    scene.lake.make_table(TABLE, &[&plan[..], &["--last", "20"]].concat());

    let mut command = scene.lake.command("make_table.py", TABLE, &[&plan[..], &["--first", "20"]].concat());
    let mut writer = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the writer starts");
    let (mut runs, mut refused) = (Vec::new(), 0);
    while writer.try_wait().unwrap().is_none() {
        let run = scene.compact(&MANUAL);
        // Losing every try of a commit to the writer is an honest end; a panic or wrong usage is none.
        assert!(matches!(run.code, Some(0 | 1)), "{run:#?}");
        assert!(!run.stderr.contains("panicked at"), "{run:#?}");
        refused += u64::from(run.code == Some(1));
        runs.push(run);
    }
    let appended = finish(writer);
    assert_eq!(appended.code, Some(0), "{appended:#?}");
    eprintln!("{} runs beside the writer, {refused} lost to it, {} merges", runs.len(), merges(&scene).len());
    assert!(!merges(&scene).is_empty(), "merges took place beside the writer: {runs:#?}");

    let appends =
        scene.inspect()["snapshots"].as_array().unwrap().iter().filter(|s| s["operation"] == "append").count();
    assert_eq!(appends, 60, "every append is in the history");
    // The rule manual may leave a few small files beside a large one, and so the duplicates between them: full does not.
    scene.compact(&["--full"]).expect_code(0);
    let key = if dedup.is_empty() { vec![] } else { vec!["--dedup", dedup] };
    let expected: Digest = scene.lake.digest(REFERENCE, &key);
    assert_eq!(scene.digest(), expected);
    assert_eq!(scene.lake.duck_digest(TABLE, &[]), expected);
    scene.check_converged(&["--full"]);
}

#[test]
fn no_append_is_lost_beside_a_writer() {
    beside_a_writer("sortColumns: [origin, time_hour]", "", "month:time_hour");
}

#[test]
fn the_last_copy_of_each_key_wins_beside_a_writer() {
    beside_a_writer(READINGS, KEY, "none");
}

#[test]
fn a_reader_sees_one_table_while_it_is_merged() {
    let scene = Scene::local();
    scene.configure(EAGER, "sortColumns: [origin, time_hour]");
    let options = ["--source", "weather", "--limit", "6000", "--appends", "60", "--partition", "month:time_hour"];
    scene.lake.make_table(TABLE, &options);
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest("");
    let mut child = start(&scene, &MANUAL);
    let mut looks = 0;
    while child.try_wait().unwrap().is_none() {
        assert_eq!(watcher.digest(""), expected);
        looks += 1;
    }
    finish(child).expect_code(0);
    assert_eq!(watcher.digest(""), expected);
    eprintln!("{looks} looks while it was merged");
    scene.check_converged(&MANUAL);
}
