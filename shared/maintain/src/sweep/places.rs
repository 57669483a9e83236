//! The folders that a sweep lists, and whether they are the table's alone (design section 7).

use firn_model::{BlobId, BlobIdError};
use firn_table::TablePlaces;

use crate::identity::canonical_key;

/// A folder: its key ends in exactly one slash, or is empty for a whole container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(BlobId);

impl Folder {
    /// The folder that a path names, with or without slashes at its end.
    pub fn of(id: &BlobId) -> Self {
        let key = id.key.trim_end_matches('/');
        let slash = if key.is_empty() && !id.is_local() { "" } else { "/" };
        Folder(id.with_key(format!("{key}{slash}")))
    }

    /// As a prefix for a listing.
    pub fn prefix(&self) -> &BlobId {
        &self.0
    }

    /// A folder in it.
    pub fn below(&self, name: &str) -> Self {
        Folder(self.0.with_key(format!("{}{name}/", self.0.key)))
    }

    /// The folder that holds it; None for a container or the root of a file system.
    pub fn parent(&self) -> Option<Self> {
        let key = self.0.key.trim_end_matches('/');
        let end = key.rfind('/').map_or(0, |slash| slash + 1);
        (!key.is_empty()).then(|| Folder(self.0.with_key(&key[..end])))
    }

    /// The rest of a listed key in it.
    pub fn rest<'a>(&self, id: &'a BlobId) -> Option<&'a str> {
        let here = id.account == self.0.account && id.container == self.0.container;
        id.key.strip_prefix(self.0.key.as_str()).filter(|_| here)
    }

    /// Whether a file that somebody refers to lies in it, whatever slashes and escapes its path has.
    pub fn may_hold(&self, id: &BlobId) -> bool {
        let here = id.account == self.0.account && id.container == self.0.container;
        here && starts_with_folder(&canonical_key(&id.key), &canonical_key(&self.0.key))
    }

    /// Whether one of the two lies in the other, or both are the same.
    pub fn overlaps(&self, other: &Folder) -> bool {
        let (mine, its) = (canonical_key(&self.0.key), canonical_key(&other.0.key));
        self.0.account == other.0.account
            && self.0.container == other.0.container
            && (starts_with_folder(&mine, &its) || starts_with_folder(&its, &mine))
    }

    /// Whether it is in the same account and container.
    pub fn beside(&self, id: &BlobId) -> bool {
        self.0.account == id.account && self.0.container == id.container
    }
}

impl std::fmt::Display for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a canonical key is a canonical folder or lies in it: `orders_2` does not lie in `orders`.
fn starts_with_folder(key: &str, folder: &str) -> bool {
    match key.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// The folders of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The table location.
    pub location: Folder,
    /// Where data files may lie.
    pub data: Vec<Folder>,
    /// Where metadata files lie.
    pub metadata: Folder,
    /// Where sidecars lie.
    pub sidecars: Folder,
    /// What is listed: the above without those that lie in another.
    pub listed: Vec<Folder>,
}

impl Places {
    /// The folders of a table; `parse` gives the identity of a path of its metadata.
    ///
    /// # Errors
    /// What is wrong with a path.
    pub fn of(table: &TablePlaces, parse: impl Fn(&str) -> Result<BlobId, BlobIdError>) -> Result<Self, BlobIdError> {
        let folder = |path: &str| parse(path).map(|id| Folder::of(&id));
        let location = folder(&table.location)?;
        let data = table.data.iter().map(|path| folder(path)).collect::<Result<Vec<_>, _>>()?;
        let metadata = folder(&table.metadata)?;
        let mut listed: Vec<Folder> = vec![location.clone()];
        for place in data.iter().chain([&metadata]) {
            if listed.iter().any(|known| known.may_hold(place.prefix())) {
                continue;
            }
            listed.retain(|known| !place.may_hold(known.prefix()));
            listed.push(place.clone());
        }
        Ok(Self { sidecars: location.below("_firn"), location, data, metadata, listed })
    }

    /// Whether a file that the metadata names lies in what is listed.
    pub fn may_hold(&self, id: &BlobId) -> bool {
        self.listed.iter().any(|folder| folder.may_hold(id))
    }

    /// Whether a file that the metadata names lies in an account and container that is listed.
    pub fn beside(&self, id: &BlobId) -> bool {
        self.listed.iter().any(|folder| folder.beside(id))
    }

