//! Outputs stream to the blob store while they are encoded.
//!
//! The merge writes on its own threads and must not run on the async runtime; an upload is async. Each output therefore has
//! a task on the runtime that stages blocks, fed through a channel of one block: the encoder runs at most two blocks ahead, which
//! is what the memory formula counts.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use firn_columnar::{ColumnarError, OutputFactory, OutputSink, RowGroupTap};
use firn_model::{BlobId, PartitionKey};
use firn_storage::{BlobProperties, BlobStore, StorageError};
use firn_table::{LoadedTable, output_path};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::naming::output_name;
use crate::sidecars::{OutputSidecars, Sidecars};

/// Bytes of one upload block. Three of them may be in memory for an output: filling, queued, on its way.
pub const BLOCK_BYTES: usize = 4 << 20;

/// What the memory formula counts for the upload of one output.
pub const UPLOAD_MEMORY: u64 = 3 * BLOCK_BYTES as u64;

/// One uploaded output.
#[derive(Debug, Clone)]
pub struct Uploaded {
    /// Path in the form that the table uses.
    pub path: String,
    /// Identity of the blob.
    pub id: BlobId,
    /// Size as the store reports it.
    pub size: u64,
}

/// Creates the outputs of one attempt at one group.
#[derive(Debug)]
pub struct GroupOutputs {
    table: LoadedTable,
    partition: Arc<PartitionKey>,
    inputs_hash: String,
    handle: Handle,
    finished: Arc<Mutex<Vec<Uploaded>>>,
    sidecars: Option<Sidecars>,
}

impl GroupOutputs {
    /// Outputs of `partition` of `table`, named after `inputs_hash`. `handle` runs the uploads; its threads must not be the ones
    /// that write.
    pub fn new(table: LoadedTable, partition: Arc<PartitionKey>, inputs_hash: String, handle: Handle) -> Self {
        Self { table, partition, inputs_hash, handle, finished: Arc::default(), sidecars: None }
    }

    /// The same with sidecars beside each output.
    #[must_use]
    pub fn with_sidecars(self, sidecars: Option<Sidecars>) -> Self {
        Self { sidecars, ..self }
    }

    /// The outputs that were uploaded whole, in the order in which they were closed.
    pub fn uploaded(&self) -> Vec<Uploaded> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An output that could not be written. The store has retried already; `retryable` says that a later run may go better.
fn write_error(path: &str, failed: Failed) -> ColumnarError {
    ColumnarError::Write { file: path.to_owned(), source: failed.detail.into(), retryable: failed.retryable }
}

/// How an upload failed.
#[derive(Debug, Clone)]
struct Failed {
    detail: String,
    retryable: bool,
}

impl Failed {
    fn finally(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), retryable: false }
    }
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        Self { detail: error.to_string(), retryable: error.is_retryable() }
    }
}

impl OutputFactory for GroupOutputs {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        let name = output_name(&self.inputs_hash, Uuid::new_v4());
        let path = output_path(&self.table, &self.partition, &name)
            .map_err(|error| write_error(&name, Failed::finally(error.to_string())))?;
        let id =
            self.table.store.blob_id(&path).map_err(|error| write_error(&path, Failed::finally(error.to_string())))?;
        let (sender, receiver) = mpsc::channel(1);
        let task = self.handle.spawn(upload(self.table.store.blobs().clone(), id.clone(), receiver));
        Ok(Box::new(UploadSink {
            path,
            id,
            buffer: BytesMut::with_capacity(BLOCK_BYTES),
            written: 0,
            sender: Some(sender),
            task: Some(task),
            failed: None,
            handle: self.handle.clone(),
            finished: self.finished.clone(),
            rows: 0,
            sidecars: self.sidecars.as_ref().map(Sidecars::start),
        }))
    }

    /// Outputs of the attempt so far stay as orphans for the sweep; they are no longer named.
    fn restart(&mut self) -> Result<(), ColumnarError> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(sidecars) = &self.sidecars {
            sidecars.restart();
        }
        Ok(())
    }
}

/// What the writer asks of the upload task.
enum Step {
    Block(Bytes),
    Complete,
}

