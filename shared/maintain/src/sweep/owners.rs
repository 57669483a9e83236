//! The fate of the data files that sidecars belong to.

use std::collections::HashSet;

use crate::sweep::class::FileClass;
use crate::sweep::decide::Owner;
use crate::sweep::listing::Listing;

/// Owners of the listed sidecars, sorted, each with its fate.
#[derive(Debug, Default)]
pub(crate) struct Owners(Vec<(u64, Owner)>);

impl Owners {
    /// By what is marked in the listing: a data file that goes was marked so. `referred` are owners that stay although the listing does
    /// not show it.
    pub(crate) fn of(listing: &Listing, referred: &HashSet<u64>) -> Self {
        let sidecars = listing.iter().filter(|(_, file)| file.class.is_sidecar());
        let mut owners: Vec<u64> = sidecars.map(|(_, file)| file.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        if owners.is_empty() {
            return Self::default();
        }
        let mut fates: Vec<(u64, Owner)> = owners.into_iter().map(|owner| (owner, Owner::None)).collect();
        let found = |fates: &[(u64, Owner)], owner: u64| fates.binary_search_by_key(&owner, |(known, _)| *known).ok();
        for (_, file) in listing.iter().filter(|(_, file)| is_owner(file.class)) {
            let Some(at) = found(&fates, file.owner) else { continue };
            // Of two files that seem to own it, one that stays decides.
            fates[at].1 = match (fates[at].1, file.goes) {
                (Owner::Kept, _) | (_, false) => Owner::Kept,
                _ => Owner::Goes,
            };
        }
        for owner in referred {
            if let Some(at) = found(&fates, *owner) {
                fates[at].1 = Owner::Kept;
            }
        }
        Self(fates)
    }

    /// The fate of one.
    pub(crate) fn fate(&self, owner: u64) -> Owner {
        self.0.binary_search_by_key(&owner, |(known, _)| *known).map_or(Owner::None, |at| self.0[at].1)
    }
}

fn is_owner(class: FileClass) -> bool {
    matches!(class, FileClass::Data | FileClass::Unknown)
}
