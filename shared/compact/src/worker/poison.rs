//! A message that the host gave up after its last delivery (design section 4, "Poison"). Only its text arrives here.

use std::time::Duration;

use firn_model::{Message, MessageKind, parse_message};
use firn_state::{NOT_A_MESSAGE, ParkedRecord, PoisonDecision, decide_poison};
use firn_storage::{LeaseError, LeaseKeeper};

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::claim::hours;
use super::defer::fail;
use super::park::{event, park_body};
use super::start::{Unnamed, name_partition, unknown_dataset};
use crate::host::HostServices;

/// Long enough for one write.
const LEASE: Duration = Duration::from_secs(15);

/// Parks a message of the poison queue, and its partition when the message was the one that counted. Emits one `parked` event.
pub async fn poison(services: &HostServices, body: &[u8], invocation_id: &str) -> WorkAnswer {
    let delivered =
        Delivered { body: body.to_vec(), dequeue_count: 0, invocation_id: invocation_id.to_owned(), expires: None };
    let message = match parse_message(body) {
        Ok(message) => message,
        Err(bad) => return park_body(services, &delivered, None, format!("{NOT_A_MESSAGE}: {bad}")).await,
    };
    match partition(services, &delivered, &message).await {
        Ok(answer) => answer,
        Err(reason) => park_body(services, &delivered, Some(&message), reason).await,
    }
}

/// # Errors
/// The reason for an entry that concerns the message alone.
async fn partition(services: &HostServices, delivered: &Delivered, message: &Message) -> Result<WorkAnswer, String> {
    let gave_up = |detail: String| format!("the host gave the message up: {detail}");
    let Some(dataset) = services.config.dataset(&message.dataset) else {
        return Err(unknown_dataset(services, &message.dataset));
    };
    let generation = match message.kind() {
        MessageKind::ByHandDataset => return Err(gave_up("planning the dataset ended without an outcome".into())),
        MessageKind::ByHandPartition => None,
        MessageKind::Worker { generation } => Some(generation),
    };
    let named = match name_partition(services, dataset, message).await {
        Ok(named) => named,
        Err(Unnamed::Later(reason) | Unnamed::Wrong(reason)) => return Err(gave_up(reason)),
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
    let now = services.clock.now();
    let decided = match services.state.read(&address).await {
        Ok(read) => {
            let record = read.as_ref().map(|read| &read.value);
            let cooldown = hours(dataset.compaction.cooldown_hours);
            match (decide_poison(record, generation, leased, cooldown, now), read.map(|read| read.version)) {
                (PoisonDecision::Park { record, .. }, Some(version)) => {
                    let entry = ParkedRecord::of_partition(&record, &delivered.body, now);
                    let parked = services.state.root().parked(&named.fingerprint);
                    let written = services.state.write(&parked, &entry).await;
                    let written = match written {
                        Ok(_) => services.state.replace(&address, &record, &version, lease.as_ref()).await,
                        Err(error) => Err(error),
                    };
                    match written {
                        Ok(_) => {
                            let mut event = event(&named.fingerprint, &entry, delivered);
                            event.pass = Some(record.pass.clone());
                            services.emitter.emit(&event.counted());
                            Ok(WorkAnswer::new(WorkOutcome::Parked, entry.reason))
                        }
                        Err(error) => Ok(fail(services, delivered, Some(message), error.to_string())),
                    }
                }
                (PoisonDecision::Park { reason, .. } | PoisonDecision::Note { reason }, _) => Err(reason),
            }
        }
        Err(error) => Err(gave_up(error.to_string())),
    };
    if let Some(keeper) = keeper
        && let Err(error) = keeper.release().await
    {
        tracing::debug!(%error, "the lease ends by itself");
    }
    decided
}
