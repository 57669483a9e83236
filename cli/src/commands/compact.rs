//! `firn compact`: one manual pass in this process, or planned here for workers with `--enqueue`. It expires and deletes nothing.

use firn_pass::ManualRequest;

use crate::args::CompactArgs;
use crate::commands::{Context, complain, enqueue, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::Answer;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: CompactArgs, context: &Context) -> Exit {
    let config = match load_config(&args.config, args.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let request = ManualRequest {
        dataset: args.dataset,
        date_range: args.date_range,
        partitions: args.partitions,
        dry_run: args.dry_run,
        full: args.full,
    };
    if args.enqueue && !request.dry_run {
        return enqueue::run(config, request, context).await;
    }
    let mut answer = Answer::new(context.format, Stdout, request.dry_run, context.progress.clone());
    let emitter = context.emitter();
    let result = until_interrupted(firn_pass::manual(&config, &request, &emitter, &mut answer)).await;
    match &result {
        Ok(summary) => answer.pass_ended(summary, None),
        Err(error) => {
            let counted = answer.counted().clone();
            answer.pass_ended(&counted, Some(error));
            complain(error);
        }
    }
    Exit::of_pass(&result)
}
