//! The custom handler: what the Functions host runs.
//!
//! The host starts the process, asks `GET /` until it answers, and posts each invocation to `/<function>`. A reader follows one from
//! [`server`] to the file of its function: [`plan`], [`compact`], [`compact_poison`], [`maintain`], [`status`].
//!
//! - [`process`]: the program around it; [`environment`]: what the host tells at the start; [`time_limit`]: how long an invocation may take;
//! - [`app`]: the services that the functions share, opened once;
//! - [`invocation`], [`message`]: what a request holds; [`answer`]: what goes back.

pub mod answer;
pub mod app;
pub mod compact;
pub mod compact_poison;
pub mod environment;
pub mod function;
pub mod invocation;
pub mod logging;
pub mod maintain;
pub mod message;
pub mod plan;
pub mod process;
mod queue_names;
pub mod server;
pub mod status;
pub mod time_limit;

pub use answer::Answer;
pub use app::App;
pub use environment::HandlerEnvironment;
pub use function::Function;
pub use invocation::Invocation;
pub use server::{Functions, bind, serve};
