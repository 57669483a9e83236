//! Known cases: borders, reasons, commit order, and faults of other planners.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use firn_model::{
    DeleteFacts, DeleteKind, FileFacts, FileFormat, LeftReason, PartitionKey, RowOrder, Rule, SelectReason,
};
use firn_plan::{
    PartitionDecision, PartitionFiles, PartitionTime, PlanSettings, TableRules, plan_by_strongest, plan_partition,
    tick_rules,
};

const K: (u8, u8) = (1, 1);
const OTHER: (u8, u8) = (2, 2);
const SIZE_RULES: [Rule; 3] = [Rule::Manual, Rule::Schedule, Rule::Backlog];

/// Every small-file rule selects two files of 20 MB with these.
fn eager() -> PlanSettings {
    PlanSettings { backlog_file_threshold: 1, ..PlanSettings::default() }
}

fn decide(files: &[FileFacts], order: &RowOrder, settings: &PlanSettings, rule: Rule) -> PartitionDecision {
    decide_in(2, files, order, settings, rule)
}

fn decide_in(
    format_version: u8,
    files: &[FileFacts],
    order: &RowOrder,
    settings: &PlanSettings,
    rule: Rule,
) -> PartitionDecision {
    let table = TableRules { format_version, enabled: true, order };
    plan_partition(PartitionFiles { files, deletes: &[], time: PartitionTime::default() }, &table, settings, rule)
}

/// Paths of the groups, or the reason.
fn paths(decision: PartitionDecision) -> Result<Vec<Vec<String>>, LeftReason> {
    match decision {
        PartitionDecision::Left(reason) => Err(reason),
        PartitionDecision::Selected { groups, .. } => {
            Ok(groups.iter().map(|group| group.files().iter().map(|file| file.path.clone()).collect()).collect())
        }
    }
}

fn plan(files: &[File], order: &RowOrder, rule: Rule) -> Result<Vec<Vec<String>>, LeftReason> {
    paths(decide(&facts(files), order, &eager(), rule))
}

fn blocked_by(path: &str) -> Result<Vec<Vec<String>>, LeftReason> {
    Err(LeftReason::CommitOrder { blocking: path.into() })
}

fn groups(expected: &[&[&str]]) -> Result<Vec<Vec<String>>, LeftReason> {
    Ok(expected.iter().map(|group| group.iter().map(|path| (*path).to_owned()).collect()).collect())
}

/// Small, large and small, all with a write of one key.
fn small_large_small() -> Vec<File> {
    vec![File::new("F1", 1, 20 * MB, &[K]), File::new("F2", 2, 200 * MB, &[K]), File::new("F3", 3, 20 * MB, &[K])]
}

#[test]
fn a_large_write_between_two_small_ones_keeps_them_apart() {
    for rule in SIZE_RULES {
        for order in [series_order(true), series_order(false)] {
            assert_eq!(plan(&small_large_small(), &order, rule), blocked_by("F2"), "{rule}");
            // Proofs that do not exclude the key change nothing.
            let proved: Vec<File> = small_large_small().into_iter().map(|file| file.proved(Proof::Bounds)).collect();
            assert_eq!(plan(&proved, &order, rule), blocked_by("F2"), "{rule}");
        }
        assert_eq!(plan(&small_large_small(), &sort_columns_order(), rule), groups(&[&["F1", "F3"]]), "{rule}");
        assert_eq!(plan(&small_large_small(), &RowOrder::default(), rule), groups(&[&["F1", "F3"]]), "{rule}");
    }
    // Full takes the large one too, so nothing lies between.
    for order in [series_order(true), series_order(false), sort_columns_order()] {
        assert_eq!(plan(&small_large_small(), &order, Rule::Full), groups(&[&["F1", "F2", "F3"]]));
    }
}

