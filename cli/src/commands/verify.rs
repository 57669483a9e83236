//! `firn verify`: recomputes proofs and invariants on live tables and changes nothing.

use firn_pass::VerifyCheck;

use crate::args::OverDatasets;
use crate::commands::{Context, complain, load_config, until_interrupted};
use crate::exit::Exit;
use crate::output::Answer;
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: OverDatasets, context: &Context) -> Exit {
    let config = match load_config(&args.config, args.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let mut answer = Answer::new(context.format, Stdout, false, context.progress.clone());
    let (mut checks, mut failed) = (0, 0);
    let mut checked = |check: &VerifyCheck| {
        checks += 1;
        failed += u64::from(!check.ok);
        answer.checked(check);
    };
    let result = until_interrupted(firn_pass::verify(&config, args.dataset.as_deref(), &mut checked)).await;
    answer.checks_ended(checks, failed, result.as_ref().err());
    if let Err(error) = &result {
        complain(error);
    }
    match result {
        Err(error) => Exit::of_error(&error),
        Ok(()) if failed > 0 => Exit::Failed,
        Ok(()) => Exit::Done,
    }
}
