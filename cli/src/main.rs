//! `firn`: manual runs over Iceberg tables, from the command line (design section 10).
//!
//! A reader follows a run from here: [`args`] reads the command line, [`commands`] has one file per command, which
//! calls `firn-pass` and answers through [`output`]; [`exit`] turns the result into the exit code.

mod args;
mod as_handler;
mod commands;
mod demo;
mod doctor;
mod exit;
mod logging;
mod output;
mod package;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::args::{Cli, Command, Format};
use crate::commands::{Context, complain};
use crate::exit::Exit;
use crate::output::progress::Progress;

/// Merging and encoding have their own threads; the runtime only waits for the network and disks.
const RUNTIME_THREADS: usize = 2;
/// How long work that cannot be interrupted may go on after the end.
const SHUTDOWN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if as_handler::is_asked_for() {
        return firn_handler::process::main();
    }
    firn_compact::allocator::tune();
    // The exit code is 1 then, and the tables are whole, because only a commit changes them.
    std::panic::set_hook(Box::new(firn_handler::process::say_panic));
    // One TLS provider for the whole process; only fails when it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    told(guarded(|| run(cli))).into()
}

/// Success means that the answer was told, too.
fn told(exit: Exit) -> Exit {
    match output::stdout::failure() {
        Some(reason) => {
            complain(format!("standard output: {reason}; the work itself is done, but its answer is not complete"));
            if exit == Exit::Done { Exit::Failed } else { exit }
        }
        None => exit,
    }
}

/// A panic ends the program with exit code 1; the hook has said what happened.
fn guarded(work: impl FnOnce() -> Exit) -> Exit {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Exit::Failed)
}

fn run(cli: Cli) -> Exit {
    if let Some(with) = cli.command.comes_with() {
        complain(format!("{} comes with {with}; this version does not have it yet", cli.command.name()));
        return Exit::Usage;
    }
    let progress = Progress::new(cli.format == Format::Text);
    logging::start(&progress);
    let context = Context { format: cli.format, progress };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(RUNTIME_THREADS).enable_all().build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(format!("cannot start threads: {error}; check the limits of this process"));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(async {
        match cli.command {
            Command::Compact(args) if !args.is_manual() => commands::compactor::run(args.config).await,
            Command::Compact(args) if args.orphan_dry_run => commands::orphans::dry_run(args, &context).await,
            Command::Compact(args) => commands::compact::run(args, &context).await,
            Command::Demo(args) => demo::run(&args, &context).await,
            Command::Local(args) => commands::local::run(args, &context).await,
            Command::Invoke(args) => commands::invoke::run(args, &context).await,
            Command::Verify(args) => commands::verify::run(args, &context).await,
            Command::Requeue(args) => commands::requeue::run(args, &context).await,
            Command::Expire(args) => commands::expire::run(args, &context).await,
            Command::Statistics(args) => commands::statistics::run(args, &context).await,
            Command::Orphans(args) => commands::orphans::run(args, &context).await,
            Command::Restore(args) => commands::restore::run(args, &context).await,
            Command::Explain(args) => commands::explain::run(args, &context).await,
            Command::Doctor(args) => commands::doctor::run(args, &context).await,
            Command::Package(args) => commands::package::run(&args, &context),
            Command::Inspect(args) => commands::inspect::run(args, &context).await,
            Command::Search(args) => commands::search::run(args, &context).await,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN);
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure() {
        assert_eq!(guarded(|| panic!("a defect")), Exit::Failed);
        assert_eq!(guarded(|| Exit::Usage), Exit::Usage);
    }
}
