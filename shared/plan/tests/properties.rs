//! Any partition, against a naive oracle: which rows a reader sees, what the rules of design sections 3 and 5 say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashSet;

use common::*;
use firn_model::{FileFacts, LeftReason, Moment, RowOrder, Rule};
use firn_plan::{
    Group, PartitionDecision, PartitionFiles, PartitionTime, PlanSettings, TableRules, counts_of, needs_no_merge,
    plan_by_strongest, plan_partition, tick_rules, wants_key_ranges,
};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Dedup,
    Series,
    SortColumns,
    None,
}

impl Order {
    fn row_order(self) -> RowOrder {
        match self {
            Order::Dedup => series_order(true),
            Order::Series => series_order(false),
            Order::SortColumns => sort_columns_order(),
            Order::None => RowOrder::default(),
        }
    }
}

fn proof() -> impl Strategy<Value = Proof> {
    prop_oneof![1 => Just(Proof::Nothing), 1 => Just(Proof::Bounds), 1 => Just(Proof::TimeBounds), 3 => Just(Proof::Range)]
}

/// Sizes on both sides of every border: 1 MB to small, 32 MB, 75 % of the target, the target, and far above.
fn megabytes() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 1u64..32, 1 => Just(32u64), 1 => 33u64..96, 1 => 96u64..130, 1 => 130u64..400]
}

prop_compose! {
    /// A file whose keys lie in a box of series and times, the smaller the likelier a proof separates it from others.
    fn file(numbers: i64)(
        number in 0..numbers, mb in megabytes(), proof in proof(), path in any::<u8>(),
        corner in (0u8..4, 0u8..16), spread in (0u8..2, 0u8..4), seeds in prop::collection::vec((any::<u8>(), any::<u8>()), 2..6),
    ) -> File {
        let key = |(a, b): (u8, u8)| (corner.0 + a % (spread.0 + 1), corner.1 + b % (spread.1 + 1));
        let keys: Vec<(u8, u8)> = seeds.into_iter().map(key).collect();
        File::new(&format!("{path:02x}"), number, mb * MB, &keys).proved(proof)
    }
}

prop_compose! {
    /// A partition of a table of version 2. Number 0 stands for files from before an upgrade when `upgraded`.
    fn partition()(mut files in prop::collection::vec(file(10), 2..24), upgraded in any::<bool>(), gone in prop::option::weighted(0.1, 0usize..24)) -> Vec<File> {
        for (at, file) in files.iter_mut().enumerate() {
            file.path = format!("{}-{at}", file.path);
            file.sequence_number += i64::from(!upgraded);
            // Several files of number 0 may have come with one commit.
            file.position = Some(if file.sequence_number == 0 { (at / 2) as u64 } else { 100 + file.sequence_number as u64 });
            for (row, (_, value)) in file.rows.iter_mut().enumerate() {
                *value = (at * 10 + row) as u32;
            }
        }
        if let Some(file) = gone.and_then(|at| files.get_mut(at)) {
            file.position = None;
        }
        files
    }
}

