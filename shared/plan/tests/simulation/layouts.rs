//! Single decisions as pictures: the files of a day over the series they hold, before and after.

use std::fmt::Write;

use firn_model::Rule;
use firn_plan::{PartitionDecision, PartitionFiles, TableRules, plan_partition};

use crate::golden;
use crate::picture::layout;
use crate::policies::defaults;
use crate::world::{DAY, KB, MB, SimFile, World, row_order};
use crate::writers::ALL;

/// A file of the first day, written by another program or (proved) by Firn.
fn file(bytes: u64, series: (u16, u16), proved: bool) -> SimFile {
    SimFile { path: String::new(), day: 0, number: 0, bytes, series, minutes: (0, DAY - 1), proved, again: (0, 0) }
}

/// A commit a file, in this order; then data of the next day, if the first one is to be cold.
fn world(commits: Vec<Vec<SimFile>>, is_cold: bool) -> World {
    let mut world = World::default();
    world.now = 2 * DAY;
    for commit in commits {
        world.commit(commit);
    }
    if is_cold {
        world.commit(vec![SimFile { day: 1, minutes: (DAY, DAY + 61), ..file(MB, ALL, false) }]);
    }
    world
}

fn shown(name: &str, what: &str, mut world: World, rule: Rule) {
    let order = row_order();
    let facts = world.facts(0);
    let table = TableRules { format_version: 2, enabled: true, order: &order };
    let partition = PartitionFiles { files: &facts, deletes: &[], time: world.time(0) };
    let decision = plan_partition(partition, &table, &defaults(), rule);
    let mut text = format!("{what}\n\nBefore:\n{}\nRule {rule}: {decision}\n", layout(&world.days[&0]));
    if let PartitionDecision::Selected { groups, .. } = decision {
        for group in groups {
            let paths: Vec<String> = group.files().iter().map(|file| file.path.clone()).collect();
            world.merge(0, &paths, &defaults(), group.target_bytes(), rule);
        }
        write!(text, "\nAfter:\n{}", layout(&world.days[&0])).unwrap();
    }
    golden(&format!("tests/simulation/golden/{name}.txt"), &text);
}

fn one_by_one(files: Vec<SimFile>) -> Vec<Vec<SimFile>> {
    files.into_iter().map(|file| vec![file]).collect()
}

#[test]
fn eight_of_a_size() {
    let files = vec![file(MB, ALL, false); 8];
    shown(
        "eight_of_a_size",
        "Eight files of one size are merged at the next tick.",
        world(one_by_one(files), false),
        Rule::Tier,
    );
}

#[test]
fn an_older_large_file_between_small_ones() {
    let mut files = vec![file(20 * MB, ALL, false); 4];
    files.insert(2, file(200 * MB, ALL, false));
    shown(
        "an_older_large_file_between_small_ones",
        "The last write of a key wins, so files are merged only with their neighbours: what came before the large file must not \
         come after it.",
        world(one_by_one(files), false),
        Rule::Schedule,
    );
}

/// A closed day of three files by Firn, written by one commit.
fn closed() -> Vec<SimFile> {
    vec![file(128 * MB, (0, 20), true), file(128 * MB, (21, 41), true), file(110 * MB, (42, 63), true)]
}

#[test]
fn late_data_of_one_series() {
    let commits = vec![closed(), vec![file(40 * MB, (24, 25), true)]];
    shown(
        "late_data_of_one_series",
        "40 MB of two series came late. Only the large file that holds these series is written again.",
        world(commits, true),
        Rule::Cold,
    );
}

#[test]
fn a_little_late_data() {
    let commits = vec![closed(), vec![file(2 * MB, (24, 25), true)], vec![file(MB, (3, 3), true)]];
    shown(
        "a_little_late_data",
        "A few late rows are not worth writing a closed day again. They wait until they are a quarter of what they overlap.",
        world(commits, true),
        Rule::Cold,
    );
}

#[test]
fn a_day_that_is_over() {
    let files = vec![
        file(60 * MB, ALL, true),
        file(20 * MB, ALL, true),
        file(5 * MB, ALL, true),
        file(2 * MB, ALL, false),
        file(300 * KB, (0, 31), false),
        file(300 * KB, (32, 63), false),
    ];
    shown(
        "a_day_that_is_over",
        "Newer data is an hour past the end of the day: it becomes one sorted run, once.",
        world(one_by_one(files), true),
        Rule::Cold,
    );
}

#[test]
fn large_files_that_overlap() {
    let files = vec![file(130 * MB, ALL, true), file(130 * MB, (0, 40), true), file(130 * MB, (50, 63), true)];
    shown(
        "large_files_that_overlap",
        "No file is small, but a reader has to merge two of them. On a day that is over they become one run.",
        world(one_by_one(files), true),
        Rule::Cold,
    );
}

#[test]
fn a_merge_completes_the_next_size() {
    let mut files = vec![file(2 * MB, ALL, true); 7];
    files.extend(vec![file(256 * KB, ALL, false); 8]);
    shown(
        "a_merge_completes_the_next_size",
        "Eight small files would become the eighth of 2 MB. All of them are one merge, so no byte is written twice.",
        world(one_by_one(files), false),
        Rule::Tier,
    );
}
