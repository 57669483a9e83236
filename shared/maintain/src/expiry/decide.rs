//! Which snapshots and references go, and why the others stay. Pure: Iceberg's rules ("Snapshot Retention Policy" of its specification)
//! with the cut-off of design section 7.

use std::collections::{HashMap, HashSet};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use firn_table::{History, RefFacts, SnapshotFacts};

/// The branch that never goes.
pub const MAIN: &str = "main";

/// What a table and the configuration say of expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpirySettings {
    /// How old a snapshot may become where its branch says nothing: the longer of `snapshotRetentionHours` and an explicitly set
    /// `history.expire.max-snapshot-age-ms`.
    pub max_snapshot_age: TimeDelta,
    /// `history.expire.min-snapshots-to-keep`, for branches that say nothing.
    pub min_snapshots_to_keep: u64,
    /// `history.expire.max-ref-age-ms`, for references that say nothing; None: for ever.
    pub max_ref_age: Option<TimeDelta>,
}

/// Why a setting of a table or reference cannot be used. A number that cannot be right must not decide what is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = \"{value}\" of {of} is not a positive number: correct it, nothing is expired until then")]
pub struct BadSetting {
    /// The property.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// `the table`, or the reference.
    pub of: String,
}

const MAX_SNAPSHOT_AGE: &str = "history.expire.max-snapshot-age-ms";
const MIN_SNAPSHOTS: &str = "history.expire.min-snapshots-to-keep";
const MAX_REF_AGE: &str = "history.expire.max-ref-age-ms";

impl ExpirySettings {
    /// Reads the properties of a table.
    ///
    /// # Errors
    /// [`BadSetting`] for a number that is none, or not positive: an age of 0 would put the cut-off at or after now.
    pub fn of<'a>(retention: TimeDelta, property: impl Fn(&str) -> Option<&'a str>) -> Result<Self, BadSetting> {
        let number = |key: &'static str| {
            let Some(text) = property(key) else { return Ok(None) };
            match text.trim().parse::<i64>() {
                Ok(number) if number > 0 => Ok(Some(number)),
                _ => Err(BadSetting { key, value: text.to_owned(), of: "the table".to_owned() }),
            }
        };
        let own_age = number(MAX_SNAPSHOT_AGE)?.map(milliseconds);
        Ok(Self {
            max_snapshot_age: own_age.map_or(retention, |own| own.max(retention)),
            min_snapshots_to_keep: number(MIN_SNAPSHOTS)?.unwrap_or(1).unsigned_abs(),
            max_ref_age: number(MAX_REF_AGE)?.map(milliseconds),
        })
    }
}

fn milliseconds(number: i64) -> TimeDelta {
    TimeDelta::try_milliseconds(number).unwrap_or(TimeDelta::MAX)
}

/// What becomes of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotDecision {
    /// It goes.
    Expire(ExpireReason),
    /// It stays.
    Keep(KeepReason),
}

/// Why a snapshot goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpireReason {
    /// It is an ancestor in branches, older than each of them wants and beyond what each wants to keep.
    OlderThanBranches,
    /// No branch and no tag leads to it, and it is older than the cut-off.
    OldAndUnreferenced,
}

/// Why a snapshot stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// A branch points to it.
    Head(String),
    /// A tag points to it.
    Tagged(String),
    /// It is younger than its branch wants.
    Young(String),
    /// It is among the number of snapshots that its branch keeps.
    AmongKept(String),
    /// No branch leads to it, and it is younger than the cut-off: staged, or of a reference that is gone.
    YoungAndUnreferenced,
}

impl fmt::Display for SnapshotDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotDecision::Expire(ExpireReason::OlderThanBranches) => {
                f.write_str("older than its branches keep snapshots")
            }
            SnapshotDecision::Expire(ExpireReason::OldAndUnreferenced) => {
                f.write_str("no branch or tag leads to it, and it is older than the cut-off")
            }
            SnapshotDecision::Keep(reason) => reason.fmt(f),
        }
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepReason::Head(branch) => write!(f, "head of branch {branch}"),
            KeepReason::Tagged(tag) => write!(f, "tag {tag}"),
            KeepReason::Young(branch) => write!(f, "younger than the cut-off of branch {branch}"),
            KeepReason::AmongKept(branch) => write!(f, "among the snapshots that branch {branch} keeps by number"),
            KeepReason::YoungAndUnreferenced => {
                f.write_str("no branch or tag leads to it, and it is younger than the cut-off")
            }
        }
    }
}

/// What becomes of a table's snapshots and references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpiryPlan {
    /// Every snapshot, oldest first.
    pub snapshots: Vec<(i64, SnapshotDecision)>,
    /// References that go: name, and how old it became.
    pub refs: Vec<(String, TimeDelta)>,
}