#[test]
fn a_large_file_that_provably_lacks_the_keys_is_passed() {
    for rule in SIZE_RULES {
        for proof in [Proof::Bounds, Proof::TimeBounds, Proof::Range] {
            let mut files: Vec<File> = small_large_small().into_iter().map(|file| file.proved(proof)).collect();
            files[1].rows = vec![(OTHER, 0)];
            assert_eq!(plan(&files, &series_order(true), rule), groups(&[&["F1", "F3"]]), "{rule} {proof:?}");
            // The last member need not be disjoint from what came before it.
            files[2].rows = vec![(OTHER, 0)];
            assert_eq!(plan(&files, &series_order(true), rule), groups(&[&["F1", "F3"]]), "{rule} {proof:?}");
            // The first member must be.
            files[0].rows = vec![(OTHER, 0)];
            assert_eq!(plan(&files, &series_order(true), rule), blocked_by("F2"), "{rule} {proof:?}");
        }
        // A proof of one side only proves nothing.
        let mut files = small_large_small();
        files[0].proof = Proof::Bounds;
        files[1].rows = vec![(OTHER, 0)];
        assert_eq!(plan(&files, &series_order(true), rule), blocked_by("F2"), "{rule}");
    }
}

#[test]
fn bounds_of_a_column_outside_the_key_prove_nothing() {
    // Rows of one key may differ in their insertion time.
    let mut order = series_order(true);
    order.columns.push(firn_model::OrderColumn { field_id: 3, name: "inserted".into(), ..order.columns[0].clone() });
    let mut files = facts(&small_large_small());
    for (at, file) in files.iter_mut().enumerate() {
        let bound = vec![at as u8];
        file.key_bounds = vec![None, None, Some(firn_model::Bounds { lower: bound.clone(), upper: bound })];
    }
    assert_eq!(paths(decide(&files, &order, &eager(), Rule::Manual)), blocked_by("F2"));
    // Nor do composite ranges over more than the key.
    order.dedup_columns = None;
    for (at, file) in files.iter_mut().enumerate() {
        let key = vec![1, 1, at as u8];
        file.key_range = Some(firn_model::KeyRange { first: key.clone(), last: key });
    }
    assert_eq!(paths(decide(&files, &order, &eager(), Rule::Manual)), blocked_by("F2"));
}

#[test]
fn files_of_one_sequence_number_stand_or_fall_together() {
    let files = [
        File::new("a", 1, 20 * MB, &[K]),
        File::new("b", 2, 20 * MB, &[K]),
        File::new("large", 2, 200 * MB, &[K]),
        File::new("c", 3, 20 * MB, &[K]),
        File::new("d", 4, 20 * MB, &[K]),
    ];
    assert_eq!(plan(&files, &series_order(true), Rule::Manual), groups(&[&["c", "d"]]));
    // Proved apart from the large file of its own number and from a, b can be taken.
    let mut proved = files.clone().map(|file| file.proved(Proof::Range));
    proved[2].rows = vec![(OTHER, 0)];
    assert_eq!(plan(&proved, &series_order(true), Rule::Manual), groups(&[&["a", "b", "c", "d"]]));
}

#[test]
fn a_file_dragged_out_drags_what_overlaps_it() {
    let mut files = [
        File::new("a", 1, 20 * MB, &[(0, 0), (0, 3)]),
        File::new("b", 1, 20 * MB, &[(0, 3), (0, 6)]),
        File::new("c", 1, 20 * MB, &[(0, 7)]),
        File::new("d", 1, 20 * MB, &[(0, 8)]),
        File::new("large", 1, 200 * MB, &[(0, 0)]),
    ]
    .map(|file| file.proved(Proof::Range));
    assert_eq!(plan(&files, &series_order(true), Rule::Manual), groups(&[&["c", "d"]]));
    files[4].rows = vec![((0, 7), 0)];
    assert_eq!(plan(&files, &series_order(true), Rule::Manual), groups(&[&["a", "b", "d"]]));
}

