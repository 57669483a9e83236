//! The handler as a process: from its start to its end.

use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::Arc;

use firn_telemetry::Emitter;

use crate::app::App;
use crate::environment::HandlerEnvironment;
use crate::logging;
use crate::server::{bind, serve};

/// Merging and encoding have their own threads; the runtime only waits for the network and disks.
const RUNTIME_THREADS: usize = 2;

/// Runs the handler until something ends it. A host that sees exit code 0 never starts the handler again, so there is no way out
/// with it.
pub fn main() -> ExitCode {
    firn_compact::allocator::tune();
    std::panic::set_hook(Box::new(say_panic));
    logging::start();
    // One TLS provider for the whole process; only fails when it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let reason = match tokio::runtime::Builder::new_multi_thread().worker_threads(RUNTIME_THREADS).enable_all().build()
    {
        Ok(runtime) => runtime.block_on(run()),
        Err(error) => format!("cannot start threads: {error}; check the limits of this process"),
    };
    eprintln!("error: {reason}");
    ExitCode::FAILURE
}

/// Runs until something ends it, and says what.
async fn run() -> String {
    let environment = match HandlerEnvironment::read(|name| std::env::var(name).ok()) {
        Ok(environment) => environment,
        Err(error) => return error.to_string(),
    };
    // First of all: the host gives 30 s until the first answer, and the configuration may lie far away.
    let listener = match bind(environment.port).await {
        Ok(listener) => listener,
        Err(error) => return format!("cannot listen on port {}: {error}", environment.port),
    };
    if environment.end_with_stdin {
        std::thread::spawn(end_with_stdin);
    }
    let app = Arc::new(App::new(environment, Emitter::stdout()));
    tokio::spawn(app.clone().warm_up());
    match serve(listener, app).await {
        Ok(()) => "the server ended by itself; please report it".into(),
        Err(error) => format!("the server ended: {error}"),
    }
}

/// Ends the process when the other end of stdin is closed: the local host was killed, and nobody would end its handler. Work in hand is
/// left as a kill leaves it, for the next delivery of its message.
fn end_with_stdin() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    eprintln!("error: the host is gone");
    std::process::exit(1);
}

/// A panic is a defect of Firn: one line on stderr that can be reported. It ends one invocation, with status 500.
pub fn say_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map(|location| format!(" at {location}")).unwrap_or_default();
    eprintln!("error: internal error{place}: {}; please report it", message.unwrap_or("no message"));
}
