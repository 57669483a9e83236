//! What tests share: tools of other parties, installed into `target/` on first use.
//!
//! - [`install`]: installs a tool once per target directory, whatever number of test processes ask for it at once;
//! - [`azurite`]: the emulator of Azure Storage as a child process on free ports;
//! - [`python`]: PyIceberg and DuckDB in one environment, and the scripts of `tests/py` run in it;
//! - [`lake`]: a catalog and a warehouse for a test, with other parties' clients that write, read and check its tables;
//! - [`proxy`]: an HTTP proxy before Azurite that counts, refuses and delays requests.
//!
//! Set `FIRN_TOOLS_DIR` to share one set of tools between several target directories.

pub mod azurite;
pub mod install;
pub mod lake;
pub mod proxy;
pub mod python;

pub use azurite::Azurite;
pub use install::{ToolError, install_once, target_dir, tools_dir};
pub use lake::{Digest, Lake};
pub use proxy::{Fault, Proxy, Request};
pub use python::{Python, ScriptError};
