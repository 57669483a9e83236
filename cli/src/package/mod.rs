//! The package that Azure runs: `host.json`, one folder with `function.json` for each function, the handler, the configuration.
//!
//! - [`content`]: what belongs into it, from the source tree;
//! - [`config_check`]: what would keep the app from working in Azure;
//! - [`build`]: the handler for an old glibc; [`elf`]: which glibc a program needs;
//! - [`zip`]: the same content as the same bytes; [`folder`]: the same content for Core Tools.

pub(crate) mod build;
pub(crate) mod config_check;
pub(crate) mod content;
pub(crate) mod elf;
pub(crate) mod folder;
pub(crate) mod zip;

/// A file of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Path below the app's root, with `/`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}
