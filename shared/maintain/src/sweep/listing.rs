//! What was listed, in so little memory that millions of files fit: 32 bytes each, found by the fingerprint of their identity.

use std::sync::atomic::{AtomicU8, Ordering};

use chrono::{DateTime, Utc};
use firn_model::BlobId;
use firn_storage::ListedBlob;
use firn_table::sidecar_uuid;
use uuid::Uuid;

use crate::file_state::FileState;
use crate::identity::Fingerprint;
use crate::sweep::class::FileClass;

/// Shards by the first byte of the fingerprint: each is sorted on its own, and none grows by doubling a vector of everything.
const SHARDS: usize = 256;

const REFERRED: u8 = 1;
const LIVE: u8 = 2;
const DOUBLED: u8 = 4;
const GOES: u8 = 8;
const CURRENT: u8 = 16;

/// What refers to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Referred {
    /// The metadata, or the current snapshot.
    Current,
    /// A tag or the head of a branch other than `main`.
    Pinned,
    /// An older snapshot.
    Older,
}

/// What is kept of a listed file.
#[derive(Debug)]
struct Entry {
    print: (u64, u64),
    /// The sidecars' name of this data file, or of the data file of this sidecar, shortened. A collision keeps the sidecar.
    owner: u64,
    /// Seconds; 0: none.
    modified: u32,
    class: Kind,
    flags: AtomicU8,
    size: RoundSize,
}

/// A size to a thousandth in two bytes: five of its bits say how often the other eleven are doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RoundSize(u16);

impl RoundSize {
    fn of(bytes: u64) -> Self {
        let doublings = (u64::BITS - bytes.leading_zeros()).saturating_sub(11).min(31);
        let rest = (bytes >> doublings).min(0x7ff);
        // Both fit: 11 bits and 5 bits.
        RoundSize((doublings as u16) << 11 | rest as u16)
    }

    fn bytes(self) -> u64 {
        u64::from(self.0 & 0x7ff) << (self.0 >> 11)
    }
}

/// A class without the UUID, which `owner` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Data,
    Metadata,
    Sidecar,
    Statistics,
    Other,
}

/// Where a listed file stands in the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    shard: u8,
    at: u32,
}

/// A listing in the making.
#[derive(Debug)]
pub struct ListingBuilder {
    shards: Vec<Vec<Entry>>,
    objects: u64,
    bytes: u64,
}

impl Default for ListingBuilder {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Vec::new()).collect(), objects: 0, bytes: 0 }
    }
}

impl ListingBuilder {
    /// Adds a file.
    pub fn add(&mut self, blob: &ListedBlob, class: FileClass) {
        let print = Fingerprint::of(&blob.id);
        let (kind, owner) = match class {
            FileClass::Data => (Kind::Data, owner_of(&blob.id)),
            FileClass::Sidecar(uuid) => (Kind::Sidecar, short(uuid)),
            FileClass::Metadata => (Kind::Metadata, 0),
            FileClass::Statistics => (Kind::Statistics, 0),
            // A data file in an odd place has sidecars too.
            FileClass::Unknown | FileClass::Folder => (Kind::Other, owner_of(&blob.id)),
        };
        let entry = Entry {
            print: halves(print),
            owner,
            modified: seconds(blob.last_modified),
            class: kind,
            flags: AtomicU8::new(0),
            size: RoundSize::of(blob.size),
        };
        self.shards[usize::from(shard_of(print))].push(entry);
        self.objects += 1;
        self.bytes += blob.size;
    }

    /// Ends it: from here on files are found by their identity.
    pub fn finish(self) -> Listing {
        let ListingBuilder { mut shards, objects, bytes } = self;
        for shard in &mut shards {
            shard.sort_unstable_by_key(|entry| entry.print);
            for at in 1..shard.len() {
                if shard[at - 1].print == shard[at].print {
                    shard[at - 1].flags.fetch_or(DOUBLED, Ordering::Relaxed);
                    shard[at].flags.fetch_or(DOUBLED, Ordering::Relaxed);
                }
            }
        }
        Listing { shards, objects, bytes }
    }
}

