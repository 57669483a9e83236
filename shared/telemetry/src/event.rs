//! What an event is.

use serde::Serialize;

/// A terminal event: a flat struct whose fields are the fields of the JSON line.
pub trait Event: Serialize {
    /// The fixed word in field `event`.
    const NAME: &'static str;

    /// The fixed word in field `outcome`.
    fn outcome(&self) -> &'static str;
}