#[test]
fn thirty_two_megabytes_are_not_small() {
    let files = |bytes| [File::new("a", 1, bytes, &[K]), File::new("b", 2, bytes, &[K])];
    let order = RowOrder::default();
    assert_eq!(plan(&files(32 * MB), &order, Rule::Manual), Err(LeftReason::NothingToMerge { files: 2, small: 0 }));
    assert_eq!(plan(&files(32 * MB - 1), &order, Rule::Manual), groups(&[&["a", "b"]]));
}

#[test]
fn three_tiny_files_wait_and_a_hundred_and_one_are_a_backlog() {
    let files = |count: usize| -> Vec<File> {
        (0..count).map(|at| File::new(&format!("{at:03}"), at as i64 + 1, 10 << 10, &[K])).collect()
    };
    let settings = PlanSettings::default();
    let decide = |count, rule| decide(&facts(&files(count)), &series_order(true), &settings, rule);
    let would_be_small =
        LeftReason::MergedFileWouldBeSmall { small: 3, bytes: 30 << 10, min_bytes: 32 * MB, threshold: 100 };
    assert_eq!(decide(3, Rule::Manual), PartitionDecision::Left(would_be_small));
    assert_eq!(
        decide(100, Rule::Backlog),
        PartitionDecision::Left(LeftReason::BelowThreshold { small: 100, threshold: 100 })
    );
    let PartitionDecision::Selected { reason, groups } = decide(101, Rule::Backlog) else { panic!() };
    assert_eq!(reason, SelectReason::Backlog { small: 101, threshold: 100 });
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].files().len(), 101);
    assert_eq!(groups[0].data_sequence_number(), 101);
    // The nightly rule takes a hundred as well: fewer would wait.
    assert_eq!(paths(decide(100, Rule::Schedule)).unwrap()[0].len(), 100);
}

#[test]
fn what_forbids_a_merge_is_said_in_order() {
    let mut files = facts(&small_large_small());
    files[0].format = FileFormat::Orc;
    let delete = DeleteFacts {
        path: "d".into(),
        kind: DeleteKind::Equality,
        partition: std::sync::Arc::new(PartitionKey::unpartitioned(0)),
        data_sequence_number: 2,
        referenced_data_file: None,
        file_path_bounds: None,
        content_offset: None,
    };
    let order = series_order(true);
    let left = |enabled, format_version, files: &[FileFacts], delete: &DeleteFacts| {
        let deletes = std::slice::from_ref(delete);
        let table = TableRules { format_version, enabled, order: &order };
        match plan_partition(
            PartitionFiles { files, deletes, time: PartitionTime::default() },
            &table,
            &eager(),
            Rule::Full,
        ) {
            PartitionDecision::Left(reason) => reason,
            selected => panic!("{selected}"),
        }
    };
    assert_eq!(left(false, 3, &files, &delete), LeftReason::Disabled);
    assert_eq!(left(true, 3, &files, &delete), LeftReason::FormatVersion3);
    assert_eq!(left(true, 2, &files, &delete), LeftReason::NotParquet { path: "F1".into() });
    files[0].format = FileFormat::Parquet;
    assert_eq!(left(true, 2, &files, &delete), LeftReason::HasDeleteFiles { deletes: 1 });
    // An equality delete reaches only what was written before it.
    let older = DeleteFacts { data_sequence_number: 1, ..delete };
    let decision = plan_partition(
        PartitionFiles { files: &files, deletes: &[older], time: PartitionTime::default() },
        &TableRules { format_version: 2, enabled: true, order: &order },
        &eager(),
        Rule::Full,
    );
    assert_eq!(paths(decision), groups(&[&["F1", "F2", "F3"]]));
}

/// Files of a table that had version 1, and with it no sequence numbers.
fn number_0(path: &str, position: Option<u64>, bytes: u64) -> File {
    File { position, ..File::new(path, 0, bytes, &[K]) }
}

