use firn_table::BranchFacts;
use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

/// A snapshot that was made so many hours ago.
fn made(id: i64, parent: Option<i64>, hours_ago: i64) -> SnapshotFacts {
    SnapshotFacts { id, parent, timestamp_ms: now().timestamp_millis() - hours_ago * HOUR, sequence_number: id }
}

fn branch(name: &str, snapshot_id: i64) -> RefFacts {
    RefFacts { name: name.into(), snapshot_id, branch: Some(BranchFacts::default()), max_ref_age_ms: None }
}

fn tag(name: &str, snapshot_id: i64) -> RefFacts {
    RefFacts { branch: None, ..branch(name, snapshot_id) }
}

fn settings(properties: &[(&str, &str)]) -> ExpirySettings {
    try_settings(properties).unwrap()
}

fn try_settings(properties: &[(&str, &str)]) -> Result<ExpirySettings, BadSetting> {
    ExpirySettings::of(TimeDelta::hours(24), |key| {
        properties.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    })
}

fn line(hours: &[i64]) -> Vec<SnapshotFacts> {
    (1..).zip(hours).map(|(id, hours)| made(id, (id > 1).then(|| id - 1), *hours)).collect()
}

fn expired(snapshots: Vec<SnapshotFacts>, refs: Vec<RefFacts>, settings: &ExpirySettings) -> Vec<i64> {
    let plan = decide_expiry(&History { snapshots, refs }, settings, now()).unwrap();
    plan.expired().collect()
}

/// K24: snapshots that tags and other branches hold.
#[test]
fn tags_and_heads_of_other_branches_stay() {
    let mut b = branch("b", 3);
    b.branch = Some(BranchFacts { min_snapshots_to_keep: Some(2), max_snapshot_age_ms: None });
    let history = History { snapshots: line(&[60, 50, 40, 30, 1]), refs: vec![b, branch("main", 5), tag("t", 2)] };
    let plan = decide_expiry(&history, &settings(&[]), now()).unwrap();
    assert_eq!(plan.refs, []);
    let keep = |reason| SnapshotDecision::Keep(reason);
    assert_eq!(
        plan.snapshots,
        [
            (1, SnapshotDecision::Expire(ExpireReason::OlderThanBranches)),
            (2, keep(KeepReason::AmongKept("b".into()))),
            (3, keep(KeepReason::Head("b".into()))),
            (4, SnapshotDecision::Expire(ExpireReason::OlderThanBranches)),
            (5, keep(KeepReason::Head("main".into()))),
        ]
    );
}

/// K24: what is only pinned is not proposed again.
#[test]
fn a_table_whose_old_snapshots_are_pinned_has_nothing_to_expire() {
    let refs = vec![branch("main", 2), tag("t", 1)];
    assert_eq!(expired(line(&[90, 50]), refs, &settings(&[])), [0_i64; 0]);
}

/// K48: each branch by its own settings, tags by their age, and what is before a tag by the table's rule.
#[test]
fn each_reference_by_its_own_settings() {
    let main = RefFacts {
        branch: Some(BranchFacts { min_snapshots_to_keep: Some(3), max_snapshot_age_ms: None }),
        ..branch("main", 4)
    };
    assert_eq!(expired(line(&[90, 80, 70, 1]), vec![main.clone()], &settings(&[])), [1], "main keeps 3");

    let week = RefFacts {
        branch: Some(BranchFacts { min_snapshots_to_keep: None, max_snapshot_age_ms: Some(7 * 24 * HOUR) }),
        ..branch("b", 3)
    };
    let snapshots = vec![made(1, None, 8 * 24), made(2, Some(1), 6 * 24), made(3, Some(2), 2), made(4, None, 1)];
    assert_eq!(expired(snapshots, vec![week, branch("main", 4)], &settings(&[])), [1], "b keeps a week");

    let hour = RefFacts { max_ref_age_ms: Some(HOUR), ..tag("t", 2) };
    let history = History { snapshots: line(&[60, 50, 1]), refs: vec![branch("main", 3), hour] };
    let plan = decide_expiry(&history, &settings(&[]), now()).unwrap();
    assert_eq!(plan.refs, [("t".to_owned(), TimeDelta::hours(50))]);
    assert_eq!(plan.expired().collect::<Vec<_>>(), [1, 2]);

    // What is before a tag that stays, outside every branch: the table's rule.
    let snapshots = vec![made(1, None, 60), made(2, Some(1), 5), made(3, Some(2), 4), made(4, None, 1)];
    assert_eq!(expired(snapshots, vec![branch("main", 4), tag("t", 3)], &settings(&[])), [1]);
}