impl ExpiryPlan {
    /// Ids of the snapshots that go.
    pub fn expired(&self) -> impl Iterator<Item = i64> + '_ {
        let goes = |(id, decision): &(i64, SnapshotDecision)| match decision {
            SnapshotDecision::Expire(_) => Some(*id),
            SnapshotDecision::Keep(_) => None,
        };
        self.snapshots.iter().filter_map(goes)
    }
}

/// Decides for every snapshot and reference of a table at the time `now`.
///
/// # Errors
/// [`BadSetting`] for a reference whose own ages or counts are not positive.
pub fn decide_expiry(
    history: &History,
    settings: &ExpirySettings,
    now: DateTime<Utc>,
) -> Result<ExpiryPlan, BadSetting> {
    let by_id: HashMap<i64, &SnapshotFacts> = history.snapshots.iter().map(|facts| (facts.id, facts)).collect();
    let age = |facts: &SnapshotFacts| now.timestamp_millis().saturating_sub(facts.timestamp_ms);
    let mut refs = Vec::new();
    let mut kept: HashMap<i64, KeepReason> = HashMap::new();
    let mut of_branches: HashSet<i64> = HashSet::new();
    for reference in &history.refs {
        check(reference)?;
        let Some(head) = by_id.get(&reference.snapshot_id) else { continue };
        if reference.name != MAIN {
            let most = reference.max_ref_age_ms.map(milliseconds).or(settings.max_ref_age);
            let old = milliseconds(age(head));
            if most.is_some_and(|most| old > most) {
                refs.push((reference.name.clone(), old));
                continue;
            }
        }
        let Some(branch) = reference.branch else {
            kept.entry(head.id).or_insert_with(|| KeepReason::Tagged(reference.name.clone()));
            continue;
        };
        let least = branch.min_snapshots_to_keep.map_or(settings.min_snapshots_to_keep, i64::unsigned_abs);
        let most = branch.max_snapshot_age_ms.map_or(settings.max_snapshot_age, milliseconds).num_milliseconds();
        // A branch keeps from its head on until the first that is beyond its number and its age: a younger one behind that (a clock that
        // was set back) does not come back.
        let mut keeps = true;
        for (count, ancestor) in (0_u64..).zip(ancestors(head, &by_id)) {
            of_branches.insert(ancestor.id);
            keeps &= count == 0 || count < least || age(ancestor) <= most;
            if keeps {
                let name = reference.name.clone();
                let reason = match count {
                    0 => KeepReason::Head(name),
                    _ if age(ancestor) <= most => KeepReason::Young(name),
                    _ => KeepReason::AmongKept(name),
                };
                kept.entry(ancestor.id).or_insert(reason);
            }
        }
    }
    let cut_off = settings.max_snapshot_age.num_milliseconds();
    let decide = |facts: &SnapshotFacts| match kept.remove(&facts.id) {
        Some(reason) => SnapshotDecision::Keep(reason),
        None if of_branches.contains(&facts.id) => SnapshotDecision::Expire(ExpireReason::OlderThanBranches),
        None if age(facts) <= cut_off => SnapshotDecision::Keep(KeepReason::YoungAndUnreferenced),
        None => SnapshotDecision::Expire(ExpireReason::OldAndUnreferenced),
    };
    let mut decide = decide;
    let snapshots = history.snapshots.iter().map(|facts| (facts.id, decide(facts))).collect();
    Ok(ExpiryPlan { snapshots, refs })
}

fn check(reference: &RefFacts) -> Result<(), BadSetting> {
    let branch = reference.branch.unwrap_or_default();
    for (key, value) in [
        ("max-ref-age-ms", reference.max_ref_age_ms),
        ("min-snapshots-to-keep", branch.min_snapshots_to_keep),
        ("max-snapshot-age-ms", branch.max_snapshot_age_ms),
    ] {
        if let Some(value) = value.filter(|value| *value <= 0) {
            let of = format!("reference {}", reference.name);
            return Err(BadSetting { key, value: value.to_string(), of });
        }
    }
    Ok(())
}

/// A snapshot and its ancestors that are still known, newest first.
fn ancestors<'a>(
    head: &'a SnapshotFacts,
    by_id: &HashMap<i64, &'a SnapshotFacts>,
) -> impl Iterator<Item = &'a SnapshotFacts> {
    let next = |facts: &&'a SnapshotFacts| facts.parent.and_then(|parent| by_id.get(&parent).copied());
    // Damaged metadata may hold a circle.
    std::iter::successors(Some(head), next).take(by_id.len())
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
