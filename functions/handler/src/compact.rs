//! `compact`, by a message of the queue: one partition.

use firn_compact::HostServices;
use firn_compact::worker::{Delivered, WorkAnswer, work};

use crate::answer::Answer;
use crate::invocation::Invocation;

/// Works on one message.
pub async fn run(services: &HostServices, invocation: &Invocation) -> Answer {
    let delivered = Delivered {
        body: invocation.message.clone(),
        dequeue_count: invocation.dequeue_count,
        invocation_id: invocation.id.clone(),
        expires: invocation.expires,
    };
    answer(&work(services, delivered).await)
}

/// The answer for the host, by the table of design section 4.
pub(crate) fn answer(worked: &WorkAnswer) -> Answer {
    let line = format!("{}: {}", worked.outcome, worked.reason);
    Answer { fault: worked.fault, ..Answer::done(worked.to_json()) }.log(line)
}
