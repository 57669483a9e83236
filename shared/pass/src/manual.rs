//! A manual pass in this process: every partition asked for is planned and, unless it is a dry run, worked on at once.

use firn_config::Config;
use firn_telemetry::Emitter;
use uuid::Uuid;

use crate::events::PassEvents;
use crate::here::PassHere;
use crate::load::chosen;
use crate::report::{PassError, PassSummary, Report};
use crate::request::ManualRequest;
use crate::wiring;

/// Runs one manual pass over the datasets asked for. A dataset that cannot be planned is reported and passed over, a partition
/// that fails does not stop the others (design section 9).
///
/// # Errors
/// [`PassError::Usage`] when nothing can be done as it was asked, [`PassError::Unavailable`] when nothing could be reached. Failures of
/// single datasets and partitions are reported and counted instead.
pub async fn manual(
    config: &Config,
    request: &ManualRequest,
    emitter: &Emitter,
    report: &mut dyn Report,
) -> Result<PassSummary, PassError> {
    let id = Uuid::new_v4().to_string();
    let events = &PassEvents::new(emitter, id.clone(), id, request.rule());
    let datasets = chosen(config, request.dataset.as_deref())?;
    let services = &wiring::open(config).await?;
    let rules = request.rules();
    let pass = PassHere { services, events, request, report, rules, by_hand: true, summary: PassSummary::default() };
    let summary = pass.run(&datasets).await;
    events.finished(config, request.dry_run, datasets.len(), &summary);
    Ok(summary)
}
