//! One identity for a blob, whatever URL form names it (issue "storage": every form reduces to account, container, key).
//!
//! Two texts name the same blob exactly when their [`BlobId`]s are equal; URLs are never compared as text, because one table
//! may hold `abfss://…dfs…`, `wasbs://…blob…` and `https://…` paths of one blob side by side. [`crate::blob_url`] knows
//! the forms and writes them.

use std::fmt;

use crate::blob_url::{self, UrlForm};

/// The identity of a blob: Azure account, container and key; for a local folder account and container are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId {
    /// Storage account, lower case; empty for a local file.
    pub account: String,
    /// Container; empty for a local file.
    pub container: String,
    /// Key within the container, or the absolute path of a local file, exactly as it stands in storage. Empty for the
    /// container itself.
    pub key: String,
}

/// Why a text does not name a blob. Nothing here gets better by a retry: the text has to change. No message holds the query
/// of an `https://` URL, which may be a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobIdError {
    /// The scheme is none that Firn can reach.
    #[error("unknown scheme in `{0}`: use abfss://container@account.dfs.core.windows.net/key, https:// or file://")]
    Scheme(String),
    /// Neither a URL nor an absolute path.
    #[error(
        "`{0}` is neither a URL nor an absolute path: write file:///path or abfss://container@account.dfs.core.windows.net/key"
    )]
    Relative(String),
    /// The short form, and no account in the configuration.
    #[error("`{0}` names no storage account: set storage.account, or write container@account.dfs.core.windows.net")]
    NoAccount(String),
    /// The host is not that of a storage account.
    #[error(
        "cannot tell the storage account from host `{host}` in `{text}`: use account.dfs.core.windows.net or \
         account.blob.core.windows.net (or the same names in another Azure cloud); custom domains do not name their account"
    )]
    Host {
        /// The whole text.
        text: String,
        /// Its host.
        host: String,
    },
    /// No container.
    #[error("`{0}` names no container: write abfss://container@account.dfs.core.windows.net/key")]
    NoContainer(String),
    /// `file://` with the name of another machine, or with a relative path.
    #[error("`{0}` is no absolute path on this machine: write file:///path with three slashes")]
    FileHost(String),
    /// The percent-decoded path of an `https://` URL is not UTF-8.
    #[error("the path of `{0}` is not UTF-8 after percent-decoding: Azure keys are UTF-8")]
    NotUtf8(String),
    /// An `https://` URL of a snapshot or version of a blob.
    #[error("`{0}` names a snapshot or version of a blob: name the blob itself")]
    Version(String),
}

impl BlobId {
    /// The identity that `text` names: an Azure URL in any form (see [`UrlForm`]), `file:///path`, `file:/path` or an absolute
    /// path. Schemes, hosts and accounts are compared without case; only the path of an `http(s)://` URL is percent-decoded,
    /// in every other scheme the text after the container is the key as it stands.
    ///
    /// # Errors
    /// [`BlobIdError`], which quotes the text and says what to write instead.
    pub fn parse(text: &str) -> Result<BlobId, BlobIdError> {
        Self::parse_with(text, None)
    }

    /// As [`BlobId::parse`]; a short form without an account (`abfss://container/key`) belongs to `default_account`.
    ///
    /// # Errors
    /// As [`BlobId::parse`].
    pub fn parse_with(text: &str, default_account: Option<&str>) -> Result<BlobId, BlobIdError> {
        let named = blob_url::split(text)?;
        let account = match (&named.form, named.form.account()) {
            (UrlForm::File { .. }, _) => String::new(),
            (_, Some(account)) => account.to_ascii_lowercase(),
            (_, None) => match default_account {
                Some(account) => account.to_ascii_lowercase(),
                None => return Err(BlobIdError::NoAccount(blob_url::quotable(text))),
            },
        };
        Ok(BlobId { account, container: named.container, key: named.key })
    }

    /// A file of this machine, by its absolute path as it stands.
    pub fn local(path: impl Into<String>) -> BlobId {
        BlobId { account: String::new(), container: String::new(), key: path.into() }
    }

