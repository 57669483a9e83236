//! The Azure Functions host on one machine: it drives a custom handler as the real host (v4) does, against Azurite or any
//! storage account, so that what runs here runs in Azure.
//!
//! - [`app`]: `host.json`, `<Function>/function.json` and `local.settings.json` below an app root;
//! - [`handler`]: the handler's process: start, readiness, restarts, output;
//! - [`invoke`]: one invocation: request, answer, time-out, output bindings;
//! - [`queue`]: queue triggers: receive, renew, delete, release, poison;
//! - [`timer`]: timer triggers: schedule, status blob, lease blob, past due;
//! - [`http`]: HTTP functions with their keys and the admin endpoint;
//! - [`host`]: all of it running; [`Host::start`] is the way in;
//! - [`azurite`]: the emulator of Azure Storage as a child process; [`postgres`], [`iceberg_rest`]: servers
//!   with a catalog, for tests and the demo;
//! - [`stage`]: an app root from a source tree; [`client`]: how another process finds a running host and runs its functions.
//!
//! It knows nothing of tables. Rules whose reason is the real host's behaviour say so; what the real host would only show
//! as a hang is reported at once where [`HostOptions::strict`] asks for it.
//!
//! Not reproduced, and refused where an app asks for it: request forwarding and proxying, routes in `host.json`, retry
//! policies, bindings other than timer, queue and HTTP.

pub mod app;
pub mod azurite;
pub mod client;
pub mod clock;
pub mod handler;
pub mod host;
pub mod http;
pub mod iceberg_rest;
pub mod invoke;
pub mod log;
mod manual;
pub mod options;
pub mod postgres;
pub mod queue;
pub mod stage;
mod stop;
pub mod storage;
pub mod timer;
pub mod timing;

pub use app::AppError;
pub use azurite::Azurite;
pub use client::{Announcement, Called, ClientError, HostAddress};
pub use clock::{Clock, ManualClock, SystemClock};
pub use host::{Host, NotIdle, RunningHost, StartError};
pub use iceberg_rest::IcebergRest;
pub use invoke::{Invocation, InvocationFailure};
pub use log::{Level, LogLine, LogSink, MemoryLog, TracingLog};
pub use options::HostOptions;
pub use postgres::Postgres;
pub use storage::{AzureHostStorage, HostStorage, MemoryHostStorage};
pub use timing::{Framing, Timing};
