//! `firn compact --enqueue`: the pass is planned here and workers do it.

use std::sync::Arc;

use firn_config::Config;
use firn_pass::ManualRequest;
use uuid::Uuid;

use crate::commands::{Context, complain, until_interrupted};
use crate::exit::Exit;
use crate::output::enqueued::EnqueueAnswer;
use crate::output::stdout::Stdout;

pub(crate) async fn run(config: Config, request: ManualRequest, context: &Context) -> Exit {
    let mut answer = EnqueueAnswer::new(context.format, Stdout);
    let work = async {
        let host = firn_pass::open_host(Arc::new(config), context.emitter(), None).await?;
        firn_pass::enqueue(&host, &request, &Uuid::new_v4().to_string(), &mut answer).await
    };
    let result = until_interrupted(work).await;
    let nothing = result.as_ref().is_ok_and(|summary| summary.ok() && summary.counts.partitions == 0);
    answer.ended(&result, nothing.then(|| request.matched_nothing()).as_deref());
    match &result {
        Ok(summary) if summary.datasets_refused > 0 => Exit::Usage,
        Ok(summary) if !summary.ok() => Exit::Failed,
        Ok(_) => Exit::Done,
        Err(error) => {
            complain(error);
            Exit::of_error(error)
        }
    }
}
