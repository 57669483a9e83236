//! Merges the Parquet files of a folder through a store that answers late, and prints what it took (benches/latency.sh).
//!
//! `slow_store FOLDER LATENCY_MS MEMORY_MB COLUMN,… [WHOLE_MB]`: files up to WHOLE_MB (8) come whole; every read waits for the latency first, however small it is; outputs go nowhere.
//! A latency of `disk` reads the files from disk directly, as Firn does with tables in a local folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use firn_columnar::{
    BlobRange, ColumnarError, EngineLimits, InputFile, LocalFile, MergeInput, MergeRequest, OutputFactory, OutputSink,
    RangeRead, ReadGate, StopFlag, WriterSettings, merge,
};
use firn_model::{BlobId, OrderColumn, RowOrder};
use firn_storage::{
    BlobProperties, BlobStore, BlobUpload, DeleteCondition, Deleted, LeaseId, ListedBlob, LocalStore, PutCondition,
    StorageError,
};
use futures::stream::BoxStream;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

/// A folder of this machine as if it were far away.
#[derive(Debug)]
struct SlowStore {
    inner: LocalStore,
    latency: Duration,
    requests: AtomicU64,
    bytes: AtomicU64,
}

fn here(id: &BlobId) -> BlobId {
    BlobId { account: String::new(), container: String::new(), key: id.key.clone() }
}

#[async_trait::async_trait]
impl BlobStore for SlowStore {
    async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
        tokio::time::sleep(self.latency).await;
        self.inner.read(&here(id), range).await
    }

    async fn read_all(&self, id: &BlobId) -> Result<Bytes, StorageError> {
        self.inner.read_all(&here(id)).await
    }

    async fn properties(&self, id: &BlobId) -> Result<BlobProperties, StorageError> {
        self.inner.properties(&here(id)).await
    }

    async fn put_leased(
        &self,
        id: &BlobId,
        data: Bytes,
        condition: PutCondition,
        lease: Option<&LeaseId>,
    ) -> Result<BlobProperties, StorageError> {
        self.inner.put_leased(&here(id), data, condition, lease).await
    }

    async fn upload(&self, id: &BlobId) -> Result<Box<dyn BlobUpload>, StorageError> {
        self.inner.upload(&here(id)).await
    }

    fn list(&self, prefix: &BlobId) -> BoxStream<'_, Result<ListedBlob, StorageError>> {
        self.inner.list(&here(prefix))
    }

    async fn delete_leased(
        &self,
        id: &BlobId,
        condition: DeleteCondition,
        lease: Option<&LeaseId>,
    ) -> Result<Deleted, StorageError> {
        self.inner.delete_leased(&here(id), condition, lease).await
    }
}

/// Counts what is written.
struct Nowhere(Arc<AtomicU64>);

impl OutputFactory for Nowhere {
    fn create(&mut self) -> Result<Box<dyn OutputSink>, ColumnarError> {
        Ok(Box::new(Nowhere(Arc::clone(&self.0))))
    }

    fn restart(&mut self) -> Result<(), ColumnarError> {
        self.0.store(0, Ordering::Relaxed);
        Ok(())
    }
}

impl OutputSink for Nowhere {
    fn name(&self) -> &str {
        "nowhere"
    }

    fn close(self: Box<Self>) -> Result<(), ColumnarError> {
        Ok(())
    }
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn parquet_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            parquet_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "parquet") {
            found.push(path);
        }
    }
}

