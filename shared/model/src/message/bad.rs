//! Why a text is not a message, in sentences for the person who reads the parked record.

use super::{MESSAGE_LIMIT, MESSAGE_VERSION};

/// The form that every message has, for those who wrote something else.
const FORM: &str = "send JSON such as {\"dataset\":\"spans\"}, plain or as Base64 of UTF-8";

/// Why a text is not a message. All but [`BadMessage::NewerVersion`] are parked: the text has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Nothing, or only white space.
    #[error("the message is empty: {FORM}")]
    Empty,
    /// Bytes that are no UTF-8 text.
    #[error("the message is not UTF-8 text: {FORM}")]
    NotText,
    /// UTF-16, plain or as Base64: what PowerShell's Unicode encoding gives.
    #[error("the message is UTF-16 text: encode it as UTF-8, or {FORM}")]
    Utf16,
    /// Base64 of something that is no text.
    #[error("the message is Base64 of something that is no UTF-8 text: {FORM}")]
    Base64OfBytes,
    /// Neither JSON nor Base64 of JSON.
    #[error("the message is not JSON ({detail}): {FORM}; it begins with `{start}`")]
    NotJson {
        /// What the parser says.
        detail: String,
        /// Its first characters.
        start: String,
    },
    /// JSON, but not an object.
    #[error("the message is {kind}, not a JSON object: {FORM}")]
    NotAnObject {
        /// What it is, with its article.
        kind: &'static str,
    },
    /// As large as the limit or larger.
    #[error(
        "the message has {bytes} bytes, a message has less than {MESSAGE_LIMIT}: name the dataset and one partition, no files"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Written for an older Firn, whose messages this one does not read.
    #[error("version {v} of the message is not one that Firn ever sent: write \"v\":{MESSAGE_VERSION} or leave it out")]
    OlderVersion {
        /// `v`.
        v: u64,
    },
    /// Written by a newer Firn. Next: send it again hidden, for a newer handler.
    #[error(
        "version {v} of the message is newer than {MESSAGE_VERSION}, the newest that this Firn reads: deploy the newer handler"
    )]
    NewerVersion {
        /// `v`.
        v: u64,
    },
    /// A field that no message has.
    #[error(
        "unknown field `{field}`: a message has v, dataset, partition, specId, rule, pass, gen, dateRange and dryRun{hint}"
    )]
    UnknownField {
        /// Its name.
        field: String,
        /// `; did you mean …?`, or nothing.
        hint: String,
    },
    /// No dataset.
    #[error("the message names no dataset: {FORM}")]
    MissingDataset,
    /// A field with a value it cannot have.
    #[error("`{field}` is {value}, but must be {expected}")]
    WrongValue {
        /// The field, `partition.day` for a value of the partition.
        field: String,
        /// What stands there, shortened.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// Fields that do not go together.
    #[error("{0}")]
    Contradiction(String),
}

impl BadMessage {
    /// Whether a newer handler may understand it: it is sent again, not parked.
    pub fn is_newer(&self) -> bool {
        matches!(self, BadMessage::NewerVersion { .. })
    }
}
