//! Ends the process at a numbered step, for tests of what a kill leaves behind.

/// The environment variable: the number of a [`crate::control::Step`]. It is honoured only in builds with debug assertions or with the cargo
/// feature `kill-points`; a release build without the feature does not look at it.
pub const DIE_AT_STEP: &str = "FIRN_TEST_DIE_AT_STEP";

/// Dies here when this is the step to die at: as a kill from outside, without unwinding.
pub(crate) fn kill_point(step: u32) {
    if cfg!(any(debug_assertions, feature = "kill-points"))
        && std::env::var(DIE_AT_STEP).is_ok_and(|text| text.trim().parse() == Ok(step))
    {
        tracing::warn!(step, "ending the process: {DIE_AT_STEP} is set");
        std::process::abort();
    }
}
