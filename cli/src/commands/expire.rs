//! `firn expire`: expires snapshots now. It deletes no file.

use crate::args::OverDatasets;
use crate::commands::{Context, load_config, maintenance_ended, until_interrupted};
use crate::exit::Exit;
use crate::output::maintained::{Asked, MaintainAnswer};
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: OverDatasets, context: &Context) -> Exit {
    let config = match load_config(&args.config, args.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let mut answer = MaintainAnswer::new(context.format, Stdout, Asked::Expire);
    let emitter = context.emitter();
    let work = firn_pass::expire(&config, args.dataset.as_deref(), &emitter, &mut answer);
    let result = until_interrupted(work).await;
    maintenance_ended(&mut answer, &result)
}
