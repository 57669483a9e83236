//! What becomes of one listed file, and why. Pure: every fact that the decision rests on is an argument (design section 7).

use std::fmt;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::file_state::FileState;
use crate::sweep::class::FileClass;

/// Files that are newer than now by more than this have no time that could be used.
const FUTURE: TimeDelta = TimeDelta::minutes(5);

/// What is known of a listed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// What its name says it is.
    pub class: FileClass,
    /// Live, replaced or unreferenced.
    pub state: FileState,
    /// The store's time of its last write.
    pub modified: Option<DateTime<Utc>>,
    /// Another listed file has the same identity.
    pub doubled: bool,
    /// Since when sweeps have seen it unreferenced without a break; None: this one is the first.
    pub unreferenced_since: Option<DateTime<Utc>>,
    /// What is known of the data file that a sidecar belongs to.
    pub owner: Owner,
}

/// The data file of a sidecar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Owner {
    /// The file is no sidecar, or there is no such data file.
    #[default]
    None,
    /// It is referred to, or stays for another reason.
    Kept,
    /// It goes in this sweep.
    Goes,
}

/// What holds for the whole sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepRules {
    /// The time that ages are counted to: that of the store, never ahead of it.
    pub now: DateTime<Utc>,
    /// `orphanMinAgeHours`.
    pub min_age: TimeDelta,
    /// `orphanGraceHours`.
    pub grace: TimeDelta,
    /// `orphanMetadata`.
    pub metadata: bool,
    /// No earlier sweep of this table is known, so nothing is deleted.
    pub first_sweep: bool,
    /// Answers as if the grace had passed.
    pub dry_run: bool,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrphanDecision {
    /// It goes.
    Delete(DeleteReason),
    /// It stays.
    Keep(KeepReason),
}

/// Why a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteReason {
    /// No snapshot refers to it, it is old enough, and an earlier sweep has seen it unreferenced.
    Unreferenced {
        /// When sweeps first saw it so; None only in a dry run.
        since: Option<DateTime<Utc>>,
        /// When it may go at the earliest; in a dry run this may be later than now.
        from: Option<DateTime<Utc>>,
    },
    /// A sidecar whose data file goes now.
    WithItsDataFile,
    /// A sidecar whose data file is not there, seen so by an earlier sweep.
    SidecarAlone {
        /// As above.
        since: Option<DateTime<Utc>>,
        /// As above.
        from: Option<DateTime<Utc>>,
    },
}

/// Why a file stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeepReason {
    /// The head of a branch, or the metadata, refers to it.
    Live,
    /// An older snapshot refers to it.
    Replaced,
    /// It is not older than `orphanMinAgeHours`.
    TooYoung,
    /// No sweep at least `orphanGraceHours` ago saw it unreferenced.
    InGrace,
    /// This is the first sweep of the table.
    FirstSweep,
    /// A sidecar whose data file stays.
    SidecarOfKept,
    /// Nothing that Iceberg or Firn writes there under such a name.
    UnknownLayout,
    /// A folder of an account with a hierarchical namespace.
    Folder,
    /// The store says no time, or one in the future.
    NoUsableTime,
    /// Two files have names that could mean the same file.
    DoubledName,
    /// It was not in the first listing, or was written since.
    Changed,
    /// The store refused to delete it: leased, changed, or with an error.
    Refused,
    /// The time of this run was used up; a later one goes on.
    OutOfTime,
}

impl KeepReason {
    /// All of them, for receipts and documents.
    pub const ALL: [KeepReason; 13] = [
        KeepReason::Live,
        KeepReason::Replaced,
        KeepReason::TooYoung,
        KeepReason::InGrace,
        KeepReason::FirstSweep,
        KeepReason::SidecarOfKept,
        KeepReason::UnknownLayout,
        KeepReason::Folder,
        KeepReason::NoUsableTime,
        KeepReason::DoubledName,
        KeepReason::Changed,
        KeepReason::Refused,
        KeepReason::OutOfTime,
    ];

