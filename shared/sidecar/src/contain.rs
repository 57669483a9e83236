//! Panics of libraries on odd values or damaged bytes become errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::SidecarError;

/// Runs `work` and turns a panic into an error. The caller drops everything that `work` touched after a panic.
pub(crate) fn contain<T>(what: &str, work: impl FnOnce() -> Result<T, SidecarError>) -> Result<T, SidecarError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => Err(SidecarError::Failed(format!("{what} panicked: {}", message(&*panic)))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "without a message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(contain("it", || Ok(7)).unwrap(), 7);
        let values = [1, 2];
        let beyond = values.len() + 1;
        let error = contain("it", || Ok(values[beyond])).unwrap_err();
        assert!(error.to_string().starts_with("it panicked: index out of bounds"), "{error}");
    }
}
