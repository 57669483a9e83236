//! One identity for a blob (filled in with storage).

/// The identity of a blob: Azure account, container and key; for a local folder account and container are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId {
    /// Storage account, lower case; empty for a local file.
    pub account: String,
    /// Container; empty for a local file.
    pub container: String,
    /// Key within the container, or the absolute path of a local file, exactly as it stands in storage.
    pub key: String,
}

/// Why a text does not name a blob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobIdError {
    /// The scheme is none that Firn can reach.
    #[error("unknown scheme in `{0}`: use abfss://container@account.dfs.core.windows.net/key, https:// or file://")]
    Scheme(String),
}
