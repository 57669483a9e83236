//! `kill -9` of `firn compact` at random moments: no row is ever lost, and the next run ends what the killed one began.
//!
//! FIRN_KILL_ROUNDS sets how often each table is worked on and killed, FIRN_SEED repeats the moments of a run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use firn_tests::random::number_from;
use firn_tests::scene::{MANUAL, TABLE};
use firn_tests::{Backup, Random, Scene, Watcher};

/// Rounds for each of the four tables. With 50 it is the 200 that the project asks for before a release.
const ROUNDS: u64 = 6;

/// The invariants read every file of every snapshot: not after every round.
const ROUNDS_BETWEEN_CHECKS: u64 = 5;

/// 36 small appends over two months.
const TABLE_OPTIONS: [&str; 8] =
    ["--source", "weather", "--limit", "3600", "--appends", "36", "--partition", "month:time_hour"];

/// A few tiny files are worth a merge.
const EAGER: &str = "backlogFileThreshold: 10, verify: reread";

/// A table and how it is compacted.
struct Case {
    /// What the table has beside [`TABLE_OPTIONS`].
    options: &'static [&'static str],
    dataset: &'static str,
    /// Key columns, when duplicates are dropped: then the last row of each key must be there, else every row.
    dedup: &'static str,
    flags: &'static [&'static str],
}

/// What the kills of a case met, to judge whether they came at interesting moments.
#[derive(Debug, Default)]
struct Met {
    killed: u64,
    temporary_files: u64,
    half_uploads: u64,
    new_files_uncommitted: u64,
    committed: u64,
}

#[test]
fn unsorted_files_with_duplicates() {
    kill_and_converge(&Case {
        options: &["--arrival", "late", "--duplicates", "0.1"],
        dataset: "seriesColumns: [origin], timeColumn: time_hour, dedup: true",
        dedup: "origin,time_hour",
        flags: &MANUAL,
    });
}

#[test]
fn unsorted_files_of_several_schemas_under_the_full_rule() {
    kill_and_converge(&Case {
        options: &["--arrival", "scattered", "--evolve", "rename,drop-and-add-again,promote,nested,spec"],
        dataset: "sortColumns: [origin, time_hour]",
        dedup: "",
        flags: &["--full"],
    });
}

#[test]
fn sorted_files_with_duplicates_under_the_full_rule() {
    kill_and_converge(&Case {
        options: &["--arrival", "sorted", "--duplicates", "0.1", "--sort-order", "origin,time_hour"],
        dataset: "seriesColumns: [origin], timeColumn: time_hour, dedup: true",
        dedup: "origin,time_hour",
        flags: &["--full"],
    });
}

#[test]
fn files_without_an_order() {
    kill_and_converge(&Case { options: &["--format-version", "1"], dataset: "", dedup: "", flags: &MANUAL });
}

fn kill_and_converge(case: &Case) {
    let scene = Scene::local();
    scene.configure(EAGER, case.dataset);
    scene.lake.make_table(TABLE, &[&TABLE_OPTIONS[..], case.options].concat());
    let before = Backup::of(&scene.path());
    let mut watcher = Watcher::start(&scene.lake, TABLE);
    let expected = watcher.digest(case.dedup);
    let files_before = watcher.head()["files"].as_array().unwrap().len();

    let mut duration = whole_run(&scene, case);
    assert_eq!(watcher.digest(case.dedup), expected, "a run that nobody kills");
    let files_after = watcher.head()["files"].as_array().unwrap().len();
    assert!(files_after < files_before, "there is something to do");

    let mut random = Random::seeded();
    let mut met = Met::default();
    let rounds = number_from("FIRN_KILL_ROUNDS").unwrap_or(ROUNDS);
    for round in 1..=rounds {
        before.restore();
        let start = watcher.head();
        let after = Duration::from_micros(random.below(u64::try_from(duration.as_micros()).unwrap()));
        let killed = kill_one(&scene, case, after);
        let place = format!("round {round}, killed after {after:?}");
        assert_eq!(watcher.digest(case.dedup), expected, "{place}");
        met.count(&scene, killed, watcher.head() != start);

        age(&scene);
        duration = whole_run(&scene, case);
        assert_eq!(watcher.digest(case.dedup), expected, "{place}, after the next run");
        assert_eq!(watcher.digest(""), expected, "{place}: nothing is left to drop");
        let head = watcher.head();
        assert_eq!(head["files"].as_array().unwrap().len(), files_after, "{place}");
        let selected =
            scene.compact(&[case.flags, &["--dry-run"]].concat()).expect_code(0).summary()["selected"].clone();
        assert_eq!(selected, 0, "{place}: a second run selects");
        assert_eq!(scene.leftovers(), Vec::<std::path::PathBuf>::new(), "{place}: temporary files");
        if round % ROUNDS_BETWEEN_CHECKS == 0 || round == rounds {
            watcher.check_invariants(case.dedup);
        }
    }
    eprintln!("{rounds} rounds of about {duration:?}: {met:?}");
    assert!(met.killed > 0, "no round was killed: {met:?}");
}

/// Runs to the end; the time it took.
fn whole_run(scene: &Scene, case: &Case) -> Duration {
    let started = Instant::now();
    let summary = scene.compact(case.flags).expect_code(0).summary();
    assert_eq!(summary["ok"], true, "{summary}");
    started.elapsed()
}

/// Whether the kill came before the end.
fn kill_one(scene: &Scene, case: &Case, after: Duration) -> bool {
    let mut command = scene.compact_command(case.flags);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("firn starts");
    std::thread::sleep(after);
    // SIGKILL; of a process that has ended already it is no error.
    child.kill().expect("a process of our own can be killed");
    let status = child.wait().expect("the child is ours");
    assert!(status.success() || status.code().is_none(), "{status}: neither killed nor done");
    status.code().is_none()
}

/// Makes what a killed upload left older than the hour after which it counts as abandoned.
fn age(scene: &Scene) {
    for path in scene.hidden_uploads() {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    }
}

impl Met {
    fn count(&mut self, scene: &Scene, killed: bool, moved: bool) {
        if !killed {
            return;
        }
        let hidden = scene.hidden_uploads().len();
        let temporary = scene.leftovers().len() > hidden;
        self.killed += 1;
        self.half_uploads += u64::from(hidden > 0);
        self.temporary_files += u64::from(temporary);
        self.committed += u64::from(moved);
        // Between the first output and the first commit.
        self.new_files_uncommitted += u64::from(!moved && outputs(scene) > 0);
    }
}

/// Data files that Firn wrote: `<32 hex>-<uuid>.parquet`.
fn outputs(scene: &Scene) -> usize {
    let written = |name: &str| {
        name.ends_with(".parquet")
            && name.find('-') == Some(32)
            && name[..32].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    firn_tests::backup::files_below(&scene.path(), &written).len()
}
