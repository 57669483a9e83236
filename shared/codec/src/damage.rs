//! The one error of the decoders.

/// What is wrong with the bytes of a page.
///
/// The caller knows which file, row group, column and page it was and says so; reading the same bytes again gives the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub &'static str);