/// K127: no reference goes by default, and main never does.
#[test]
fn references_stay_for_ever_unless_an_age_is_set() {
    let history = History { snapshots: line(&[9_000, 8_000]), refs: vec![branch("main", 2), tag("t", 1)] };
    assert_eq!(decide_expiry(&history, &settings(&[]), now()).unwrap().refs, []);
    let aged = settings(&[("history.expire.max-ref-age-ms", "3600000")]);
    let plan = decide_expiry(&history, &aged, now()).unwrap();
    assert_eq!(plan.refs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["t"]);
    assert_eq!(plan.expired().collect::<Vec<_>>(), [1]);
}

/// K84: a staged snapshot that was cherry-picked goes like any other; what became of its files is not decided here.
#[test]
fn staged_snapshots_go_by_the_cut_off() {
    let snapshots = vec![made(1, None, 50), made(2, Some(1), 49), made(3, Some(1), 48), made(4, Some(1), 3)];
    assert_eq!(expired(snapshots, vec![branch("main", 3)], &settings(&[])), [1, 2]);
}

#[test]
fn the_cut_off_is_the_longer_of_both_ages_and_only_an_explicit_one_counts() {
    let age = |properties: &[(&str, &str)]| settings(properties).max_snapshot_age;
    assert_eq!(age(&[]), TimeDelta::hours(24));
    assert_eq!(age(&[("history.expire.max-snapshot-age-ms", "3600000")]), TimeDelta::hours(24));
    assert_eq!(age(&[("history.expire.max-snapshot-age-ms", "432000000")]), TimeDelta::hours(120));
    let boundary = |ms| {
        let old = SnapshotFacts { timestamp_ms: now().timestamp_millis() - 24 * HOUR - ms, ..made(1, None, 0) };
        expired(vec![old, made(2, Some(1), 0)], vec![branch("main", 2)], &settings(&[]))
    };
    assert_eq!((boundary(0), boundary(1)), (vec![], vec![1]), "at the cut-off it stays");
}

/// Cut-offs at or after now are refused, and so is what is no number.
#[test]
fn ages_that_are_not_positive_expire_nothing() {
    for (key, value) in [
        ("history.expire.max-snapshot-age-ms", "0"),
        ("history.expire.max-snapshot-age-ms", "-86400000"),
        ("history.expire.max-ref-age-ms", "-1"),
        ("history.expire.min-snapshots-to-keep", "0"),
        ("history.expire.max-snapshot-age-ms", "5d"),
    ] {
        let error = try_settings(&[(key, value)]).unwrap_err();
        let expected = format!(
            "{key} = \"{value}\" of the table is not a positive number: correct it, nothing is expired until then"
        );
        assert_eq!(error.to_string(), expected);
    }
    let reference = RefFacts { max_ref_age_ms: Some(-5), ..tag("t", 1) };
    let history = History { snapshots: line(&[1]), refs: vec![reference] };
    let error = decide_expiry(&history, &settings(&[]), now()).unwrap_err();
    assert!(error.to_string().starts_with("max-ref-age-ms = \"-5\" of reference t"), "{error}");
}

/// K72: with a clock that is behind, everything looks young.
#[test]
fn snapshots_of_the_future_stay() {
    assert_eq!(expired(line(&[-1, -2, -3]), vec![branch("main", 3)], &settings(&[])), [0_i64; 0]);
}

#[test]
fn a_circle_of_parents_ends() {
    let snapshots = vec![made(1, Some(2), 90), made(2, Some(1), 80)];
    assert_eq!(expired(snapshots, vec![branch("main", 2)], &settings(&[])), [1]);
}

