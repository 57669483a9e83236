use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

fn ago(hours: i64) -> DateTime<Utc> {
    now() - TimeDelta::hours(hours)
}

fn rules() -> SweepRules {
    SweepRules {
        now: now(),
        min_age: TimeDelta::hours(24),
        grace: TimeDelta::hours(1),
        metadata: false,
        first_sweep: false,
        dry_run: false,
    }
}

/// An orphan that is due.
fn orphan() -> FileFacts {
    FileFacts {
        class: FileClass::Data,
        state: FileState::Unreferenced,
        modified: Some(ago(48)),
        doubled: false,
        unreferenced_since: Some(ago(2)),
        owner: Owner::None,
    }
}

fn sidecar(owner: Owner) -> FileFacts {
    FileFacts { class: FileClass::Sidecar(Uuid::nil()), owner, ..orphan() }
}

fn kept(file: FileFacts) -> Option<KeepReason> {
    match decide_orphan(&file, &rules()) {
        OrphanDecision::Keep(reason) => Some(reason),
        OrphanDecision::Delete(_) => None,
    }
}

#[test]
fn each_reason_keeps_alone() {
    assert_eq!(kept(orphan()), None);
    for (file, reason) in [
        (FileFacts { state: FileState::Live, ..orphan() }, KeepReason::Live),
        (FileFacts { state: FileState::Replaced, ..orphan() }, KeepReason::Replaced),
        (FileFacts { modified: Some(ago(24)), ..orphan() }, KeepReason::TooYoung),
        (FileFacts { unreferenced_since: None, ..orphan() }, KeepReason::InGrace),
        (FileFacts { unreferenced_since: Some(now() - TimeDelta::minutes(59)), ..orphan() }, KeepReason::InGrace),
        (FileFacts { class: FileClass::Unknown, ..orphan() }, KeepReason::UnknownLayout),
        (FileFacts { class: FileClass::Metadata, ..orphan() }, KeepReason::UnknownLayout),
        (FileFacts { class: FileClass::Folder, ..orphan() }, KeepReason::Folder),
        (FileFacts { modified: None, ..orphan() }, KeepReason::NoUsableTime),
        (FileFacts { modified: Some(DateTime::UNIX_EPOCH), ..orphan() }, KeepReason::NoUsableTime),
        (FileFacts { modified: Some(now() + TimeDelta::hours(1)), ..orphan() }, KeepReason::NoUsableTime),
        (FileFacts { doubled: true, ..orphan() }, KeepReason::DoubledName),
        (sidecar(Owner::Kept), KeepReason::SidecarOfKept),
    ] {
        assert_eq!(kept(file), Some(reason), "{file:?}");
    }
}

/// K7: a file that expiry released a moment ago stays for the grace, however old it is.
#[test]
fn the_grace_counts_from_when_a_sweep_saw_it_unreferenced() {
    let released = FileFacts { modified: Some(ago(90 * 24)), unreferenced_since: None, ..orphan() };
    assert_eq!(kept(released), Some(KeepReason::InGrace));
    assert_eq!(kept(FileFacts { unreferenced_since: Some(ago(1)), ..released }), None);
}

#[test]
fn the_first_sweep_deletes_nothing_even_without_grace() {
    let rules = SweepRules { first_sweep: true, grace: TimeDelta::zero(), ..rules() };
    for file in [orphan(), FileFacts { unreferenced_since: Some(now()), ..orphan() }, sidecar(Owner::Goes)] {
        assert_eq!(decide_orphan(&file, &rules), OrphanDecision::Keep(KeepReason::FirstSweep), "{file:?}");
    }
    // Without grace the sweep that sees it first still does not delete it.
    let rules = SweepRules { first_sweep: false, ..rules };
    let seen_now = FileFacts { unreferenced_since: Some(now()), ..orphan() };
    assert_eq!(decide_orphan(&seen_now, &rules), OrphanDecision::Keep(KeepReason::InGrace));
    let since = Some(now() - TimeDelta::seconds(1));
    let seen_before = FileFacts { unreferenced_since: since, ..orphan() };
    let expected = OrphanDecision::Delete(DeleteReason::Unreferenced { since, from: None });
    assert_eq!(decide_orphan(&seen_before, &rules), expected);
}

/// K53: a sidecar goes with its exact data file, by its own age.
#[test]
fn sidecars_share_the_fate_of_their_file() {
    let decide = |file: FileFacts| decide_orphan(&file, &rules());
    assert_eq!(decide(sidecar(Owner::Goes)), OrphanDecision::Delete(DeleteReason::WithItsDataFile));
    let never_seen = FileFacts { unreferenced_since: None, ..sidecar(Owner::Goes) };
    assert_eq!(decide(never_seen), OrphanDecision::Delete(DeleteReason::WithItsDataFile));
    let young = FileFacts { modified: Some(ago(1)), ..sidecar(Owner::Goes) };
    assert_eq!(decide(young), OrphanDecision::Keep(KeepReason::TooYoung));
    let alone = OrphanDecision::Delete(DeleteReason::SidecarAlone { since: Some(ago(2)), from: None });
    assert_eq!(decide(sidecar(Owner::None)), alone);
    let before_its_file = FileFacts { modified: Some(ago(1)), ..sidecar(Owner::None) };
    assert_eq!(decide(before_its_file), OrphanDecision::Keep(KeepReason::TooYoung));
}

