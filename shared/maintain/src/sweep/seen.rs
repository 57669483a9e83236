//! What earlier sweeps saw, and whether it still counts.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use firn_state::{SeenFile, SweepRecord};
use firn_table::History;

use crate::identity::Fingerprint;
use crate::sweep::listing::seconds;

/// Files that the last sweep saw unreferenced, by fingerprint.
#[derive(Debug, Default)]
pub struct Seen {
    files: Vec<SeenFile>,
}

impl Seen {
    /// In any order.
    pub fn new(mut files: Vec<SeenFile>) -> Self {
        files.sort_unstable_by_key(|file| (file.high, file.low));
        Self { files }
    }

    /// With more of them; a file that is in both counts from the earlier time, but one that is held until later is held.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = SeenFile>, now: DateTime<Utc>) -> Self {
        self.files.extend(more);
        // The first of each counts: the one that is held longest, else the earliest.
        let order = |file: &SeenFile| match is_held(file, now) {
            true => (false, u32::MAX - file.since),
            false => (true, file.since),
        };
        self.files.sort_unstable_by_key(|file| (file.high, file.low, order(file)));
        self.files.dedup_by_key(|file| (file.high, file.low));
        self
    }

    /// Files that are left alone until a later time, because a person restored them. They are so whatever becomes of them meanwhile.
    pub fn held(&self, now: DateTime<Utc>) -> impl Iterator<Item = SeenFile> + Send + '_ {
        self.files.iter().copied().filter(move |file| is_held(file, now))
    }

    /// Since when a file has been seen unreferenced.
    pub fn since(&self, print: Fingerprint) -> Option<DateTime<Utc>> {
        let key = halves(print);
        let at = self.files.binary_search_by_key(&key, |file| (file.high, file.low)).ok()?;
        DateTime::from_timestamp(i64::from(self.files[at].since), 0)
    }
}

/// A file as it is remembered.
pub fn seen_file(print: Fingerprint, since: DateTime<Utc>) -> SeenFile {
    let (high, low) = halves(print);
    SeenFile { high, low, since: seconds(since) }
}

/// Whether a file counts as seen only from a later time on.
pub fn is_held(file: &SeenFile, now: DateTime<Utc>) -> bool {
    i64::from(file.since) > now.timestamp()
}

fn halves(print: Fingerprint) -> (u64, u64) {
    ((print.0 >> 64) as u64, print.0 as u64)
}

/// Whether what the last sweep saw still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// It does: nothing can have become referenced and unreferenced again in between without a trace.
    Holds,
    /// No earlier sweep is known.
    None,
    /// Snapshots came and went since: a file may have been referenced by one of them. The grace begins anew.
    SnapshotsCameAndWent,
    /// The table is older than the last sweep saw it: somebody brought back an older version. The grace begins anew.
    WentBack,
}

/// Decides by the numbers of snapshots: each takes the next sequence number, so one that is missing came and went. Tables of format
/// version 1 have no numbers; there a parent that is not known shows it.
pub fn memory(record: Option<&SweepRecord>, history: &History, last_sequence_number: i64) -> Memory {
    let Some(record) = record else { return Memory::None };
    if last_sequence_number < record.last_sequence_number {
        return Memory::WentBack;
    }
    let added = last_sequence_number - record.last_sequence_number;
    let new = history.snapshots.iter().filter(|facts| facts.sequence_number > record.last_sequence_number);
    if i64::try_from(new.count()).unwrap_or(i64::MAX) < added {
        return Memory::SnapshotsCameAndWent;
    }
    if last_sequence_number > 0 {
        return Memory::Holds;
    }
    let known: HashSet<i64> =
        record.snapshots.iter().copied().chain(history.snapshots.iter().map(|facts| facts.id)).collect();
    let old: HashSet<i64> = record.snapshots.iter().copied().collect();
    let broken = |facts: &&firn_table::SnapshotFacts| {
        !old.contains(&facts.id) && facts.parent.is_some_and(|parent| !known.contains(&parent))
    };
    if history.snapshots.iter().any(|facts| broken(&facts)) { Memory::SnapshotsCameAndWent } else { Memory::Holds }
}

