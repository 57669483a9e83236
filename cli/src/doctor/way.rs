//! By what a place is reached, and so what helps when it is denied: a role helps no folder and no key.

use std::fmt;

use firn_model::BlobId;
use firn_storage::AzureAccount;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A folder of this machine.
    Folder,
    /// Key or signature of the connection string.
    ConnectionString,
    /// Tokens.
    Identity,
    /// What the catalog hands out, without an account of the configuration.
    Catalog,
}

impl Way {
    /// The way to the account of the configuration.
    pub(super) fn to_account(access: &AzureAccount) -> Self {
        if access.identity().is_some() { Way::Identity } else { Way::ConnectionString }
    }

    /// The way to a place of a table.
    pub(super) fn to_place(place: &BlobId, access: Option<&AzureAccount>) -> Self {
        match access {
            _ if place.is_local() => Way::Folder,
            Some(access) => Way::to_account(access),
            None => Way::Catalog,
        }
    }

    /// What to do when it is denied; `role` is the one that an identity needs.
    pub(super) fn remedy(self, role: &'static str) -> Remedy {
        Remedy { way: self, role }
    }
}

/// Prints as what to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remedy {
    way: Way,
    role: &'static str,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Way::Folder => f.write_str("let the user that runs Firn read and write this folder, or mount it writable"),
            Way::ConnectionString => f.write_str(
                "correct the key or signature in storage.connectionString: copy it from the account's access keys; a signature needs \
                 read, write, delete and list",
            ),
            Way::Identity => {
                write!(f, "give the identity the role {} on it; a new role takes up to ten minutes", self.role)
            }
            Way::Catalog => f.write_str(
                "let the catalog hand out credentials that may write and delete, or write a storage section with vendedCredentials: false",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_own_remedy() {
        let remedy = |way: Way| way.remedy("Storage Blob Data Contributor").to_string();
        assert!(remedy(Way::Folder).starts_with("let the user that runs Firn read and write this folder"));
        assert!(remedy(Way::ConnectionString).contains("storage.connectionString"));
        assert!(remedy(Way::Identity).contains("the role Storage Blob Data Contributor on it"));
        for way in [Way::Folder, Way::ConnectionString, Way::Catalog] {
            assert!(!remedy(way).contains("role"), "{way:?}");
        }
        let local = BlobId::local("/data/wh/t");
        assert_eq!(Way::to_place(&local, None), Way::Folder);
        assert_eq!(Way::to_place(&BlobId { account: "a".into(), ..local }, None), Way::Catalog);
    }
}
