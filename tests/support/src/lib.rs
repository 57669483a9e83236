//! What tests share: tools of other parties, installed into `target/` on first use.
//!
//! - [`python`]: PyIceberg and DuckDB in one environment, and the scripts of `tests/py` run in it;
//! - [`lake`]: a catalog and a warehouse for a test, with other parties' clients that write, read and check its tables;
//! - [`proxy`]: an HTTP proxy before Azurite that counts, refuses and delays requests.
//!
//! Azurite itself, and how tools are installed, come from the local host, because the demo needs them too.
//!
//! Set `FIRN_TOOLS_DIR` to share one set of tools between several target directories.

pub mod lake;
pub mod proxy;
pub mod python;

pub use firn_local_host::azurite::install::{ToolError, install_once, target_dir, tools_dir};
pub use firn_local_host::azurite::{self, Azurite};
pub use lake::{Digest, Lake};
pub use proxy::{Fault, Proxy, Request, Trouble};
pub use python::{Python, ScriptError};
