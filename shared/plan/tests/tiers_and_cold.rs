//! Rules tier, cold and full by value: which neighbours are merged, what a cold partition leaves alone, and how often a byte is
//! written again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use firn_model::{LeftReason, Moment, RowOrder, Rule, SelectReason};
use firn_plan::{
    PartitionDecision, PartitionFiles, PartitionTime, PlanSettings, TableRules, plan_by_strongest, plan_partition,
    tick_rules,
};

const KB: u64 = 1 << 10;
const K: (u8, u8) = (1, 1);
/// The partition ended at 0, and the table is an hour past it.
const PAST: PartitionTime = PartitionTime { end: Some(Moment(0)), highest: Some(Moment(3_600_000_000)), now: None };

fn settings() -> PlanSettings {
    PlanSettings::default().with_times(Some(8), Some(3_600_000_000))
}

fn decide(files: &[File], order: &RowOrder, rule: Rule) -> PartitionDecision {
    let table = TableRules { format_version: 2, enabled: true, order };
    let files = facts(files);
    plan_partition(PartitionFiles { files: &files, deletes: &[], time: PAST }, &table, &settings(), rule)
}

/// Paths of the groups, each in commit order, or the reason.
fn plan(files: &[File], order: &RowOrder, rule: Rule) -> Result<Vec<String>, LeftReason> {
    match decide(files, order, rule) {
        PartitionDecision::Left(reason) => Err(reason),
        PartitionDecision::Selected { groups, .. } => {
            let paths = |group: &firn_plan::Group| -> Vec<String> {
                group.files().iter().map(|file| file.path.clone()).collect()
            };
            Ok(groups.iter().map(|group| paths(group).join(" ")).collect())
        }
    }
}

/// Files of these sizes, one a commit, named a, b, c and so on; all with a write of one key.
fn commits(sizes: &[u64]) -> Vec<File> {
    let file = |(at, bytes): (usize, &u64)| {
        let name = char::from(b'a' + u8::try_from(at).unwrap());
        File::new(&name.to_string(), at as i64 + 1, *bytes, &[K])
    };
    sizes.iter().enumerate().map(file).collect()
}

#[test]
fn eight_neighbours_of_one_size_are_merged_and_seven_wait() {
    for order in [series_order(true), series_order(false), sort_columns_order(), RowOrder::default()] {
        assert_eq!(
            plan(&commits(&[MB; 7]), &order, Rule::Tier),
            Err(LeftReason::FewOfOneSize { most: 7, min_files: 8 })
        );
        assert_eq!(plan(&commits(&[MB; 8]), &order, Rule::Tier), Ok(vec!["a b c d e f g h".into()]));
    }
    let PartitionDecision::Selected { reason, .. } = decide(&commits(&[MB; 9]), &series_order(true), Rule::Tier) else {
        panic!()
    };
    assert_eq!(reason, SelectReason::Tier { files: 9, tier: 2, min_files: 8 });
}

#[test]
fn a_file_of_a_higher_tier_parts_neighbours_where_commits_have_an_order() {
    let sizes = [[MB; 4].as_slice(), &[5 * MB], &[MB; 4]].concat();
    let few = Err(LeftReason::FewOfOneSize { most: 4, min_files: 8 });
    assert_eq!(plan(&commits(&sizes), &series_order(true), Rule::Tier), few);
    // Where they have none, all files of a size are neighbours.
    assert_eq!(plan(&commits(&sizes), &sort_columns_order(), Rule::Tier), Ok(vec!["a b c d f g h i".into()]));
}

#[test]
fn smaller_files_between_neighbours_go_along() {
    // Sizes on both sides of a border: without the smaller ones no eight would ever be neighbours.
    let sizes: Vec<u64> = (0..16).map(|at| if at % 2 == 0 { 260 * KB } else { 250 * KB }).collect();
    assert_eq!(
        plan(&commits(&sizes), &series_order(true), Rule::Tier),
        Ok(vec!["a b c d e f g h i j k l m n o p".into()])
    );
}