/// Stages blocks until told to complete; when the writer goes away without that, the upload is aborted and no blob appears.
async fn upload(
    store: Arc<dyn BlobStore>,
    id: BlobId,
    mut steps: mpsc::Receiver<Step>,
) -> Result<Option<BlobProperties>, StorageError> {
    let mut upload = store.upload(&id).await?;
    while let Some(step) = steps.recv().await {
        match step {
            Step::Block(block) => {
                if let Err(error) = upload.write(block).await {
                    upload.abort().await;
                    return Err(error);
                }
            }
            Step::Complete => return upload.complete().await.map(Some),
        }
    }
    upload.abort().await;
    Ok(None)
}

/// The writing end of one output.
#[derive(Debug)]
struct UploadSink {
    path: String,
    id: BlobId,
    buffer: BytesMut,
    written: u64,
    sender: Option<mpsc::Sender<Step>>,
    task: Option<JoinHandle<Result<Option<BlobProperties>, StorageError>>>,
    /// Why the task ended, when it ended early.
    failed: Option<Failed>,
    handle: Handle,
    finished: Arc<Mutex<Vec<Uploaded>>>,
    rows: u64,
    sidecars: Option<OutputSidecars>,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Block(block) => write!(f, "Block({} bytes)", block.len()),
            Step::Complete => f.write_str("Complete"),
        }
    }
}

impl UploadSink {
    fn send(&mut self, step: Step) -> io::Result<()> {
        match &self.sender {
            Some(sender) if sender.blocking_send(step).is_ok() => Ok(()),
            _ => {
                let failed = self.outcome().err().unwrap_or_else(|| Failed::finally("the upload ended early"));
                self.failed = Some(failed.clone());
                // The writer takes the error out of its wrapping, so its meaning is kept.
                Err(io::Error::other(write_error(&self.path, failed)))
            }
        }
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let block = std::mem::replace(&mut self.buffer, BytesMut::with_capacity(BLOCK_BYTES)).freeze();
        self.send(Step::Block(block))
    }

    /// Waits for the task and says how it ended.
    fn outcome(&mut self) -> Result<Option<BlobProperties>, Failed> {
        self.sender = None;
        match self.task.take() {
            Some(task) => match self.handle.block_on(task) {
                Ok(Ok(properties)) => Ok(properties),
                Ok(Err(error)) => Err(error.into()),
                Err(error) => Err(Failed::finally(format!("the upload task ended: {error}"))),
            },
            None => Err(self.failed.clone().unwrap_or_else(|| Failed::finally("the upload had already ended"))),
        }
    }
}

impl Write for UploadSink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = BLOCK_BYTES - self.buffer.len();
        let taken = data.len().min(room);
        self.buffer.extend_from_slice(&data[..taken]);
        self.written += taken as u64;
        if self.buffer.len() == BLOCK_BYTES {
            self.flush_block()?;
        }
        Ok(taken)
    }

    /// Blocks go out when they are full: a flush in between would only make them small.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputSink for UploadSink {
    fn name(&self) -> &str {
        &self.path
    }

    fn tap(&mut self) -> Option<Box<dyn RowGroupTap>> {
        self.sidecars.as_ref()?.tap()
    }

    fn finished(&mut self, rows: u64) {
        self.rows = rows;
    }

    fn close(mut self: Box<Self>) -> Result<(), ColumnarError> {
        let error = |sink: &Self, detail: &str| write_error(&sink.path, Failed::finally(detail));
        let of_io = |sink: &Self, cause: io::Error| match cause.downcast::<ColumnarError>() {
            Ok(known) => known,
            Err(cause) => error(sink, &cause.to_string()),
        };
        self.flush_block().map_err(|cause| of_io(&self, cause))?;
        self.send(Step::Complete).map_err(|cause| of_io(&self, cause))?;
        let properties = self.outcome().map_err(|cause| write_error(&self.path, cause))?;
        let size = match properties {
            Some(properties) if properties.size == self.written => properties.size,
            Some(properties) => {
                let detail = format!("the store holds {} bytes of {} written", properties.size, self.written);
                return Err(error(&self, &detail));
            }
            None => return Err(error(&self, "the upload was aborted")),
        };
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(Uploaded {
            path: self.path.clone(),
            id: self.id.clone(),
            size,
        });
        if let Some(sidecars) = self.sidecars.take() {
            sidecars.finish(&self.id, size, self.rows);
        }
        Ok(())
    }
}