    /// Whether this is a file of this machine.
    pub fn is_local(&self) -> bool {
        self.account.is_empty()
    }

    /// The same container (or machine) with another key.
    #[must_use]
    pub fn with_key(&self, key: impl Into<String>) -> BlobId {
        BlobId { account: self.account.clone(), container: self.container.clone(), key: key.into() }
    }

    /// The URL of this blob in the form that `template` has, for example the table's location: scheme, host and their case
    /// are taken from it. A template that cannot name this blob (a folder for a blob in Azure, or the reverse, or no URL at
    /// all) gives the text of [`BlobId`]'s `Display`, which names the blob all the same.
    pub fn url_like(&self, template: &str) -> String {
        match UrlForm::of(template) {
            Ok(form) => form.render(self).unwrap_or_else(|| self.to_string()),
            Err(_) => self.to_string(),
        }
    }
}

/// For messages, and as the fallback of [`BlobId::url_like`]: the path of a local file, or the `abfss` URL in the public
/// cloud. It parses back to the same identity, whichever cloud the account is in.
impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_local() {
            return f.write_str(&self.key);
        }
        write!(f, "abfss://{}@{}.dfs.core.windows.net/{}", self.container, self.account, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn azure(account: &str, container: &str, key: &str) -> BlobId {
        BlobId { account: account.into(), container: container.into(), key: key.into() }
    }

    #[test]
    fn every_form_of_one_blob_is_one_identity() {
        let id = azure("acct", "c", "t/data/a.parquet");
        for text in [
            "abfss://c@acct.dfs.core.windows.net/t/data/a.parquet",
            "abfs://c@acct.dfs.core.windows.net/t/data/a.parquet",
            "ABFSS://c@ACCT.DFS.Core.Windows.NET/t/data/a.parquet",
            "abfss://c@acct.blob.core.windows.net/t/data/a.parquet",
            "abfss://c@acct.dfs.core.windows.net:443/t/data/a.parquet",
            "wasb://c@acct.blob.core.windows.net/t/data/a.parquet",
            "wasbs://c@acct.blob.core.windows.net/t/data/a.parquet",
            "az://c@acct.blob.core.windows.net/t/data/a.parquet",
            "az://acct.blob.core.windows.net/c/t/data/a.parquet",
            "abfss://acct.dfs.core.windows.net/c/t/data/a.parquet",
            "https://acct.blob.core.windows.net/c/t/data/a.parquet",
            "HTTPS://Acct.Blob.core.windows.net/c/t/data/a.parquet",
            "https://acct.dfs.core.windows.net/c/t%2Fdata/a.parquet",
            "https://acct.blob.core.windows.net:443/c/t/data/a.parquet",
            "https://acct.blob.core.windows.net/c/t/data/a.parquet?sv=2025-11-05&sig=abc%2B",
            "https://acct.z07.blob.storage.azure.net/c/t/data/a.parquet",
            "https://acct.privatelink.blob.core.windows.net/c/t/data/a.parquet",
            "abfss://c@acct.dfs.core.chinacloudapi.cn/t/data/a.parquet",
            "abfss://c@acct.dfs.core.usgovcloudapi.net/t/data/a.parquet",
            "http://127.0.0.1:10000/acct/c/t/data/a.parquet",
            "http://localhost:10000/acct/c/t/data/a.parquet",
            "http://azurite:10000/ACCT/c/t/data/a.parquet",
            "http://[::1]:10000/acct/c/t/data/a.parquet",
            "http://acct.blob.localhost:10000/c/t/data/a.parquet",
        ] {
            assert_eq!(BlobId::parse(text), Ok(id.clone()), "{text}");
        }
        for text in ["abfss://c/t/data/a.parquet", "az://c/t/data/a.parquet", "WASBS://c/t/data/a.parquet"] {
            assert_eq!(BlobId::parse_with(text, Some("Acct")), Ok(id.clone()), "{text}");
        }
    }

    #[test]
    fn only_http_urls_are_decoded() {
        let key = "a%20b#c?d+e f%2Fg";
        for text in [
            format!("abfss://c@acct.dfs.core.windows.net/{key}"),
            format!("wasbs://c@acct.blob.core.windows.net/{key}"),
            format!("az://acct.blob.core.windows.net/c/{key}"),
        ] {
            assert_eq!(BlobId::parse(&text), Ok(azure("acct", "c", key)), "{text}");
        }
        assert_eq!(BlobId::parse_with(&format!("az://c/{key}"), Some("acct")), Ok(azure("acct", "c", key)));
        for prefix in ["file://", "FILE://", "file:", "file://localhost", ""] {
            assert_eq!(BlobId::parse(&format!("{prefix}/x/{key}")), Ok(BlobId::local(format!("/x/{key}"))), "{prefix}");
        }
        assert_eq!(
            BlobId::parse("https://acct.blob.core.windows.net/c/a%20b%23c%3Fd+e%20f%252Fg%zz#fragment"),
            Ok(azure("acct", "c", "a b#c?d+e f%2Fg%zz"))
        );
    }

    #[test]
    fn slashes_belong_to_the_key_as_they_stand() {
        assert_eq!(BlobId::parse("abfss://c@a.dfs.core.windows.net//x//y/"), Ok(azure("a", "c", "/x//y/")));
        assert_eq!(BlobId::parse("file:////x//y/"), Ok(BlobId::local("//x//y/")));
        for text in [
            "abfss://c@a.dfs.core.windows.net",
            "abfss://c@a.dfs.core.windows.net/",
            "https://a.blob.core.windows.net/c",
        ] {
            assert_eq!(BlobId::parse(text), Ok(azure("a", "c", "")), "{text}");
        }
    }

    #[test]
    fn a_url_goes_back_into_the_form_of_the_table() {
        let id = azure("acct", "c", "t/day=2026-11-01/a b%.parquet");
        for (template, expected) in [
            (
                "abfss://c@acct.dfs.core.windows.net/t",
                "abfss://c@acct.dfs.core.windows.net/t/day=2026-11-01/a b%.parquet",
            ),
            (
                "WASBS://c@Acct.blob.Core.windows.net/t",
                "WASBS://c@Acct.blob.Core.windows.net/t/day=2026-11-01/a b%.parquet",
            ),
            (
                "abfss://other@acct.dfs.core.windows.net/t",
                "abfss://c@acct.dfs.core.windows.net/t/day=2026-11-01/a b%.parquet",
            ),
            (
                "abfss://c@other.dfs.core.windows.net/t",
                "abfss://c@acct.dfs.core.windows.net/t/day=2026-11-01/a b%.parquet",
            ),
            ("az://c/t", "az://c/t/day=2026-11-01/a b%.parquet"),
            ("az://acct.blob.core.windows.net/c/t", "az://acct.blob.core.windows.net/c/t/day=2026-11-01/a b%.parquet"),
            (
                "https://acct.blob.core.windows.net/c/t",
                "https://acct.blob.core.windows.net/c/t/day=2026-11-01/a%20b%25.parquet",
            ),
            ("http://127.0.0.1:10000/acct/c/t", "http://127.0.0.1:10000/acct/c/t/day=2026-11-01/a%20b%25.parquet"),
            ("file:///t", "abfss://c@acct.dfs.core.windows.net/t/day=2026-11-01/a b%.parquet"),
            ("nonsense", "abfss://c@acct.dfs.core.windows.net/t/day=2026-11-01/a b%.parquet"),
        ] {
            assert_eq!(id.url_like(template), expected, "{template}");
        }
        let file = BlobId::local("/t/a#b");
        assert_eq!(file.url_like("file:///t"), "file:///t/a#b");
        assert_eq!(file.url_like("file:/t"), "file:/t/a#b");
        assert_eq!(file.url_like("/t"), "/t/a#b");
        assert_eq!(file.url_like("az://c/t"), "/t/a#b");
    }

    #[test]
    fn wrong_texts_are_quoted_with_a_remedy() {
        let fails = |text: &str| BlobId::parse(text).unwrap_err();
        assert_eq!(fails("s3://b/k"), BlobIdError::Scheme("s3://b/k".into()));
        assert_eq!(fails("a/b"), BlobIdError::Relative("a/b".into()));
        assert_eq!(fails(""), BlobIdError::Relative(String::new()));
        assert_eq!(fails("abfss://c/k"), BlobIdError::NoAccount("abfss://c/k".into()));
        assert_eq!(fails("abfss:///k"), BlobIdError::NoContainer("abfss:///k".into()));
        assert_eq!(fails("abfss://@a.dfs.x/k"), BlobIdError::NoContainer("abfss://@a.dfs.x/k".into()));
        assert_eq!(fails("https://a.blob.x/"), BlobIdError::NoContainer("https://a.blob.x/".into()));
        assert_eq!(fails("http://127.0.0.1:1/a"), BlobIdError::NoContainer("http://127.0.0.1:1/a".into()));
        assert_eq!(fails("file://server/x"), BlobIdError::FileHost("file://server/x".into()));
        assert_eq!(fails("file:x"), BlobIdError::FileHost("file:x".into()));
        for (text, host) in [
            ("https://data.example.com/c/k", "data.example.com"),
            ("abfss://c@data.example.com/k", "data.example.com"),
            ("abfss://c@127.0.0.1:10000/k", "127.0.0.1:10000"),
            ("abfss://c@.dfs.core.windows.net/k", ".dfs.core.windows.net"),
            ("https://user@a.blob.core.windows.net/c/k", "user@a.blob.core.windows.net"),
        ] {
            assert_eq!(fails(text), BlobIdError::Host { text: text.into(), host: host.into() });
        }
        assert_eq!(fails("https://a.blob.x/c/%ff"), BlobIdError::NotUtf8("https://a.blob.x/c/%ff".into()));
        assert_eq!(
            fails("https://a.blob.x/c/k?snapshot=2026&sig=secret"),
            BlobIdError::Version("https://a.blob.x/c/k?…".into())
        );
        let custom = fails("https://data.example.com/c/k?sig=secret").to_string();
        assert!(!custom.contains("secret") && custom.contains("https://data.example.com/c/k?…"), "{custom}");
    }

    fn any_key() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[a-c%#?+ =&./@:_0-9-]{0,24}",
            "([a-z]{1,3}%[0-9A-Fa-f]{2}|/|#|\\?|\\+| |é|%){0,8}",
        ]
    }

    proptest! {
        #[test]
        fn any_key_survives_every_form(key in any_key(), container in "[a-z0-9$][a-z0-9-]{0,8}", account in "[a-z0-9]{3,8}") {
            let id = azure(&account, &container, &key);
            for template in [
                "abfss://x@y.dfs.core.windows.net/t", "ABFS://x@Y.blob.core.windows.net", "wasb://x@y.blob.core.chinacloudapi.cn/t/",
                "wasbs://x@y.blob.core.windows.net:443/t", "az://x@y.dfs.core.windows.net", "az://y.blob.core.windows.net/x/t",
                "abfss://x/t", "az://x/t", "https://y.blob.core.windows.net/x/t", "https://y.dfs.core.usgovcloudapi.net/x",
                "http://127.0.0.1:10000/y/x/t", "https://[::1]:10000/y/x", "http://y.blob.localhost:10000/x", "file:///t",
            ] {
                let url = id.url_like(template);
                prop_assert_eq!(BlobId::parse_with(&url, Some(&account)), Ok(id.clone()), "{} as {}", url, template);
            }
            let file = BlobId::local(format!("/{key}"));
            for template in ["file:///t", "file:/t", "file://localhost/t", "/t", "az://c/t"] {
                prop_assert_eq!(BlobId::parse(&file.url_like(template)), Ok(file.clone()), "as {}", template);
            }
        }

        #[test]
        fn a_text_that_parses_names_the_same_blob_in_its_own_form(text in "(abfss|wasb|az|https|file|)(://|:/|/)([a-z@.%/?#:]|blob|dfs){0,20}") {
            if let Ok(id) = BlobId::parse_with(&text, Some("acct")) {
                prop_assert_eq!(BlobId::parse_with(&id.url_like(&text), Some("acct")), Ok(id));
            }
        }
    }
}