#[cfg(test)]
mod tests {
    use firn_table::SnapshotFacts;

    use super::*;

    fn record(last_sequence_number: i64, snapshots: &[i64]) -> SweepRecord {
        SweepRecord {
            table: "a.b".into(),
            swept_at: DateTime::UNIX_EPOCH,
            last_sequence_number,
            snapshots: snapshots.to_vec(),
            seen: "seen".into(),
            count: 0,
            receipt: "r".into(),
        }
    }

    fn history(snapshots: &[(i64, Option<i64>, i64)]) -> History {
        let facts = |(id, parent, sequence_number): &(i64, Option<i64>, i64)| SnapshotFacts {
            id: *id,
            parent: *parent,
            timestamp_ms: 0,
            sequence_number: *sequence_number,
        };
        History { snapshots: snapshots.iter().map(facts).collect(), refs: vec![] }
    }

    #[test]
    fn snapshots_that_came_and_went_begin_the_grace_anew() {
        let last = record(5, &[]);
        let decide = |snapshots: &[(i64, Option<i64>, i64)], number| memory(Some(&last), &history(snapshots), number);
        assert_eq!(memory(None, &history(&[]), 0), Memory::None);
        assert_eq!(decide(&[(50, None, 5)], 5), Memory::Holds, "nothing happened");
        assert_eq!(decide(&[(50, None, 5), (60, None, 6), (70, None, 7)], 7), Memory::Holds);
        assert_eq!(decide(&[(70, None, 7)], 7), Memory::SnapshotsCameAndWent, "6 is gone already");
        assert_eq!(decide(&[(40, None, 4)], 4), Memory::WentBack);
    }

    #[test]
    fn without_numbers_an_unknown_parent_shows_it() {
        let last = record(0, &[1, 2]);
        let decide = |snapshots: &[(i64, Option<i64>, i64)]| memory(Some(&last), &history(snapshots), 0);
        assert_eq!(decide(&[(2, Some(1), 0), (3, Some(2), 0)]), Memory::Holds, "1 was known and is expired");
        assert_eq!(decide(&[(2, Some(1), 0), (4, Some(3), 0)]), Memory::SnapshotsCameAndWent);
        assert_eq!(decide(&[(4, Some(2), 0)]), Memory::Holds);
    }

    #[test]
    fn files_are_found_by_their_fingerprint() {
        let time: DateTime<Utc> = "2026-11-01T00:00:00Z".parse().unwrap();
        let prints = [Fingerprint(u128::MAX), Fingerprint(1), Fingerprint(1 << 90)];
        let seen = Seen::new(prints.iter().map(|print| seen_file(*print, time)).collect());
        assert!(prints.iter().all(|print| seen.since(*print) == Some(time)));
        assert_eq!(seen.since(Fingerprint(2)), None);

        let hours = |hours| time + chrono::TimeDelta::hours(hours);
        let (later, now) = (hours(1), hours(2));
        let seen = seen.with([seen_file(Fingerprint(1), later), seen_file(Fingerprint(2), later)], now);
        assert_eq!([1, 2].map(|print| seen.since(Fingerprint(print))), [Some(time), Some(later)], "the earlier counts");
        assert_eq!(seen.held(now).count(), 0);

        let held = [
            seen_file(Fingerprint(1), hours(9)),
            seen_file(Fingerprint(2), hours(3)),
            seen_file(Fingerprint(2), hours(4)),
        ];
        let seen = seen.with(held, now).with([seen_file(Fingerprint(1), time)], now);
        assert_eq!(
            [1, 2].map(|print| seen.since(Fingerprint(print))),
            [Some(hours(9)), Some(hours(4))],
            "held is held"
        );
        assert_eq!(seen.held(now).count(), 2);
        assert_eq!(seen.held(hours(5)).count(), 1);
    }
}