    /// Whether files of the table lie outside its location, where other tables may have theirs.
    pub fn reach_out(&self) -> bool {
        self.listed.iter().any(|folder| *folder != self.location)
    }

    /// The first pair of folders of two tables that share files.
    pub fn overlap<'a>(&'a self, other: &'a Places) -> Option<(&'a Folder, &'a Folder)> {
        let pairs = self.listed.iter().flat_map(|mine| other.listed.iter().map(move |its| (mine, its)));
        pairs.into_iter().find(|(mine, its)| mine.overlaps(its))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn places(location: &str, properties: &[(&str, &str)]) -> Places {
        let owned = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Places::of(&TablePlaces::from_properties(location, &owned), |path| BlobId::parse_with(path, Some("acct")))
            .unwrap()
    }

    fn prefixes(places: &Places) -> Vec<&str> {
        places.listed.iter().map(|folder| folder.prefix().key.as_str()).collect()
    }

    /// K73: prefixes end in exactly one slash, so that names that begin alike are apart.
    #[test]
    fn neighbours_whose_names_begin_alike_are_apart() {
        for location in ["az://c/wh/db/orders", "az://c/wh/db/orders/", "az://c/wh/db/orders//"] {
            let orders = places(location, &[]);
            assert_eq!(prefixes(&orders), ["wh/db/orders/"], "{location}");
            assert_eq!(orders.overlap(&places("az://c/wh/db/orders_2", &[])), None);
            assert_eq!(orders.overlap(&places("az://d/wh/db/orders", &[])), None);
            for nested in [
                "az://c/wh/db/orders/sub",
                "az://c/wh/db",
                "az://c/wh//db/orders",
                "wasbs://c@acct.blob.core.windows.net/wh/db/orders/data",
            ] {
                assert!(orders.overlap(&places(nested, &[])).is_some(), "{location} and {nested}");
            }
        }
    }

    #[test]
    fn what_lies_elsewhere_is_listed_too_and_nothing_twice() {
        let apart =
            places("az://c/t", &[("write.data.path", "az://c/elsewhere/d"), ("write.metadata.path", "az://c/t/m")]);
        assert_eq!(prefixes(&apart), ["t/", "elsewhere/d/"]);
        assert!(apart.reach_out() && !places("az://c/t", &[]).reach_out());
        let around = places("az://c/wh/t", &[("write.data.path", "az://c/wh")]);
        assert_eq!(prefixes(&around), ["wh/"]);
        assert!(around.reach_out(), "more than its own location");
        assert_eq!(around.sidecars.prefix().key, "wh/t/_firn/");
        let shared = places("az://c/u", &[("write.data.path", "az://c/elsewhere/d")]);
        assert!(apart.overlap(&shared).is_some());
    }

    #[test]
    fn a_reference_lies_in_a_folder_whatever_its_slashes() {
        let table = places("az://c/wh/t", &[]);
        let holds = |text: &str| table.may_hold(&BlobId::parse_with(text, Some("acct")).unwrap());
        for text in [
            "az://c/wh/t/data/a",
            "az://c/wh//t/data/a",
            "az://c/wh%2Ft/data/a",
            "https://acct.blob.core.windows.net/c/wh/t/x",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["az://c/wh/t2/data/a", "az://c/wh/a", "az://d/wh/t/data/a"] {
            assert!(!holds(text), "{text}");
        }
        let local = Folder::of(&BlobId::local("/wh/t/"));
        assert_eq!(local.prefix().key, "/wh/t/");
        assert!(local.may_hold(&BlobId::local("//wh/t/a")));
        assert_eq!(Folder::of(&BlobId::local("/")).prefix().key, "/");
    }

    #[test]
    fn parents_end_with_the_container() {
        let keys = |text: &str| {
            let start = Folder::of(&BlobId::parse_with(text, Some("acct")).unwrap());
            let line = std::iter::successors(start.parent(), Folder::parent);
            line.map(|folder| folder.prefix().key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys("az://c/wh/db/t"), ["wh/db/", "wh/", ""]);
        assert_eq!(keys("/wh/t"), ["/wh/", "/"]);
        assert_eq!(keys("az://c/"), [""; 0]);
    }
}