/// The columns of the file by their field ids, as a table would have them.
fn schema_of(path: &Path) -> SchemaRef {
    let file = std::fs::File::open(path).expect("a file");
    let metadata = ArrowReaderMetadata::load(&file, Default::default()).expect("a Parquet file");
    let strip = |field: &Arc<arrow_schema::Field>| {
        let id = field.metadata().get("PARQUET:field_id").cloned().expect("a field id");
        let data_type = match field.data_type() {
            arrow_schema::DataType::LargeUtf8 => arrow_schema::DataType::Utf8,
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(data_type).with_metadata([("PARQUET:field_id".to_owned(), id)].into())
    };
    Arc::new(Schema::new(metadata.schema().fields().iter().map(strip).collect::<Vec<_>>()))
}

fn order_of(schema: &Schema, names: &str) -> RowOrder {
    let columns: Vec<OrderColumn> = names
        .split(',')
        .map(|name| {
            let field = schema.field_with_name(name).expect("a column");
            let id = field.metadata()["PARQUET:field_id"].parse().expect("a number");
            OrderColumn { field_id: id, name: name.to_owned(), descending: false, nulls_first: true }
        })
        .collect();
    let key_columns = columns.len();
    RowOrder {
        dedup_columns: Some(key_columns),
        keeps_commit_order: true,
        key_columns,
        columns,
        table_sort_order_id: None,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, latency, memory, columns, rest @ ..] = &arguments[..] else {
        panic!("FOLDER LATENCY_MS MEMORY_MB COLUMN,… [WHOLE_MB]")
    };
    let mut paths = Vec::new();
    parquet_files(Path::new(folder), &mut paths);
    paths.sort();
    let schema = schema_of(&paths[0]);
    let memory_bytes = memory.parse::<u64>().expect("a number") << 20;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let far = (latency != "disk").then(|| latency.parse::<u64>().expect("milliseconds or `disk`"));
    let slow = Arc::new(SlowStore {
        inner: LocalStore::new(),
        latency: Duration::from_millis(far.unwrap_or(0)),
        requests: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let gate = ReadGate::default();
    let begun = Instant::now();
    let whole = rest.first().map_or(8, |whole| whole.parse().expect("a number")) << 20;
    let open = |path: &PathBuf| -> InputFile {
        let source: Arc<dyn RangeRead> = if far.is_none() {
            Arc::new(LocalFile::open(path).expect("a file"))
        } else {
            let key = std::fs::canonicalize(path).expect("a path").to_str().expect("UTF-8").to_owned();
            let id = BlobId { account: "far".into(), container: "away".into(), key };
            let size = std::fs::metadata(path).expect("a file").len();
            let (handle, name) = (runtime.handle().clone(), path.to_string_lossy().into_owned());
            Arc::new(BlobRange::new(slow.clone(), id, name, size, handle).sharing(&gate))
        };
        InputFile::open_holding(source, &schema, None, whole).expect("a Parquet file of the same table")
    };
    let mut inputs = Vec::new();
    // As many at once as the product opens.
    for paths in paths.chunks(16) {
        let opened: Vec<InputFile> = std::thread::scope(|scope| {
            let threads: Vec<_> = paths.iter().map(|path| scope.spawn(|| open(path))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a footer")).collect()
        });
        for file in opened {
            let (source, rows) = (inputs.len() as u32, file.rows());
            inputs.push(MergeInput::of_table(file, 1 + i64::from(source), source, rows));
        }
    }
    let opened = begun.elapsed();
    let written = Arc::new(AtomicU64::new(0));
    let request = MergeRequest {
        inputs,
        order: order_of(&schema, columns),
        schema,
        settings: WriterSettings::default(),
        target_bytes: 1 << 40,
        min_file_bytes: 32 << 20,
        memory_bytes,
        upload_bytes: 32 << 20,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        limits: EngineLimits::default(),
        stop: StopFlag::default(),
    };
    let begun = Instant::now();
    let report = merge(&request, &mut Nowhere(Arc::clone(&written))).expect("a merge");
    println!(
        "{latency}: opened {:.2} s, merged {:.2} s, {} rows, {} windows, keep_open {}, {} requests, {} MB read, {} MB written",
        opened.as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        report.rows_out,
        report.windows,
        report.admission.keep_open,
        slow.requests.load(Ordering::Relaxed),
        slow.bytes.load(Ordering::Relaxed) >> 20,
        written.load(Ordering::Relaxed) >> 20,
    );
}
