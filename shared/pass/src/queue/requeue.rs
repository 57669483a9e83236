//! Parked work back into the queue, when a person has mended what it was parked for.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use firn_config::Config;
use firn_model::{Message, PartitionJson, parse_message};
use firn_state::{Address, InflightRecord, Listed, ParkedRecord, Read, RecordOutcome, StateError, StateStore};
use firn_storage::{Queue, SendOptions};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{queue_error, state_error};
use crate::report::PassError;
use crate::wiring::open_queue;

/// Which parked entries go back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequeueRequest {
    /// Only entries of this dataset.
    pub dataset: Option<String>,
    /// Only these entries; none: all of them.
    pub ids: Vec<String>,
}

/// What became of one parked entry.
#[derive(Debug, Clone, PartialEq)]
pub struct RequeuedEntry {
    /// Its id.
    pub id: String,
    /// Its dataset, where it is known.
    pub dataset: Option<String>,
    /// Its partition, where it is known.
    pub partition: Option<PartitionJson>,
    /// What became of it.
    pub outcome: RequeueOutcome,
    /// Why; for what went back, the reason it had been parked for.
    pub reason: String,
}

/// What became of a parked entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequeueOutcome {
    /// Its message is in the queue, the entry is gone.
    Requeued,
    /// It stays, with a reason; or its partition is in the queue already, and the entry is gone.
    Left,
    /// There is no such entry, or the queue or the state did not take it.
    Failed,
}

impl RequeueOutcome {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            RequeueOutcome::Requeued => "requeued",
            RequeueOutcome::Left => "left",
            RequeueOutcome::Failed => "failed",
        }
    }
}

impl RequeuedEntry {
    /// The line that programs read.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "dataset": self.dataset,
            "partition": self.partition,
            "outcome": self.outcome.as_str(),
            "reason": self.reason,
        })
    }
}

/// Counts of a requeue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequeueSummary {
    /// Entries whose message is in the queue.
    pub requeued: u64,
    /// Entries that stay, or needed nothing.
    pub left: u64,
    /// Entries that are not there or did not get through.
    pub failed: u64,
}

/// Sends the parked entries that `request` names and removes them. `report` hears of each.
///
/// # Errors
/// [`PassError::Usage`] without a `storage` section, [`PassError::Unavailable`] when state or queue do not answer at all; a
/// single entry that does not get through is counted instead.
pub async fn requeue(
    config: &Config,
    request: &RequeueRequest,
    report: &mut (dyn FnMut(&RequeuedEntry) + Send),
) -> Result<RequeueSummary, PassError> {
    let opened = open_queue(config).await?;
    let requeue = Requeue { config, state: &opened.state, queue: &opened.queue, now: Utc::now() };
    requeue.run(request, report).await
}

struct Requeue<'a> {
    config: &'a Config,
    state: &'a StateStore,
    queue: &'a dyn Queue,
    now: DateTime<Utc>,
}

