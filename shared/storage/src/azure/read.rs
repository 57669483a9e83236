//! Downloads: one request at a time, and every byte that was asked for.

use std::num::NonZero;
use std::ops::Range;

use azure_core::http::headers::Headers;
use azure_storage_blob::models::{BlobClientDownloadOptions, BlobClientDownloadResult};
use bytes::{Bytes, BytesMut};
use firn_model::BlobId;
use futures::TryStreamExt;

use super::Inner;
use crate::error::StorageError;
use crate::retry::Failure;

/// What one request of a whole read brings; more follows, of the same version of the blob, in further requests.
const PART_BYTES: usize = 32 << 20;

/// Most memory that is set aside before the first byte has come: a length may be nonsense from a damaged footer.
const RESERVE_BYTES: u64 = 64 << 20;

/// One try of a ranged read.
enum Ranged {
    Data(Bytes),
    /// The blob ends early, at this size.
    Ends(u64),
}

impl Inner {
    pub(super) async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        if range.start == range.end {
            return Ok(Bytes::new());
        }
        let Some(length) = range.end.checked_sub(range.start).and_then(|length| usize::try_from(length).ok()) else {
            let (found, _) = self.properties(id).await?;
            return Err(StorageError::out_of_range(id, &range, found.size));
        };
        let retry = &self.options.retry;
        let client = self.clients.blob(id)?;
        let attempt = || async {
            let options = BlobClientDownloadOptions {
                range: Some(range.clone().into()),
                parallel: Some(NonZero::<usize>::MIN),
                partition_size: NonZero::new(length),
                ..Default::default()
            };
            let download = async { client.download(Some(options)).await.map_err(|error| Failure::of(&error)) };
            let answer = retry.timed(0, download).await?;
            let size = blob_size(&answer.headers);
            let data = self.collect(answer, length as u64).await?;
            match size {
                _ if data.len() == length => Ok(Ranged::Data(data)),
                Some(size) if size < range.end => Ok(Ranged::Ends(size)),
                _ => Err(Failure::perhaps(format!("the answer ended after {} of {length} bytes", data.len()))),
            }
        };
        match retry.run("read", id, attempt).await {
            Ok(Ranged::Data(data)) => Ok(data),
            Ok(Ranged::Ends(size)) => Err(StorageError::out_of_range(id, &range, size)),
            Err(gave_up) if gave_up.failure.is(416) => {
                let (found, _) = self.properties(id).await?;
                Err(StorageError::out_of_range(id, &range, found.size))
            }
            Err(gave_up) => Err(gave_up.into_error(id, &self.clients.endpoint)),
        }
    }

    pub(super) async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        let retry = &self.options.retry;
        let client = self.clients.blob(id)?;
        let attempt = || async {
            let options = BlobClientDownloadOptions {
                parallel: Some(NonZero::<usize>::MIN),
                partition_size: NonZero::new(PART_BYTES),
                ..Default::default()
            };
            let download = async { client.download(Some(options)).await.map_err(|error| Failure::of(&error)) };
            let answer = retry.timed(0, download).await?;
            let Some(size) = blob_size(&answer.headers) else {
                return Err(Failure::lasting("the answer does not say how large the blob is"));
            };
            let data = self.collect(answer, size).await?;
            if data.len() as u64 != size {
                return Err(Failure::perhaps(format!("the answer ended after {} of {size} bytes", data.len())));
            }
            Ok(data)
        };
        let result = retry.run("read", id, attempt).await;
        result.map_err(|gave_up| gave_up.into_error(id, &self.clients.endpoint))
    }

    /// The body of an answer, of at most `expected` bytes.
    async fn collect(&self, answer: BlobClientDownloadResult, expected: u64) -> Result<Bytes, Failure> {
        let mut body = answer.body;
        let mut data = BytesMut::new();
        loop {
            let next = async {
                body.try_next().await.map_err(|error| match Failure::of(&error) {
                    // A later part was of another version of the blob: begin again.
                    failure if failure.is(412) => Failure::perhaps("the blob was replaced while it was read"),
                    failure => failure,
                })
            };
            let Some(piece) = self.options.retry.timed(0, next).await? else { return Ok(data.freeze()) };
            if (data.len() + piece.len()) as u64 > expected {
                return Err(Failure::lasting(format!("the answer is longer than {expected} bytes")));
            }
            if data.is_empty() {
                if piece.len() as u64 == expected {
                    return Ok(piece);
                }
                data.reserve(expected.min(RESERVE_BYTES) as usize);
            }
            data.extend_from_slice(&piece);
        }
    }
}

/// The size of the whole blob: of `Content-Range: bytes 0-9/100`, else of the body that is the whole.
fn blob_size(headers: &Headers) -> Option<u64> {
    let header = |name: &'static str| headers.get_optional_str(&name.into());
    match header("content-range") {
        Some(range) => range.rsplit_once('/')?.1.trim().parse().ok(),
        None => header("content-length")?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_blob_is_that_of_the_whole() {
        let size = |headers: &[(&'static str, &'static str)]| {
            let mut all = Headers::new();
            for (name, value) in headers {
                all.insert(*name, *value);
            }
            blob_size(&all)
        };
        assert_eq!(size(&[("content-range", "bytes 0-9/100"), ("content-length", "10")]), Some(100));
        assert_eq!(size(&[("content-length", "10")]), Some(10));
        assert_eq!(size(&[("content-range", "bytes 0-9/*")]), None);
        assert_eq!(size(&[]), None);
    }
}
