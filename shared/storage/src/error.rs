//! Why a store could not do what it was asked, by what the caller does next.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::time::Duration;

use firn_model::BlobId;

/// A failure of a store. Causes are kept as text with signatures and keys taken out, because the errors of HTTP libraries
/// hold whole URLs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// No such blob. Next: skip it, or plan again.
    #[error("{blob} does not exist")]
    NotFound {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// No such container. Next: stop; a person creates it or corrects the name.
    #[error("container `{}` of storage account `{}` does not exist: create it or correct the location ({blob})", blob.container, blob.account)]
    NoContainer {
        /// The blob that was asked for.
        blob: Box<BlobId>,
    },
    /// A blob of that name is there already. Next: look at it, or choose another name.
    #[error("{blob} exists already")]
    AlreadyExists {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// The blob changed since its ETag was read, or is gone. Next: read it again.
    #[error("{blob} was changed by another writer ({detail}): read it again")]
    Precondition {
        /// The blob.
        blob: Box<BlobId>,
        /// What the store said.
        detail: String,
    },
    /// Another holds the blob's lease, or the lease that was named has run out. Next: leave the blob to who holds it.
    #[error("{blob} is leased by another, or the lease named has run out: leave it to who holds it")]
    Leased {
        /// The blob.
        blob: Box<BlobId>,
    },
    /// The credentials do not allow it. Next: stop; a person corrects key, role or permission.
    #[error("{blob}: access denied ({detail}): {}", allow(.blob))]
    Denied {
        /// The blob.
        blob: Box<BlobId>,
        /// What the store said.
        detail: String,
    },
    /// The store asks for patience and the time for retries is used up. Next: try later, with less at once.
    #[error("{blob}: the storage account is busy ({detail}): try again later or lower the parallelism")]
    Throttled {
        /// The blob.
        blob: Box<BlobId>,
        /// How long the store asked to wait, when it said so.
        retry_after: Option<Duration>,
        /// What the store said.
        detail: String,
    },
    /// The store cannot be reached or fails by itself, after all retries. Nothing was written; a delete may have happened, and
    /// may be repeated. Next: try later.
    #[error("{blob}: storage is unavailable ({detail}): check the endpoint and the network, then try again")]
    Unavailable {
        /// The blob.
        blob: Box<BlobId>,
        /// What happened, how often and how long it was tried.
        detail: String,
    },
    /// A write's answer was lost and it cannot be told whether it happened. Next: look before doing anything else.
    #[error("{blob}: the outcome of a write is unknown ({detail}): look at the blob before writing it again")]
    Unknown {
        /// The blob.
        blob: Box<BlobId>,
        /// What happened.
        detail: String,
    },
    /// The blob ends before the range does. Next: leave the file; it is not what its metadata says.
    #[error("{blob} has {size} bytes, bytes {}..{} were asked for: the file is not what the table says", range.start, range.end)]
    OutOfRange {
        /// The blob.
        blob: Box<BlobId>,
        /// The range asked for.
        range: Range<u64>,
        /// The blob's size.
        size: u64,
    },
    /// No space left, or too many blocks for one blob. Next: end this group cleanly; others may go on.
    #[error("{blob}: {detail}: free space or write smaller files")]
    Full {
        /// The blob.
        blob: Box<BlobId>,
        /// What is full.
        detail: String,
    },
    /// The blob cannot be reached with this configuration, or no store can have such a name. Next: stop, or skip the blob.
    #[error("{blob}: {detail}")]
    Invalid {
        /// The blob.
        blob: Box<BlobId>,
        /// What is wrong with it and the remedy.
        detail: String,
    },
    /// Anything else. Next: stop and show it.
    #[error("{blob}: {detail}")]
    Other {
        /// The blob.
        blob: Box<BlobId>,
        /// What happened.
        detail: String,
    },
}

/// What helps where access is denied: a folder has no roles.
fn allow(blob: &BlobId) -> &'static str {
    match blob.is_local() {
        true => "let the user of this process read and write there",
        false => "check the credentials of this account and their roles",
    }
}

impl StorageError {
    /// The blob concerned.
    pub fn blob(&self) -> &BlobId {
        match self {
            StorageError::NotFound { blob }
            | StorageError::NoContainer { blob }
            | StorageError::AlreadyExists { blob }
            | StorageError::Precondition { blob, .. }
            | StorageError::Leased { blob }
            | StorageError::Denied { blob, .. }
            | StorageError::Throttled { blob, .. }
            | StorageError::Unavailable { blob, .. }
            | StorageError::Unknown { blob, .. }
            | StorageError::OutOfRange { blob, .. }
            | StorageError::Full { blob, .. }
            | StorageError::Invalid { blob, .. }
            | StorageError::Other { blob, .. } => blob,
        }
    }