    /// The sentence that receipts and answers give.
    pub fn as_str(self) -> &'static str {
        match self {
            KeepReason::Live => "referenced: live",
            KeepReason::Replaced => "referenced: an older snapshot needs it",
            KeepReason::TooYoung => "too young",
            KeepReason::InGrace => "in grace",
            KeepReason::FirstSweep => "in grace: the first sweep of a table deletes nothing",
            KeepReason::SidecarOfKept => "sidecar of a kept file",
            KeepReason::UnknownLayout => "unknown layout",
            KeepReason::Folder => "folder of a hierarchical account",
            KeepReason::NoUsableTime => "no usable time",
            KeepReason::DoubledName => "two files of one identity",
            KeepReason::Changed => "written since the listing began",
            KeepReason::Refused => "the store refused to delete it",
            KeepReason::OutOfTime => "out of time: the next sweep goes on",
        }
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for OrphanDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrphanDecision::Keep(reason) => reason.fmt(f),
            OrphanDecision::Delete(reason) => reason.fmt(f),
        }
    }
}

impl fmt::Display for DeleteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = |f: &mut fmt::Formatter<'_>, since: &Option<DateTime<Utc>>, from: &Option<DateTime<Utc>>| {
            let text = |time: &DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
            match (since, from) {
                (Some(since), Some(from)) => {
                    write!(f, "; seen so since {}, may go from {}", text(since), text(from))
                }
                (Some(since), None) => write!(f, "; seen so since {}", text(since)),
                (None, Some(from)) => write!(f, "; the next sweep sees it so, may go from {}", text(from)),
                (None, None) => Ok(()),
            }
        };
        match self {
            DeleteReason::Unreferenced { since, from } => {
                f.write_str("no snapshot refers to it")?;
                when(f, since, from)
            }
            DeleteReason::WithItsDataFile => f.write_str("sidecar of a file that goes"),
            DeleteReason::SidecarAlone { since, from } => {
                f.write_str("sidecar without its file")?;
                when(f, since, from)
            }
        }
    }
}

/// Decides for one file.
pub fn decide_orphan(file: &FileFacts, rules: &SweepRules) -> OrphanDecision {
    match candidate(file, rules) {
        Ok(()) => {}
        Err(reason) => return OrphanDecision::Keep(reason),
    }
    // Seen only from a later time on: a person restored it and shall have time.
    let held = file.unreferenced_since.is_some_and(|since| since > rules.now);
    if file.class.is_sidecar() && file.owner == Owner::Goes && !rules.first_sweep && !held {
        return OrphanDecision::Delete(DeleteReason::WithItsDataFile);
    }
    let from = file.unreferenced_since.unwrap_or(rules.now) + rules.grace;
    let since = file.unreferenced_since;
    // "Had already seen": this sweep does not count, even without grace.
    let seen_before = since.is_some_and(|since| since < rules.now);
    let due = seen_before && !rules.first_sweep && from <= rules.now;
    if !due && !rules.dry_run {
        let reason = if rules.first_sweep { KeepReason::FirstSweep } else { KeepReason::InGrace };
        return OrphanDecision::Keep(reason);
    }
    let from = (!due).then_some(from);
    OrphanDecision::Delete(match file.class {
        FileClass::Sidecar(_) => DeleteReason::SidecarAlone { since, from },
        _ => DeleteReason::Unreferenced { since, from },
    })
}

/// Whether a file could go at all, now or after the grace; else why it stays. The order is that of certainty: what refers to a file is said
/// before what its name or time says.
pub fn candidate(file: &FileFacts, rules: &SweepRules) -> Result<(), KeepReason> {
    match file.state {
        FileState::Live => return Err(KeepReason::Live),
        FileState::Replaced => return Err(KeepReason::Replaced),
        FileState::Unreferenced | FileState::Deleted => {}
    }
    match file.class {
        FileClass::Folder => return Err(KeepReason::Folder),
        FileClass::Unknown => return Err(KeepReason::UnknownLayout),
        FileClass::Metadata if !rules.metadata => return Err(KeepReason::UnknownLayout),
        FileClass::Sidecar(_) if file.owner == Owner::Kept => return Err(KeepReason::SidecarOfKept),
        FileClass::Data | FileClass::Metadata | FileClass::Sidecar(_) | FileClass::Statistics => {}
    }
    if file.doubled {
        return Err(KeepReason::DoubledName);
    }
    let Some(modified) = usable(file.modified, rules.now) else { return Err(KeepReason::NoUsableTime) };
    if rules.now - modified <= rules.min_age {
        return Err(KeepReason::TooYoung);
    }
    Ok(())
}

/// A time that says something: not the beginning of time, which stands for none, and not the future.
fn usable(modified: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    modified.filter(|modified| modified.timestamp() > 0 && *modified - now <= FUTURE)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