/// What a person restored is left alone, a sidecar too although its file goes.
#[test]
fn what_is_held_until_later_stays() {
    let until = Some(now() + TimeDelta::hours(1));
    for file in [orphan(), sidecar(Owner::Goes), sidecar(Owner::None)] {
        assert_eq!(kept(FileFacts { unreferenced_since: until, ..file }), Some(KeepReason::InGrace), "{file:?}");
    }
}

#[test]
fn metadata_files_only_when_asked() {
    let file = FileFacts { class: FileClass::Metadata, ..orphan() };
    let rules = SweepRules { metadata: true, ..rules() };
    assert!(matches!(decide_orphan(&file, &rules), OrphanDecision::Delete(_)));
}

#[test]
fn a_dry_run_answers_as_if_the_grace_had_passed_and_says_when() {
    let rules = SweepRules { dry_run: true, first_sweep: true, ..rules() };
    let never = decide_orphan(&FileFacts { unreferenced_since: None, ..orphan() }, &rules);
    assert_eq!(
        never.to_string(),
        "no snapshot refers to it; the next sweep sees it so, may go from 2026-09-21T15:13:20Z"
    );
    let rules = SweepRules { first_sweep: false, ..rules };
    let waiting = FileFacts { unreferenced_since: Some(now() - TimeDelta::minutes(30)), ..orphan() };
    assert_eq!(
        decide_orphan(&waiting, &rules).to_string(),
        "no snapshot refers to it; seen so since 2026-09-21T13:43:20Z, may go from 2026-09-21T14:43:20Z"
    );
    let young = FileFacts { modified: Some(ago(3)), ..orphan() };
    assert_eq!(decide_orphan(&young, &rules), OrphanDecision::Keep(KeepReason::TooYoung));
}

fn any_file() -> impl Strategy<Value = FileFacts> {
    let class = prop_oneof![
        Just(FileClass::Data),
        Just(FileClass::Metadata),
        Just(FileClass::Unknown),
        Just(FileClass::Folder),
        Just(FileClass::Sidecar(Uuid::nil())),
    ];
    let state = prop_oneof![Just(FileState::Live), Just(FileState::Replaced), Just(FileState::Unreferenced)];
    let time = || proptest::option::of((-50_i64..50).prop_map(ago));
    let owner = prop_oneof![Just(Owner::None), Just(Owner::Kept), Just(Owner::Goes)];
    (class, state, time(), any::<bool>(), time(), owner).prop_map(|(class, state, modified, doubled, since, owner)| {
        FileFacts { class, state, modified, doubled, unreferenced_since: since, owner }
    })
}

proptest! {
    /// What is deleted has every one of the conditions, whatever else is true.
    #[test]
    fn nothing_goes_without_every_condition(
        file in any_file(), grace in 0_i64..5, metadata in any::<bool>(), first_sweep in any::<bool>(), dry_run in any::<bool>(),
    ) {
        let rules = SweepRules { grace: TimeDelta::hours(grace), metadata, first_sweep, dry_run, ..rules() };
        if let OrphanDecision::Delete(reason) = decide_orphan(&file, &rules) {
            prop_assert_eq!(file.state, FileState::Unreferenced);
            prop_assert!(file.state.delete().is_ok());
            prop_assert!(!file.doubled);
            let modified = file.modified.unwrap();
            prop_assert!(now() - modified > TimeDelta::hours(24));
            prop_assert!(matches!(file.class, FileClass::Data | FileClass::Sidecar(_)) || (metadata && file.class == FileClass::Metadata));
            prop_assert!(!file.class.is_sidecar() || file.owner != Owner::Kept);
            if !dry_run {
                prop_assert!(!first_sweep);
                if reason != DeleteReason::WithItsDataFile {
                    let since = file.unreferenced_since.unwrap();
                    prop_assert!(since < now() && now() - since >= TimeDelta::hours(grace));
                }
            }
        }
    }

    /// A dry run lists whatever a later real sweep could delete.
    #[test]
    fn a_dry_run_hides_nothing(file in any_file()) {
        let deletes = |rules| matches!(decide_orphan(&file, &rules), OrphanDecision::Delete(_));
        if deletes(rules()) {
            let dry_run = SweepRules { dry_run: true, ..rules() };
            prop_assert!(deletes(dry_run));
        }
    }
}
