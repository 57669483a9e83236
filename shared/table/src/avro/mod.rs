//! Manifests in forms that the Avro library takes, and back: ways around what apache-avro 0.21 reads wrong or refuses.
//!
//! Only the metadata in a file's header is changed, never a row.

mod header;
mod names;
#[cfg(test)]
mod testing;
mod uuids;

use std::io::Read;

use serde_json::Value;

pub(crate) use names::{plain_spec, with_plain_names, with_spec_names};

/// The metadata key of a file's schema.
const SCHEMA: &[u8] = b"avro.schema";

/// The same file with a schema that apache-avro reads: UUIDs are plain fixed fields, and every field has a name that Avro allows.
///
/// # Errors
/// A sentence, when the file has no Avro header.
pub(crate) fn readable(file: &[u8]) -> Result<impl Read + use<'_>, String> {
    header::with_metadata(file, |key, value| {
        if key != SCHEMA {
            return Ok(None);
        }
        let mut schema: Value =
            serde_json::from_slice(value).map_err(|error| format!("has no readable schema: {error}"))?;
        uuids::forget(&mut schema);
        names::make_plain(&mut schema);
        Ok(Some(schema.to_string().into_bytes()))
    })
}
