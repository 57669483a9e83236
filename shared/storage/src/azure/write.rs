//! Whole puts and deletes, and what to make of a write whose answer was lost.

use std::collections::HashMap;
use std::num::NonZero;

use azure_core::Uuid;
use azure_core::http::{Etag, NoFormat, RequestContent};
use azure_storage_blob::models::{BlobClientDeleteOptions, BlobClientUploadOptions};
use bytes::Bytes;
use firn_model::BlobId;

use super::{Inner, etag, time};
use crate::crc::crc64;
use crate::error::StorageError;
use crate::lease::LeaseId;
use crate::retry::{Failure, GaveUp};
use crate::store::{BlobProperties, DeleteCondition, Deleted, PutCondition};

/// Metadata of every blob written here: the id of the write. A write whose answer was lost finds itself by it.
pub(super) const WRITE_ID: &str = "firnwrite";

/// One write, however often it is sent.
#[derive(Debug)]
pub(super) struct Write<'a> {
    id: &'a BlobId,
    condition: &'a PutCondition,
    /// Value of [`WRITE_ID`].
    write_id: String,
}

impl<'a> Write<'a> {
    pub(super) fn new(id: &'a BlobId, condition: &'a PutCondition) -> Self {
        Write { id, condition, write_id: Uuid::new_v4().simple().to_string() }
    }

    pub(super) fn metadata(&self) -> HashMap<String, String> {
        HashMap::from([(WRITE_ID.to_owned(), self.write_id.clone())])
    }

    /// `If-Match` and `If-None-Match`.
    pub(super) fn conditions(&self) -> (Option<Etag>, Option<Etag>) {
        match self.condition {
            PutCondition::Any => (None, None),
            PutCondition::IfAbsent => (None, Some("*".into())),
            PutCondition::IfMatch(etag) => (Some(format!("\"{etag}\"").into()), None),
        }
    }
}

/// What a lookup says about a write that was given up.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is the one that is there.
    Done,
    /// It did not happen: the error of the last try says why.
    Failed,
    /// It may have happened, or may still happen.
    Unknown,
}

/// Decides about a write that was given up. `ours` says whether the blob that is there carries the id of this write;
/// without a lookup it does not.
fn judge(gave_up: &GaveUp, condition: &PutCondition, ours: bool) -> Verdict {
    if ours {
        return Verdict::Done;
    }
    if !gave_up.perhaps_done {
        return Verdict::Failed;
    }
    match (gave_up.failure.is_conflict(), condition) {
        // Another blob stands there, and one try of ours at most could have put a blob there before it.
        (true, PutCondition::IfAbsent) => Verdict::Failed,
        // An earlier try may have been the one that changed the ETag, and another writer followed.
        _ => Verdict::Unknown,
    }
}

impl Inner {
    pub(super) async fn put(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: &PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        let client = self.clients.blob(id)?;
        let write = Write::new(id, condition);
        let (if_match, if_none_match) = write.conditions();
        let (write, size) = (&write, data.len());
        let attempt = || {
            let options = BlobClientUploadOptions {
                if_match: if_match.clone(),
                if_none_match: if_none_match.clone(),
                lease_id: lease.map(|lease| lease.as_str().to_owned()),
                metadata: Some(write.metadata()),
                // One Put Blob, never the SDK's own blocks.
                parallel: Some(NonZero::<usize>::MIN),
                partition_size: NonZero::new(size.max(1) as u64),
                ..Default::default()
            };
            let body: RequestContent<Bytes, NoFormat> = data.clone().into();
            let upload = client.upload(body, Some(options));
            self.options.retry.timed(size, async {
                let answer = upload.await.map_err(|error| Failure::of(&error))?;
                Ok((etag(answer.etag.as_ref()), time(answer.last_modified)))
            })
        };
        let crc = crc64(&data);
        match self.options.retry.run("write", id, attempt).await {
            Ok((etag, last_modified)) => {
                Ok(BlobProperties { size: size as u64, etag, last_modified, crc64: Some(crc), md5: None })
            }
            Err(gave_up) => {
                let found = self.settle(write, gave_up).await?;
                Ok(BlobProperties { crc64: Some(crc), ..found })
            }
        }
    }

