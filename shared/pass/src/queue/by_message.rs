//! What a message by hand asks for: a manual pass over a dataset, or a dry run whose plan is written for a person to read.

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use firn_compact::{FanOut, FanOutError, FannedOut, HostServices};
use firn_model::{Message, Rule};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::enqueue::enqueue_by;
use super::state_error;
use crate::events::PassEvents;
use crate::load::{LoadedDataset, batches, chosen};
use crate::report::{FailedDataset, FinishedPartition, PassError, PassSummary, PlannedPartition, Report};
use crate::request::{DateRange, ManualRequest, PartitionCondition};

/// The planner, for the workers of one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Planner;

#[async_trait]
impl FanOut for Planner {
    async fn fan_out(
        &self,
        services: &HostServices,
        message: &Message,
        invocation: &str,
    ) -> Result<FannedOut, FanOutError> {
        by_message(services, message, invocation).await.map_err(|error| match error {
            PassError::Usage(reason) => FanOutError::Refused(reason),
            PassError::Unavailable(reason) => FanOutError::Later(reason),
        })
    }
}

async fn by_message(host: &HostServices, message: &Message, invocation: &str) -> Result<FannedOut, PassError> {
    let request = request(message)?;
    // A redelivered message with a pass of its own would write its report beside the first one's.
    let pass = message.pass.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
    let rule = message.rule_or_manual();
    if message.dry_run {
        return dry_run(host, &request, rule, pass, invocation).await;
    }
    let mut failure = FirstFailure::default();
    let summary = enqueue_by(host, &request, rule, &pass, invocation, &mut failure).await?;
    // One dataset was asked for, so its failure is that of the message.
    if let Some(error) = failure.0 {
        return Err(error);
    }
    let counts = match serde_json::to_value(&summary) {
        Ok(Value::Object(counts)) => counts,
        _ => Map::new(),
    };
    let reason = format!("{} messages sent, {} partitions left", summary.counts.sent, summary.counts.left);
    Ok(FannedOut { pass, reason, counts })
}

/// What the message asks for, in the words of the command line.
fn request(message: &Message) -> Result<ManualRequest, PassError> {
    let range = message.date_range.as_deref().map(DateRange::parse).transpose();
    let date_range = range.map_err(|error| PassError::Usage(format!("dateRange: {error}")))?;
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let conditions = message.partition.iter().flatten();
    Ok(ManualRequest {
        dataset: Some(message.dataset.clone()),
        date_range,
        partitions: conditions
            .map(|(column, value)| PartitionCondition { column: column.clone(), value: text(value) })
            .collect(),
        dry_run: message.dry_run,
        full: message.rule == Some(Rule::Full),
        ordinary: false,
    })
}

/// Plans as a pass would and writes what it would merge to `reports/<pass>.json`.
async fn dry_run(
    host: &HostServices,
    request: &ManualRequest,
    rule: Rule,
    pass: String,
    invocation: &str,
) -> Result<FannedOut, PassError> {
    let events = PassEvents::new(&host.emitter, pass.clone(), invocation.to_owned(), rule);
    let mut summary = PassSummary::default();
    let mut partitions = Vec::new();
    let datasets = chosen(&host.config, request.dataset.as_deref())?;
    for dataset in &datasets {
        let loaded = LoadedDataset::load(&*host.compact.catalog, dataset, request, &[rule]).await?;
        let stats: Vec<_> = loaded.stats.iter().collect();
        for batch in batches(&stats) {
            let mut facts = loaded.facts(batch).await?;
            for stats in batch {
                let Some(mut found) = facts.remove(&*stats.key) else { continue };
                let (rule, decision) = loaded.decide(&mut found, &[rule]).await;
                let planned = loaded.planned(&stats.key, rule, &decision);
                summary.add_planned(&planned, true);
                partitions.push(planned.to_json());
            }
        }
    }
    let counts = json!({
        "partitions": summary.partitions,
        "selected": summary.selected,
        "left": summary.left,
        "files": summary.files,
        "bytes": summary.bytes,
        "rows": summary.rows,
    });
    let report = json!({
        "pass": pass,
        "dataset": request.dataset,
        "rule": rule.as_str(),
        "at": host.clock.now().with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Millis, true),
        "summary": counts,
        "partitions": partitions,
    });
    let address = host.state.root().report(&pass);
    host.state.write(&address, &report).await.map_err(state_error)?;
    events.finished(&host.config, true, datasets.len(), &summary);
    let reason =
        format!("dry run: {} of {} partitions selected, see {}", summary.selected, summary.partitions, address.blob());
    let counts = match counts {
        Value::Object(counts) => counts,
        _ => Map::new(),
    };
    Ok(FannedOut { pass, reason, counts })
}

/// Keeps why a dataset was passed over.
#[derive(Default)]
struct FirstFailure(Option<PassError>);

impl Report for FirstFailure {
    fn planned(&mut self, _: &PlannedPartition) {}
    fn finished(&mut self, _: &FinishedPartition) {}
    fn failed(&mut self, dataset: &FailedDataset) {
        self.0.get_or_insert_with(|| dataset.error.clone());
    }
}