    /// Whether the same call may succeed later. Never true of a write that may have happened.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StorageError::Throttled { .. } | StorageError::Unavailable { .. })
    }

    /// Whether the same work may succeed later without a change to it: what is retryable, and what is denied, because a person who gives the right
    /// back (or a role that takes minutes to reach the service) should not have to name the work again.
    pub fn heals(&self) -> bool {
        self.is_retryable() || matches!(self, StorageError::Denied { .. })
    }

    pub(crate) fn not_found(id: &BlobId) -> Self {
        StorageError::NotFound { blob: Box::new(id.clone()) }
    }

    pub(crate) fn already_exists(id: &BlobId) -> Self {
        StorageError::AlreadyExists { blob: Box::new(id.clone()) }
    }

    pub(crate) fn precondition(id: &BlobId, detail: impl Into<String>) -> Self {
        StorageError::Precondition { blob: Box::new(id.clone()), detail: detail.into() }
    }

    pub(crate) fn leased(id: &BlobId) -> Self {
        StorageError::Leased { blob: Box::new(id.clone()) }
    }

    pub(crate) fn out_of_range(id: &BlobId, range: &Range<u64>, size: u64) -> Self {
        StorageError::OutOfRange { blob: Box::new(id.clone()), range: range.clone(), size }
    }

    pub(crate) fn invalid(id: &BlobId, detail: impl Into<String>) -> Self {
        StorageError::Invalid { blob: Box::new(id.clone()), detail: detail.into() }
    }

    pub(crate) fn other(id: &BlobId, detail: impl Into<String>) -> Self {
        StorageError::Other { blob: Box::new(id.clone()), detail: detail.into() }
    }

    /// An error of the file system.
    pub(crate) fn io(id: &BlobId, doing: &str, error: &io::Error) -> Self {
        let blob = Box::new(id.clone());
        let detail = format!("cannot {doing}: {error}");
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StorageError::NotFound { blob },
            io::ErrorKind::AlreadyExists => StorageError::AlreadyExists { blob },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StorageError::Denied { blob, detail }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StorageError::Full { blob, detail }
            }
            _ => StorageError::Other { blob, detail },
        }
    }
}

/// An error and its causes as one text, without what nobody may read in a log.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors print their cause themselves.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    redact(&text)
}

/// `text` with the values of `sig=` (a shared access signature) and `AccountKey=` replaced.
pub(crate) fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = next_secret(rest) {
        clean.push_str(&rest[..start]);
        clean.push_str("***");
        rest = &rest[start..];
        let ends = |at: char| matches!(at, '&' | ';' | '"' | '\'' | ')' | '<' | '>' | ',') || at.is_whitespace();
        rest = &rest[rest.find(ends).unwrap_or(rest.len())..];
    }
    clean + rest
}

/// Where the next secret value begins.
fn next_secret(text: &str) -> Option<usize> {
    // ASCII lower case keeps every byte in its place.
    let lower = text.to_ascii_lowercase();
    ["sig=", "accountkey=", "sharedaccesssignature="]
        .iter()
        .filter_map(|name| lower.find(name).map(|at| at + name.len()))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_a_message() {
        let url =
            "error sending request for url (https://a.blob.core.windows.net/c/k?sv=2025-11-05&SIG=ab%2Bc%3D&se=2026)";
        assert_eq!(
            redact(url),
            "error sending request for url (https://a.blob.core.windows.net/c/k?sv=2025-11-05&SIG=***&se=2026)"
        );
        assert_eq!(redact("AccountName=a;AccountKey=Zm9v==;X=1"), "AccountName=a;AccountKey=***;X=1");
        assert_eq!(redact("SharedAccessSignature=sv=1&sig=abc"), "SharedAccessSignature=***&sig=***");
        assert_eq!(redact("é sig="), "é sig=***");
        assert_eq!(redact("nothing here"), "nothing here");
    }

    #[test]
    fn errors_of_the_file_system_are_told_by_what_comes_next() {
        let id = BlobId::local("/wh/a");
        let of = |kind: io::ErrorKind| StorageError::io(&id, "write", &io::Error::from(kind));
        assert_eq!(of(io::ErrorKind::NotFound), StorageError::not_found(&id));
        assert_eq!(of(io::ErrorKind::NotADirectory), StorageError::not_found(&id));
        assert_eq!(of(io::ErrorKind::AlreadyExists), StorageError::already_exists(&id));
        assert!(matches!(of(io::ErrorKind::PermissionDenied), StorageError::Denied { .. }));
        assert!(matches!(of(io::ErrorKind::ReadOnlyFilesystem), StorageError::Denied { .. }));
        assert!(matches!(of(io::ErrorKind::StorageFull), StorageError::Full { .. }));
        assert_eq!(
            of(io::ErrorKind::StorageFull).to_string(),
            "/wh/a: cannot write: no storage space: free space or write smaller files"
        );
        assert!(matches!(of(io::ErrorKind::Interrupted), StorageError::Other { .. }));
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        let inner = io::Error::other("refused");
        let outer = io::Error::other(inner);
        assert_eq!(chain(&outer), "refused");
    }

    #[test]
    fn messages_name_the_blob_and_the_remedy() {
        let id = BlobId::parse("abfss://lake@acct.dfs.core.windows.net/t/a.parquet").unwrap();
        assert_eq!(
            StorageError::NoContainer { blob: Box::new(id.clone()) }.to_string(),
            "container `lake` of storage account `acct` does not exist: create it or correct the location \
             (abfss://lake@acct.dfs.core.windows.net/t/a.parquet)"
        );
        assert_eq!(
            StorageError::out_of_range(&id, &(4..9), 7).to_string(),
            "abfss://lake@acct.dfs.core.windows.net/t/a.parquet has 7 bytes, bytes 4..9 were asked for: the file is not what \
             the table says"
        );
    }
}
