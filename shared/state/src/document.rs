//! How a document is written: one JSON object with its version, so that an older Firn never misreads a newer one's.

use bytes::Bytes;
use firn_model::BlobId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::StateError;

/// The version that this Firn writes and reads, of every document.
pub const DOCUMENT_VERSION: u64 = 1;

/// What is kept in a state blob.
pub trait Document: Serialize + DeserializeOwned + Send + Sync {}

impl<T: Serialize + DeserializeOwned + Send + Sync> Document for T {}

/// The text of a document, for the blob `id`.
pub(crate) fn encode<T: Document>(id: &BlobId, document: &T) -> Result<Bytes, StateError> {
    let unwritable = |detail: String| StateError::Unreadable { blob: Box::new(id.clone()), detail };
    let mut value = serde_json::to_value(document).map_err(|error| unwritable(error.to_string()))?;
    match value.as_object_mut() {
        Some(fields) => fields.insert("version".into(), json!(DOCUMENT_VERSION)),
        None => return Err(unwritable("a document is a JSON object".into())),
    };
    Ok(Bytes::from(value.to_string()))
}

/// The document in `bytes`, read from the blob `id`.
pub(crate) fn decode<T: Document>(id: &BlobId, bytes: &[u8]) -> Result<T, StateError> {
    let unreadable = |detail: String| StateError::Unreadable { blob: Box::new(id.clone()), detail };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    match value.get("version").and_then(Value::as_u64) {
        Some(DOCUMENT_VERSION) => {}
        Some(version) if version > DOCUMENT_VERSION => {
            return Err(StateError::Newer { blob: Box::new(id.clone()), version });
        }
        Some(version) => return Err(unreadable(format!("version {version} was never written"))),
        None => return Err(unreadable("it has no version".into())),
    }
    serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
}
