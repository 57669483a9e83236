//! A pass that a person asks for and workers do: planned here, fanned out over the queue.

use firn_compact::HostServices;
use firn_model::Rule;
use firn_state::PassRecord;
use uuid::Uuid;

use super::fan_out::{DatasetProgress, FanOutPass};
use super::summary::EnqueueSummary;
use super::{open_passes, queue_error};
use crate::events::PassEvents;
use crate::load::chosen;
use crate::report::{FailedDataset, PassError, Report};
use crate::request::ManualRequest;

/// Plans the datasets and partitions asked for and sends a message for each partition selected, at most `maxPartitionsPerPass` a
/// table: what waits is sent by asking once more. `report` hears of every partition.
///
/// # Errors
/// [`PassError::Usage`] when nothing can be done as it was asked, [`PassError::Unavailable`] when the queue does not answer. A dataset that
/// cannot be planned is logged, reported and counted instead.
pub async fn enqueue(
    host: &HostServices,
    request: &ManualRequest,
    invocation: &str,
    report: &mut dyn Report,
) -> Result<EnqueueSummary, PassError> {
    let pass = Uuid::new_v4().to_string();
    enqueue_by(host, request, request.rule(), &pass, invocation, report).await
}

/// The same by any rule, under the id of a pass.
pub(crate) async fn enqueue_by(
    host: &HostServices,
    request: &ManualRequest,
    rule: Rule,
    pass: &str,
    invocation: &str,
    report: &mut dyn Report,
) -> Result<EnqueueSummary, PassError> {
    let datasets = chosen(&host.config, request.dataset.as_deref())?;
    let now = host.clock.now();
    let events = PassEvents::new(&host.emitter, pass.to_owned(), invocation.to_owned(), rule);
    let queue_empty = host.queue.length().await.map_err(queue_error)? == 0;
    let fan_out = FanOutPass { host, pass, request, now, queue_empty, tidies: false, before: None };
    let mut summary = EnqueueSummary { pass: pass.to_owned(), ..EnqueueSummary::default() };
    let mut record = PassRecord::new(pass, rule, now);
    for dataset in datasets {
        if host.compact.stop.is_set() {
            break;
        }
        let mut progress = DatasetProgress::default();
        let result = fan_out.dataset(dataset, &[rule], &mut progress, report).await;
        summary.datasets += 1;
        summary.counts.add(progress.counts);
        record.sent.insert(dataset.name.clone(), progress.counts.sent);
        record.waiting.insert(dataset.name.clone(), progress.counts.waiting);
        if let Err(error) = result {
            events.dataset_failed(dataset, &error);
            summary.count_failed(&error);
            record.failed.insert(dataset.name.clone(), error.to_string());
            report.failed(&FailedDataset { dataset: dataset.name.clone(), error });
        }
    }
    if summary.counts.sent > 0 {
        open_passes::record(host, record).await;
    }
    events.sent(&host.config, false, &summary);
    Ok(summary)
}
