//! One identity for each file, whatever text names it (design section 7, "Every path is reduced to one identity").
//!
//! [`BlobId`] makes one of all forms of URL. Here the key is made one too: writers and engines differ in whether they encode a percent
//! sign, double a slash or end a folder with one. What is not certain to be different counts as the same, so that a reference protects
//! every blob that it could mean; two listed blobs of one identity protect each other.

use std::borrow::Cow;
use std::fmt;

use firn_model::{BlobId, BlobIdError, UrlForm};
use percent_encoding::percent_decode_str;
use xxhash_rust::xxh3::xxh3_128;

/// The fingerprint of an identity: 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub u128);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Fingerprint {
    /// The fingerprint of what a blob is.
    pub fn of(id: &BlobId) -> Self {
        let key = canonical_key(&id.key);
        let mut text = String::with_capacity(id.account.len() + id.container.len() + key.len() + 2);
        // Neither has a slash.
        text.push_str(&id.account);
        text.push('/');
        text.push_str(&id.container);
        text.push('/');
        text.push_str(&key);
        Fingerprint(xxh3_128(text.as_bytes()))
    }
}

/// The key with percent escapes decoded until none is left, runs of slashes as one, and none at either end.
pub fn canonical_key(key: &str) -> Cow<'_, str> {
    let mut key = Cow::Borrowed(key);
    while key.contains('%') {
        // What is no UTF-8 after decoding stays as it is, and so does a percent sign that begins no escape.
        let Ok(decoded) = percent_decode_str(&key).decode_utf8() else { break };
        if decoded == key {
            break;
        }
        key = Cow::Owned(decoded.into_owned());
    }
    if !key.contains("//") && !key.starts_with('/') && !key.ends_with('/') {
        return key;
    }
    let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty()).collect();
    Cow::Owned(parts.join("/"))
}

/// The form in which a path is written: scheme, place of the account, and host. For each form of the metadata the sweep wants to see that
/// it understood it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathForm(String);

impl PathForm {
    /// The form of a path.
    ///
    /// # Errors
    /// As [`BlobId::parse`].
    pub fn of(path: &str) -> Result<Self, BlobIdError> {
        Ok(PathForm(match UrlForm::of(path)? {
            UrlForm::ContainerAtHost { scheme, account, domain } => format!("{scheme}://…@{account}{domain}"),
            UrlForm::Short { scheme } => format!("{scheme}://…"),
            UrlForm::HostFirst { scheme, account, domain } => format!("{scheme}://{account}{domain}/…"),
            UrlForm::PathStyle { scheme, host, account } => format!("{scheme}://{host}/{account}/…"),
            UrlForm::File { prefix } => format!("{prefix}/…"),
        }))
    }
}

impl fmt::Display for PathForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let print = |text: &str| Fingerprint::of(&BlobId::parse_with(text, Some("acct")).unwrap());
        print(one) == print(other)
    }

    /// K12: every form of one blob.
    #[test]
    fn every_form_is_one_identity() {
        let listed = "abfss://c@acct.dfs.core.windows.net/t/data/day=2026-11-01/a b.parquet";
        for text in [
            "abfs://c@acct.dfs.core.windows.net/t/data/day=2026-11-01/a b.parquet",
            "ABFSS://c@ACCT.dfs.core.windows.net/t/data/day=2026-11-01/a b.parquet",
            "wasb://c@acct.blob.core.windows.net/t/data/day=2026-11-01/a b.parquet",
            "wasbs://c@acct.blob.core.windows.net/t//data/day=2026-11-01//a b.parquet",
            "az://c/t/data/day%3D2026-11-01/a%20b.parquet",
            "https://acct.blob.core.windows.net/c/t/data/day=2026-11-01/a%20b.parquet",
            "https://acct.dfs.core.windows.net/c/t/data/day%3D2026-11-01/a%2520b.parquet",
            "abfss://c@acct.dfs.core.windows.net//t/data/day=2026-11-01/a%20b.parquet",
        ] {
            assert!(same(listed, text), "{text}");
        }
        for text in [
            "abfss://c@other.dfs.core.windows.net/t/data/day=2026-11-01/a b.parquet",
            "abfss://d@acct.dfs.core.windows.net/t/data/day=2026-11-01/a b.parquet",
            "abfss://c@acct.dfs.core.windows.net/t/data/day=2026-11-01/A b.parquet",
            "abfss://c@acct.dfs.core.windows.net/t/data/day=2026-11-01/a+b.parquet",
        ] {
            assert!(!same(listed, text), "{text}");
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for (key, expected) in [
            ("a%zz", "a%zz"),
            ("a%", "a%"),
            ("a%ff", "a%ff"),
            ("a%25zz", "a%zz"),
            ("a%252520b", "a b"),
            ("//x//y/", "x/y"),
            ("plain/key", "plain/key"),
        ] {
            assert_eq!(canonical_key(key), expected, "{key}");
        }
    }

    #[test]
    fn forms_are_told_apart_by_scheme_and_host() {
        let form = |text: &str| PathForm::of(text).unwrap().to_string();
        assert_eq!(form("abfss://c@acct.dfs.core.windows.net/t"), "abfss://…@acct.dfs.core.windows.net");
        assert_eq!(form("https://acct.blob.core.windows.net/c/t"), "https://acct.blob.core.windows.net/…");
        assert_eq!(form("file:///x"), "file:///…");
        assert_eq!(form("/x"), "/…");
        assert_ne!(form("abfss://c@acct.dfs.core.windows.net/t"), form("ABFSS://c@acct.dfs.core.windows.net/t"));
        assert!(PathForm::of("s3://b/k").is_err());
    }

    proptest! {
        #[test]
        fn a_key_is_protected_as_it_stands_and_decoded(key in "([a-z]{1,3}|%[0-9A-F]{2}|/|%| |=){0,10}") {
            let canonical = canonical_key(&key).into_owned();
            prop_assert_eq!(canonical_key(&canonical), canonical.as_str(), "once more changes nothing");
            if let Ok(decoded) = percent_decode_str(&key).decode_utf8() {
                prop_assert_eq!(canonical_key(&decoded), canonical.as_str());
            }
            let encoded = percent_encoding::utf8_percent_encode(&key, percent_encoding::NON_ALPHANUMERIC).to_string();
            prop_assert_eq!(canonical_key(&encoded), canonical.as_str());
        }
    }
}
