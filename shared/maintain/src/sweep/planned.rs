//! What was decided for each file by the first listing: how many are due, and what the next sweep shall know.

use firn_state::SeenFile;

use crate::file_state::FileState;
use crate::sweep::decide::{FileFacts, OrphanDecision, SweepRules, candidate, decide_orphan};
use crate::sweep::listing::{Listing, Remembered};
use crate::sweep::mark::Marker;
use crate::sweep::owners::Owners;
use crate::sweep::receipt::Receipt;
use crate::sweep::run::count;
use crate::sweep::seen::{Seen, seen_file};

/// What was decided by the listing alone.
pub(crate) struct Planned {
    /// Files that go, as far as is known now.
    pub(crate) due: u64,
    pub(crate) owners: Owners,
}

impl Planned {
    pub(crate) fn decide(
        listing: &Listing,
        marker: &Marker,
        seen: &Seen,
        rules: &SweepRules,
        receipt: &mut Receipt,
    ) -> Self {
        // Data files first: sidecars share their fate.
        for (place, file) in listing.iter().filter(|(_, file)| !file.class.is_sidecar()) {
            let facts = facts_of(&file, seen, &Owners::default());
            if let OrphanDecision::Delete(_) = decide_orphan(&facts, rules) {
                listing.mark_goes(place);
            }
        }
        let owners = Owners::of(listing, &marker.owners());
        let mut due = 0;
        for (_, file) in listing.iter() {
            receipt.states.add(file.state);
            if file.pinned {
                receipt.pinned_bytes += file.bytes;
            }
            match file.state {
                FileState::Replaced => receipt.replaced_bytes += file.bytes,
                FileState::Unreferenced => receipt.unreferenced_bytes += file.bytes,
                FileState::Live | FileState::Deleted => {}
            }
            match decide_orphan(&facts_of(&file, seen, &owners), rules) {
                OrphanDecision::Delete(_) => due += 1,
                OrphanDecision::Keep(reason) => count(receipt, reason),
            }
        }
        Self { due, owners }
    }

    /// What the next sweep shall know: every file that could go after the grace, and those that are left alone, whatever they are now.
    pub(crate) fn candidates<'a>(
        &'a self,
        listing: &'a Listing,
        seen: &'a Seen,
        rules: &'a SweepRules,
    ) -> impl Iterator<Item = SeenFile> + Send + 'a {
        let candidates = listing.iter().filter_map(move |(_, file)| {
            candidate(&facts_of(&file, seen, &self.owners), rules).ok()?;
            let since = seen.since(file.print).unwrap_or(rules.now);
            (since <= rules.now).then(|| seen_file(file.print, since))
        });
        candidates.chain(seen.held(rules.now))
    }
}

fn facts_of(file: &Remembered, seen: &Seen, owners: &Owners) -> FileFacts {
    FileFacts {
        class: file.class,
        state: file.state,
        modified: file.modified,
        doubled: file.doubled,
        unreferenced_since: seen.since(file.print),
        owner: if file.class.is_sidecar() { owners.fate(file.owner) } else { Default::default() },
    }
}