#[test]
fn what_a_merge_becomes_completes_the_next_tier_at_once() {
    // Seven of 2 MB, and eight of 256 KB that become the eighth.
    let sizes = [[2 * MB; 7].as_slice(), &[256 * KB; 8]].concat();
    for order in [series_order(true), sort_columns_order()] {
        let groups = plan(&commits(&sizes), &order, Rule::Tier).unwrap();
        assert_eq!(groups, ["a b c d e f g h i j k l m n o"]);
    }
}

#[test]
fn large_files_are_in_no_tier_nor_is_what_their_commit_left_over() {
    let large = Err(LeftReason::FewOfOneSize { most: 0, min_files: 8 });
    assert_eq!(plan(&commits(&[96 * MB; 20]), &series_order(true), Rule::Tier), large);
    // Each commit rolled a file of 128 MB and a rest of 50 MB.
    let mut files = Vec::new();
    for commit in 1..=8 {
        for (name, bytes) in [("a", 128 * MB), ("b", 50 * MB)] {
            let file = File::new(&format!("{commit}{name}"), commit, bytes, &[K]);
            files.push(File { position: Some(commit as u64), ..file });
        }
    }
    assert!(plan(&files, &sort_columns_order(), Rule::Tier).is_err());
    // A small rest is worth a merge.
    files.iter_mut().filter(|file| file.bytes < 96 * MB).for_each(|file| file.bytes = 30 * MB);
    assert_eq!(plan(&files, &sort_columns_order(), Rule::Tier).unwrap().len(), 1);
}

#[test]
fn without_a_setting_there_are_no_tiers() {
    let order = series_order(true);
    let table = TableRules { format_version: 2, enabled: true, order: &order };
    let files = facts(&commits(&[MB; 20]));
    let partition = PartitionFiles { files: &files, deletes: &[], time: PAST };
    let off = PlanSettings { compact_min_files: None, ..settings() };
    assert_eq!(plan_partition(partition, &table, &off, Rule::Tier), PartitionDecision::Left(LeftReason::NoTiers));
}

#[test]
fn a_cold_partition_becomes_one_run_once() {
    let mut files = commits(&[20 * MB, 5 * MB, 4 * MB, MB]);
    let order = series_order(true);
    let decision = decide(&files, &order, Rule::Cold);
    let PartitionDecision::Selected { reason, groups } = decision else { panic!("{decision}") };
    assert_eq!(reason, SelectReason::Cold { files: 4, end: Moment(0) });
    groups.iter().for_each(|group| merge(&mut files, group, &order, &settings(), 1.0));
    assert_eq!(plan(&files, &order, Rule::Cold), Err(LeftReason::OneSortedRun { files: 1 }));
    // Not cold yet: the same files are left.
    let table = TableRules { format_version: 2, enabled: true, order: &order };
    let warm = PartitionTime { highest: Some(Moment(3_599_999_999)), ..PAST };
    let facts = facts(&commits(&[20 * MB, MB]));
    let partition = PartitionFiles { files: &facts, deletes: &[], time: warm };
    let not_cold = LeftReason::NotCold { cold_at: Moment(3_600_000_000), highest: warm.highest };
    assert_eq!(plan_partition(partition, &table, &settings(), Rule::Cold), PartitionDecision::Left(not_cold));
}

/// A closed day of three files of 128 MB, one after the other, and what came late.
/// A closed day at the scheduled time: one merge makes it one sorted run, and no rule wants anything of it afterwards.
#[test]
fn the_schedule_writes_no_byte_that_cold_would_write_again() {
    for order in [series_order(true), series_order(false), sort_columns_order()] {
        let table = TableRules { format_version: 2, enabled: true, order: &order };
        let ask = |files: &[File], rules: &[Rule]| {
            let files = facts(files);
            let partition = PartitionFiles { files: &files, deletes: &[], time: PAST };
            plan_by_strongest(partition, &table, &settings(), rules)
        };
        // Two small files beside a larger one that they overlap: the schedule alone would merge the two, and cold all three afterwards.
        let mut files = commits(&[20 * MB, 20 * MB, 60 * MB]);
        assert_eq!(plan(&files, &order, Rule::Schedule), Ok(vec!["a b".into()]));
        let (rule, decision) = ask(&files, tick_rules(true));
        let PartitionDecision::Selected { groups, .. } = decision else { panic!("{decision:?}") };
        assert_eq!((rule, groups.len(), groups[0].files().len()), (Rule::Cold, 1, 3));
        groups.iter().for_each(|group| merge(&mut files, group, &order, &settings(), 1.0));
        for rules in [tick_rules(true), tick_rules(false), &[Rule::Full], &[Rule::Manual]] {
            assert!(matches!(ask(&files, rules).1, PartitionDecision::Left(_)), "{rules:?}");
        }
    }
}

