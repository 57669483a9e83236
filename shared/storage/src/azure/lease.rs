//! Leases of blobs in Azure.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_storage_blob::models::BlobClientAcquireLeaseOptions;
use firn_model::BlobId;

use super::{AzureOptions, AzureStore};
use crate::error::StorageError;
use crate::lease::{Lease, LeaseError, LeaseId, check_duration};
use crate::retry::{Failure, GaveUp, Reached, RetryPolicy};

/// A renewal that hangs must leave time for another try before the lease runs out.
const RENEW_TIMEOUT: Duration = Duration::from_secs(5);

/// What was asked about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Acquire,
    /// Renew or release.
    Own,
}

impl AzureStore {
    fn lease_error(&self, id: &BlobId, asked: Asked, gave_up: GaveUp) -> LeaseError {
        let detail = gave_up.detail(&self.inner.clients.endpoint);
        lease_error(id, asked, &gave_up.failure, detail)
    }
}

fn lease_error(id: &BlobId, asked: Asked, failure: &Failure, detail: String) -> LeaseError {
    let blob = Box::new(id.clone());
    let of_lease = failure.code.as_deref().is_some_and(|code| code.starts_with("Lease"));
    match (failure.status, asked) {
        (Some(409 | 412), Asked::Acquire) if of_lease => LeaseError::Held { blob },
        (Some(409 | 412), Asked::Own) if of_lease => LeaseError::Lost { blob },
        (Some(404), Asked::Acquire) => LeaseError::NotFound { blob },
        (Some(404), Asked::Own) => LeaseError::Lost { blob },
        (Some(401 | 403), _) => LeaseError::Denied { blob, detail },
        _ if failure.reached == Reached::Final => LeaseError::Other { blob, detail },
        _ => LeaseError::Transient { blob, detail },
    }
}

fn invalid(id: &BlobId, error: StorageError) -> LeaseError {
    LeaseError::other(id, error.to_string())
}

#[async_trait]
impl Lease for AzureStore {
    async fn acquire(&self, id: &BlobId, duration: Duration) -> Result<LeaseId, LeaseError> {
        check_duration(id, duration)?;
        let client = self.inner.clients.blob(id).map_err(|error| invalid(id, error))?;
        // Chosen here: a try whose answer was lost is repeated with the same id, which is no conflict with itself.
        let lease = LeaseId::random();
        let retry = &self.inner.options.retry;
        let attempt = || {
            let options = BlobClientAcquireLeaseOptions {
                proposed_lease_id: Some(lease.as_str().to_owned()),
                ..Default::default()
            };
            let acquire = client.acquire_lease(duration.as_secs() as i32, Some(options));
            retry.timed(0, async { acquire.await.map(|_| ()).map_err(|error| Failure::of(&error)) })
        };
        let result = retry.run("acquire lease", id, attempt).await;
        result.map_err(|gave_up| self.lease_error(id, Asked::Acquire, gave_up))?;
        Ok(lease)
    }

    async fn renew(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let client = self.inner.clients.blob(id).map_err(|error| invalid(id, error))?;
        let retry = &self.inner.options.retry;
        let attempt = || {
            let renew = client.renew_lease(lease.as_str().to_owned(), None);
            retry.timed(0, async { renew.await.map(|_| ()).map_err(|error| Failure::of(&error)) })
        };
        let result = retry.run("renew lease", id, attempt).await;
        result.map_err(|gave_up| self.lease_error(id, Asked::Own, gave_up))
    }

    async fn release(&self, id: &BlobId, lease: &LeaseId) -> Result<(), LeaseError> {
        let client = self.inner.clients.blob(id).map_err(|error| invalid(id, error))?;
        let retry = &self.inner.options.retry;
        let attempt = || {
            let release = client.release_lease(lease.as_str().to_owned(), None);
            retry.timed(0, async { release.await.map(|_| ()).map_err(|error| Failure::of(&error)) })
        };
        match retry.run("release lease", id, attempt).await {
            Ok(()) => Ok(()),
            Err(gave_up) => match self.lease_error(id, Asked::Own, gave_up.clone()) {
                // The try whose answer was lost released it.
                LeaseError::Lost { .. } if gave_up.perhaps_done => Ok(()),
                error => Err(error),
            },
        }
    }

    fn separate(&self) -> Option<Arc<dyn Lease>> {
        let own = &self.inner.options;
        let retry = RetryPolicy { try_timeout: own.retry.try_timeout.min(RENEW_TIMEOUT), ..own.retry.clone() };
        let options = AzureOptions { retry, ..own.clone() };
        match AzureStore::new(&self.inner.account, options) {
            Ok(store) => Some(Arc::new(store)),
            Err(error) => {
                tracing::warn!(%error, "no connections of its own for a lease");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_by_what_was_asked() {
        let id = BlobId::local("/x");
        let said = |asked, status, code: &str, reached| {
            let failure = Failure { reached, status: Some(status), code: Some(code.into()), detail: String::new() };
            lease_error(&id, asked, &failure, String::new())
        };
        let blob = || Box::new(id.clone());
        let held = said(Asked::Acquire, 409, "LeaseAlreadyPresent", Reached::Final);
        assert_eq!(held, LeaseError::Held { blob: blob() });
        assert_eq!(said(Asked::Acquire, 404, "BlobNotFound", Reached::Final), LeaseError::NotFound { blob: blob() });
        for (status, code) in [
            (409, "LeaseIdMismatchWithLeaseOperation"),
            (409, "LeaseNotPresentWithLeaseOperation"),
            (409, "LeaseIsBrokenAndCannotBeRenewed"),
            (404, "BlobNotFound"),
        ] {
            assert_eq!(said(Asked::Own, status, code, Reached::Final), LeaseError::Lost { blob: blob() }, "{code}");
        }
        let busy = said(Asked::Own, 503, "ServerBusy", Reached::Refused { retry_after: None });
        assert!(busy.is_transient(), "{busy}");
        assert!(said(Asked::Own, 500, "InternalError", Reached::Perhaps).is_transient());
        assert!(matches!(said(Asked::Own, 403, "AuthorizationFailure", Reached::Final), LeaseError::Denied { .. }));
        assert!(matches!(said(Asked::Acquire, 400, "InvalidHeaderValue", Reached::Final), LeaseError::Other { .. }));
    }
}
