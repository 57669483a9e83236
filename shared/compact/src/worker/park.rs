//! Gives a message up: an entry for a person, one event, and an answer with success so that the host forgets it.

use std::time::Duration;

use firn_config::hours;
use firn_model::Message;
use firn_state::{Address, InflightRecord, ParkedRecord, StateError, parked_id_of_body};
use firn_storage::LeaseError;
use firn_telemetry::Parked;
use futures::{StreamExt, stream};
use uuid::Uuid;

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::defer::fail;
use super::record::HeldRecord;
use crate::host::HostServices;

/// Long enough for two writes.
const LEASE: Duration = Duration::from_secs(15);
/// Records that are read at once.
const AT_ONCE: usize = 16;

/// Parks a message whose partition was not claimed: text that is no message, an unknown dataset or field, a table that is not there.
/// The record of a planner's message is parked with it, else the partition would wait for a message that is gone.
pub(crate) async fn park_message(
    services: &HostServices,
    delivered: &Delivered,
    message: Option<&Message>,
    reason: String,
) -> WorkAnswer {
    let Some((message, generation)) = message.and_then(|message| Some((message, message.generation?))) else {
        return park_body(services, delivered, message, reason).await;
    };
    match park_record(services, delivered, message, generation, &reason).await {
        Ok(Some(event)) => {
            services.emitter.emit(&event.counted());
            WorkAnswer::new(WorkOutcome::Parked, reason)
        }
        Ok(None) => park_body(services, delivered, Some(message), reason).await,
        Err(error) => fail(services, delivered, Some(message), format!("{reason}; its record was not parked: {error}")),
    }
}

/// Parks the record that waits for this message, under its lease, and writes its entry; None when there is none, or when somebody else
/// has it. The dataset or its table may be unknown here, so that the record's name cannot be reckoned: it is found by its `gen`.
async fn park_record(
    services: &HostServices,
    delivered: &Delivered,
    message: &Message,
    generation: Uuid,
    reason: &str,
) -> Result<Option<Parked>, String> {
    let Some(address) = waiting_for(services, message, generation).await.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let lease = match services.state.lease().acquire(address.blob(), LEASE).await {
        Ok(lease) => lease,
        Err(LeaseError::Held { .. } | LeaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let parked = async {
        let read = services.state.read(&address).await?;
        let Some(read) = read.filter(|read| waits(&read.value, generation)) else { return Ok(None) };
        let configured = services.config.dataset(&message.dataset).map(|dataset| dataset.compaction.cooldown_hours);
        let cooldown = configured.unwrap_or(services.config.compaction.settings.cooldown_hours);
        let now = services.clock.now();
        let record = read.value.parked(reason, hours(cooldown), now);
        let entry = ParkedRecord::of_partition(&record, &delivered.body, now);
        services.state.write(&services.state.root().parked(address.name()), &entry).await?;
        services.state.replace(&address, &record, &read.version, Some(&lease)).await?;
        Ok(Some(Parked { pass: Some(record.pass), ..event(address.name(), &entry, delivered) }))
    }
    .await;
    if let Err(error) = services.state.lease().release(address.blob(), &lease).await {
        tracing::debug!(%error, "the lease ends by itself");
    }
    parked.map_err(|error: StateError| error.to_string())
}

/// Whether a record waits for the message of this `gen`.
fn waits(record: &InflightRecord, generation: Uuid) -> bool {
    record.generation == generation && !record.is_at_rest()
}

async fn waiting_for(
    services: &HostServices,
    message: &Message,
    generation: Uuid,
) -> Result<Option<Address<InflightRecord>>, StateError> {
    let listed = services.state.list_inflight(Some(&message.dataset)).await?;
    let mut read = stream::iter(listed)
        .map(|listed| async move { (services.state.read_listed(&listed).await, listed.address) })
        .buffer_unordered(AT_ONCE);
    while let Some((read, address)) = read.next().await {
        match read {
            Ok(Some(read)) if waits(&read.value, generation) => return Ok(Some(address)),
            // What cannot be read waits for no message that this version knows.
            Ok(_) | Err(StateError::Unreadable { .. } | StateError::Newer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Parks the text alone; a record that waits for it stays as it is.
pub(crate) async fn park_body(
    services: &HostServices,
    delivered: &Delivered,
    message: Option<&Message>,
    reason: String,
) -> WorkAnswer {
    let mut entry =
        ParkedRecord::of_body(reason.clone(), &delivered.body, delivered.dequeue_count, services.clock.now());
    if let Some(message) = message {
        entry.dataset = Some(message.dataset.clone());
        entry.partition = message.partition.clone();
        entry.spec_id = message.spec_id;
    }
    let id = parked_id_of_body(&delivered.body);
    if let Err(error) = services.state.write(&services.state.root().parked(&id), &entry).await {
        return fail(services, delivered, message, format!("{reason}; the parked entry was not written: {error}"));
    }
    let event = Parked { pass: message.and_then(|message| message.pass.clone()), ..event(&id, &entry, delivered) };
    services.emitter.emit(&event.counted());
    WorkAnswer::new(WorkOutcome::Parked, reason)
}

/// Writes the entry of a partition and its record, both before the answer; returns the event.
///
/// # Errors
/// A sentence when one of them was not written; the host delivers again.
pub(crate) async fn park_partition(
    services: &HostServices,
    delivered: &Delivered,
    id: &str,
    held: &HeldRecord,
    parked: &InflightRecord,
) -> Result<Parked, String> {
    let entry = ParkedRecord::of_partition(parked, &delivered.body, services.clock.now());
    let written = services.state.write(&services.state.root().parked(id), &entry).await;
    written.map_err(|error| format!("{}; the parked entry was not written: {error}", entry.reason))?;
    let recorded = held.steps.write(|_| parked.clone()).await;
    recorded.map_err(|error| format!("{}; the record was not written: {error}", entry.reason))?;
    Ok(Parked { pass: Some(parked.pass.clone()), ..event(id, &entry, delivered) })
}

/// The event of a parked entry.
pub(crate) fn event(id: &str, entry: &ParkedRecord, delivered: &Delivered) -> Parked {
    Parked {
        id: id.to_owned(),
        dataset: entry.dataset.clone(),
        spec_id: entry.spec_id,
        partition: entry.partition.clone().map(serde_json::Value::Object),
        pass: None,
        invocation: delivered.invocation_id.clone(),
        reason: entry.reason.clone(),
        attempts: entry.attempts,
        dequeue_count: u32::try_from(delivered.dequeue_count).unwrap_or(u32::MAX),
        ..Parked::default()
    }
}
