//! Where tables lie: a location that two tables share, or that holds the state, cannot be cleaned.

use std::fmt;

use firn_config::Dataset;
use firn_model::BlobId;
use firn_state::StateRoot;
use firn_table::LoadedTable;

use super::finding::Finding;

/// Where data files go when it is not below the location.
const DATA_PATH: &str = "write.data.path";

/// A folder or prefix of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) dataset: String,
    pub(super) table: String,
    pub(super) id: BlobId,
}

impl Place {
    /// Where a probe may lie: names that begin with `_` are nobody's data.
    pub(super) fn probe_folder(&self) -> BlobId {
        self.id.with_key(format!("{}_firn/", folder(&self.id)))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Locations {
    /// So many, apart from each other.
    Apart(usize),
    Shared {
        one: Box<Place>,
        other: Box<Place>,
    },
    HoldsState {
        place: Box<Place>,
        state: Box<BlobId>,
    },
    /// The text has the remedy.
    Unreadable {
        dataset: String,
        reason: String,
    },
}

/// The places of a table: its location, and its data path where that is another.
pub(super) fn places(dataset: &Dataset, table: &LoadedTable) -> Result<Vec<Place>, Locations> {
    let place = |path: &str| {
        let id = table
            .blob_id(path)
            .map_err(|error| Locations::Unreadable { dataset: dataset.name.clone(), reason: error.to_string() })?;
        Ok(Place { dataset: dataset.name.clone(), table: table.uuid(), id })
    };
    let mut found = vec![place(&format!("{}/", table.location().trim_end_matches('/')))?];
    if let Some(path) = table.property(DATA_PATH) {
        found.push(place(&format!("{}/", path.trim_end_matches('/')))?);
    }
    Ok(found)
}

/// Compares all places of all tables, and the state.
pub(super) fn decide(places: &[Place], state: Option<&BlobId>) -> Locations {
    for (index, one) in places.iter().enumerate() {
        if let Some(state) = state
            && StateRoot::new(state.clone()).lies_below(&one.id)
        {
            return Locations::HoldsState { place: Box::new(one.clone()), state: Box::new(state.clone()) };
        }
        let shared =
            |other: &&Place| other.table != one.table && (holds(&one.id, &other.id) || holds(&other.id, &one.id));
        if let Some(other) = places[index + 1..].iter().find(shared) {
            return Locations::Shared { one: Box::new(one.clone()), other: Box::new(other.clone()) };
        }
    }
    Locations::Apart(places.len())
}

fn holds(outer: &BlobId, inner: &BlobId) -> bool {
    outer.account == inner.account && outer.container == inner.container && folder(inner).starts_with(&folder(outer))
}

/// The key with one slash at its end; nothing for a container as a whole.
fn folder(id: &BlobId) -> String {
    match id.key.trim_end_matches('/') {
        "" => String::new(),
        key => format!("{key}/"),
    }
}

impl fmt::Display for Locations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Locations::Apart(count) => match count {
                1 => f.write_str("1 place, apart from the state"),
                count => write!(f, "{count} places, apart from each other and from the state"),
            },
            Locations::Shared { one, other } => write!(
                f,
                "{} ({}) and {} ({}) share a location: one table's files would be another's orphans; give each table a location of its own",
                one.dataset, one.id, other.dataset, other.id
            ),
            Locations::HoldsState { place, state } => write!(
                f,
                "{} ({}) holds the state ({state}): choose another storage.stateContainer or move the table",
                place.dataset, place.id
            ),
            Locations::Unreadable { dataset, reason } => write!(f, "{dataset}: {reason}"),
        }
    }
}

impl Finding for Locations {
    fn ok(&self) -> bool {
        matches!(self, Locations::Apart(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(table: &str, key: &str) -> Place {
        let id = BlobId { account: "acct".into(), container: "lake".into(), key: key.into() };
        Place { dataset: table.into(), table: table.into(), id }
    }

    #[test]
    fn names_that_begin_alike_are_apart() {
        let (a, ab) = (place("a", "wh/a/"), place("ab", "wh/ab/"));
        assert_eq!(decide(&[a.clone(), ab.clone()], None), Locations::Apart(2));
        let inner = place("c", "wh/a/data/");
        assert!(!decide(&[a.clone(), ab, inner], None).ok());
        // The data path of a table lies in its own location.
        assert_eq!(decide(&[a.clone(), place("a", "wh/a/data/")], None), Locations::Apart(2));
        assert_eq!(a.probe_folder().key, "wh/a/_firn/");
    }

    #[test]
    fn the_state_lies_outside() {
        let state = BlobId { account: "acct".into(), container: "lake".into(), key: "wh/a/firn-state".into() };
        let found = decide(&[place("a", "wh/a/")], Some(&state));
        assert!(!found.ok() && found.to_string().contains("holds the state"), "{found}");
        let elsewhere = BlobId { container: "firn-state".into(), key: String::new(), ..state };
        assert!(decide(&[place("a", "wh/a/")], Some(&elsewhere)).ok());
        assert!(decide(&[place("a", "")], Some(&elsewhere)).ok());
    }
}
