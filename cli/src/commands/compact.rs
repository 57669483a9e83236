//! `firn compact`: one pass in this process, or planned here for workers with `--enqueue`. It expires and deletes nothing.

use firn_pass::{ManualRequest, PassSummary};

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
        ordinary: args.once,
    };
    if args.enqueue && !request.dry_run {
        return enqueue::run(config, request, context).await;
    }
    let mut answer = Answer::new(context.format, Stdout, request.dry_run, context.progress.clone());
    let emitter = context.emitter();
    let result = until_interrupted(firn_pass::manual(&config, &request, &emitter, &mut answer)).await;
    match &result {
        Ok(summary) => answer.pass_ended(summary, &remarks(&request, summary), None),
        Err(error) => {
            let counted = answer.counted().clone();
            answer.pass_ended(&counted, &[], Some(error));
            complain(error);
        }
    }
    Exit::of_pass(&result)
}

/// A dry run reads no footers, and memory is admitted from them.
const ADMITTED_LATER: &str = "whether memoryMb and tempDiskMb are enough shows from the files' footers when the work starts: what does not \
                              fit is merged in parts, or left with the figure that it needs";

/// What the counts alone do not say.
fn remarks(request: &ManualRequest, summary: &PassSummary) -> Vec<String> {
    let mut remarks = Vec::new();
    if summary.partitions == 0 && summary.ok() {
        remarks.push(request.matched_nothing());
    }
    if request.dry_run && summary.selected > 0 {
        remarks.push(ADMITTED_LATER.to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use firn_pass::PartitionCondition;

    use super::*;

    #[test]
    fn a_pass_without_partitions_says_so_and_a_dry_run_what_it_cannot_know() {
        let eu = PartitionCondition { column: "region".into(), value: Some("eu".into()) };
        let filtered = ManualRequest { partitions: vec![eu], ..ManualRequest::default() };
        let none = remarks(&filtered, &PassSummary::default());
        assert_eq!(none, [filtered.matched_nothing()]);
        let failed = PassSummary { datasets_failed: 1, ..PassSummary::default() };
        assert_eq!(remarks(&filtered, &failed), [""; 0], "what failed was said");
        let selected = PassSummary { partitions: 3, selected: 2, ..PassSummary::default() };
        assert_eq!(remarks(&filtered, &selected), [""; 0]);
        assert_eq!(remarks(&ManualRequest { dry_run: true, ..filtered }, &selected), [ADMITTED_LATER]);
    }
}