#[test]
fn version_1_has_no_commit_order_for_dedup() {
    let files = facts(&[number_0("b", Some(0), MB), number_0("a", Some(1), 40 * MB), number_0("c", Some(2), 31 * MB)]);
    for rule in [Rule::Manual, Rule::Full] {
        let decision = paths(decide_in(1, &files, &series_order(true), &eager(), rule));
        let Err(LeftReason::NoCommitOrder { detail }) = decision else { panic!("{decision:?}") };
        assert!(detail.contains("upgrade the table to version 2"), "{detail}");
    }
    // Without an order of commits to keep, version 1 is like any other.
    let decision = decide_in(1, &files, &sort_columns_order(), &eager(), Rule::Manual);
    assert_eq!(paths(decision), groups(&[&["b", "c"]]));
    // Series without dedup: all files count as written at once.
    let decision = decide_in(1, &files, &series_order(false), &eager(), Rule::Manual);
    assert_eq!(paths(decision), blocked_by("a"));
    let decision = decide_in(1, &files, &series_order(false), &eager(), Rule::Full);
    assert_eq!(paths(decision), groups(&[&["b", "a", "c"]]));
}

#[test]
fn files_from_before_the_upgrade_are_taken_all_or_none() {
    let order = series_order(true);
    let upgraded = |old: &[File]| {
        let new = [File::new("n1", 1, 20 * MB, &[K]), File::new("n2", 2, 20 * MB, &[K])];
        paths(decide(&facts(&[old, &new].concat()), &order, &eager(), Rule::Manual))
    };
    // In the order of their snapshots, not of their paths.
    let small = [number_0("b", Some(3), MB), number_0("c", Some(1), MB), number_0("a", Some(2), MB)];
    assert_eq!(upgraded(&small), groups(&[&["c", "a", "b", "n1", "n2"]]));
    // One that is large, or whose snapshot is gone, keeps all of them out.
    let large = [small[0].clone(), number_0("large", Some(4), 200 * MB)];
    assert_eq!(upgraded(&large), groups(&[&["n1", "n2"]]));
    let gone = [small[0].clone(), number_0("gone", None, MB)];
    assert_eq!(upgraded(&gone), groups(&[&["n1", "n2"]]));
    // Proofs do not help: a group has all of number 0 or none.
    let apart = [
        number_0("x", Some(1), 20 * MB).proved(Proof::Range),
        number_0("y", Some(2), 20 * MB).proved(Proof::Range),
        File { rows: vec![(OTHER, 0)], ..number_0("large", Some(3), 200 * MB).proved(Proof::Range) },
    ];
    assert_eq!(plan(&apart, &order, Rule::Manual), blocked_by("large"));
    // Alone, files without a known order are a reason of their own.
    let decision = paths(decide(&facts(&gone), &order, &eager(), Rule::Full));
    let Err(LeftReason::NoCommitOrder { detail }) = decision else { panic!("{decision:?}") };
    assert!(detail.starts_with("gone has sequence number 0"), "{detail}");
}

#[test]
fn commit_numbers_tell_commits_apart_where_sequence_numbers_do_not() {
    let files = [
        number_0("b", Some(3), MB),
        number_0("c", Some(1), MB),
        number_0("a", Some(3), MB),
        File::new("n", 4, 20 * MB, &[K]),
        File::new("m", 4, 20 * MB, &[K]),
    ];
    let decision = decide(&facts(&files), &series_order(true), &eager(), Rule::Manual);
    let PartitionDecision::Selected { groups, .. } = decision else { panic!("{decision}") };
    let paths: Vec<&str> = groups[0].files().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["c", "a", "b", "m", "n"]);
    assert_eq!(groups[0].commit_numbers(), [0, 1, 1, 2, 2]);
}