impl Requeue<'_> {
    async fn run(
        &self,
        request: &RequeueRequest,
        report: &mut (dyn FnMut(&RequeuedEntry) + Send),
    ) -> Result<RequeueSummary, PassError> {
        let mut summary = RequeueSummary::default();
        let mut wanted: BTreeSet<&str> = request.ids.iter().map(String::as_str).collect();
        let mut tell = |entry: RequeuedEntry| {
            match entry.outcome {
                RequeueOutcome::Requeued => summary.requeued += 1,
                RequeueOutcome::Left => summary.left += 1,
                RequeueOutcome::Failed => summary.failed += 1,
            }
            report(&entry);
        };
        for listed in self.state.list_parked().await.map_err(state_error)? {
            let id = listed.address.name().to_owned();
            if !request.ids.is_empty() && !wanted.remove(id.as_str()) {
                continue;
            }
            if let Some(entry) = self.one(&id, &listed, request.dataset.as_deref()).await {
                tell(entry);
            }
        }
        for id in wanted {
            let reason = "there is no parked entry of this id".to_owned();
            let (id, outcome) = (id.to_owned(), RequeueOutcome::Failed);
            tell(RequeuedEntry { id, dataset: None, partition: None, outcome, reason });
        }
        Ok(summary)
    }

    /// None for an entry that was not asked for.
    async fn one(&self, id: &str, listed: &Listed<ParkedRecord>, dataset: Option<&str>) -> Option<RequeuedEntry> {
        let parked = match self.state.read_listed(listed).await {
            Ok(read) => read?.value,
            Err(error) => {
                let (id, outcome, reason) = (id.to_owned(), RequeueOutcome::Failed, error.to_string());
                return Some(RequeuedEntry { id, dataset: None, partition: None, outcome, reason });
            }
        };
        let message = parse_message(parked.body.as_bytes());
        let known = parked.dataset.clone().or_else(|| Some(message.as_ref().ok()?.dataset.clone()));
        if dataset.is_some() && dataset != known.as_deref() {
            return None;
        }
        let result = match &known {
            Some(name) if self.config.dataset(name).is_some() => self.put_back(id, name, &parked, message.ok()).await,
            Some(name) => Ok(Some(format!(
                "dataset {name} is not in {}: add it, restart the handler, then requeue",
                self.config.file
            ))),
            None => Ok(Some(format!("its text is no message, so nothing can be sent: {}", parked.reason))),
        };
        let (outcome, reason) = match result {
            Ok(None) => match self.state.discard(&listed.address).await {
                Ok(_) => (RequeueOutcome::Requeued, parked.reason),
                Err(error) => (RequeueOutcome::Failed, format!("sent, but the entry is still there: {error}")),
            },
            Ok(Some(left)) => (RequeueOutcome::Left, left),
            Err(failed) => (RequeueOutcome::Failed, failed.to_string()),
        };
        Some(RequeuedEntry { id: id.to_owned(), dataset: known, partition: parked.partition, outcome, reason })
    }

    /// The reason when nothing was sent.
    async fn put_back(
        &self,
        id: &str,
        dataset: &str,
        parked: &ParkedRecord,
        message: Option<Message>,
    ) -> Result<Option<String>, PassError> {
        // A partition is parked under the name of its record.
        let address = self.state.root().inflight(dataset, id);
        match self.state.read(&address).await.map_err(state_error)? {
            Some(read) if read.value.outcome == Some(RecordOutcome::Parked) => self.record(&address, &read).await,
            Some(_) => {
                self.state.discard(&self.state.root().parked(id)).await.map_err(state_error)?;
                Ok(Some("its partition is in the queue already".into()))
            }
            None => match by_hand(parked, message) {
                Some(message) => self.send(&message).await.map(|()| None),
                None => Ok(Some(format!("its text is no message, so nothing can be sent: {}", parked.reason))),
            },
        }
    }

    async fn record(
        &self,
        address: &Address<InflightRecord>,
        read: &Read<InflightRecord>,
    ) -> Result<Option<String>, PassError> {
        let record = read.value.requeued(Uuid::new_v4(), self.now);
        let version = match self.state.replace(address, &record, &read.version, None).await {
            Ok(version) => version,
            Err(error) if error.is_conflict() => return Ok(Some("its partition was taken up meanwhile".into())),
            Err(error) => return Err(state_error(error)),
        };
        self.send(&record.message()).await?;
        match self.state.replace(address, &record.sent(self.now), &version, None).await {
            // A worker was faster: it has the lease, or is done.
            Ok(_) | Err(StateError::Changed { .. } | StateError::Leased { .. }) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "sent, but not noted in the record; the planner may send it once more");
                Ok(None)
            }
        }
    }

    async fn send(&self, message: &Message) -> Result<(), PassError> {
        let text = message.to_json().map_err(|error| PassError::Unavailable(error.to_string()))?;
        self.queue.send(&text, &SendOptions::default()).await.map(|_| ()).map_err(queue_error)
    }
}

/// Without a record no `gen` counts: the same work as if it were asked for by hand.
fn by_hand(parked: &ParkedRecord, message: Option<Message>) -> Option<Message> {
    let by_hand = |message: Message| Message { generation: None, pass: None, ..message };
    match (message, &parked.dataset, &parked.partition) {
        (Some(message), _, _) => Some(by_hand(message)),
        (None, Some(dataset), Some(partition)) => {
            Some(Message { partition: Some(partition.clone()), spec_id: parked.spec_id, ..Message::by_hand(dataset) })
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "requeue_tests.rs"]
mod tests;