fn settings() -> impl Strategy<Value = PlanSettings> {
    let budget = prop_oneof![Just(128u64), Just(256), Just(1024)];
    (budget, 1usize..12, 2usize..9, prop::option::of(Just(0)), prop::option::weighted(0.2, Just(512))).prop_map(
        |(budget, threshold, min_files, cold_after, max_target)| {
            let settings = PlanSettings::from_megabytes(128, 32, threshold, budget);
            settings.with_times(Some(min_files), cold_after).with_max_target(max_target)
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![3 => Just(Order::Dedup), 2 => Just(Order::Series), 1 => Just(Order::SortColumns), 1 => Just(Order::None)]
}

fn rule() -> impl Strategy<Value = Rule> {
    prop::sample::select(vec![Rule::Manual, Rule::Schedule, Rule::Backlog, Rule::Tier, Rule::Cold, Rule::Full])
}

/// Past its end, unless `compactColdAfter` is off.
const PAST: PartitionTime = PartitionTime { end: Some(Moment(0)), highest: Some(Moment(1)), now: None };

fn decide(files: &[File], order: &RowOrder, settings: &PlanSettings, rule: Rule) -> PartitionDecision {
    let table = TableRules { format_version: 2, enabled: true, order };
    plan_partition(PartitionFiles { files: &facts(files), deletes: &[], time: PAST }, &table, settings, rule)
}

fn groups_of(decision: PartitionDecision) -> Vec<Group> {
    match decision {
        PartitionDecision::Selected { groups, .. } => groups,
        PartitionDecision::Left(_) => Vec::new(),
    }
}

fn strongest(files: &[File], order: &RowOrder, settings: &PlanSettings, rules: &[Rule]) -> (Rule, PartitionDecision) {
    let table = TableRules { format_version: 2, enabled: true, order };
    let mut facts = facts(files);
    let counts = counts_of(&PartitionFiles { files: &facts, deletes: &[], time: PAST }, settings);
    // Ranges stand in footers, which are not read for every plan.
    if !wants_key_ranges(counts, settings, rules) {
        facts.iter_mut().for_each(|file| file.key_range = None);
    }
    plan_by_strongest(PartitionFiles { files: &facts, deletes: &[], time: PAST }, &table, settings, rules)
}

/// Whether two files are proved to share no key, said again in the plainest way.
fn proved_apart(a: &File, b: &File) -> bool {
    let box_of = |file: &File, column: fn(&Row) -> u8| {
        let values: Vec<u8> = file.rows.iter().map(column).collect();
        (*values.iter().min().unwrap(), *values.iter().max().unwrap())
    };
    let apart = |column: fn(&Row) -> u8| {
        let ((a_low, a_high), (b_low, b_high)) = (box_of(a, column), box_of(b, column));
        a_high < b_low || b_high < a_low
    };
    let keys = |file: &File| file.rows.iter().map(|row| row.0).collect::<Vec<_>>();
    let ranges_apart = || keys(a).iter().max() < keys(b).iter().min() || keys(b).iter().max() < keys(a).iter().min();
    match (a.proof, b.proof) {
        (Proof::Range, Proof::Range) => ranges_apart(),
        (Proof::Bounds, Proof::Bounds) => apart(|row| row.0.0) || apart(|row| row.0.1),
        (Proof::Bounds | Proof::TimeBounds, Proof::Bounds | Proof::TimeBounds) => apart(|row| row.0.1),
        _ => false,
    }
}

/// Design section 5, word for word.
fn breaks_commit_order(files: &[File], group: &Group) -> Option<String> {
    let is_member = |file: &File| group.files().iter().any(|member| member.path == file.path);
    let members: Vec<&File> = files.iter().filter(|file| is_member(file)).collect();
    let highest = members.iter().map(|file| file.sequence_number).max()?;
    for member in &members {
        for outside in files.iter().filter(|file| !is_member(file)) {
            let between = member.sequence_number <= outside.sequence_number && outside.sequence_number <= highest;
            if between && !proved_apart(member, outside) {
                return Some(format!("{} and {} in {group}", member.path, outside.path));
            }
        }
    }
    let number_0 = files.iter().filter(|file| file.sequence_number == 0);
    let taken = members.iter().filter(|file| file.sequence_number == 0).count();
    if taken != 0 && taken != number_0.count() {
        return Some(format!("a part of number 0 in {group}"));
    }
    let unknown = members.iter().any(|file| file.sequence_number == 0 && file.position.is_none());
    (taken > 1 && unknown).then(|| format!("number 0 without an order in {group}"))
}

/// Whether commit order and proofs allow to cut a group after its first `count` files, whose numbers then end there.
fn parts_at_numbers(group: &Group) -> Vec<(&[FileFacts], &[FileFacts])> {
    let files = group.files();
    let ends = (1..files.len()).filter(|at| files[at - 1].data_sequence_number < files[*at].data_sequence_number);
    ends.map(|at| files.split_at(at)).collect()
}

fn bytes(files: &[FileFacts]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

/// More on request: `FIRN_PLAN_CASES=100000 cargo test -p firn-plan`.
fn cases() -> u32 {
    std::env::var("FIRN_PLAN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_are_disjoint_and_hold_what_the_rule_takes(
        files in partition(), settings in settings(), order in order(), rule in rule()
    ) {
        let groups = groups_of(decide(&files, &order.row_order(), &settings, rule));
        let mut seen = HashSet::new();
        for group in &groups {
            prop_assert!(group.files().len() > 1, "{group}");
            for member in group.files() {
                prop_assert!(seen.insert(member.path.clone()), "{} twice", member.path);
                prop_assert!(files.iter().any(|file| file.facts() == *member));
                let limit = match rule {
                    Rule::Full | Rule::Cold => u64::MAX,
                    Rule::Tier => 96 * MB,
                    _ => 32 * MB,
                };
                prop_assert!(member.size < limit, "{} is too large", member.path);
            }
            let key = |file: &FileFacts| {
                let zero = file.data_sequence_number == 0;
                (file.data_sequence_number, file.added_position.filter(|_| zero), file.path.clone())
            };
            prop_assert!(group.files().is_sorted_by_key(key));
        }
    }

    #[test]
    fn the_same_facts_in_any_order_give_the_same_plan(
        (files, shuffled) in partition().prop_flat_map(|files| (Just(files.clone()), Just(files).prop_shuffle())),
        settings in settings(), order in order(), rule in rule()
    ) {
        let order = order.row_order();
        let paths = |files: &[File]| -> Vec<Vec<String>> {
            let groups = groups_of(decide(files, &order, &settings, rule));
            groups.iter().map(|group| group.files().iter().map(|file| file.path.clone()).collect()).collect()
        };
        prop_assert_eq!(paths(&files), paths(&shuffled));
    }

    #[test]
    fn every_group_keeps_the_commit_order(
        files in partition(), settings in settings(), order in prop_oneof![Just(Order::Dedup), Just(Order::Series)], rule in rule()
    ) {
        for group in groups_of(decide(&files, &order.row_order(), &settings, rule)) {
            prop_assert_eq!(breaks_commit_order(&files, &group), None);
            for half in group.halves(true).into_iter().flat_map(<[Group; 2]>::from) {
                prop_assert!(half.files().len() > 1, "{half}");
                prop_assert_eq!(breaks_commit_order(&files, &half), None);
            }
        }
    }

    #[test]
    fn merging_groups_in_any_order_changes_no_last_write(
        files in partition(), settings in settings(), order in prop_oneof![Just(Order::Dedup), Just(Order::Series)], rule in rule(),
        seed in any::<u64>()
    ) {
        let row_order = order.row_order();
        let mut groups = groups_of(decide(&files, &row_order, &settings, rule));
        // A file of number 0 whose commit is not known has no defined place, unless it stays where it is.
        prop_assume!(files.iter().filter(|file| file.sequence_number == 0).all(|file| file.position.is_some()));
        let expected = last_writes(&files);
        let mut live = files.clone();
        let mut step = seed;
        while !groups.is_empty() {
            let group = groups.swap_remove(step as usize % groups.len());
            step = step.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            merge(&mut live, &group, &row_order, &settings, 1.0);
            prop_assert_eq!(&last_writes(&live), &expected, "after {}", group);
        }
        if order == Order::Series {
            let values = |files: &[File]| -> HashSet<u32> { files.iter().flat_map(|file| &file.rows).map(|row| row.1).collect() };
            prop_assert_eq!(values(&live), values(&files));
        }
    }

    #[test]
    fn groups_fit_the_budget_unless_no_cut_is_allowed(
        files in partition(), settings in settings(), order in order(), rule in rule()
    ) {
        let row_order = order.row_order();
        let sorts = matches!(rule, Rule::Full | Rule::Cold);
        let floor = if rule == Rule::Tier { 96 * MB } else { 40 * MB };
        for group in groups_of(decide(&files, &row_order, &settings, rule)) {
            if group.bytes() <= settings.group_budget_bytes + floor {
                continue;
            }
            let cuts = if row_order.keeps_commit_order {
                parts_at_numbers(&group)
            } else {
                (1..group.files().len()).map(|at| group.files().split_at(at)).collect()
            };
            for (left, right) in cuts {
                // Pieces of a 64th of the budget are not looked at one by one.
                let is_poor = |part: &[FileFacts]| {
                    !sorts && (part.len() < 2 || bytes(part) < floor + settings.group_budget_bytes / 64)
                };
                prop_assert!(is_poor(left) || is_poor(right), "{} could be cut", group);
            }
        }
    }

    #[test]
    fn planned_again_nothing_is_selected(
        files in partition(), settings in settings(), order in order(),
        rule in prop::sample::select(vec![Rule::Manual, Rule::Schedule, Rule::Backlog, Rule::Tier])
    ) {
        let order = order.row_order();
        let mut live = files.clone();
        let groups = groups_of(decide(&live, &order, &settings, rule));
        for group in &groups {
            merge_proving_nothing_new(&mut live, group, &order, &settings);
        }
        prop_assert!(groups.is_empty() || live.len() < files.len());
        // Seldom a merge frees files that it stood between: they wait for the next plan, and nothing that was written is written again.
        let again = decide(&live, &order, &settings, rule);
        let said = format!("{} then {again}", decide(&files, &order, &settings, rule));
        for group in groups_of(again) {
            prop_assert!(group.files().iter().all(|file| !file.path.contains("out")), "{said}");
            merge_proving_nothing_new(&mut live, &group, &order, &settings);
        }
        let at_last = decide(&live, &order, &settings, rule);
        prop_assert!(matches!(at_last, PartitionDecision::Left(_)), "{said} then {at_last}");
    }

    #[test]
    fn full_and_cold_end_in_sorted_runs(
        files in partition(), settings in settings(), order in order(), rule in prop::sample::select(vec![Rule::Full, Rule::Cold])
    ) {
        let settings = PlanSettings { cold_after: Some(0), ..settings };
        let order = order.row_order();
        let mut live = files;
        let mut rounds = 0;
        let left = loop {
            match decide(&live, &order, &settings, rule) {
                PartitionDecision::Left(reason) => break reason,
                PartitionDecision::Selected { groups, .. } => {
                    groups.iter().for_each(|group| merge(&mut live, group, &order, &settings, 1.0));
                }
            }
            rounds += 1;
            prop_assert!(rounds < 12, "never ends");
        };
        let ends = matches!(
            left,
            LeftReason::OneSortedRun { .. } | LeftReason::SortedRuns { .. } | LeftReason::AboveGroupBudget { .. }
                | LeftReason::NoCommitOrder { .. } | LeftReason::CommitOrder { .. } | LeftReason::LateData { .. }
                | LeftReason::NoFewerFiles { .. }
        );
        prop_assert!(ends, "{left}");
        let total: u64 = live.iter().map(|file| file.bytes).sum();
        let all_known = live.iter().all(|file| file.sequence_number > 0 || file.position.is_some());
        let waits = matches!(left, LeftReason::LateData { .. } | LeftReason::NoFewerFiles { .. });
        prop_assert!(rule == Rule::Cold || !waits, "{left}");
        if total <= settings.group_budget_bytes && all_known && !waits {
            prop_assert!(matches!(left, LeftReason::OneSortedRun { .. }), "{left}");
        }
    }

    #[test]
    fn files_that_shrink_or_grow_are_not_merged_for_ever(
        files in partition(), settings in settings(), order in order(), shrink in 0.02f64..1.3,
        rule in prop::sample::select(vec![Rule::Manual, Rule::Backlog, Rule::Tier])
    ) {
        let order = order.row_order();
        let mut live = files;
        for _ in 0..8 {
            let before = live.len();
            let groups = groups_of(decide(&live, &order, &settings, rule));
            if groups.is_empty() {
                return Ok(());
            }
            groups.iter().for_each(|group| merge(&mut live, group, &order, &settings, shrink));
            // Files that grow may become as many as were read.
            prop_assert!(live.len() < before || shrink > 1.0, "a merge that leaves as many files");
        }
        prop_assert!(false, "still selected after eight rounds");
    }

    #[test]
    fn ticks_without_new_data_come_to_an_end(
        files in partition(), settings in settings(), order in order(), scheduled in any::<bool>()
    ) {
        let order = order.row_order();
        let mut live = files;
        let mut said = Vec::new();
        // A rule may find work beside that of a stronger one, and what became larger may be a neighbour in a higher tier.
        for tick in 0..=tick_rules(true).len() {
            let (rule, decision) = strongest(&live, &order, &settings, tick_rules(scheduled && tick == 0));
            said.push(format!("{rule} {decision}"));
            let groups = groups_of(decision);
            if groups.is_empty() {
                return Ok(());
            }
            groups.iter().for_each(|group| merge(&mut live, group, &order, &settings, 1.0));
        }
        prop_assert!(false, "still selecting: {said:#?}");
    }

    #[test]
    fn groups_that_are_too_large_end_in_parts_that_are_not_written_again(
        files in partition(), settings in settings(), order in order(), most in 2usize..7,
        rule in prop::sample::select(vec![Rule::Full, Rule::Cold, Rule::Manual])
    ) {
        let order = order.row_order();
        let mut live = files;
        for _ in 0..20 {
            let mut waiting = groups_of(decide(&live, &order, &settings, rule));
            let mut merges = 0;
            while let Some(group) = waiting.pop() {
                if group.files().len() <= most {
                    merge(&mut live, &group, &order, &settings, 1.0);
                    merges += 1;
                } else if let Some((first, second)) = group.halves(order.keeps_commit_order) {
                    let is_work = |half: &Group| !needs_no_merge(half, &order, &settings, rule);
                    waiting.extend([first, second].into_iter().filter(is_work));
                }
            }
            if merges == 0 {
                return Ok(());
            }
        }
        prop_assert!(false, "still merging after twenty rounds");
    }
}