#[test]
fn one_sorted_run_is_left_by_full() {
    let run = |sizes: [u64; 3], keys: [&[(u8, u8)]; 3]| -> Vec<File> {
        let files = sizes.iter().zip(keys).zip(["c", "a", "b"]);
        files.map(|((mb, keys), path)| File::new(path, 5, mb * MB, keys).proved(Proof::Range)).collect()
    };
    let one_run = Err(LeftReason::OneSortedRun { files: 3 });
    let apart: [&[(u8, u8)]; 3] = [&[(0, 0), (0, 5)], &[(0, 6), (1, 0)], &[(1, 1), (1, 2)]];
    let touching: [&[(u8, u8)]; 3] = [&[(0, 0), (0, 6)], &[(0, 6), (1, 0)], &[(1, 1), (1, 2)]];
    let crossing: [&[(u8, u8)]; 3] = [&[(0, 0), (0, 7)], &[(0, 6), (1, 0)], &[(1, 1), (1, 2)]];
    // 96 MB are 75 % of the target; only the last file may be smaller.
    for dedup in [false, true] {
        let order = series_order(dedup);
        assert_eq!(plan(&run([128, 96, 1], apart), &order, Rule::Full), one_run);
        assert!(plan(&run([128, 95, 1], apart), &order, Rule::Full).is_ok());
        assert!(plan(&run([1, 128, 128], apart), &order, Rule::Full).is_ok());
        assert!(plan(&run([128, 128, 1], crossing), &order, Rule::Full).is_ok());
    }
    assert_eq!(plan(&run([128, 96, 1], touching), &series_order(false), Rule::Full), one_run);
    assert!(plan(&run([128, 96, 1], touching), &series_order(true), Rule::Full).is_ok());
    // Without an order only the sizes count.
    assert_eq!(plan(&run([128, 1, 96], crossing), &RowOrder::default(), Rule::Full), one_run);
    assert!(plan(&run([128, 1, 95], crossing), &RowOrder::default(), Rule::Full).is_ok());
}

#[test]
fn bounds_of_single_columns_prove_a_run_as_far_as_they_can() {
    let run = |keys: [&[(u8, u8)]; 2], descending: bool| {
        let files = keys.iter().zip(["a", "b"]).map(|(keys, path)| File::new(path, 1, 128 * MB, keys));
        let files: Vec<File> = files.map(|file| file.proved(Proof::Bounds)).collect();
        let mut order = series_order(true);
        order.columns.iter_mut().for_each(|column| column.descending = descending);
        plan(&files, &order, Rule::Full) == Err(LeftReason::OneSortedRun { files: 2 })
    };
    for descending in [false, true] {
        assert!(run([&[(0, 9)], &[(1, 0)]], descending), "the first column decides");
        assert!(run([&[(0, 0), (0, 4)], &[(0, 5), (0, 9)]], descending), "the second where the first stands still");
        assert!(!run([&[(0, 0), (0, 5)], &[(0, 5), (0, 9)]], descending), "dedup allows no shared key");
        assert!(!run([&[(0, 0), (1, 5)], &[(1, 2), (2, 0)]], descending), "overlap");
        // One run in truth, but the bounds of time say less than the composite range would.
        assert!(!run([&[(0, 7), (1, 1)], &[(1, 2), (2, 0)]], descending), "not proved");
    }
}

#[test]
fn known_endless_plans_end() {
    // (files of a partition, settings, how much a merge shrinks them)
    let settings = PlanSettings::default();
    let near_target = PlanSettings::from_megabytes(128, 125, 2, 1024);
    let same = |count: usize, mb: u64| -> Vec<File> {
        let file = |at: usize| File::new(&format!("{at:02}"), at as i64 + 1, mb * MB, &[(0, at as u8), (1, at as u8)]);
        (0..count).map(file).collect()
    };
    let cases = [
        ("minFileSizeMb near the target", same(3, 120), near_target, 1.0),
        ("a tail after one full file", same(5, 30), settings, 1.0),
        ("files that shrink tenfold", same(40, 31), settings, 0.1),
    ];
    for (name, mut files, settings, shrink) in cases {
        let order = series_order(true);
        let before = files.len();
        let first = decide(&facts(&files), &order, &settings, Rule::Manual);
        let PartitionDecision::Selected { groups, .. } = first else { panic!("{name}: {first}") };
        groups.iter().for_each(|group| merge(&mut files, group, &order, &settings, shrink));
        assert!(files.len() < before, "{name}");
        for _ in 0..2 {
            let again = decide(&facts(&files), &order, &settings, Rule::Manual);
            assert!(matches!(again, PartitionDecision::Left(_)), "{name}: {again}");
        }
    }
}