fn day_with(late: &[File]) -> Vec<File> {
    let body = [("A", 0), ("B", 1), ("C", 2)].map(|(path, series)| {
        let keys = [(series, 0), (series, 9)];
        File { position: Some(5), ..File::new(path, 5, 128 * MB, &keys) }.proved(Proof::Range)
    });
    [body.as_slice(), late].concat()
}

#[test]
fn only_the_large_files_that_a_late_one_overlaps_are_written_again() {
    let order = series_order(true);
    let late = File::new("late", 6, 40 * MB, &[(1, 3), (1, 4)]).proved(Proof::Range);
    for rule in [Rule::Cold, Rule::Full] {
        assert_eq!(plan(&day_with(std::slice::from_ref(&late)), &order, rule), Ok(vec!["B late".into()]), "{rule}");
    }
    // What lies between two large files overlaps none of them, but would be a small file in the middle of the run.
    let between = File::new("late", 6, 40 * MB, &[(0, 10), (0, 11)]).proved(Proof::Range);
    let groups = plan(&day_with(&[between]), &order, Rule::Full).unwrap();
    assert!(groups == ["A late"] || groups == ["B late"], "{groups:?}");
    // After the last one it is the last file of the run, which may be small.
    let after = File::new("late", 6, 40 * MB, &[(3, 0), (3, 1)]).proved(Proof::Range);
    assert_eq!(plan(&day_with(&[after]), &order, Rule::Cold), Err(LeftReason::OneSortedRun { files: 4 }));
    // What is not proved may share a key with all of them.
    let unproved = File::new("late", 6, 100 * MB, &[(1, 3)]);
    assert_eq!(plan(&day_with(&[unproved]), &order, Rule::Cold), Ok(vec!["A B C late".into()]));
}

#[test]
fn files_in_the_middle_of_a_run_are_written_in_equal_sizes() {
    let order = series_order(true);
    let late = File::new("late", 6, 60 * MB, &[(1, 3), (1, 4)]).proved(Proof::Range);
    let mut files = day_with(&[late]);
    let PartitionDecision::Selected { groups, .. } = decide(&files, &order, Rule::Cold) else { panic!() };
    // 188 MB by the target of 128 would leave 60 MB between two large files.
    assert_eq!(groups[0].target_bytes(), Some(188 * MB));
    merge(&mut files, &groups[0], &order, &settings(), 1.0);
    assert_eq!(plan(&files, &order, Rule::Cold), Err(LeftReason::OneSortedRun { files: 3 }));
}

#[test]
fn late_data_waits_until_it_is_a_quarter_of_what_it_overlaps() {
    let order = series_order(true);
    let late = |mb: u64| File::new("late", 6, mb * MB, &[(1, 3), (1, 4)]).proved(Proof::Range);
    let waits = LeftReason::LateData { files: 1, bytes: 31 * MB, beside: 128 * MB };
    assert_eq!(plan(&day_with(&[late(31)]), &order, Rule::Cold), Err(waits));
    assert_eq!(plan(&day_with(&[late(32)]), &order, Rule::Cold), Ok(vec!["B late".into()]));
    // By hand it does not wait.
    assert_eq!(plan(&day_with(&[late(31)]), &order, Rule::Full), Ok(vec!["B late".into()]));
    // The same beside one file that never reached the target.
    let day = |late: u64| commits(&[20 * MB, late]);
    assert!(matches!(plan(&day(MB), &order, Rule::Cold), Err(LeftReason::LateData { .. })));
    assert_eq!(plan(&day(5 * MB), &order, Rule::Cold), Ok(vec!["a b".into()]));
    // Files of the lowest tier cost nothing to write again.
    assert_eq!(plan(&commits(&[200 * KB, KB]), &order, Rule::Cold), Ok(vec!["a b".into()]));
    // Late files are merged with each other meanwhile.
    let trickle: Vec<File> =
        (0..8).map(|at| File::new(&format!("l{at}"), 6 + at, MB, &[(1, 3)]).proved(Proof::Range)).collect();
    assert_eq!(plan(&day_with(&trickle), &order, Rule::Tier), Ok(vec!["l0 l1 l2 l3 l4 l5 l6 l7".into()]));
}