/// What the specification says, in its own words and without regard for time: a snapshot stays when a reference that stays keeps it.
fn oracle(history: &History, settings: &ExpirySettings) -> (Vec<i64>, Vec<String>) {
    let now = now().timestamp_millis();
    let find = |id: i64| history.snapshots.iter().find(|facts| facts.id == id);
    let line_of = |id: i64| {
        let mut found = Vec::new();
        let mut at = find(id);
        while let Some(facts) = at {
            if found.contains(&facts.id) {
                break;
            }
            found.push(facts.id);
            at = facts.parent.and_then(find);
        }
        found
    };
    let goes = |reference: &&RefFacts| {
        let most = reference.max_ref_age_ms.or(settings.max_ref_age.map(|age| age.num_milliseconds()));
        let head = find(reference.snapshot_id).unwrap();
        reference.name != "main" && most.is_some_and(|most| now - head.timestamp_ms > most)
    };
    let stays: Vec<&RefFacts> = history.refs.iter().filter(|reference| !goes(reference)).collect();
    let kept_by = |reference: &&RefFacts, id: i64| {
        let Some(branch) = reference.branch else { return reference.snapshot_id == id };
        let line = line_of(reference.snapshot_id);
        let Some(place) = line.iter().position(|found| *found == id) else { return false };
        let least = branch.min_snapshots_to_keep.unwrap_or(settings.min_snapshots_to_keep as i64) as usize;
        let most = branch.max_snapshot_age_ms.unwrap_or(settings.max_snapshot_age.num_milliseconds());
        (0..=place).all(|at| at == 0 || at < least || now - find(line[at]).unwrap().timestamp_ms <= most)
    };
    let in_branches = |id: i64| {
        stays.iter().any(|reference| reference.branch.is_some() && line_of(reference.snapshot_id).contains(&id))
    };
    let expired = |facts: &&SnapshotFacts| {
        let kept = stays.iter().any(|reference| kept_by(reference, facts.id));
        let young = now - facts.timestamp_ms <= settings.max_snapshot_age.num_milliseconds();
        !kept && (in_branches(facts.id) || !young)
    };
    let ids = history.snapshots.iter().filter(expired).map(|facts| facts.id).collect();
    (ids, history.refs.iter().filter(goes).map(|reference| reference.name.clone()).collect())
}

prop_compose! {
    fn any_history()(
        hours in proptest::collection::vec((-2_i64..80, 0_usize..4), 1..14),
        refs in proptest::collection::vec(
            (0_usize..14, any::<bool>(), proptest::option::of(1_i64..5), proptest::option::of(1_i64..60), proptest::option::of(1_i64..60)),
            0..4,
        ),
        head in 0_usize..14,
    ) -> History {
        let snapshots: Vec<SnapshotFacts> = hours
            .iter()
            .enumerate()
            .map(|(at, (hours, back))| {
                let parent = (at as i64 - *back as i64).clamp(0, at as i64);
                made(at as i64 + 1, (parent > 0).then_some(parent), *hours)
            })
            .collect();
        let id = |at: usize| (at % snapshots.len()) as i64 + 1;
        let mut named = vec![branch("main", id(head))];
        for (number, (at, is_branch, least, age, ref_age)) in refs.into_iter().enumerate() {
            let facts = BranchFacts { min_snapshots_to_keep: least, max_snapshot_age_ms: age.map(|hours| hours * HOUR) };
            named.push(RefFacts {
                name: format!("r{number}"),
                snapshot_id: id(at),
                branch: is_branch.then_some(facts),
                max_ref_age_ms: ref_age.map(|hours| hours * HOUR),
            });
        }
        History { snapshots, refs: named }
    }
}

proptest! {
    #[test]
    fn decisions_are_those_of_the_specification(
        history in any_history(),
        least in 1_u64..4,
        ref_age in proptest::option::of(1_i64..60),
    ) {
        let settings = ExpirySettings {
            min_snapshots_to_keep: least,
            max_ref_age: ref_age.map(TimeDelta::hours),
            ..settings(&[])
        };
        let plan = decide_expiry(&history, &settings, now()).unwrap();
        let refs: Vec<String> = plan.refs.iter().map(|(name, _)| name.clone()).collect();
        prop_assert_eq!((plan.expired().collect::<Vec<_>>(), refs.clone()), oracle(&history, &settings));
        for reference in history.refs.iter().filter(|reference| !refs.contains(&reference.name)) {
            prop_assert!(plan.expired().all(|id| id != reference.snapshot_id), "what stays keeps its snapshot");
        }
    }
}
