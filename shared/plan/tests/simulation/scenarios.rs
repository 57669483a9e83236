//! Days of writers: how many files there are, how many a reader has to merge, and how often bytes are written again.

use std::fmt::Write;

use crate::curves::curves;
use crate::golden;
use crate::picture::Scenario;
use crate::policies::{Policy, ideal};
use crate::world::{DAY, KB, MB, World};
use crate::writers::{ALL, Writer};

fn minutes() -> Scenario {
    Scenario {
        what: "One writer, a file of 256 KB every minute (360 MB a day), for three days.",
        writers: vec![Writer::Stream { every: 1, bytes: 256 * KB, series: ALL }],
        days: 3,
    }
}

fn five_minutes() -> Scenario {
    Scenario {
        what: "One writer, a file of 2 MB every five minutes (576 MB a day), for three days.",
        writers: vec![Writer::Stream { every: 5, bytes: 2 * MB, series: ALL }],
        days: 3,
    }
}

fn trickle() -> Scenario {
    Scenario {
        what: "A small table: a file of 40 KB every ten minutes (6 MB a day), for six days.",
        writers: vec![Writer::Stream { every: 10, bytes: 40 * KB, series: ALL }],
        days: 6,
    }
}

fn late() -> Scenario {
    Scenario {
        what: "A file of 1 MB every five minutes, and every twenty minutes 100 KB that come two days late, for six days.",
        writers: vec![
            Writer::Stream { every: 5, bytes: MB, series: ALL },
            Writer::Late { every: 20, bytes: 100 * KB, days_back: 2, series: ALL },
        ],
        days: 6,
    }
}

fn several() -> Scenario {
    let writer = |series| Writer::Stream { every: 5, bytes: MB, series };
    Scenario {
        what: "Four writers, each a quarter of the series, a file of 1 MB every five minutes each (1.1 GB a day), for three days.",
        writers: vec![writer((0, 15)), writer((16, 31)), writer((32, 47)), writer((48, 63))],
        days: 3,
    }
}

fn uneven() -> Scenario {
    Scenario {
        what: "Two writers of very different size: 4 MB every ten minutes and 20 KB every minute, for three days.",
        writers: vec![
            Writer::Stream { every: 10, bytes: 4 * MB, series: ALL },
            Writer::Stream { every: 1, bytes: 20 * KB, series: (0, 7) },
        ],
        days: 3,
    }
}

fn burst() -> Scenario {
    Scenario {
        what: "A file of 1 MB every fifteen minutes, and at noon of the second day two thousand files of 200 KB at once, for three days.",
        writers: vec![
            Writer::Stream { every: 15, bytes: MB, series: ALL },
            Writer::Burst { at: DAY + DAY / 2, files: 2000, bytes: 200 * KB },
        ],
        days: 3,
    }
}

fn ahead() -> Scenario {
    Scenario {
        what: "A file of 1 MB every five minutes, and a writer whose clock is a day ahead, 50 KB every half hour, for four days.",
        writers: vec![
            Writer::Stream { every: 5, bytes: MB, series: ALL },
            Writer::Ahead { every: 30, bytes: 50 * KB, minutes: DAY },
        ],
        days: 4,
    }
}

fn shown(name: &str, scenario: &Scenario) {
    golden(&format!("tests/simulation/golden/{name}.txt"), &scenario.picture());
}

#[test]
fn a_file_every_minute() {
    shown("a_file_every_minute", &minutes());
}

#[test]
fn a_file_every_five_minutes() {
    shown("a_file_every_five_minutes", &five_minutes());
}

#[test]
fn a_small_table() {
    shown("a_small_table", &trickle());
}

#[test]
fn late_data() {
    shown("late_data", &late());
}

#[test]
fn several_writers() {
    shown("several_writers", &several());
}

#[test]
fn writers_of_different_size() {
    shown("writers_of_different_size", &uneven());
}

#[test]
fn a_burst() {
    shown("a_burst", &burst());
}

#[test]
fn a_clock_that_runs_ahead() {
    shown("a_clock_that_runs_ahead", &ahead());
}

/// Specification, issue #68: at most log4(target / 64 KB) + 1 times by the routine rules, and once when the partition is cold.
#[test]
fn no_byte_is_written_again_more_often_than_promised() {
    let routine = ((128 * MB / (64 * KB)) as f64).log(4.0) + 1.0;
    let mut amplifications = Vec::new();
    for scenario in [minutes(), five_minutes(), trickle(), several(), uneven(), burst(), ahead()] {
        let world = scenario.play(Policy::Firn, |_, _| {});
        let (most_routine, most_cold) = world.most_again;
        assert!(f64::from(most_routine) <= routine, "{}: {most_routine} times", scenario.what);
        assert!(most_cold <= 1, "{}: {most_cold} cold rewrites", scenario.what);
        amplifications.push(world.amplification());
    }
    // With late data a closed day is written again each time that it has grown by a quarter.
    let world = late().play(Policy::Firn, |_, _| {});
    assert!(f64::from(world.most_again.0) <= routine + 1.0, "{:?}", world.most_again);
    assert!(world.most_again.1 <= 3, "{:?}", world.most_again);
    amplifications.push(world.amplification());
    let mean = amplifications.iter().sum::<f64>() / amplifications.len() as f64;
    println!("written again for each byte that came, mean of all scenarios: {mean:.2} ({amplifications:.2?})");
    assert!(mean < 4.0, "{mean}");
}

/// A day that is over has as few files as it can have; above the budget of a commit (several writers) one more, and some while late data
/// waits.
#[test]
fn closed_days_are_finished() {
    for (scenario, more) in [(minutes(), 0), (five_minutes(), 0), (several(), 1), (uneven(), 0), (late(), 9)] {
        let world: World = scenario.play(Policy::Firn, |_, _| {});
        for (day, files) in world.days.iter().filter(|(day, _)| **day < scenario.days - 1) {
            let ideal = ideal(files.iter().map(|file| file.bytes).sum());
            assert!(
                files.len() <= ideal + more,
                "{}: day {day} has {} files, {ideal} would do",
                scenario.what,
                files.len()
            );
        }
    }
}

/// `docs/planning.md` shows the same tables.
#[test]
fn the_documentation_shows_these_numbers() {
    let mut text = String::from(
        "# Firn's rules beside simpler ones\n\n\
         Days of writers played against the planner with fake files and a virtual clock (`shared/plan/tests/simulation`, which writes this file). \
         \"Depth\" is the most files that a reader has to merge to find the last write of a key; \"written again\" counts the bytes that merges wrote for \
         each byte that writers wrote. All with the default sizes (target 128 MB, small below 32 MB); merges are instant. The curves count the files of the table, on a logarithmic scale. \"Threshold only\" merges the small files \
         of a day when they are more than a hundred; Spark's default bin-pack and the full rewrite run every night at two.\n",
    );
    let named = [
        ("a_file_every_minute", minutes()),
        ("a_file_every_five_minutes", five_minutes()),
        ("a_small_table", trickle()),
        ("late_data", late()),
        ("several_writers", several()),
        ("writers_of_different_size", uneven()),
        ("a_burst", burst()),
        ("a_clock_that_runs_ahead", ahead()),
    ];
    for (name, scenario) in named {
        golden(&format!("../../docs/planning/{name}.svg"), &curves(&scenario));
        let (what, table) = (scenario.what.trim_end_matches('.'), scenario.table());
        write!(text, "\n## {what}\n\n![Files in the table over time](planning/{name}.svg)\n\n{table}").unwrap();
    }
    golden("../../docs/planning.md", &text);
}
