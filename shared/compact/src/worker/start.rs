//! From a message's body to the partition that it names.

use std::sync::Arc;
use std::time::Instant;

use firn_config::{Dataset, hours};
use firn_model::{Message, MessageKind, PartitionKey, parse_message};
use firn_state::{DeliveredPartition, Selection};
use firn_table::{NextStep, TableIdent};
use uuid::Uuid;

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::claim::Claiming;
use super::defer::{self, defer};
use super::park::park_message;
use super::run::PartitionWork;
use crate::host::{FanOutError, HostServices};

/// What helps a message whose dataset the configuration lacks.
pub(crate) const RESTART: &str = "the handler reads its configuration when it starts: add the dataset, restart the \
                                  handler, then firn requeue, or wait for cooldownHours";

/// Works on one message and says what the host is told. Whatever happens is an answer; a fault of the program that unwinds
/// is the caller's to catch, it is delivered again like any other fault.
pub async fn work(services: &HostServices, delivered: Delivered) -> WorkAnswer {
    let deadline = services.run_limit.map(|limit| Instant::now() + limit);
    let message = match parse_message(&delivered.body) {
        Ok(message) => message,
        Err(bad) if bad.is_newer() => {
            return defer(services, &delivered, None, defer::NEWER_VERSION, bad.to_string()).await;
        }
        Err(bad) => return park_message(services, &delivered, None, bad.to_string()).await,
    };
    let dataset = match services.config.named_dataset(&message.dataset) {
        Ok(dataset) => dataset,
        Err(reason) => return park_message(services, &delivered, Some(&message), format!("{reason}; {RESTART}")).await,
    };
    match (message.kind(), &message.partition) {
        (MessageKind::ByHandDataset, _) | (_, None) => fan_out(services, &delivered, &message).await,
        (_, Some(_)) if message.dry_run => fan_out(services, &delivered, &message).await,
        (kind, Some(_)) => partition(services, &delivered, &message, dataset, kind, deadline).await,
    }
}

/// A whole dataset, or a dry run: planned, not merged here.
async fn fan_out(services: &HostServices, delivered: &Delivered, message: &Message) -> WorkAnswer {
    if delivered.dequeue_count >= u64::from(firn_state::ATTEMPT_LIMIT) {
        let reason =
            format!("DequeueCount at {}: planning it ended without an outcome each time", delivered.dequeue_count);
        return park_message(services, delivered, Some(message), reason).await;
    }
    match services.fan_out.fan_out(services, message, &delivered.invocation_id).await {
        Ok(done) => WorkAnswer { counts: done.counts, ..WorkAnswer::new(WorkOutcome::Done, done.reason) },
        Err(FanOutError::Refused(reason)) => park_message(services, delivered, Some(message), reason).await,
        Err(FanOutError::Later(reason)) => defer(services, delivered, Some(message), defer::NO_ANSWER, reason).await,
    }
}

/// The partition that a message names, against the table as it is now.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) key: Arc<PartitionKey>,
    /// Its name in the state store.
    pub(crate) fingerprint: String,
}

/// Why a message names no partition.
#[derive(Debug)]
pub(crate) enum Unnamed {
    /// The catalog does not answer.
    Later(String),
    /// It never will.
    Wrong(String),
}

pub(crate) async fn name_partition(
    services: &HostServices,
    dataset: &Dataset,
    message: &Message,
) -> Result<Named, Unnamed> {
    let ident = TableIdent::new(dataset.table.namespace.iter().cloned(), dataset.table.name.clone());
    let table = services.compact.catalog.load(&ident).await.map_err(|error| match error.next_step() {
        NextStep::Retry => Unnamed::Later(error.to_string()),
        NextStep::Usage | NextStep::Absent | NextStep::Skip => Unnamed::Wrong(error.to_string()),
    })?;
    let json = message.partition.clone().unwrap_or_default();
    let key = table
        .partition_from_json(message.spec_id, &json)
        .map_err(|detail| Unnamed::Wrong(format!("dataset \"{}\": {detail}", dataset.name)))?;
    let fingerprint = key.fingerprint(&table.uuid());
    Ok(Named { key: Arc::new(key), fingerprint })
}

async fn partition(
    services: &HostServices,
    delivered: &Delivered,
    message: &Message,
    dataset: &Dataset,
    kind: MessageKind,
    deadline: Option<Instant>,
) -> WorkAnswer {
    let named = match name_partition(services, dataset, message).await {
        Ok(named) => named,
        Err(Unnamed::Later(reason)) => {
            return defer(services, delivered, Some(message), defer::NO_ANSWER, reason).await;
        }
        Err(Unnamed::Wrong(reason)) => return park_message(services, delivered, Some(message), reason).await,
    };
    let selection = Selection {
        dataset: dataset.name.clone(),
        partition: named.key.json_fields(),
        spec_id: named.key.spec_id,
        rule: message.rule_or_manual(),
        pass: message.pass.clone().unwrap_or_else(|| Uuid::new_v4().to_string()),
        inputs_hash: String::new(),
    };
    let claiming = |generation| Claiming {
        state: &services.state,
        address: services.state.root().inflight(&dataset.name, &named.fingerprint),
        delivered: DeliveredPartition {
            kind,
            selection: &selection,
            dequeue_count: delivered.dequeue_count,
            generation,
            cooldown: hours(dataset.compaction.cooldown_hours),
            now: services.clock.now(),
        },
        stop: &services.compact.stop,
    };
    let work = PartitionWork { services, delivered, message, dataset, named: &named, pass: &selection.pass };
    match claiming(Uuid::new_v4()).is_void().await {
        Ok(None) => {}
        Ok(Some(reason)) => return work.superseded(reason, selection.rule),
        Err(claim) => return work.not_started(claim).await,
    }
    let reserved = services.memory.reserve(dataset.compaction.memory_mb);
    let _reserved = match deadline {
        None => reserved.await,
        Some(deadline) => match tokio::time::timeout_at(deadline.into(), reserved).await {
            Ok(reserved) => reserved,
            Err(_) => {
                let reason = "other work had the memory of this process all the time".to_owned();
                return defer(services, delivered, Some(message), defer::NO_MEMORY, reason).await;
            }
        },
    };
    // The time of a start is the time of its claim, not that before the wait.
    work.claimed(claiming(Uuid::new_v4()).claim().await, selection.rule, deadline).await
}