/// What was listed. References are marked in it from any thread.
#[derive(Debug)]
pub struct Listing {
    shards: Vec<Vec<Entry>>,
    /// Files.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One listed file, as far as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Its identity.
    pub print: Fingerprint,
    /// What its name says; of a sidecar without its UUID.
    pub class: FileClass,
    /// By what refers to it.
    pub state: FileState,
    /// The store's time, rounded up to a second.
    pub modified: Option<DateTime<Utc>>,
    /// Bytes, to a thousandth.
    pub bytes: u64,
    /// Another file has the same identity.
    pub doubled: bool,
    /// Which data file it is, or belongs to, for sidecars.
    pub owner: u64,
    /// Live by a tag or the head of a branch other than `main` alone.
    pub pinned: bool,
    /// Marked by [`Listing::mark_goes`].
    pub goes: bool,
}

impl Listing {
    /// The place of a file.
    pub fn find(&self, print: Fingerprint) -> Option<Place> {
        let shard = shard_of(print);
        let at = self.shards[usize::from(shard)].binary_search_by_key(&halves(print), |entry| entry.print).ok()?;
        u32::try_from(at).ok().map(|at| Place { shard, at })
    }

    /// Marks every file of this identity as referred to.
    pub fn mark_referred(&self, place: Place, by: Referred) {
        let shard = &self.shards[usize::from(place.shard)];
        let at = place.at as usize;
        let flags = match by {
            Referred::Current => REFERRED | LIVE | CURRENT,
            Referred::Pinned => REFERRED | LIVE,
            Referred::Older => REFERRED,
        };
        shard[at].flags.fetch_or(flags, Ordering::Relaxed);
        if shard[at].flags.load(Ordering::Relaxed) & DOUBLED != 0 {
            let print = shard[at].print;
            let same = |entry: &&Entry| entry.print == print;
            for entry in shard[at..].iter().take_while(same).chain(shard[..at].iter().rev().take_while(same)) {
                entry.flags.fetch_or(flags, Ordering::Relaxed);
            }
        }
    }

    /// Marks a data file as one that goes in this sweep, for the fate of its sidecars.
    pub fn mark_goes(&self, place: Place) {
        self.shards[usize::from(place.shard)][place.at as usize].flags.fetch_or(GOES, Ordering::Relaxed);
    }

    /// What is remembered of a file.
    pub fn remembered(&self, place: Place) -> Remembered {
        remembered(&self.shards[usize::from(place.shard)][place.at as usize])
    }

    /// Every file, by fingerprint.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Remembered)> + '_ {
        (0..=u8::MAX).zip(&self.shards).flat_map(|(shard, entries)| {
            (0..).zip(entries).map(move |(at, entry)| (Place { shard, at }, remembered(entry)))
        })
    }
}

fn remembered(entry: &Entry) -> Remembered {
    let flags = entry.flags.load(Ordering::Relaxed);
    let (high, low) = entry.print;
    Remembered {
        print: Fingerprint(u128::from(high) << 64 | u128::from(low)),
        class: match entry.class {
            Kind::Data => FileClass::Data,
            Kind::Metadata => FileClass::Metadata,
            Kind::Sidecar => FileClass::Sidecar(Uuid::nil()),
            Kind::Statistics => FileClass::Statistics,
            Kind::Other => FileClass::Unknown,
        },
        state: match (flags & LIVE != 0, flags & REFERRED != 0) {
            (true, _) => FileState::Live,
            (false, true) => FileState::Replaced,
            (false, false) => FileState::Unreferenced,
        },
        modified: (entry.modified > 0).then(|| DateTime::from_timestamp(i64::from(entry.modified), 0)).flatten(),
        bytes: entry.size.bytes(),
        doubled: flags & DOUBLED != 0,
        owner: entry.owner,
        pinned: flags & (LIVE | CURRENT) == LIVE,
        goes: flags & GOES != 0,
    }
}

