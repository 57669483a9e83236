//! `firn orphans`: deletes what nothing refers to, lists it, or shows what the last sweep did.

use firn_config::Config;

use crate::args::{CompactArgs, OrphansArgs};
use crate::commands::{Context, complain, load_config, maintenance_ended, until_interrupted};
use crate::exit::Exit;
use crate::output::maintained::{Asked, MaintainAnswer};
use crate::output::stdout::Stdout;

pub(crate) async fn run(args: OrphansArgs, context: &Context) -> Exit {
    let dataset = args.over.dataset.as_deref();
    let config = match load_config(&args.over.config, dataset) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    if args.last {
        return last(&config, dataset, context).await;
    }
    sweep(&config, dataset, args.dry_run, context).await
}

/// `firn compact --orphan-dry-run`, the name by which the compactor's specification knows it.
pub(crate) async fn dry_run(args: CompactArgs, context: &Context) -> Exit {
    let config = match load_config(&args.config, args.dataset.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    sweep(&config, args.dataset.as_deref(), true, context).await
}

async fn sweep(config: &Config, dataset: Option<&str>, dry_run: bool, context: &Context) -> Exit {
    let mut answer = MaintainAnswer::new(context.format, Stdout, Asked::Orphans { dry_run });
    let emitter = context.emitter();
    let result = until_interrupted(firn_pass::orphans(config, dataset, dry_run, &emitter, &mut answer)).await;
    maintenance_ended(&mut answer, &result)
}

async fn last(config: &Config, dataset: Option<&str>, context: &Context) -> Exit {
    let mut answer = MaintainAnswer::new(context.format, Stdout, Asked::Orphans { dry_run: false });
    let mut show = |receipt: &_, deletions: &[_]| answer.receipt(receipt, deletions);
    let result = until_interrupted(firn_pass::last_receipts(config, dataset, &mut show)).await;
    answer.receipts_ended(&result);
    match &result {
        Ok(_) => Exit::Done,
        Err(error) => {
            complain(error);
            Exit::of_error(error)
        }
    }
}
