//! What tests share: tools of other parties, installed into `target/` on first use.
//!
//! - [`azurite`]: the emulator of Azure Storage, or a failed test; [`postgres`], [`iceberg_rest`],
//!   [`seaweed`]: servers with a catalog, or a failed test;
//! - [`python`]: PyIceberg and DuckDB in one environment, and the scripts of `tests/py` run in it;
//! - [`lake`]: a catalog and a warehouse for a test, with other parties' clients that write, read and check its tables;
//! - [`proxy`]: an HTTP proxy before Azurite that counts, refuses and delays requests.
//!
//! How Azurite and other tools are installed comes from the local host, because the demo needs it too.
//!
//! Set `FIRN_TOOLS_DIR` to share one set of tools between several target directories.

pub mod azurite;
pub mod iceberg_rest;
pub mod lake;
pub mod postgres;
pub mod proxy;
pub mod python;
pub mod seaweed;

pub use azurite::{Azurite, Certificate};
pub use firn_local_host::azurite::install::{ToolError, install_once, target_dir, tools_dir};
pub use iceberg_rest::IcebergRest;
pub use lake::{Digest, Lake};
pub use postgres::Postgres;
pub use proxy::{Fault, Proxy, Request, Trouble};
pub use python::{Python, ScriptError};
pub use seaweed::SeaweedFs;
