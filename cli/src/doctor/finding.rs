//! What a check found.

use std::fmt;

/// A finding: what it is, and what to do when it is not well. Its text names the thing, the place and the remedy.
pub(super) trait Finding: fmt::Display {
    /// Whether it is well. What cannot be known from here is no failure; the text says so.
    fn ok(&self) -> bool;

    /// Whether it is well and a person should know of it all the same.
    fn warns(&self) -> bool {
        false
    }
}

/// Something on which the check rests failed.
pub(super) struct NotChecked(pub(super) &'static str);

impl fmt::Display for NotChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not checked: {} comes first", self.0)
    }
}

impl Finding for NotChecked {
    fn ok(&self) -> bool {
        false
    }
}