#[test]
fn large_files_that_overlap_are_no_closed_day() {
    // Specification, issue #12: files that overlap are merged, not only small ones.
    let order = series_order(true);
    let file = |path: &str, number| File::new(path, number, 130 * MB, &[(0, 0), (3, 9)]).proved(Proof::Range);
    let late = File::new("late", 9, MB, &[(1, 3), (1, 4)]).proved(Proof::Range);
    assert_eq!(plan(&[file("a", 1), file("b", 2), late], &order, Rule::Cold), Ok(vec!["a b late".into()]));
}

#[test]
fn without_an_order_a_cold_partition_keeps_at_most_one_file_below_three_quarters() {
    let order = RowOrder::default();
    let sizes = [128 * MB, 20 * MB, 128 * MB, 30 * MB];
    assert_eq!(plan(&commits(&sizes), &order, Rule::Cold), Ok(vec!["b d".into()]));
    assert_eq!(plan(&commits(&sizes[..3]), &order, Rule::Cold), Err(LeftReason::OneSortedRun { files: 3 }));
    // Two files of 90 MB would become two files again.
    let again = LeftReason::NoFewerFiles { files: 2 };
    assert_eq!(plan(&commits(&[90 * MB, 90 * MB]), &order, Rule::Cold), Err(again));
}

#[test]
fn a_file_that_outweighs_the_rest_of_a_backlog_is_not_written_again() {
    let order = RowOrder::default();
    let with = |first: u64| commits(&[&[first], [100 * KB; 20].as_slice()].concat());
    let table = TableRules { format_version: 2, enabled: true, order: &order };
    let few = PlanSettings { backlog_file_threshold: 20, ..PlanSettings::default() };
    let first_group = |first: u64| {
        let files = facts(&with(first));
        let partition = PartitionFiles { files: &files, deletes: &[], time: PartitionTime::default() };
        match plan_partition(partition, &table, &few, Rule::Backlog) {
            PartitionDecision::Selected { groups, .. } => groups[0].files()[0].path.clone(),
            left => panic!("{left}"),
        }
    };
    assert_eq!(first_group(5 * MB), "b");
    assert_eq!(first_group(MB), "a", "as much has come after it");
    assert_eq!(first_group(900 * KB), "a");
}

/// Every file of the world by the number of times that its bytes were written again.
#[test]
fn a_byte_is_written_again_at_most_once_a_tier() {
    // 2,000 commits of 64 KB: log4(128 MB / 64 KB) + 1 = 6.5.
    let order = series_order(true);
    let mut files: Vec<File> = Vec::new();
    let mut times: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
    let (mut written, mut most_files) = (0, 0);
    for commit in 1..=2000 {
        let path = format!("in-{commit:04}");
        files.push(File { position: Some(commit), ..File::new(&path, commit as i64, 64 * KB, &[K]) });
        times.insert(path, 0);
        let PartitionDecision::Selected { groups, .. } = decide(&files, &order, Rule::Tier) else { continue };
        for group in groups {
            written += group.bytes();
            let again = group.files().iter().map(|file| times[&file.path]).max().unwrap() + 1;
            let before: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
            merge(&mut files, &group, &order, &settings(), 1.0);
            for file in files.iter_mut().filter(|file| !before.contains(&file.path)) {
                file.path = format!("out-{commit:04}");
                times.insert(file.path.clone(), again);
            }
        }
        assert!(matches!(decide(&files, &order, Rule::Tier), PartitionDecision::Left(_)), "after commit {commit}");
        most_files = most_files.max(files.len());
    }
    assert!(times.values().all(|again| *again <= 6), "{:?}", times.values().max());
    let mean = written as f64 / (2000.0 * 64.0 * KB as f64);
    assert!((2.0..4.0).contains(&mean), "{mean}");
    assert!(most_files < 40, "{most_files}");
}
