//! `firn requeue`: parked work back into the queue, when what it was parked for is mended.

use firn_pass::{PassError, RequeueRequest, RequeueSummary, RequeuedEntry};

use crate::args::RequeueArgs;
use crate::commands::{Context, complain, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::Answer;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: RequeueArgs, context: &Context) -> Exit {
    let config = match load_config(&args.over.config, args.over.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let request = RequeueRequest { dataset: args.over.dataset, ids: args.ids };
    let mut answer = Answer::new(context.format, Stdout, false, context.progress.clone());
    let mut report = |entry: &RequeuedEntry| answer.requeued(entry);
    let result = until_interrupted(firn_pass::requeue(&config, &request, &mut report)).await;
    answer.requeue_ended(&result);
    if let Err(error) = &result {
        complain(error);
    }
    exit(&result)
}

fn exit(result: &Result<RequeueSummary, PassError>) -> Exit {
    match result {
        Err(error) => Exit::of_error(error),
        Ok(summary) if summary.failed > 0 => Exit::Failed,
        Ok(_) => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_no_failure() {
        let summary = |left, failed| RequeueSummary { requeued: 0, left, failed };
        for (result, expected) in [
            (Ok(summary(0, 0)), Exit::Done),
            (Ok(summary(3, 0)), Exit::Done),
            (Ok(summary(0, 1)), Exit::Failed),
            (Err(PassError::Unavailable("no queue".into())), Exit::Failed),
            (Err(PassError::Usage("no storage section".into())), Exit::Usage),
        ] {
            assert_eq!(exit(&result), expected, "{result:?}");
        }
    }
}
