//! Panics of the Parquet crate on damaged bytes become errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` and turns a panic into its message.
///
/// What can be checked is checked before the Parquet crate sees it; what is left are its own assertions (levels that do
/// not match, dictionary indices beyond the dictionary). The caller drops everything `work` touched after a panic.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "the decoder gave up".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(contain(|| 7), Ok(7));
        let values = [1, 2];
        let beyond = values.len() + 1;
        assert!(contain(|| values[beyond]).unwrap_err().contains("out of bounds"));
    }
}
