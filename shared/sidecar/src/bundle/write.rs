//! Writing a bundle to a store, a block at a time.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use firn_columnar::temp::TempFile;
use firn_model::BlobId;
use firn_storage::crc::{Crc64, crc64};
use firn_storage::{BlobProperties, BlobStore, BlobUpload};

use super::blocks::{BlockSums, text};
use super::{Footer, MAGIC, PartEntry, created_by};
use crate::error::SidecarError;
use crate::identity::{DataFile, SidecarKind};

/// Bytes read from temporary disk and handed to the store at once.
const BLOCK_BYTES: usize = 4 << 20;

/// A part that is to be written.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name, unique in the bundle.
    pub name: String,
    /// Its bytes.
    pub content: Content,
}

/// Where the bytes of a part are.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory.
    Memory(Bytes),
    /// On temporary disk.
    Temp(Arc<TempFile>),
}

impl Part {
    pub(crate) fn memory(name: impl Into<String>, bytes: impl Into<Bytes>) -> Part {
        Part { name: name.into(), content: Content::Memory(bytes.into()) }
    }

    /// Bytes of the part.
    pub fn length(&self) -> u64 {
        match &self.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Temp(file) => file.bytes(),
        }
    }
}

/// A bundle that is to be written.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What it is.
    pub kind: SidecarKind,
    /// What the kind has to say.
    pub about: serde_json::Value,
    /// Parts in the order in which they are written.
    pub parts: Vec<Part>,
}

impl Bundle {
    /// Writes the bundle as the sidecar `id` of `data`. Holds a few megabytes at a time.
    ///
    /// # Errors
    /// What the store says ([`firn_storage::StorageError::AlreadyExists`] when there is a blob of that name), or temporary disk.
    pub async fn write(
        &self,
        store: &dyn BlobStore,
        id: &BlobId,
        data: DataFile,
    ) -> Result<BlobProperties, SidecarError> {
        let mut upload = store.upload(id).await?;
        match self.write_all(upload.as_mut(), data).await {
            Ok(()) => Ok(upload.complete().await?),
            Err(error) => {
                upload.abort().await;
                Err(error)
            }
        }
    }

    async fn write_all(&self, upload: &mut dyn BlobUpload, data: DataFile) -> Result<(), SidecarError> {
        upload.write(Bytes::from_static(MAGIC)).await?;
        let mut blocks = BlockSums::default();
        blocks.update(MAGIC);
        let mut offset = MAGIC.len() as u64;
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let (length, crc) = write_part(upload, &part.content, &mut blocks).await?;
            parts.push(PartEntry { name: part.name.clone(), offset, length, crc64: text(crc) });
            offset += length;
        }
        let (about, blocks) = (self.about.clone(), blocks.finish());
        let footer = Footer { kind: self.kind, created_by: created_by(), data, about, parts, blocks };
        upload.write(end(&footer)?).await?;
        Ok(())
    }
}

/// The footer with what follows it.
fn end(footer: &Footer) -> Result<Bytes, SidecarError> {
    let mut bytes = serde_json::to_vec(footer).map_err(|error| SidecarError::Failed(error.to_string()))?;
    let crc = crc64(&bytes);
    let length = u32::try_from(bytes.len()).map_err(|_| SidecarError::Failed("the footer has over 4 GB".into()))?;
    bytes.extend(crc.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(MAGIC);
    Ok(bytes.into())
}

/// Writes a part. Returns its length and CRC-64.
async fn write_part(
    upload: &mut dyn BlobUpload,
    content: &Content,
    blocks: &mut BlockSums,
) -> Result<(u64, u64), SidecarError> {
    match content {
        Content::Memory(bytes) => {
            upload.write(bytes.clone()).await?;
            blocks.update(bytes);
            Ok((bytes.len() as u64, crc64(bytes)))
        }
        Content::Temp(temp) => {
            let mut file = File::open(temp.path())?;
            let (mut length, mut crc) = (0, Crc64::default());
            loop {
                // From the cache of the file system as a rule: these bytes were written a moment ago.
                let mut block = Vec::new();
                let read = (&mut file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
                if read == 0 {
                    return Ok((length, crc.value()));
                }
                length += read as u64;
                crc.update(&block);
                blocks.update(&block);
                upload.write(block.into()).await?;
            }
        }
    }
}
