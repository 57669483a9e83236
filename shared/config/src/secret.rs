//! A text that must not be printed.

use std::fmt;

/// A secret of the configuration. `Debug` shows that there is one and nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "(secret)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
