//! Gives a message up: an entry for a person, one event, and an answer with success so that the host forgets it.

use firn_model::Message;
use firn_state::{InflightRecord, ParkedRecord, parked_id_of_body};
use firn_telemetry::Parked;

use super::answer::{Delivered, WorkAnswer, WorkOutcome};
use super::defer::fail;
use super::record::HeldRecord;
use crate::host::HostServices;

/// Parks a message that belongs to no record: text that is no message, an unknown dataset or field.
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
