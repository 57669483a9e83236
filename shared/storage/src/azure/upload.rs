//! Streaming uploads: blocks go out while the next one fills, and one list makes the blob.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::{NoFormat, RequestContent};
use azure_storage_blob::models::{
    BlockBlobClientCommitBlockListOptions, BlockBlobClientCommitBlockListResultHeaders, BlockLookupList,
};
use azure_storage_blob::{BlobClient, BlockBlobClient};
use bytes::{Bytes, BytesMut};
use firn_model::BlobId;
use tokio::task::JoinHandle;

use super::blocks::BlockIds;
use super::write::Write;
use super::{Inner, etag, time};
use crate::crc::Crc64;
use crate::error::StorageError;
use crate::retry::Failure;
use crate::store::{BlobProperties, BlobUpload, PutCondition};

pub(super) struct Upload {
    inner: Arc<Inner>,
    id: BlobId,
    client: BlobClient,
    blocks: BlockIds,
    /// Bytes of the block that fills.
    filling: BytesMut,
    /// The block on its way.
    sending: Option<JoinHandle<Result<(), StorageError>>>,
    size: u64,
    crc: Crc64,
    /// Why an earlier write failed.
    failed: Option<StorageError>,
}

impl Upload {
    pub(super) fn new(inner: Arc<Inner>, id: BlobId) -> Result<Upload, StorageError> {
        let client = inner.clients.blob(&id)?;
        Ok(Upload {
            inner,
            id,
            client,
            blocks: BlockIds::new(),
            filling: BytesMut::new(),
            sending: None,
            size: 0,
            crc: Crc64::default(),
            failed: None,
        })
    }

    async fn add(&mut self, mut bytes: Bytes) -> Result<(), StorageError> {
        self.size += bytes.len() as u64;
        self.crc.update(&bytes);
        loop {
            let full = self.inner.options.blocks.bytes(self.blocks.given());
            let room = full.saturating_sub(self.filling.len());
            // A block goes out only when more follows, so that a blob of one block is one request.
            if bytes.len() <= room {
                self.filling.extend_from_slice(&bytes);
                return Ok(());
            }
            self.filling.extend_from_slice(&bytes.split_to(room));
            let block = self.filling.split().freeze();
            self.send(block).await?;
        }
    }

    /// Sends a block, after the one before it has arrived.
    async fn send(&mut self, block: Bytes) -> Result<(), StorageError> {
        self.arrived().await?;
        let most = self.inner.options.blocks.max_blocks;
        if self.blocks.given() >= most {
            let detail = format!("more than {most} blocks after {} bytes", self.size);
            return Err(StorageError::Full { blob: Box::new(self.id.clone()), detail });
        }
        let name = self.blocks.next();
        let (inner, id, client) = (self.inner.clone(), self.id.clone(), self.client.block_blob_client());
        self.sending = Some(tokio::spawn(async move { stage(&inner, &id, &client, &name, block).await }));
        Ok(())
    }

    /// Waits for the block on its way.
    async fn arrived(&mut self) -> Result<(), StorageError> {
        match self.sending.take() {
            None => Ok(()),
            Some(sending) => match sending.await {
                Ok(result) => result,
                Err(ended) => Err(StorageError::other(&self.id, format!("sending a block ended early: {ended}"))),
            },
        }
    }

    async fn finish(&mut self) -> Result<BlobProperties, StorageError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let rest = self.filling.split().freeze();
        if self.blocks.given() == 0 {
            return self.inner.put(&self.id, rest, &PutCondition::IfAbsent, None).await;
        }
        self.send(rest).await?;
        self.arrived().await?;
        self.commit().await
    }

    /// Puts the list of blocks, which makes the blob.
    async fn commit(&self) -> Result<BlobProperties, StorageError> {
        let write = Write::new(&self.id, &PutCondition::IfAbsent);
        let (if_match, if_none_match) = write.conditions();
        let client = self.client.block_blob_client();
        let names = BlockLookupList { latest: Some(self.blocks.all()), ..Default::default() };
        let (write, client, names) = (&write, &client, &names);
        let retry = &self.inner.options.retry;
        let attempt = || {
            let options = BlockBlobClientCommitBlockListOptions {
                if_match: if_match.clone(),
                if_none_match: if_none_match.clone(),
                metadata: Some(write.metadata()),
                ..Default::default()
            };
            let commit = async move {
                let list = names.clone().try_into().map_err(|error| Failure::of(&error))?;
                let answer =
                    client.commit_block_list(list, Some(options)).await.map_err(|error| Failure::of(&error))?;
                let headers = || azure_core::Result::Ok((etag(answer.etag()?.as_ref()), time(answer.last_modified()?)));
                headers().map_err(|error| Failure::of(&error))
            };
            retry.timed(0, commit)
        };
        let crc64 = Some(self.crc.value());
        match retry.run("commit blocks", &self.id, attempt).await {
            Ok((etag, last_modified)) => Ok(BlobProperties { size: self.size, etag, last_modified, crc64, md5: None }),
            Err(gave_up) => Ok(BlobProperties { crc64, ..self.inner.settle(write, gave_up).await? }),
        }
    }
}

/// Sends one block; sending it twice does no harm.
async fn stage(
    inner: &Inner,
    id: &BlobId,
    client: &BlockBlobClient,
    name: &[u8],
    block: Bytes,
) -> Result<(), StorageError> {
    let retry = &inner.options.retry;
    let length = block.len();
    let attempt = || {
        let body: RequestContent<Bytes, NoFormat> = block.clone().into();
        let stage = client.stage_block(name, length as u64, body, None);
        retry.timed(length, async { stage.await.map(|_| ()).map_err(|error| Failure::of(&error)) })
    };
    let result = retry.run("send block", id, attempt).await;
    result.map_err(|gave_up| gave_up.into_error(id, &inner.clients.endpoint))
}

#[async_trait]
impl BlobUpload for Upload {
    async fn write(&mut self, block: Bytes) -> Result<(), StorageError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.add(block).await;
        self.failed = result.as_ref().err().cloned();
        result
    }

    async fn complete(mut self: Box<Self>) -> Result<BlobProperties, StorageError> {
        self.finish().await
    }

    async fn abort(self: Box<Self>) {
        // Dropping it stops the block on its way. Blocks of no blob cannot be deleted; the service does it after a week.
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(sending) = &self.sending {
            sending.abort();
        }
    }
}