/// Which data file a blob is, for the sidecars that belong to it.
pub fn owner_of(id: &BlobId) -> u64 {
    short(sidecar_uuid(id))
}

/// A UUID as 64 bits.
pub fn short(uuid: Uuid) -> u64 {
    let (high, low) = uuid.as_u64_pair();
    high ^ low.rotate_left(32)
}

fn shard_of(print: Fingerprint) -> u8 {
    print.0.to_be_bytes()[0]
}

fn halves(print: Fingerprint) -> (u64, u64) {
    ((print.0 >> 64) as u64, print.0 as u64)
}

/// Seconds since 1970, rounded up: a file never looks older than it is. 0 for what says nothing; the future stays the future.
pub(crate) fn seconds(time: DateTime<Utc>) -> u32 {
    let whole = time.timestamp() + i64::from(time.timestamp_subsec_nanos() > 0);
    if time.timestamp() <= 0 { 0 } else { u32::try_from(whole).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(key: &str, time: &str) -> ListedBlob {
        let id = BlobId { account: "acct".into(), container: "c".into(), key: key.into() };
        ListedBlob { id, size: 10, etag: "e".into(), last_modified: time.parse().unwrap() }
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(std::mem::size_of::<Entry>(), 32);
    }

    #[test]
    fn sizes_are_right_to_a_thousandth() {
        for bytes in [0, 1, 2047, 2048, 1_000_000, 134_217_728, 4_000_000_000_000] {
            let round = RoundSize::of(bytes).bytes();
            assert!(round <= bytes && bytes - round <= bytes / 1000, "{bytes}: {round}");
        }
    }

    #[test]
    fn files_are_found_marked_and_doubled_names_share_their_marks() {
        let mut builder = ListingBuilder::default();
        for key in ["t/data/a b.parquet", "t/data/a%20b.parquet", "t/data/c.parquet"] {
            builder.add(&blob(key, "2026-11-01T00:00:00.5Z"), FileClass::Data);
        }
        let listing = builder.finish();
        assert_eq!((listing.objects, listing.bytes), (3, 30));
        let print = |key: &str| Fingerprint::of(&blob(key, "2026-11-01T00:00:00Z").id);
        let spaced = listing.find(print("t/data/a b.parquet")).unwrap();
        listing.mark_referred(spaced, Referred::Pinned);
        assert!(listing.remembered(spaced).pinned);
        listing.mark_referred(spaced, Referred::Current);
        assert!(!listing.remembered(spaced).pinned, "the current snapshot has it, too");
        let states: Vec<(FileState, bool)> = listing.iter().map(|(_, found)| (found.state, found.doubled)).collect();
        assert_eq!(states.iter().filter(|found| **found == (FileState::Live, true)).count(), 2, "{states:?}");
        let alone = listing.find(print("t/data/c.parquet")).unwrap();
        let found = listing.remembered(alone);
        assert_eq!((found.state, found.doubled, found.goes), (FileState::Unreferenced, false, false));
        assert_eq!(found.modified, Some("2026-11-01T00:00:01Z".parse().unwrap()), "never older than it is");
        listing.mark_goes(alone);
        assert!(listing.remembered(alone).goes);
        listing.mark_referred(alone, Referred::Older);
        assert_eq!(listing.remembered(alone).state, FileState::Replaced);
        assert_eq!(listing.find(print("t/data/d.parquet")), None);
    }

    #[test]
    fn a_time_that_says_nothing_is_none() {
        let mut builder = ListingBuilder::default();
        builder.add(&blob("t/data/a.parquet", "1970-01-01T00:00:00Z"), FileClass::Data);
        let listing = builder.finish();
        assert_eq!(listing.iter().next().unwrap().1.modified, None);
    }
}
