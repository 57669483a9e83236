//! `firn compact` without a flag beside `--config`: the long-running compactor. Its events go to stdout.

use firn_pass::{FailedDataset, FinishedPartition, PlannedPartition, Report};
use firn_telemetry::Emitter;

use crate::args::WithConfig;
use crate::commands::{complain, load_config, told_to_stop};
use crate::exit::Exit;

pub(crate) async fn run(args: WithConfig) -> Exit {
    let config = match load_config(&args, None) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    tracing::info!(
        "compacting every {} minutes, and by the schedule {} UTC; SIGTERM or Ctrl-C ends it",
        config.compaction.backlog_check_interval_minutes,
        config.compaction.schedule.as_str()
    );
    match firn_pass::long_running(&config, &Emitter::stdout(), &mut Log, told_to_stop()).await {
        Ok(()) => Exit::Done,
        Err(error) => {
            complain(&error);
            Exit::of_error(&error)
        }
    }
}

/// Partitions go to the log; the events on stdout say the same for programs.
struct Log;

impl Report for Log {
    fn planned(&mut self, _: &PlannedPartition) {}

    fn finished(&mut self, done: &FinishedPartition) {
        tracing::info!(dataset = done.dataset, partition = done.label, "{}: {}", done.outcome, done.reason);
    }

    fn failed(&mut self, _: &FailedDataset) {}
}