#[test]
fn a_run_is_cut_into_balanced_groups() {
    // 100 files of 25 MB: 2,500 MB make three groups of about 833 MB.
    let file = |at: i64| File::new(&format!("{at:03}"), at + 1, 25 * MB, &[K]);
    let files: Vec<File> = (0..100).map(file).collect();
    for order in [series_order(true), RowOrder::default()] {
        let decision = decide(&facts(&files), &order, &PlanSettings::default(), Rule::Manual);
        let PartitionDecision::Selected { groups, .. } = decision else { panic!("{decision}") };
        assert_eq!(groups.iter().map(|group| group.files().len()).sum::<usize>(), 100);
        assert_eq!(groups.len(), 3);
        for group in &groups {
            assert!((800 * MB..=875 * MB).contains(&group.bytes()), "{group}");
        }
    }
}

#[test]
fn a_cut_leaves_no_small_remainder() {
    // 1,040 MB: a group of 1,024 and one of 16 would leave a small file.
    let mut files: Vec<File> = (0..65).map(|at| File::new(&format!("{at:02}"), 1, 15 * MB, &[K])).collect();
    files.extend((0..65).map(|at| File::new(&format!("z{at:02}"), at + 2, MB, &[K])));
    let decision = decide(&facts(&files), &series_order(true), &PlanSettings::default(), Rule::Manual);
    let PartitionDecision::Selected { groups, .. } = decision else { panic!("{decision}") };
    assert_eq!(
        groups.iter().map(|group| (group.files().len(), group.bytes() / MB)).collect::<Vec<_>>(),
        [(65, 975), (65, 65)]
    );
    // The sequence number of 975 MB cannot be cut, and 30 MB alone would stay small.
    files.truncate(65 + 30);
    let more: Vec<File> = (0..20).map(|at| File::new(&format!("y{at:02}"), 1, MB, &[K])).collect();
    files.extend(more);
    let decision = decide(&facts(&files), &series_order(true), &PlanSettings::default(), Rule::Manual);
    let PartitionDecision::Selected { groups, .. } = decision else { panic!("{decision}") };
    assert_eq!(groups.iter().map(|group| group.bytes() / MB).collect::<Vec<_>>(), [1025]);
}

#[test]
fn one_sequence_number_above_the_budget_is_cut_only_where_no_key_is_shared() {
    let settings = PlanSettings { group_budget_bytes: 128 * MB, ..PlanSettings::default() };
    let file = |at: u8| File::new(&format!("{at:02}"), 1, 25 * MB, &[(0, at)]);
    let unproved: Vec<File> = (0..10).map(file).collect();
    let count =
        |files: &[File]| paths(decide(&facts(files), &series_order(true), &settings, Rule::Manual)).unwrap().len();
    assert_eq!(count(&unproved), 1);
    let proved: Vec<File> = unproved.iter().map(|file| file.clone().proved(Proof::Range)).collect();
    assert_eq!(count(&proved), 2);
    // Overlapping an earlier number's file, all of them would have to come after it together.
    let mut bound = proved.clone();
    bound.insert(0, File::new("first", 0, MB, &[(0, 0), (0, 9)]).proved(Proof::Range));
    bound[0].sequence_number = 1;
    bound.iter_mut().skip(1).for_each(|file| file.sequence_number = 2);
    assert_eq!(count(&bound), 1);
}