    /// Finds out what became of a write that was given up: the properties of the blob when it happened all the same.
    pub(super) async fn settle(&self, write: &Write<'_>, gave_up: GaveUp) -> Result<BlobProperties, StorageError> {
        // Without a try that got as far as the store before there is nothing to look up.
        let worth_a_look = gave_up.perhaps_done || (gave_up.reached_before && gave_up.failure.is_conflict());
        let found = match worth_a_look {
            true => self.properties(write.id).await.ok(),
            false => None,
        };
        let ours = found.filter(|(_, write_id)| write_id.as_ref() == Some(&write.write_id));
        match (judge(&gave_up, write.condition, ours.is_some()), ours) {
            (Verdict::Done, Some((properties, _))) => Ok(properties),
            (Verdict::Unknown, _) => {
                let detail = gave_up.detail(&self.clients.endpoint);
                Err(StorageError::Unknown { blob: Box::new(write.id.clone()), detail })
            }
            _ if gave_up.failure.is_conflict() && *write.condition == PutCondition::IfAbsent => {
                Err(StorageError::already_exists(write.id))
            }
            _ => Err(gave_up.into_error(write.id, &self.clients.endpoint)),
        }
    }

    pub(super) async fn delete(
        &self,
        id: &BlobId,
        condition: &DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        let client = self.clients.blob(id)?;
        let retry = &self.options.retry;
        let attempt = || {
            let options = BlobClientDeleteOptions {
                if_match: match condition {
                    DeleteCondition::Any => None,
                    DeleteCondition::IfMatch(etag) => Some(format!("\"{etag}\"").into()),
                },
                lease_id: lease.map(|lease| lease.as_str().to_owned()),
                ..Default::default()
            };
            let delete = client.delete(Some(options));
            retry.timed(0, async { delete.await.map(|_| Deleted::Deleted).map_err(|error| Failure::of(&error)) })
        };
        match retry.run("delete", id, attempt).await {
            Ok(deleted) => Ok(deleted),
            Err(gave_up) if gave_up.failure.is(404) && !gave_up.failure.has_code("ContainerNotFound") => {
                // A try whose answer was lost may be the one that removed it.
                Ok(if gave_up.perhaps_done { Deleted::Deleted } else { Deleted::Absent })
            }
            // A service may ask for the ETag before it looks whether the blob is there.
            Err(gave_up) if gave_up.failure.has_code("ConditionNotMet") => match self.properties(id).await {
                Err(StorageError::NotFound { .. }) if gave_up.perhaps_done => Ok(Deleted::Deleted),
                Err(StorageError::NotFound { .. }) => Ok(Deleted::Absent),
                _ => Err(gave_up.into_error(id, &self.clients.endpoint)),
            },
            Err(gave_up) => Err(gave_up.into_error(id, &self.clients.endpoint)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::retry::Reached;

    fn gave_up(status: Option<u16>, perhaps_done: bool) -> GaveUp {
        let reached = if status.is_some() { Reached::Final } else { Reached::Perhaps };
        let failure = Failure { reached, status, code: None, detail: String::new() };
        GaveUp { failure, tries: 2, reached_before: true, perhaps_done, elapsed: Duration::ZERO }
    }

    #[test]
    fn a_write_is_a_conflict_only_when_it_cannot_be_its_own() {
        let (absent, matching, any) = (PutCondition::IfAbsent, PutCondition::IfMatch("1".into()), PutCondition::Any);
        for condition in [&absent, &matching, &any] {
            assert_eq!(judge(&gave_up(Some(412), true), condition, true), Verdict::Done);
            assert_eq!(judge(&gave_up(None, true), condition, true), Verdict::Done);
            assert_eq!(judge(&gave_up(Some(412), false), condition, false), Verdict::Failed);
            assert_eq!(judge(&gave_up(None, true), condition, false), Verdict::Unknown);
            assert_eq!(judge(&gave_up(Some(403), true), condition, false), Verdict::Unknown);
        }
        assert_eq!(judge(&gave_up(Some(412), true), &absent, false), Verdict::Failed);
        assert_eq!(judge(&gave_up(Some(412), true), &matching, false), Verdict::Unknown);
    }
}
