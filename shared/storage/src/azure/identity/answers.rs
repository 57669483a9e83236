//! What an identity endpoint's answer means. Stands between `azure_identity` and the network: its retries differ from one
//! kind of identity to the next, and its errors do not keep how long the endpoint asked to wait.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use super::error::Told;
use crate::azure::failure::retry_after;
use crate::error::chain;

/// Lets answers through that azure_identity understands; everything that may pass by itself becomes [`Told`], which no retry of
/// the SDK takes for its own.
#[derive(Debug)]
pub(super) struct Answers;

#[async_trait]
impl Policy for Answers {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let told = match next[0].send(context, request, &next[1..]).await {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Connection) => {
                Told { detail: chain(&error), retry_after: None, reached: false }
            }
            Err(error) => return Err(error),
            Ok(answer) => {
                let status = u16::from(answer.status());
                if !may_pass(status) {
                    return Ok(answer);
                }
                let answer = answer.try_into_raw_response().await?;
                Told { detail: format!("HTTP {status}"), retry_after: retry_after(&answer), reached: true }
            }
        };
        let host = request.url().host_str().unwrap_or_default();
        Err(Error::new(ErrorKind::Other, Told { detail: format!("{host}: {}", told.detail), ..told }))
    }
}

/// The statuses for which the documentation of the metadata service asks for another try; others are final.
fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 410 | 429 | 500..=599)
}
