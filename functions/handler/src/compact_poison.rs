//! `compact-poison`, by a message that the host gave up after its last delivery: it is parked, with the reason.

use firn_compact::HostServices;
use firn_compact::worker::poison;

use crate::answer::Answer;
use crate::compact;
use crate::invocation::Invocation;

/// Parks one message.
pub async fn run(services: &HostServices, invocation: &Invocation) -> Answer {
    compact::answer(&poison(services, &invocation.message, &invocation.id).await)
}