#[test]
fn full_above_the_budget_makes_one_run_of_each_group() {
    let settings = PlanSettings { group_budget_bytes: 256 * MB, ..PlanSettings::default() };
    let order = series_order(true);
    let file =
        |at: i64| File::new(&format!("{at:02}"), at + 1, 40 * MB, &[(0, at as u8), (1, at as u8), (2, 0), (3, 1)]);
    let mut files: Vec<File> = (0..12).map(file).collect();
    let PartitionDecision::Selected { groups, .. } = decide(&facts(&files), &order, &settings, Rule::Full) else {
        panic!()
    };
    assert_eq!(groups.iter().map(|group| group.files().len()).collect::<Vec<_>>(), [6, 6]);
    groups.iter().for_each(|group| merge(&mut files, group, &order, &settings, 1.0));
    assert_eq!(files.len(), 4);
    let again = decide(&facts(&files), &order, &settings, Rule::Full);
    let runs = LeftReason::SortedRuns { files: 4, runs: 2, budget_bytes: 256 * MB };
    assert_eq!(again, PartitionDecision::Left(runs));
    // Two files that fit no commit together stay as they are.
    let giants = [File::new("a", 1, 300 * MB, &[K]), File::new("b", 2, 300 * MB, &[K])];
    let left = LeftReason::AboveGroupBudget { files: 2, budget_bytes: 256 * MB };
    assert_eq!(decide(&facts(&giants), &order, &settings, Rule::Full), PartitionDecision::Left(left));
}

#[test]
fn a_decision_says_what_and_why() {
    let shown = |files: &[File], rule| decide(&facts(files), &series_order(true), &eager(), rule).to_string();
    assert_eq!(
        shown(&small_large_small(), Rule::Full),
        "selected: 3 files that are not one sorted run; merge 3 files, 240.0 MB, sequence numbers 1 to 3"
    );
    assert_eq!(
        shown(&small_large_small(), Rule::Manual),
        "left: commit order: no two small files are neighbours, F2 lies between them"
    );
    assert_eq!(shown(&small_large_small(), Rule::Cold), "left: compactColdAfter is off");
    assert_eq!(shown(&small_large_small(), Rule::Backfill), "left: rule backfill merges nothing");
    assert_eq!(shown(&[], Rule::Manual), "left: nothing to merge: 0 small of 0 files");
}

#[test]
fn the_strongest_rule_that_selects_wins() {
    let order = RowOrder::default();
    let table = TableRules { format_version: 2, enabled: true, order: &order };
    let ask = |files: &[File], schedule_due: bool| {
        let files = facts(files);
        let partition = PartitionFiles { files: &files, deletes: &[], time: PartitionTime::default() };
        plan_by_strongest(partition, &table, &PlanSettings::default(), tick_rules(schedule_due))
    };
    let many: Vec<File> = (0..101).map(|at| File::new(&format!("F{at:03}"), at + 1, MB, &[K])).collect();
    let (rule, decision) = ask(&many, true);
    assert_eq!((rule, paths(decision).unwrap().concat().len()), (Rule::Schedule, 101));
    let (rule, decision) = ask(&many, false);
    assert_eq!((rule, paths(decision).unwrap().concat().len()), (Rule::Backlog, 101));
    let two = [File::new("F1", 1, 20 * MB, &[K]), File::new("F2", 2, 20 * MB, &[K])];
    assert_eq!(ask(&two, true).0, Rule::Schedule);
    let (rule, decision) = ask(&two, false);
    assert_eq!((rule, paths(decision)), (Rule::Backlog, Err(LeftReason::BelowThreshold { small: 2, threshold: 100 })));
    let (rule, decision) = ask(&two[..1], true);
    let nothing = LeftReason::NothingToMerge { files: 1, small: 1 };
    assert_eq!((rule, paths(decision)), (Rule::Schedule, Err(nothing)));
}
