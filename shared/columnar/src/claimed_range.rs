//! The key range that a file's footer proves, when it speaks of the order that is asked for.

use arrow_schema::SchemaRef;
use firn_model::{KeyRange, RowOrder};

use crate::claims::FileClaims;
use crate::engine::{MergeError, key_order};
use crate::input::InputFile;

/// First and last key of `file` in `order`, from Firn's own footer; None when it claims none, or claims one in another order or over columns
/// of other types, whose bytes would not compare.
///
/// # Errors
/// When `order` does not fit `schema`.
pub fn claimed_key_range(
    file: &InputFile,
    schema: &SchemaRef,
    order: &RowOrder,
) -> Result<Option<KeyRange>, MergeError> {
    if order.is_unordered() {
        return Ok(None);
    }
    let claims = FileClaims::read(file.metadata());
    let (keys, _) = key_order(order, schema)?;
    let comparable = claims.order.as_deref() == Some(order.canonical().as_str())
        && claims.key_signature.as_deref() == Some(keys.key_signature().as_str());
    Ok(claims.key_range.filter(|_| comparable))
}
