//! A message that the host gave up after its last delivery (design section 4, "Poison"). Only its text arrives here.

use std::fmt::Display;
use std::time::Duration;

use chrono::TimeDelta;
use firn_config::hours;
use firn_model::{Message, MessageKind, parse_message};
use firn_state::{Address, InflightRecord, NOT_A_MESSAGE, ParkedRecord, PoisonDecision, Version, decide_poison};
use firn_storage::{LeaseError, LeaseKeeper};
use firn_telemetry::Parked;
use uuid::Uuid;

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::defer::fail;
use super::park::{event, park_body, park_message};
use super::start::{RESTART, Unnamed, name_partition};
use crate::host::HostServices;

/// Long enough for one write.
const LEASE: Duration = Duration::from_secs(15);

/// Parks a message of the poison queue, and its partition when the message was the one that counted. Emits one `parked` event.
pub async fn poison(services: &HostServices, body: &[u8], invocation_id: &str) -> WorkAnswer {
    let delivered =
        Delivered { body: body.to_vec(), dequeue_count: 0, invocation_id: invocation_id.to_owned(), expires: None };
    let message = match parse_message(body) {
        Ok(message) => message,
        Err(bad) => return park_message(services, &delivered, None, format!("{NOT_A_MESSAGE}: {bad}")).await,
    };
    match partition(services, &delivered, &message).await {
        Ok(answer) => answer,
        Err(reason) => park_message(services, &delivered, Some(&message), reason).await,
    }
}

/// # Errors
/// The reason for an entry that concerns the message alone.
async fn partition(services: &HostServices, delivered: &Delivered, message: &Message) -> Result<WorkAnswer, String> {
    let dataset =
        services.config.named_dataset(&message.dataset).map_err(|reason| gave_up(format!("{reason}; {RESTART}")))?;
    let generation = match message.kind() {
        MessageKind::ByHandDataset => return Err(gave_up("planning the dataset ended without an outcome")),
        MessageKind::ByHandPartition => None,
        MessageKind::Worker { generation } => Some(generation),
    };
    let named = match name_partition(services, dataset, message).await {
        Ok(named) => named,
        // It is not known to be wrong: the planner asks for the partition again when its message counts as lost.
        Err(Unnamed::Later(reason)) => return Ok(park_body(services, delivered, Some(message), gave_up(reason)).await),
        Err(Unnamed::Wrong(reason)) => return Err(gave_up(reason)),
    };
    let address = services.state.root().inflight(&dataset.name, &named.fingerprint);
    let (lease, leased) = match services.state.lease().acquire(address.blob(), LEASE).await {
        Ok(lease) => (Some(lease), false),
        Err(LeaseError::Held { .. }) => (None, true),
        Err(LeaseError::NotFound { .. }) => (None, false),
        Err(error) => return Ok(fail(services, delivered, Some(message), error.to_string())),
    };
    let keeper = match &lease {
        None => None,
        Some(lease) => {
            LeaseKeeper::hold(services.state.lease().clone(), address.blob().clone(), lease.clone(), LEASE).ok()
        }
    };
    let situation = Situation { generation, leased, cooldown: hours(dataset.compaction.cooldown_hours) };
    let answer = match decide(services, &address, &situation).await {
        Err(reason) => Err(reason),
        Ok((record, version)) => {
            let entry = ParkedRecord::of_partition(&record, &delivered.body, services.clock.now());
            let parked = services.state.root().parked(&named.fingerprint);
            let written = match services.state.write(&parked, &entry).await {
                Ok(_) => services.state.replace(&address, &record, &version, lease.as_ref()).await,
                Err(error) => Err(error),
            };
            Ok(match written {
                Err(error) => fail(services, delivered, Some(message), error.to_string()),
                Ok(_) => {
                    let event = event(&named.fingerprint, &entry, delivered);
                    services.emitter.emit(&Parked { pass: Some(record.pass.clone()), ..event }.counted());
                    WorkAnswer::new(WorkOutcome::Parked, entry.reason)
                }
            })
        }
    };
    if let Some(keeper) = keeper
        && let Err(error) = keeper.release().await
    {
        tracing::debug!(%error, "the lease ends by itself");
    }
    answer
}

/// What decides beside the record.
struct Situation {
    /// `gen` of the message, None by hand.
    generation: Option<Uuid>,
    /// Whether a worker has the partition.
    leased: bool,
    cooldown: TimeDelta,
}

fn gave_up(detail: impl Display) -> String {
    format!("the host gave the message up: {detail}")
}

/// The record as it is to be parked, and the version that it rests on.
///
/// # Errors
/// The reason for an entry that concerns the message alone.
async fn decide(
    services: &HostServices,
    address: &Address<InflightRecord>,
    situation: &Situation,
) -> Result<(Box<InflightRecord>, Version), String> {
    let read = services.state.read(address).await.map_err(gave_up)?;
    let Situation { generation, leased, cooldown } = *situation;
    let record = read.as_ref().map(|read| &read.value);
    match (decide_poison(record, generation, leased, cooldown, services.clock.now()), read.map(|read| read.version)) {
        (PoisonDecision::Park { record, .. }, Some(version)) => Ok((record, version)),
        (PoisonDecision::Park { reason, .. } | PoisonDecision::Note { reason }, _) => Err(reason),
    }
}
